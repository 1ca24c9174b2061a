"""Projection."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from taxtui.tui import actions
from taxtui.tui.screens.numbered import NumberedScreen


class ProjectionScreen(NumberedScreen):
    """Projection."""

    scope = "projection"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("projection")]

    def contents(self) -> ComposeResult:
        """Projection."""
        yield Static("")
