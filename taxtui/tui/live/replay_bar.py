"""Where a replay stands, on one line that can be clicked and dragged: ``▶ 10× ├━━━●────┄┄┤ 02:10/22:04``."""

from __future__ import annotations

from typing import Final

from rich.style import Style
from rich.text import Text
from textual import events
from textual.message import Message
from textual.widget import Widget

from taxtui.tui.colours import themed
from taxtui.tui.lists.line_list import MUTED
from taxtui.tui.live.replay import Standing

LEFT: Final = len(" ▶ 0.25× ├")
NOWHERE: Final = Standing(0, 0, 0, None, 0, 1.0, paused=False, over=False)


class ReplayBar(Widget):
    """Played, known and unread parts differ in their glyphs, not in colour alone."""

    class Sought(Message):
        """A person points at a share of the whole time, 0 to 1."""

        def __init__(self, share: float) -> None:
            """Go there."""
            super().__init__()
            self.share = share

    class Toggled(Message):
        """A person clicked on the sign for playing or pausing."""

    def __init__(self, *, id: str | None = None) -> None:
        """Stand nowhere."""
        super().__init__(id=id)
        self.standing = NOWHERE
        self._dragged = False

    def show(self, standing: Standing) -> None:
        """Draw this, if it is new."""
        if standing != self.standing:
            self.standing = standing
            self.refresh()

    def render(self) -> Text:
        """The sign, the speed, the track, the time."""
        stands = self.standing
        sign = "■" if stands.over else "‖" if stands.paused else "▶"
        speed = f"{stands.speed:g}×" if stands.speed else "max"
        room, knob = self._room, self._knob
        known = room if stands.known_ns >= stands.length_ns else int(stands.known_ns / stands.length_ns * room)
        before, after = min(known, knob), max(known, knob + 1)
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
        """Columns of the track."""
        return max(1, self.size.width - LEFT - len(self._right) - 1)

    @property
    def _knob(self) -> int:
        """Its column on the track."""
        return round(self.standing.share * (self._room - 1))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the track, or click on the sign."""
        if event.x < LEFT - 1:
            self.post_message(self.Toggled())
        elif event.x < LEFT + self._room:
            self._dragged = True
            self.capture_mouse()
            self._seek(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag."""
        if self._dragged:
            self._seek(event.x)

    def on_mouse_up(self) -> None:
        """Let go."""
        self._dragged = False
        self.release_mouse()

    def _seek(self, x: int) -> None:
        place = min(max(x - LEFT, 0), self._room - 1)
        self.post_message(self.Sought(place / max(1, self._room - 1)))


def instant(ns: float, *, hours: bool) -> str:
    """``02:10``, or ``1:02:10`` where the whole takes hours."""
    seconds = round(ns / 1e9)
    minutes = f"{seconds // 60 % 60 if hours else seconds // 60:02}:{seconds % 60:02}"
    return f"{seconds // 3600}:{minutes}" if hours else minutes
