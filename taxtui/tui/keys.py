"""The keys at the foot of a screen."""

from __future__ import annotations

from typing import Any

from textual.screen import Screen
from textual.widgets import Footer


class Keys(Footer):
    """What the keys do here; made anew only where that has changed, and not whenever something else has the focus."""

    _shown: list[tuple[str, str, bool, str]] | None = None

    def bindings_changed(self, screen: Screen[Any]) -> None:
        """Textual's own hook, for every change of what might be pressed."""
        found = screen.active_bindings.values()
        shown = [(key.key, key.description, enabled, tip) for _, key, enabled, tip in found if key.show]
        if shown != self._shown:
            super().bindings_changed(screen)
            if self.is_attached and screen is self.screen and screen.app.app_focus:  # or it did nothing
                self._shown = shown
