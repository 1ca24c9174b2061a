"""What is shown instead of a screen that does not fit; the run goes on behind it."""

from __future__ import annotations

from typing import Final

from rich.text import Text
from textual.app import RenderResult
from textual.widget import Widget

MINIMUM: Final = (80, 24)


class TooSmall(Widget):
    """Shown by the stylesheet where the screen has the class ``-narrow`` or ``-low``."""

    def render(self) -> RenderResult:
        """What is needed and what there is."""
        width, height = self.app.size
        return Text(f"needs {MINIMUM[0]}x{MINIMUM[1]}, have {width}x{height}", "bold", justify="center")
