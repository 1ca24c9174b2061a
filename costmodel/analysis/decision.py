"""Move, stay, or cannot tell: two rows of the same work, what each costs a run, and what would turn the answer.

There is a verdict only between two places that were measured. A decision is about the whole bill of a run: GPUs and
nodes for as long as it lasts, workers for what they are held, sandboxes as they are sold. Without any price it is about
worker-hours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from costmodel.analysis.baseline import judged
from costmodel.errors import DemandError
from costmodel.projection import warnings
from costmodel.projection.row import Projection
from costmodel.providers.estimation import FAILURES, PULLS
from costmodel.statistics.intervals import Interval, difference
from costmodel.training.run import Demand

if TYPE_CHECKING:
    from costmodel.attribution.paired_comparison import Apart, RunInSteps

MOVE, STAY, CANNOT_TELL = VERDICTS = ("move", "stay", "cannot_tell")
USD, WORKER_HOURS = UNITS = ("usd", "worker_hours")
COMPOSED: Final = warnings.COMPOSED
MEASURED: Final = warnings.MEASURED
UNMEASURED_THERE: Final = ", unmeasured there"
"""How the words about an assumed input of a place end."""
DISPATCH: Final = "dispatch"
LIMITS: Final = "limits"

UNMEASURED: Final = (COMPOSED, warnings.PUBLISHED, warnings.STAND_IN)
"""Provenances of a row whose place was not measured."""
PAIRED: Final = 0.3
"""How much of two runs in steps may be simulated together, relative to what one row may cost."""
CAUSES_DO: Final = {
    "slowdown": "run the same commands on both, and name the reference with --full-speed",
    "contention": "record --concurrency 1 beside it, with CPU times",
    "dispatch": warnings.DO[warnings.RUN_UNKNOWN],
}

_UNMEASURED_INPUTS: Final = (
    (DISPATCH, "--compose {}:dispatch=100ms..300ms, or =RECORDING of your own commands there"),
    (FAILURES, "count the failed attempts of some days: failure_rate under [at.{}.failures]"),
    (PULLS, "time the first start of an image there: images under [at.{}.images]"),
    (LIMITS, "ask for those of your plan: --compose {}:profile=NAME, or create_rate and quota under [at.{}.limits]"),
)
"""Inputs of a place that was not measured, as its assumptions name them, with how to find out."""
_SAID: Final = (COMPOSED, warnings.DISPATCH_BORROWED)
"""Flags that the open points of a place already say."""

Rerun = Callable[[Demand], Projection]
"""The row of one side at another demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of two places: its row, what it was asked, and how to ask it anew."""

    name: str
    row: Projection
    demand: Demand
    rerun: Rerun
    runs: tuple[
        RunInSteps, ...
    ] = ()  # where it is of a run in steps: as it is, then at the ends of what was not measured

    def at(self, demand: Demand, *, anew: bool) -> Side:
        """Asked something else; ``anew``: with the row that this gives, which takes longer."""
        runs = tuple(run._replace(demand=demand) for run in self.runs[:1])
        return replace(self, demand=demand, row=self.rerun(demand) if anew else self.row, runs=runs)


class Bill(NamedTuple):
    """What one side costs the run, in dollars where anything has a price, else in worker-hours."""

    whole: Interval
    sandbox: Interval | None  # of that, what an ideal sandbox would save; None where the run is not in steps
    gpus: Interval | None  # for as long as the run lasts; None without a price of them
    nodes: Interval | None  # likewise
    rest: float  # workers and sandboxes, by the price sheet


class Unverified(NamedTuple):
    """What is not verified, and what to measure about it."""

    side: str  # a side's name; "" for both
    words: str
    do: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether to move from ``start`` to ``goal``. Amounts are of the whole run, in ``unit``."""

    verdict: str  # of ``VERDICTS``
    unit: str  # of ``UNITS``
    start: Side
    goal: Side
    start_bill: Bill
    goal_bill: Bill
    saving: Interval  # of moving; where it is negative, moving costs that
    paired: bool  # simulated with the same random numbers, so that what both share cancels
    open_points: tuple[Unverified, ...]  # why there is no verdict, whatever the saving; empty where there is one
    doubts: tuple[Unverified, ...]  # those, then all others, the gravest first


