"""Progress of a run."""

from __future__ import annotations

import msgspec


class Progress(msgspec.Struct):
    """Progress of a run, without warm-ups."""

    planned: int
    in_flight: int = 0
    ended: int = 0
    ok: int = 0
    limit: str = ""  # the plan's limit at which launching stopped
    before: int = 0  # trials that ended in earlier parts of a resumed run
    repetition: int = 1  # the current one
    repetitions: int = 1

    @property
    def cut_short(self) -> str:
        """The limit at which the run ended early; else empty."""
        return self.limit if self.ended < self.planned else ""

    def left_s(self, elapsed_s: float) -> float | None:
        """Return the remaining time by the pace so far; None before the first end in this part of the run.

        A trial in flight counts as half done.
        """
        done, half = self.ended - self.before, self.in_flight / 2
        return elapsed_s * max(0.0, self.planned - self.ended - half) / (done + half) if done else None
