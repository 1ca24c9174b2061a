"""Recordings."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from taxtui.tui import actions
from taxtui.tui.screens.numbered import NumberedScreen


class RecordingsScreen(NumberedScreen):
    """Recordings."""

    scope = "recordings"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("recordings")]

    def contents(self) -> ComposeResult:
        """Recordings."""
        yield Static("")
