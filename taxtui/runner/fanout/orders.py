"""What a run and its workers say to each other: JSON lines. What a worker measured is in its own file instead."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from taxtui.plan.spec import Plan
from taxtui.recording.events import Cell
from taxtui.runner.cleanup.ledger import TrialShare
from taxtui.runner.fanout.declined import Declined


class WorkerTask(msgspec.Struct, frozen=True, kw_only=True):
    """The first line that a worker reads."""

    plan: Plan
    run_id: str
    share: TrialShare
    clock: int  # the worker's number in the recording
    repetition: int


class DealtTrial(NamedTuple):
    """One trial that is to be run."""

    trial: int
    place: int  # within its block
    due_ns: int | None  # after its block has begun; None: as soon as a lane is free
    attempt: int = 0
    spare: int = -1  # with acquire=reset: a trial's number for the warm-up that may have to come before it


class Lanes(msgspec.Struct, frozen=True, tag="lanes"):
    """So many trials of a block at a time are this worker's; the block is new to it, or its share has changed."""

    cell: int
    block: int
    lanes: int
    began_unix_ns: int  # of the block: what its arrivals are relative to


class Deal(msgspec.Struct, frozen=True, tag="deal"):
    """Trials of a block that are this worker's."""

    cell: int
    block: int
    work: list[DealtTrial]


class Drained(msgspec.Struct, frozen=True, tag="drained"):
    """Nothing more comes of a block."""

    cell: int
    block: int


class Permit(msgspec.Struct, frozen=True, tag="permit"):
    """The answer to ``Asks``."""

    sandbox: str
    granted: bool


class Do(msgspec.Struct, frozen=True, tag="do"):
    """What a person has asked for (``pause``, ``resume``, ``stop``, ``interrupt``, ``cancel``), or ``finish``."""

    op: str


Order = Lanes | Deal | Drained | Permit | Do


class Began(msgspec.Struct, frozen=True, tag="began"):
    """It is ready, and somebody watches over it. Its cells as it would record them, and what its machine is."""

    cells: list[Cell]
    version: str


class Wrote(msgspec.Struct, frozen=True, tag="wrote"):
    """There is more in its file, a trial's end among it."""

    idle: bool = False  # nothing that it was dealt waits for a lane


class Asks(msgspec.Struct, frozen=True, tag="asks"):
    """Whether this sandbox may be made, where the run has a limit."""

    cell: int
    sandbox: str


class Gone(msgspec.Struct, frozen=True, tag="gone"):
    """A sandbox that it was allowed to make is there no more."""

    sandbox: str


class Unstarted(msgspec.Struct, frozen=True, tag="unstarted"):
    """A trial that it was dealt and did not start."""

    trial: int


class Over(msgspec.Struct, frozen=True, kw_only=True, tag="over"):
    """Its last word."""

    crash: str  # "": none
    write_error: str
    cleanup_failed: bool


Telling = Began | Declined | Wrote | Asks | Gone | Unstarted | Over

decode_order = msgspec.json.Decoder(Order).decode
decode_telling = msgspec.json.Decoder(Telling).decode


def line(said: Order | Telling | WorkerTask) -> bytes:
    """As it goes through a pipe."""
    return msgspec.json.encode(said) + b"\n"
