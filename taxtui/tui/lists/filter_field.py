"""The field for what the rows of a list must contain: there while it is typed in, or holds something."""

from __future__ import annotations

from textual.widgets import Input


class FilterField(Input):
    """An input that comes and goes; the screen that shows the list listens to it."""

    def open(self) -> None:
        """Show it; what is typed next goes there."""
        self.display = True
        self.screen.set_focus(self)

    def settle(self) -> None:
        """Typing is over: an empty one goes away."""
        self.display = bool(self.value)

    def drop(self) -> bool:
        """Take the filter away; whether there was a field."""
        was_there = bool(self.display)
        self.value = ""
        self.display = False
        return was_there

    def forget(self) -> None:
        """As ``drop``, for another list: nobody is told."""
        with self.prevent(Input.Changed):
            self.drop()
