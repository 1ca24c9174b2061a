"""A gate: whether cells got worse than they were by more than a limit, as far as the data can tell.

::

    from costmodel import read
    from costmodel.analysis import regression as gate

    found = gate.check([read("new.msgpack")], [read("base.msgpack")], [gate.metric("p50:action", 0.10)])
    found.verdict, [comparison.change for comparison in found.comparisons]
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from costmodel.errors import DemandError
from costmodel.recording.metrics import PER_ACTION, PER_TRIAL, UNTOLD, values_of
from costmodel.recording.reader import CellIdentity, Recording
from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.intervals import Interval, difference, quantile, ratio, wilson
from costmodel.statistics.quantiles import percentile, spread_of, with_runs, worth
from costmodel.statistics.repetitions import (
    Assumed,
    Basis,
    Estimate,
    RunKey,
    assumed,
    between,
    estimate,
    interval,
    margins,
    measures,
)
from costmodel.workload.pool import Pool, pools

PASSED: Final = "no difference"
REGRESSED: Final = "worse"
TOO_LITTLE: Final = "inconclusive"

FAILURE_RATE: Final = "failure_rate"
HELD: Final = "held_per_success"
SIDES: Final = ("before", "after")
WAS_NOTHING: Final = "it was 0 before"

PER_SUCCESS: Final = MappingProxyType[str, Callable[[RecordedTrial, float | None], int]](
    {
        HELD: lambda trial, _: trial.measures.held_ns,
        "tax_per_success": lambda trial, contended: trial.measures.tax_ns(ok=trial.ok, contended=contended),
    }
)
"""Kind of duration → what each trial adds to the sum that is divided by the successes; it has a mean only."""

DEFAULT: Final = ("mean:trajectory", "p50:action", FAILURE_RATE)
"""What is compared where nothing is named."""

FOUND: Final = ("environment", "substrate_version", "image")
"""Of a cell's identity what it ran on and in: just that may be what a gate is to judge."""

_PERCENTILE: Final = re.compile(r"p(\d{1,2}(?:\.\d+)?)")


class Metric(NamedTuple):
    """What is compared, and by how much it may grow: a share of what it was, of ``failure_rate`` a share of trials."""

    name: str  # p95:cold_start
    quantity: str
    p: float | None  # of a percentile; None of a mean
    limit: float


class GateSide(NamedTuple):
    """A metric of one cell on one side: ns, of ``failure_rate`` a share. None: it is not known."""

    values: int  # how many; of ``failure_rate``, trials
    at: Interval | None


class Comparison(NamedTuple):
    """One metric of one cell, then and now."""

    before: Pool
    after: Pool
    metric: Metric
    then: GateSide
    now: GateSide
    change: Interval | None  # relative to then; of ``failure_rate`` the difference of the two shares
    verdict: str  # PASSED, REGRESSED or TOO_LITTLE
    reason: str  # of TOO_LITTLE; else ""
    bases: tuple[Basis, ...] = ()  # what the run-to-run part of the change's interval rests on


class Gate(NamedTuple):
    """Every comparison, and the cells that one side alone holds."""

    comparisons: list[Comparison]
    only_before: list[Pool]
    only_after: list[Pool]
    differing: tuple[str, ...]  # of FOUND, what is not the same on both sides

    @property
    def verdict(self) -> str:
        """REGRESSED where anything did; else TOO_LITTLE where anything cannot be told; else PASSED."""
        verdicts = {one.verdict for one in self.comparisons}
        return next((verdict for verdict in (REGRESSED, TOO_LITTLE) if verdict in verdicts), PASSED)


def metric(name: str, limit: float) -> Metric:
    """``mean:QUANTITY``, ``p50:QUANTITY`` or any other percentile, or ``failure_rate``.

    Raises:
        DemandError: there is none of that name; the known ones are listed.
    """
    if name == FAILURE_RATE:
        return Metric(name, name, None, limit)
    statistic, _, quantity = name.partition(":")
    found = _PERCENTILE.fullmatch(statistic)
    p = float(found[1]) / 100 if found else None
    known = [*PER_TRIAL, *PER_ACTION, *(() if found else PER_SUCCESS)]
    if p == 0 or (p is None and statistic != "mean"):
        raise DemandError(
            f"there is no metric {name!r}: write mean:QUANTITY, a percentile as p50:QUANTITY, or {FAILURE_RATE}; "
            f"quantities are {', '.join(known)}"
        )
    if quantity not in known:
        close = difflib.get_close_matches(quantity, known, 1)
        hint = f"did you mean {statistic}:{close[0]}? quantities" if close else f"quantities of {statistic}"
        raise DemandError(f"there is no metric {name!r}: {hint} are {', '.join(known)}")
    return Metric(name, quantity, p, limit)