def decide(
    start: Side, goal: Side, *, effort: float = 1.0, progress: Callable[[float], None] | None = None
) -> Decision:
    """Whether moving from one to the other saves money, or worker-hours where nothing has a price.

    ``effort`` is how much may be simulated of both together, relative to the usual; ``progress`` is told the share that
    is done.

    Raises:
        DemandError: the two did not do the same work, one of them has no number, the model's time is missing, or only
            one of them has a price.
    """
    one, other = start.row, goal.row
    if (one.identity.tier, one.length) != (other.identity.tier, other.length):
        works = " and ".join(f"{row.identity.tier} {row.length}" for row in (one, other))
        raise DemandError(f"{start.name} and {goal.name} did different work, {works}; give the length with --length")
    for side in (start, goal):
        if side.row.worker_hours is None:
            raise DemandError(f"there is no number for {side.name}: {', '.join(side.row.flags)}")
        if side.demand.think is None and not side.row.think_s and side.row.provenance != warnings.PUBLISHED:
            raise DemandError(
                "the model's time before each action is missing, and the length of the run depends on it: "
                "add --think lognormal:8s,1 (--think 0s: it takes none)"
            )
    unit = USD if all(_usd(side) is not None for side in (start, goal)) else WORKER_HOURS
    _check_prices(start, goal, (bill(start, unit), bill(goal, unit)), unit)
    pairs = _pairs(start, goal, effort * PAIRED, progress)
    paired = None if pairs is None else _across(pairs, unit)
    if pairs is not None:
        goal = _beside(start, goal, pairs[0])
    bills = bill(start, unit), bill(goal, unit)
    saving = by_rows(start, goal, unit) if paired is None else paired
    if any(one.whole.high is None for one in bills):
        saving = Interval(saving.value)  # the same trials bound neither side nor their difference
    points = tuple(point for side, own in zip((start, goal), bills, strict=True) for point in _open_points(side, own))
    return Decision(
        verdict=CANNOT_TELL if points else verdict(saving),
        unit=unit,
        start=start,
        goal=goal,
        start_bill=bills[0],
        goal_bill=bills[1],
        saving=saving,
        paired=paired is not None,
        open_points=points,
        doubts=(*points, *_doubts(start, goal, bills, unit)),
    )


def _check_prices(start: Side, goal: Side, bills: tuple[Bill, Bill], unit: str) -> None:
    """Raises ``DemandError`` where the sandboxes of one side are free and those of the other are not."""
    free = [side for side, own in zip((start, goal), bills, strict=True) if _free(own, unit)]
    if len(free) != 1:
        return
    [side] = free
    other, substrate = goal if side is start else start, side.row.identity.substrate
    add = f"a price sheet of it with --compose {substrate}:prices=FILE"
    if side.row.provenance != COMPOSED:
        add = (
            f"nodes, pods_per_node and node_usd_hour under [at.{substrate}.nodes] of --training FILE, or --prices FILE"
        )
    raise DemandError(f"{side.name} costs nothing here and {other.name} is billed: add {add}")


def _free(own: Bill, unit: str) -> bool:
    return unit == USD and not own.nodes and not own.rest


def _open_points(side: Side, own: Bill) -> list[Unverified]:
    """Why there can be no verdict about a side: it was not measured, or nothing bounds it from above."""
    row, name = side.row, side.name
    if row.provenance in UNMEASURED:
        points = [Unverified(name, "nothing was measured there", "")]
        if row.provenance == COMPOSED:
            values = {one.name: one.value for one in row.assumptions} | {LIMITS: _limits(side)}
            if warnings.DISPATCH_BORROWED not in row.flags:
                del values[DISPATCH]
            points += [
                Unverified(
                    name, f"{cause}: {values[cause]}{UNMEASURED_THERE}", do.replace("{}", row.identity.substrate)
                )
                for cause, do in _UNMEASURED_INPUTS
                if cause in values
            ]
        return points
    if own.whole.high is not None or own.whole.low is None:
        return []
    levels, wall = row.levels, row.wall_clock_hours
    if levels is not None and row.worker_hours is not None and row.worker_hours.high is None:
        words = f"measured with up to {levels.levels[-1][0]:,} at a time, and {levels.at_a_time:,} share a host"
        return [Unverified(name, words, f"taxtui run --concurrency {levels.at_a_time} there")]
    needs = "more" if wall is None or wall.needs_trials is None else f"{wall.needs_trials:,}"
    words = f"{row.trials or 0:,} trials do not bound how long the slowest rollouts of a step take"
    return [Unverified(name, words, f"record {needs} successes there (taxtui run --trials)")]


def verdict(saving: Interval) -> str:
    """What an interval of the saving allows to say."""
    if saving.low is None or saving.high is None:
        return CANNOT_TELL
    if saving.low > 0:
        return MOVE
    return STAY if saving.high <= 0 else CANNOT_TELL


def bill(side: Side, unit: str) -> Bill:
    """What the run costs on one side."""
    row, demand, found = side.row, side.demand, side.row.attribution
    assert row.worker_hours is not None
    if unit == WORKER_HOURS:
        sandbox = row.tax_worker_hours if found is None else found.sandbox.worker_hours
        return Bill(row.worker_hours if found is None else found.run.worker_hours, sandbox, None, None, 0.0)
    whole = _usd(side)
    assert whole is not None
    if found is None:
        return Bill(whole, None, None, None, whole.value)
    hours = found.run.step_s.times(found.steps / 3600)
    gpus = hours.times(demand.gpus * demand.gpu_usd_hour) if demand.gpus and demand.gpu_usd_hour else None
    nodes = hours.times(demand.nodes * demand.node_usd_hour) if demand.nodes and demand.node_usd_hour else None
    rest = whole.value - sum(part.value for part in (gpus, nodes) if part)
    rest = rest if rest > 1e-9 * whole.value else 0.0  # what is left of rounding is nobody's
    return Bill(whole, found.sandbox.usd, gpus, nodes, rest)


