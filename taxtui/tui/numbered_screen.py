"""What the numbered screens share: the bar of tabs, the keys, and what is shown where there is no room."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.screen import Screen

from taxtui.tui.actions import Scope
from taxtui.tui.too_small import TooSmall
from taxtui.tui.top_bar import TopBar

if TYPE_CHECKING:
    from taxtui.tui.run_app import RunApp


class NumberedScreen(Screen[None]):
    """A screen that a digit leads to; its actions are those of its ``scope``."""

    scope: ClassVar[Scope]
    CSS_PATH = "screen.tcss"  # beside each, parsed when it is first gone to

    @property
    def taxtui(self) -> RunApp:
        """The app, by its own type."""
        return cast("RunApp", self.app)

    def compose(self) -> ComposeResult:
        """The tabs, what the screen is about, the keys."""
        yield TooSmall()
        yield TopBar(self.scope)
        yield from self.contents()
        yield from self.foot()

    def contents(self) -> ComposeResult:
        """What stands between the tabs and the keys."""
        raise NotImplementedError

    def foot(self) -> ComposeResult:
        """The keys."""
        from taxtui.tui.keys import Keys  # Setup's first frame has none

        yield Keys(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Follow the theme, whoever changes it. Textual calls this besides a subclass's own."""
        self.app.theme_changed_signal.subscribe(self, lambda _: self.restyle())

    def _compositor_refresh(self) -> None:
        """Under a dialog draw what has changed: Textual would draw everything anew with each message that comes."""
        super()._compositor_refresh()
        if self is not self.app.screen:
            self._repaint_required = False  # what has changed is drawn

    def arrive(self) -> None:
        """A person has come here: show what the app holds now."""

    def restyle(self) -> None:
        """The theme has changed: draw anew what chose its colours itself."""

    def export(self, path: Path) -> None:
        """Write the screen as an SVG."""
        try:
            path.write_text(self.app.export_screenshot(title="taxtui"), encoding="utf-8", errors="replace")
        except OSError as error:
            self.notify(f"cannot write {path}: {error.strerror}", severity="error")
        else:
            self.notify(str(path), title="Exported")