def asked(identity: CellIdentity) -> CellIdentity:
    """What of a cell was asked for, without what was then found."""
    return identity._replace(environment="", substrate_version="", image="")


def check(
    after: Sequence[Recording], before: Sequence[Recording], metrics: Sequence[Metric], run_sd: float | None = None
) -> Gate:
    """Compare what both hold, cell by cell: the same was asked for, and both were measured or neither was.

    Trials of such cells pool on each side, so that how much machines and images differ there is part of how much runs
    do. ``run_sd`` is as ``Demand`` has it.

    Raises:
        DemandError: no cell is in both, or a run is.
        SourceError: a side holds a run twice.
    """
    shared = {one.run_id: one.name for one in before}
    for one in after:
        if one.run_id in shared:
            raise DemandError(
                f"{one.name} and {shared[one.run_id]} hold the same run: against itself it always passes; give another"
            )
    then, now = (
        {(pool.identity, pool.provenance): pool for pool in pools(side, asked) if pool.trials}
        for side in (before, after)
    )
    common = [key for key in now if key in then]
    if not common:
        names = [", ".join(one.name for one in side) for side in (before, after)]
        raise DemandError(f"{names[1]} and {names[0]} share no cell: record the same scenario on both sides")
    comparisons = [_compared(then[key], now[key], one, run_sd) for key in common for one in metrics]
    only = [[pool for key, pool in side.items() if key not in common] for side in (then, now)]
    identities = {identity for identity, _ in common}
    differing = tuple(
        field for field in FOUND if len({frozenset(_found(side, identities, field)) for side in (before, after)}) > 1
    )
    return Gate(comparisons, only[0], only[1], differing)


def _found(side: Sequence[Recording], identities: set[CellIdentity], field: str) -> Iterator[str]:
    for one in side:
        yield from (getattr(cell.identity, field) for cell in one.cells if asked(cell.identity) in identities)


class _Found(NamedTuple):
    """What two sides say, before it is judged; ``reason`` is why there is no change."""

    then: GateSide
    now: GateSide
    change: Interval | None
    reason: str = ""
    bases: tuple[Basis, ...] = ()


def _compared(before: Pool, after: Pool, one: Metric, run_sd: float | None) -> Comparison:
    assume = assumed(after.identity.substrate, run_sd)
    if one.quantity == FAILURE_RATE:
        found = _failures(before, after)
    elif one.p is None:
        found = _means(before, after, one.quantity, assume)
    else:
        found = _percentiles(before, after, one.quantity, one.p, assume)
    verdict, reason = (TOO_LITTLE, found.reason) if found.change is None else _judged(found.change, one.limit)
    if one.quantity == FAILURE_RATE and all(trial.ok for trial in after.trials):
        verdict, reason = PASSED, ""  # however few they were, nothing speaks for it
    return Comparison(before, after, one, found.then, found.now, found.change, verdict, reason, found.bases)


def _judged(change: Interval, limit: float) -> tuple[str, str]:
    """Worse only where even the near bound is beyond the limit; fine only where not even the far one is."""
    if change.low is not None and change.low > limit:
        return REGRESSED, ""
    if change.high is not None and change.high <= limit:
        return PASSED, ""
    return (
        TOO_LITTLE,
        "too few independent values for an interval" if change.low is None else "its interval holds the limit",
    )


def _failures(before: Pool, after: Pool) -> _Found:
    """The shares of trials that failed; of the difference Newcombe's interval, recovered from Wilson's (1998)."""
    then, now = (wilson(sum(not t.ok for t in pool.trials), len(pool.trials)) for pool in (before, after))
    return _Found(GateSide(len(before.trials), then), GateSide(len(after.trials), now), difference(now, then))


