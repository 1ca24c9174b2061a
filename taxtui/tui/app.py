"""The app: its screens, and how one gets from one to the other."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual.app import SystemCommand
from textual.binding import BindingType
from textual.screen import Screen

from taxtui.tui import actions
from taxtui.tui.colours import THEMES
from taxtui.tui.numbered_screen import NumberedScreen
from taxtui.tui.run_app import RunApp
from taxtui.tui.too_small import MINIMUM

if TYPE_CHECKING:
    from taxtui.tui.live.feed import Feed
    from taxtui.tui.setup.availability import Checker

COLLECT_AFTER: Final = (20_000, 10, 10)
"""Cycles are looked for this rarely: what a frame or an event allocates is freed without, and looking after every 700
took a sixth of what a flood of events costs."""


FIRST: Final = actions.SCREENS[0]


def _made(tab: actions.NumberedTab) -> NumberedScreen:
    """Made when it is first gone to: the first need not wait for what the others import."""
    module = import_module(f"taxtui.tui.{tab.scope}.screen")
    return cast("NumberedScreen", getattr(module, tab.screen)())


class TaxtuiApp(RunApp):
    """The screens, the keys that lead to them, and the palette."""

    CSS_PATH = ["app.tcss", f"{FIRST.scope}/screen.tcss"]  # noqa: RUF012  # one parse for both before the first frame
    TITLE = "taxtui"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("app")]
    MODES: ClassVar = {tab.scope: partial(_made, tab) for tab in actions.SCREENS if tab != FIRST}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (MINIMUM[0], "-normal"), (120, "-wide")]  # noqa: RUF012  # Textual declares them per instance
    VERTICAL_BREAKPOINTS = [(0, "-low"), (MINIMUM[1], "-medium"), (30, "-high")]  # noqa: RUF012  # Textual declares them per instance

    def __init__(self, feed: Feed | None = None, checker: Checker | None = None) -> None:
        """Open on Live where there is a feed, else on the first; ``checker`` says whether substrates can be used."""
        self.DEFAULT_MODE = "live" if feed else FIRST.scope  # type: ignore[misc]  # Textual reads it per instance
        super().__init__(feed, checker)
        gc.set_threshold(*COLLECT_AFTER)

    def get_default_screen(self) -> Screen[Any]:
        """The first, where there is nothing to watch: the stylesheets are not parsed again for a default screen."""
        return _made(FIRST)

    def _load_screen_css(self, screen: Screen[Any]) -> None:
        """Add the stylesheet of a screen that is gone to for the first time.

        Textual would parse all there are three times anew, and style and lay out the screen that is being left.
        """
        for path in screen.css_path:
            if not self.stylesheet.has_source(str(path), ""):
                self.stylesheet.read(path)
        screen._css_update_count = self._css_update_count  # it is made with the styles there are

    def on_mount(self) -> None:
        """The first screen is there."""
        self.add_mode(FIRST.scope, partial(_made, FIRST))
        if isinstance(self.screen, NumberedScreen):
            self.screen.arrive()

    async def action_go(self, scope: actions.Scope) -> None:
        """Go to a screen."""
        await self.switch_mode(scope)
        if isinstance(self.screen, NumberedScreen):
            self.screen.arrive()

    def action_help(self) -> None:
        """All keys of this screen."""
        if isinstance(self.screen, NumberedScreen):
            from taxtui.tui.dialogs import help_dialog

            self.push_screen(help_dialog(self.screen.scope))

    def action_next_theme(self) -> None:
        """The next theme of a short list."""
        place = THEMES.index(self.theme) if self.theme in THEMES else -1
        self.theme = THEMES[(place + 1) % len(THEMES)]
        self.notify(self.theme, timeout=1.5)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: the actions of this screen and of the app."""
        scopes = (screen.scope, "app") if isinstance(screen, NumberedScreen) else ("app",)
        for action in actions.of(*scopes):
            where = "app" if action.scope == "app" else "screen"
            if action.name != "command_palette":
                title = f"{action.label} ({action.shown})"
                yield SystemCommand(title, action.help, partial(self.run_action, f"{where}.{action.name}"))
