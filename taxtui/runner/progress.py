"""How far a run is, for whoever shows it."""

from __future__ import annotations

import msgspec


class Progress(msgspec.Struct):
    """Counts for whoever shows how far a run is; warm-ups are not in them."""

    planned: int
    in_flight: int = 0
    ended: int = 0
    ok: int = 0
    limit: str = ""  # which of the plan's limits has stopped the launching
    left_s: float | None = None  # how long it still took when the last trial ended; None before the first has
    repetition: int = 1  # which of them goes on
    repetitions: int = 1

    @property
    def cut_short(self) -> str:
        """Which limit ended the run before its plan was done; empty where none did."""
        return self.limit if self.ended < self.planned else ""
