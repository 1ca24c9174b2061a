"""Random numbers and effort of a simulation: no part of the question."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Self

from costmodel.errors import TrainingRunError


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How exactly a row is computed.

    Raises:
        TrainingRunError: ``tolerance`` or ``effort`` is no number above 0.
    """

    seed: int = 0
    tolerance: float = 2e-3  # relative, of the makespan
    effort: float = 1.0  # share of the usual simulation, for answers of many rows

    def __post_init__(self) -> None:
        for name in ("tolerance", "effort"):
            if not 0 < (number := getattr(self, name)) < math.inf:
                raise TrainingRunError(f"{name} must be a number above 0, not {number}")

    def share(self, part: float) -> Self:
        """Return the same precision with ``part`` of the effort."""
        return replace(self, effort=self.effort * part)


USUAL: Final = Precision()
