"""Feeds and answers that depend on no child process, no clock and no machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import structs

from costmodel.recording.events import Event
from taxtui.live.state import RunState
from taxtui.report.plan_cost import CheckedSubstrate
from taxtui.tui.app import TaxtuiApp
from taxtui.tui.live.feed import RunFeed
from taxtui.tui.live.replay import Feed

ANSWERS = {
    "local": CheckedSubstrate(
        name="local",
        ok=True,
        detail="ready, bubblewrap 0.8.0, limits: cgroup v2",
        variant="bwrap",
        latency_ns=6_000_000,
    ),
    "docker": CheckedSubstrate(
        name="docker", ok=True, detail="ready, 27.1, runc", variant="runc", latency_ns=3_000_000
    ),
    "ec2": CheckedSubstrate(name="ec2", ok=False, detail="credentials expired", fix="aws sso login"),
    "daytona": CheckedSubstrate(name="daytona", ok=True, detail="key ok", capabilities={"paid": True}),
}


async def answers(refs: Sequence[str] = ()) -> Mapping[str, CheckedSubstrate]:
    """As the substrates of ``ANSWERS`` would say; options change nothing."""
    return {ref: structs.replace(ANSWERS[ref.partition(":")[0]], name=ref) for ref in refs} or ANSWERS


PRICED = {
    **ANSWERS,
    "ecs": CheckedSubstrate(
        name="ecs", ok=True, variant="fargate", prices="aws-fargate", capabilities={"paid": True},
        detail="ready as me in us-east-1; 0.049 USD per sandbox-hour, 60 s at least: --prices aws-fargate",
    ),
}  # fmt: skip


async def priced(refs: Sequence[str]) -> Mapping[str, CheckedSubstrate]:
    return PRICED


class StoryRun(RunFeed):
    """A run whose child is a list of events: all of them are there at the first look, or after ``goes_on``."""

    def __init__(self, told: list[Event], *, exit_code: int | None = None, complaint: tuple[str, ...] = ()) -> None:
        self.path = Path("no-such-folder/story.msgpack")
        self.state = RunState()
        self.paused = self.cancelled = False
        self.sent: list[str] = []
        self.closed = False
        self._told = list(told)
        self._exit_code = exit_code
        self._complaint = list(complaint)

    def goes_on(self, told: list[Event], *, exit_code: int | None = None) -> None:
        self._told += told
        self._exit_code = exit_code

    def advance(self) -> bool:
        for event in self._told:
            self.state.apply(event)
        self._told.clear()
        return False

    @property
    def exit_code(self) -> int | None:
        return self._exit_code

    @property
    def over(self) -> bool:
        return self._exit_code is not None and not self._told

    @property
    def size_bytes(self) -> int:
        return 123_456

    @property
    def complaint(self) -> list[str]:
        return self._complaint

    def _send(self, op: str) -> None:
        self.sent.append(op)

    def close(self) -> None:
        self.closed = True


def app(feed: Feed | None = None) -> TaxtuiApp:
    return TaxtuiApp(feed, answers)
