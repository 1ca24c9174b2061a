"""Messages between a run and workers; between processes one JSON line each."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

import taxtui.errors
from costmodel import events
from taxtui.errors import TaxtuiError, located
from taxtui.plan.spec import Plan
from taxtui.runner.cleanup.ledger import TrialShare
from taxtui.runner.redaction import scrub

LINE_BYTES: Final = 64 << 20
"""The longest line: a plan of many cells with tiers."""

WARM_UP: Final = -1
"""The number of a batch of warm-ups."""
FINISH: Final = "finish"
"""The command to end a worker after the last trial."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """One worker's part of a run. Trials follow in ``Assign``."""

    plan: Plan  # of one repetition, with the repetition's seed
    run_id: str
    share: TrialShare  # the worker's trial numbers
    clock: int  # the worker's number in the recording
    repetition: int = 0
    parts: tuple[str, ...] = ("",)  # the first names new sandboxes; the worker may remove sandboxes of all
    gather_s: float = 0.005  # events within this time are one message, unless the worker waits for trials


class AssignedTrial(NamedTuple):
    """One trial of a worker."""

    trial: int
    place: int  # within the batch
    due_ns: int | None  # after the start of the batch; None: as soon as a slot is free
    attempt: int = 0
    spare: int = -1  # with acquire=reset: the trial number for a warm-up


class Assign(msgspec.Struct, frozen=True, tag="assign"):
    """More trials of a batch for this worker, in order."""

    cell: int
    batch: int
    slots: int  # the worker's number of concurrent trials of the batch
    elapsed_ns: int  # since the batch began: clocks of two machines are never subtracted
    trials: list[AssignedTrial]


class WorkerCommand(msgspec.Struct, frozen=True, tag="command"):
    """``pause``, ``resume``, ``stop``, ``interrupt``, ``cancel`` or ``finish``."""

    op: str


ToWorker = Assign | WorkerCommand


class StartupError(msgspec.Struct, frozen=True, tag="startup_error"):
    """A worker's error at the start, raised again by the run."""

    error: str  # class
    problem: str
    fix: str

    @classmethod
    def of(cls, error: Exception) -> StartupError:
        problem, fix = f"{located(error)} {scrub(str(error))}".rstrip(), ""
        if isinstance(error, TaxtuiError):
            problem, fix = error.problem, error.fix
        return cls(type(error).__name__, problem, fix)

    def exception(self) -> TaxtuiError:
        kind = getattr(taxtui.errors, self.error, None)
        if isinstance(kind, type) and issubclass(kind, TaxtuiError):
            return kind(self.problem, fix=self.fix)
        return TaxtuiError(f"{self.error}: {self.problem}", fix=self.fix)


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Worker and watchdog are ready."""

    cells: list[events.Cell]  # as recorded by this worker
    version: str
    clock: events.Clock | None = None  # of the worker's events; None: the worker itself records them


class Recorded(msgspec.Struct, frozen=True, tag="recorded"):
    """The worker's next events."""

    events: list[events.Event]


class NotStarted(msgspec.Struct, frozen=True, tag="not_started"):
    """The worker hands back an assigned trial."""

    trial: int


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """The worker's last message."""

    crash: str = ""  # empty: none
    cleanup_failed: bool = False  # after the worker's final sweep


FromWorker = Ready | StartupError | Recorded | NotStarted | Finished

decode_to_worker = msgspec.json.Decoder(ToWorker).decode
decode_from_worker = msgspec.json.Decoder(FromWorker).decode


def line(message: ToWorker | FromWorker | Assignment) -> bytes:
    """Encode a message for a pipe."""
    return msgspec.json.encode(message) + b"\n"
