"""Every message between a run and its workers. Across processes each is one JSON line."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

import costmodel
import taxtui.errors
from costmodel import Cell
from taxtui.errors import TaxtuiError, located
from taxtui.plan.spec import Plan
from taxtui.runner.cleanup.ledger import TrialShare
from taxtui.runner.redaction import scrub

LINE_BYTES: Final = 64 << 20
"""The longest line that is read: a plan of many cells, each with its tier."""

WARM_UP: Final = -1
"""The number of a batch of warm-ups."""
FINISH: Final = "finish"
"""The command that ends a worker once its trials have ended."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run that one worker measures. Its trials follow in ``Assign``."""

    plan: Plan  # of one repetition, with the seed of that repetition
    run_id: str
    share: TrialShare  # the trial numbers that this worker may use
    clock: int  # the worker's number in the recording
    repetition: int = 0
    parts: tuple[str, ...] = ("",)  # the first names new sandboxes; the worker may remove sandboxes of all


class AssignedTrial(NamedTuple):
    """One trial that a worker runs."""

    trial: int
    place: int  # within its batch
    due_ns: int | None  # after the start of its batch; None: as soon as a slot is free
    attempt: int = 0
    spare: int = -1  # with acquire=reset: the trial number of a warm-up that may have to come first


class Slots(msgspec.Struct, frozen=True, tag="slots"):
    """The number of trials of a batch that this worker runs at a time."""

    cell: int
    batch: int
    slots: int
    elapsed_ns: int  # since the batch began: a duration, so that clocks of two machines are never subtracted


class Assign(msgspec.Struct, frozen=True, tag="assign"):
    """More trials of a batch for this worker."""

    cell: int
    batch: int
    trials: list[AssignedTrial]


class EndOfBatch(msgspec.Struct, frozen=True, tag="end_of_batch"):
    """No more trials of a batch follow."""

    cell: int
    batch: int


class BudgetAnswer(msgspec.Struct, frozen=True, tag="budget_answer"):
    """The answer to ``BudgetRequest``."""

    sandbox: str
    granted: bool


class WorkerCommand(msgspec.Struct, frozen=True, tag="command"):
    """``pause``, ``resume``, ``stop``, ``interrupt``, ``cancel`` or ``finish``."""

    op: str


ToWorker = Slots | Assign | EndOfBatch | BudgetAnswer | WorkerCommand


class StartupError(msgspec.Struct, frozen=True, tag="startup_error"):
    """The error that prevents a worker's start. The run raises it again."""

    error: str  # its class
    problem: str
    fix: str

    @classmethod
    def of(cls, error: Exception) -> StartupError:
        problem, fix = f"{located(error)} {scrub(str(error))}".rstrip(), ""
        if isinstance(error, TaxtuiError):
            problem, fix = error.problem, error.fix
        elif isinstance(error, costmodel.CostModelError):
            problem = str(error)
        return cls(type(error).__name__, problem, fix)

    def exception(self) -> Exception:
        for module in (taxtui.errors, costmodel):
            kind = getattr(module, self.error, None)
            if isinstance(kind, type) and issubclass(kind, TaxtuiError):
                return kind(self.problem, fix=self.fix)
            if isinstance(kind, type) and issubclass(kind, Exception):
                return kind(self.problem)
        return TaxtuiError(f"{self.error}: {self.problem}", fix=self.fix)


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The worker can measure and its watchdog is ready."""

    cells: list[Cell]  # as this worker would record them
    version: str


class Flushed(msgspec.Struct, frozen=True, tag="flushed"):
    """The worker's file has more events, the end of a trial among them."""

    idle: bool = False  # no assigned trial waits for a slot


class BudgetRequest(msgspec.Struct, frozen=True, tag="budget_request"):
    """The worker asks whether the run's limits allow one more sandbox."""

    cell: int
    sandbox: str


class SandboxGone(msgspec.Struct, frozen=True, tag="sandbox_gone"):
    """A sandbox that counts against a limit has been removed."""

    sandbox: str


class NotStarted(msgspec.Struct, frozen=True, tag="not_started"):
    """The worker hands back an assigned trial."""

    trial: int


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """The worker's last message."""

    crash: str = ""  # empty: none
    write_error: str = ""
    cleanup_failed: bool = False  # after its own final sweep
    failed_removals: int = 0  # clean-ups of trials that failed, where the run itself sweeps


FromWorker = Ready | StartupError | Flushed | BudgetRequest | SandboxGone | NotStarted | Finished

decode_to_worker = msgspec.json.Decoder(ToWorker).decode
decode_from_worker = msgspec.json.Decoder(FromWorker).decode


def line(message: ToWorker | FromWorker | Assignment) -> bytes:
    """Encode a message for a pipe."""
    return msgspec.json.encode(message) + b"\n"
