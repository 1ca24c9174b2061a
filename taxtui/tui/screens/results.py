"""Results."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from taxtui.tui import actions
from taxtui.tui.screens.numbered import NumberedScreen


class ResultsScreen(NumberedScreen):
    """Results."""

    scope = "results"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("results")]

    def contents(self) -> ComposeResult:
        """Results."""
        yield Static("")
