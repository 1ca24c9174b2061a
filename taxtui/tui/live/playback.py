"""What a person can do with a replay: its keys, and the mouse on its bar."""

from __future__ import annotations

from textual import on
from textual.widgets import Input

from taxtui.errors import UsageError
from taxtui.tui.dialogs import Ask
from taxtui.tui.live.feed import Feed
from taxtui.tui.live.replay import ReplayFeed
from taxtui.tui.live.replay_bar import ReplayBar
from taxtui.tui.numbered_screen import NumberedScreen


class PlaybackScreen(NumberedScreen):
    """A screen that shows a feed, frame by frame; where that is a replay, it can be sped up, stepped and sought in.

    An action only says what is wanted. The tick does it, and there is one for however many keys came before it.
    """

    def __init__(self) -> None:
        """Show nothing yet."""
        super().__init__()
        self.feed: Feed | None = None
        self.hurried = False  # a tick has been asked for and has not come yet

    @property
    def replay(self) -> ReplayFeed | None:
        """What is played back; None where that is a run, or nothing."""
        return self.feed if isinstance(self.feed, ReplayFeed) else None

    def hurry(self) -> None:
        """Tick now and not only at the end of the frame."""
        if not self.hurried:
            self.hurried = True
            self.call_later(self.tick)

    def tick(self) -> None:
        """Fold, then paint."""
        raise NotImplementedError

    def action_pause(self) -> None:
        """Stop the clock, or let it go on."""
        if self.replay:
            self.replay.pause()
            self.hurry()

    def offers_replay(self, action: str) -> bool:
        """Whether an action on a replay can be done now."""
        moves_cursor = action in ("seek", "seek_by") and isinstance(self.focused, Input)
        return self.replay is not None and not moves_cursor

    def action_faster(self, steps: int) -> None:
        """Another replay speed."""
        if self.replay:
            self.replay.faster(steps)
            self.hurry()

    def action_full_speed(self) -> None:
        """As fast as the recording can be read, or real time."""
        if self.replay:
            self.replay.full_speed()
            self.hurry()

    def action_seek(self, share: float) -> None:
        """A share of the replay's whole time."""
        if self.replay:
            self.replay.seek(share)
            self.hurry()

    @on(ReplayBar.Sought)
    def sought(self, message: ReplayBar.Sought) -> None:
        """The mouse's way to seek."""
        self.action_seek(message.share)

    def action_seek_by(self, percent: int) -> None:
        """Further on in the replay, or back."""
        if self.replay:
            self.replay.seek_by(percent / 100)
            self.hurry()

    def action_step(self) -> None:
        """One more trial of the replay."""
        if self.replay:
            self.replay.step()
            self.hurry()

    def action_step_back(self) -> None:
        """One trial less of the replay."""
        if self.replay:
            self.replay.step_back()
            self.hurry()

    async def action_go_to(self) -> None:
        """Any place in the replay."""
        body = "The time since the start (2:10 or 1:02:10), a share of the whole (50%), or the end of a trial (#158)."
        # waited for: what is typed at once must not reach the keys of this screen
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
        """The mouse's way to pause a replay."""
        self.action_pause()
