"""A worker as the run sees it that it belongs to: what it was dealt, and what of its trials has come in."""

from __future__ import annotations

import msgspec

from taxtui.recording.causality import InCourse
from taxtui.recording.events import (
    CLEANUP,
    INTERRUPTED,
    Actions,
    Cell,
    Clock,
    Event,
    PhaseEnded,
    TrialEnded,
    TrialStarted,
)
from taxtui.recording.frames import Chain, FrameParser, decode
from taxtui.runner.cleanup.ledger import TrialShare
from taxtui.runner.fanout.orders import DealtTrial, Order, line
from taxtui.runner.fanout.placing import WorkerPlace
from taxtui.runner.fanout.sharing import SharedBlock

LOST: tuple[str, str] = ("WorkerLost", "the worker that ran it is gone")


class Dealt(msgspec.Struct, frozen=True):
    """One trial that a worker has."""

    block: SharedBlock
    work: DealtTrial


class Unended(msgspec.Struct):
    """A trial that a worker has begun."""

    started: TrialStarted
    course: InCourse
    cleaned_ns: int = 0  # the end of its clean-up, which lies behind its end

    def lasted_s(self, end: TrialEnded) -> float:
        """How long it took a lane."""
        return (max(self.cleaned_ns, end.end_ns) - self.started.start_ns) / 1e9


class Member:
    """One worker of a run."""

    def __init__(self, share: TrialShare, place: WorkerPlace, first_trial: int) -> None:
        """It was started; nothing has been heard of it. Its trials are numbered from ``first_trial`` on."""
        self.share = share
        self.place = place
        self.alive = True
        self.over = False  # it has said its last word
        self.cells: list[Cell] = []  # as it would record them
        self.clock: Clock | None = None
        self.dealt: dict[int, Dealt] = {}  # by trial
        self.unended: dict[int, Unended] = {}  # by trial
        self.permitted: set[str] = set()  # sandboxes that count against a limit
        self._turn = -(-(first_trial - share.worker) // share.workers)
        self._parser, self._chain = FrameParser(), Chain()

    @property
    def number(self) -> int:
        """From 0."""
        return self.share.worker

    def next_trial(self) -> int:
        """A number for a trial of its own."""
        self._turn += 1
        return self.share.number(self._turn - 1)

    @property
    def first_free(self) -> int:
        """The lowest of its numbers that was not used."""
        return self.share.number(self._turn)

    def tell(self, order: Order) -> None:
        """Tell it, if it is there."""
        if self.alive:
            self.place.order(line(order))

    def read(self, data: bytes) -> list[Event]:
        """The next events of its file, its Clock aside.

        Raises:
            RecordingError: they are not what it wrote, or something is missing before them.
        """
        events: list[Event] = []
        for offset, payload in self._parser.feed(data):
            batch = decode(payload, offset)
            self._chain.add(batch, payload, offset)
            events += batch.events
        if self.clock is None and events:
            first = events.pop(0)
            assert isinstance(first, Clock)
            self.clock = first
        return events

    def follow(self, event: Event) -> Unended | None:
        """Take in one of them; the trial that it ends."""
        if isinstance(event, TrialStarted):
            self.unended[event.trial] = Unended(event, InCourse(event.start_ns))
        elif isinstance(event, Actions):
            self.unended[event.trial].course.took(event)
        elif isinstance(event, PhaseEnded):
            trial = self.unended[event.trial]
            if event.phase == CLEANUP:
                trial.cleaned_ns = event.start_ns + event.duration_ns
            else:
                trial.course.passed(event)
        elif isinstance(event, TrialEnded):
            return self.unended.pop(event.trial)
        return None

    def interrupted(self) -> list[TrialEnded]:
        """The ends of what it had begun when it was lost: as early as each can have been."""
        error, message = LOST
        return [
            TrialEnded(number, INTERRUPTED, "", error, message, trial.course.earliest_end_ns, 0, "warm")
            for number, trial in self.unended.items()
        ]