def _means(before: Pool, after: Pool, quantity: str, assume: Assumed) -> _Found:
    was, found = _mean(before, quantity), _mean(after, quantity)
    then, now = (GateSide(mean.values, mean.estimate and interval(mean.estimate, assume)) for mean in (was, found))
    if was.estimate is None or found.estimate is None:
        return _missing(then, now)
    both = found.estimate, was.estimate
    change = _relative(both[0].within, both[1].within)
    if change is not None:
        change = _wider(change, _relative(*margins(*both, assume)))
    sd = math.sqrt(between(both)) if measures(*both) and not assume.given else None
    return _Found(then, now, change, WAS_NOTHING, _bases((len(both[1].parts), len(both[0].parts)), sd, assume))


class _Mean(NamedTuple):
    values: int
    estimate: Estimate | None


def _mean(pool: Pool, quantity: str) -> _Mean:
    """How many values there are, and their mean by run."""
    if (part := PER_SUCCESS.get(quantity)) is not None:
        trials = pool.trials
        sums, sizes = [part(trial, pool.contended) for trial in trials], [int(trial.ok) for trial in trials]
        told = "held" not in pool.untold and (quantity == HELD or all(t.measures.known for t in pool.successes))
    else:
        trials = pool.successes
        values = [values_of(trial, quantity) for trial in trials]
        sums, sizes, told = list(map(sum, values)), list(map(len, values)), _tells(pool, quantity)
    if not told or not any(sizes):
        return _Mean(0, None)
    return _Mean(sum(sizes), estimate(sums, sizes, [(trial.run, trial.block) for trial in trials]))


def _tells(pool: Pool, quantity: str) -> bool:
    return not any(quantity in UNTOLD.get(one, ()) for one in pool.untold)


def _percentiles(before: Pool, after: Pool, quantity: str, p: float, assume: Assumed) -> _Found:
    runs = [_by_run(pool, quantity) for pool in (before, after)]
    sides, needed = [], []
    for own, other, when in zip(runs, reversed(runs), SIDES, strict=True):
        values = sorted(chain.from_iterable(chain.from_iterable(own)))
        if not values:
            sides.append(GateSide(0, None))
            continue
        found = percentile(values, p, worth(own, quantile(values, p)))
        found = with_runs(found, p, own, assume, other)
        if found.value is None:
            needed.append(f"needs {found.needs:,} values, has {len(values):,} {when}")
        sides.append(
            GateSide(len(values), None if found.value is None else Interval(found.value, found.low, found.high))
        )
    then, now = sides
    if then.at is None or now.at is None:
        return _Found(then, now, None, needed[0]) if needed else _missing(then, now)
    spread = None if assume.given else spread_of(p, *runs)
    bases = _bases((len(runs[0]), len(runs[1])), spread and spread.sd, assume)
    return _Found(then, now, _relative(now.at, then.at), WAS_NOTHING, bases)


def _by_run(pool: Pool, quantity: str) -> list[list[Sequence[int]]]:
    runs: dict[RunKey, list[Sequence[int]]] = {}
    for trial in pool.successes if _tells(pool, quantity) else ():
        if values := values_of(trial, quantity):
            runs.setdefault(trial.run, []).append(values)
    return list(runs.values())


def _bases(runs: tuple[int, int], sd: float | None, assume: Assumed) -> tuple[Basis, ...]:
    """Of both together where their runs have shown an sd, else of each."""
    if sd is not None:
        return (Basis(sum(runs), sd, measured=True, source="measured"),)
    return tuple(Basis(count, assume.sd, measured=False, source=assume.source) for count in runs)


def _missing(then: GateSide, now: GateSide) -> _Found:
    missing = [when for side, when in zip((then, now), SIDES, strict=True) if side.at is None]
    return _Found(then, now, None, f"no value {' and '.join(missing)}")


def _relative(now: Interval, then: Interval) -> Interval | None:
    """By which share it changed; None where it was nothing."""
    if then.value <= 0:
        return None
    value, low, high = ratio(now, then)
    return Interval(value - 1, None if low is None else low - 1, None if high is None else high - 1)


def _wider(one: Interval, other: Interval | None) -> Interval:
    """The limits of both that lie further out; ``one`` where it has none."""
    if other is None or one.low is None or other.low is None:
        return one
    high = None if one.high is None or other.high is None else max(one.high, other.high)
    return Interval(one.value, min(one.low, other.low), high)
