"""What a trial needs of the run around it."""

from __future__ import annotations

from typing import Protocol

from costmodel.recording.events import Event
from taxtui.plan.spec import CellPlan
from taxtui.runner.trial.bracket import Method
from taxtui.sandboxes.protocol import Substrate


class Context(Protocol):
    """A cell of a run, as its trials see it."""

    substrate: Substrate
    plan: CellPlan
    cell: int
    method: Method
    preload: bool  # run the tier's preload in this trial
    timeout_s: float
    create_timeout_s: float
    seed: int
    repetition: int  # of the whole run
    image_bytes: int  # of what sandboxes are made from; UNKNOWN where nobody tells
    anchor_ns: int  # what every instant in the recording is relative to

    def now(self) -> int:
        """``time.monotonic_ns()`` − ``anchor_ns``."""
        ...

    def emit(self, event: Event) -> None:
        """Append to the recording."""
        ...
