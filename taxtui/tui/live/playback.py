"""Playback of a recording: bar, keys, mouse."""

from __future__ import annotations

from typing import Final

from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from taxtui.errors import UsageError
from taxtui.tui.colours import themed
from taxtui.tui.dialogs import Ask
from taxtui.tui.lists import MUTED
from taxtui.tui.live.feed import Feed
from taxtui.tui.live.replay import ReplayFeed, Standing
from taxtui.tui.numbered_screen import NumberedScreen

LEFT: Final = len(" ▶ 0.25× ├")
NOWHERE: Final = Standing(0, 0, 0, None, 0, 1.0, paused=False, over=False)


class ReplayBar(Widget):
    """Played, known and unread parts differ in their glyphs, not in colour alone."""

    class Sought(Message):
        """A person points at a share of the whole time, 0 to 1."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    class Toggled(Message):
        """A person clicked on the sign for playing or pausing."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.standing = NOWHERE

    def show(self, standing: Standing) -> None:
        if standing != self.standing:
            self.standing = standing
            self.refresh()

    def render(self) -> Text:
        stands = self.standing
        sign = "■" if stands.over else "‖" if stands.paused else "▶"
        speed = f"{stands.speed:g}×" if stands.speed else "max"
        room, knob = self._room, self._knob
        read = room if stands.known_ns >= stands.length_ns else int(stands.known_ns / stands.length_ns * room)
        before, after = min(read, knob), max(read, knob + 1)
        colour = themed(self.app.theme_variables, "text-primary")
        return Text.assemble(
            (f" {sign} ", "bold"),
            f"{speed:<5} ├",
            ("━" * before, colour),
            ("┄" * (knob - before), MUTED),
            ("●", colour + Style(bold=True)),
            "─" * (after - knob - 1),
            ("┄" * (room - after), MUTED),
            f"┤{self._right}",
            no_wrap=True,
        )

    @property
    def _right(self) -> str:
        """`` 02:10/22:04 · reading 43 % ``."""
        stands = self.standing
        hours = stands.length_ns >= 3600e9
        text = f" {instant(stands.at_ns, hours=hours)}/{instant(stands.length_ns, hours=hours)}"
        if stands.seeking is not None:
            text += f" · seeking {min(99, int(stands.seeking * 100)):>2} %"
        elif stands.known_ns < stands.length_ns:
            text += f" · reading {min(99, int(stands.known_ns / stands.length_ns * 100)):>2} %"
        return f"{text} "

    @property
    def _room(self) -> int:
        return max(1, self.size.width - LEFT - len(self._right) - 1)

    @property
    def _knob(self) -> int:
        return round(self.standing.share * (self._room - 1))

    def on_click(self, event: events.Click) -> None:
        if event.x < LEFT - 1:
            self.post_message(self.Toggled())
        elif event.x < LEFT + self._room:
            self.post_message(self.Sought(max(event.x - LEFT, 0) / max(1, self._room - 1)))


def instant(ns: float, *, hours: bool) -> str:
    """``02:10``, or ``1:02:10`` where the whole takes hours."""
    seconds = round(ns / 1e9)
    minutes = f"{seconds // 60 % 60 if hours else seconds // 60:02}:{seconds % 60:02}"
    return f"{seconds // 3600}:{minutes}" if hours else minutes


SEEK: Final = 0.05
"""Share of a replay that one key seeks."""


class PlaybackScreen(NumberedScreen):
    """A screen of a feed; a replay can change speed and seek.

    An action only records a wish. The next tick fulfils all wishes since the previous tick.
    """

    def __init__(self) -> None:
        super().__init__()
        self.feed: Feed | None = None
        self.hurried = False  # a tick has been asked for and has not come yet

    @property
    def replay(self) -> ReplayFeed | None:
        return self.feed if isinstance(self.feed, ReplayFeed) else None

    def hurry(self) -> None:
        if not self.hurried:
            self.hurried = True
            self.call_later(self.tick)

    def tick(self) -> None:
        raise NotImplementedError

    def action_pause(self) -> None:
        if self.replay:
            self.replay.pause()
            self.hurry()

    def offers_replay(self, action: str) -> bool:
        """Whether an action on a replay can be done now."""
        moves_cursor = action == "adjust" and isinstance(self.focused, Input)
        return self.replay is not None and not moves_cursor

    def action_faster(self, steps: int) -> None:
        if self.replay:
            self.replay.faster(steps)
            self.hurry()

    @on(ReplayBar.Sought)
    def sought(self, message: ReplayBar.Sought) -> None:
        if self.replay:
            self.replay.seek(message.share)
            self.hurry()

    def action_adjust(self, step: int) -> None:
        if self.replay:
            self.replay.seek_by(step * SEEK)
            self.hurry()

    async def action_go_to(self) -> None:
        body = "The time since the start (2:10 or 1:02:10), a share of the whole (50%), or the end of a trial (#158)."
        # awaited: a key that follows at once must reach the dialog
        await self.app.push_screen(Ask("Go to", body, placeholder="2:10"), self._go_to)

    def _go_to(self, text: str | None) -> None:
        if text and self.replay:
            try:
                self.replay.go_to(text)
            except UsageError as error:
                self.notify(str(error), severity="error")
            self.hurry()

    @on(ReplayBar.Toggled)
    def toggled(self) -> None:
        self.action_pause()