def _usd(side: Side) -> Interval | None:
    """All that has a price; None: nothing has."""
    row = side.row
    if row.attribution is not None:
        return row.attribution.run.usd
    if row.cost is None:
        return None
    sandbox, more = row.cost.sandbox_usd, row.cost.total_usd - row.cost.sandbox_usd.value
    return Interval(*(None if end is None else end + more for end in sandbox))  # type: ignore[arg-type]


def together(start: Side, goal: Side, unit: str, effort: float = 1.0) -> Interval | None:
    """What moving saves, both sides simulated with the same random numbers; ``effort`` is how much, as for ``project``.

    Their difference is taken world by world, so that what both share, the model's generation above all, cancels; from
    the least to the most where what was published leaves a range. None: they are not both runs in steps, or cannot be
    simulated for the same ones.
    """
    pairs = _pairs(start, goal, effort)
    return None if pairs is None else _across(pairs, unit)


def _pairs(
    start: Side, goal: Side, effort: float, progress: Callable[[float], None] | None = None
) -> list[Apart] | None:
    """Both sides as they are, then at the ends of what was not measured."""
    if not start.runs or not goal.runs:
        return None
    from costmodel.attribution.paired_comparison import apart  # who asks for no steps does not wait for it

    pairs = [(start.runs[0], goal.runs[0])]
    pairs += [(run, goal.runs[0]) for run in start.runs[1:]] + [(start.runs[0], run) for run in goal.runs[1:]]
    found = [one for one in apart(pairs, effort / len(pairs), progress) if one is not None]
    return found if len(found) == len(pairs) else None


def _across(pairs: Sequence[Apart], unit: str) -> Interval:
    told = [one.usd if unit == USD else one.worker_hours for one in pairs]
    lows, highs = [one.low for one in told], [one.high for one in told]
    return Interval(
        told[0].value, min(low for low in lows if low is not None), max(end for end in highs if end is not None)
    )


def _beside(start: Side, goal: Side, less: Apart) -> Side:
    """The goal whose bill is the start's less what moving saves: one answer has one figure for it."""
    from costmodel.attribution.paired_comparison import beside

    if start.row.attribution is None or goal.row.attribution is None:
        return goal
    told = beside(start.row.attribution, goal.row.attribution, less)
    return replace(goal, row=replace(goal.row, attribution=told))


def by_rows(start: Side, goal: Side, unit: str) -> Interval:
    """What moving saves, from the rows: worker-hours that were measured in the same runs are paired, as everywhere.

    Beyond the measured concurrency nothing pairs: how much slower either place becomes there is its own.
    """
    one, other = bill(start, unit), bill(goal, unit)
    rows = start.row, goal.row
    paired = all(row.attribution is None and (row.levels is None or row.levels.beyond == 1) for row in rows)
    if unit == WORKER_HOURS and paired:
        return judged(start.row, goal.row, one.whole, other.whole, start.demand.run_sd).value
    return difference(one.whole, other.whole)


def _limits(side: Side) -> str:
    """What limits the sandboxes of a place: by the demand, else by its plan."""
    demand = side.demand
    told = [] if demand.quota is None else [f"{demand.quota:,} at a time"]
    if demand.create_rate is not None:
        told += [f"{demand.create_rate:.3g} creates a second, bursts of {demand.create_burst:,}"]
    plans = dict.fromkeys(one.source for one in side.row.assumptions if one.name == LIMITS)
    return ", ".join([*told, *plans]) or "none"


def _doubts(start: Side, goal: Side, bills: tuple[Bill, Bill], unit: str) -> list[Unverified]:
    found = []
    measured = [side for side in (start, goal) if side.row.provenance not in UNMEASURED]
    for side, own in zip((start, goal), bills, strict=True):
        if _free(own, unit):
            found.append(
                Unverified(
                    side.name, "its sandboxes cost nothing here", "give --node-usd-hour, or a price sheet with --prices"
                )
            )
    rates = start.demand.failure_rate, goal.demand.failure_rate
    if len(measured) == 2 and rates[0] is not None and rates[0] == rates[1]:
        found.append(
            Unverified(
                "", f"attempts fail as often at both ({rates[0]:.3g})", "count the failures of both over some days"
            )
        )
    for side in (start, goal):
        if (attribution := side.row.attribution) is not None:
            unknown = [cause for cause, share in attribution.causes.items() if share is None]
            if unknown:
                told = f"it is not known what these cost: {', '.join(unknown)}"
                found.append(Unverified(side.name, told, CAUSES_DO.get(unknown[0], "measure it")))
    flagged = warnings.ordered(dict.fromkeys((*start.row.flags, *goal.row.flags)))
    for flag in flagged:
        holders = measured if flag in _SAID else (start, goal)
        of = [side.name for side in holders if flag in side.row.flags]
        if of:
            found.append(Unverified(of[0] if len(of) == 1 else "", warnings.WORDS[flag], warnings.DO[flag]))
    return found
