"""What may be said of two means: they differ, they tie, or too few runs were made to tell."""

from __future__ import annotations

from typing import Final, NamedTuple

from costmodel.runs import Assumed, Estimate, apart, measures, paired, separate
from costmodel.uncertainty import Interval, difference

DIFFERS: Final = "differs"
TIE: Final = "tie"
CANNOT_TELL: Final = "cannot_tell"
UNKNOWN: Final = "unknown"
_RUNS: Final = {1: "one run", 2: "two runs"}


class Finding(NamedTuple):
    """One of ``DIFFERS``, ``TIE``, ``CANNOT_TELL`` (runs differ too much for so few), ``UNKNOWN`` (no interval)."""

    kind: str
    seen: float | None = None  # the change, relative to what it is a change of
    runs_apart: float | None = None  # how far such means lie apart in 95 % of all cases though nothing has changed
    runs: tuple[int, int] = (0, 0)
    together: bool = False  # measured in the same runs, so that what both shared cancels

    @property
    def tie(self) -> bool | None:
        """True and False where that can be said."""
        return {TIE: True, DIFFERS: False}.get(self.kind)

    @property
    def words(self) -> str:
        """``cannot tell from one run each (seen +11 %, runs differ by ±19 %)``; empty where nothing is known."""
        if self.kind != CANNOT_TELL:
            return "" if self.kind == UNKNOWN else self.kind
        runs, _, apart = self.reason.partition(" (")
        return f"cannot tell {runs} ({'' if self.seen is None else f'seen {100 * self.seen:+.0f} %, '}{apart}"

    @property
    def reason(self) -> str:
        """Why it cannot be told: ``from one run each (runs differ by ±19 %)``."""
        one, other = (_RUNS.get(count, f"{count} runs") for count in self.runs)
        each = f"{one} each" if one == other else f"{one} and {other}"
        return f"from {each} (runs differ by ±{100 * (self.runs_apart or 0.0):.0f} %)"


class Difference(NamedTuple):
    """A difference with its 95 % interval, and what follows from it."""

    value: Interval
    verdict: Finding


def judge(one: Estimate, other: Estimate, assume: Assumed) -> Difference:
    """``one`` − ``other``. In the same runs paired, else with the run effect; ``assume`` is for one run or two."""
    seen = one.value / other.value - 1 if other.value else None
    counts = (len(one.parts), len(other.parts))
    if one.runs == other.runs:
        delta = paired(one, other, assume)
        return Difference(delta, Finding(_decided(delta), seen, None, counts, together=True))
    delta = separate(one, other, assume)
    return Difference(delta, across(delta, difference(one.within, other.within), one, other, assume))


def across(delta: Interval, within: Interval, one: Estimate, other: Estimate, assume: Assumed) -> Finding:
    """What a difference between runs says: ``delta`` includes how much runs differ, ``within`` does not."""
    kind = _decided(delta)
    if kind == TIE and not measures(one, other) and _decided(within) == DIFFERS:
        kind = CANNOT_TELL
    seen = delta.value / other.value if other.value else None
    return Finding(kind, seen, apart(one, other, assume), (len(one.parts), len(other.parts)))


def _decided(delta: Interval) -> str:
    if delta.low is None or delta.high is None:
        return UNKNOWN
    return TIE if delta.low <= 0 <= delta.high else DIFFERS
