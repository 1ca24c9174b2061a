"""Decide to move or stay from two rows of the same workload.

An unmeasured input has a range of plausible values, and the verdict must hold at both ends of every range. The amount
is the whole bill of a run: GPUs and nodes for its duration, workers for occupied time, sandboxes by tariff. Without any
price it is worker-hours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from costmodel.analysis.baseline import judge_rows
from costmodel.analysis.bill import USD, WORKER_HOURS, Bill, Side, bill, check_prices, is_free, usd_of
from costmodel.errors import CostModelError, TrainingRunError
from costmodel.projection import warnings
from costmodel.statistics.intervals import Interval, difference

if TYPE_CHECKING:
    from costmodel.attribution.paired_comparison import RunDifference, Shared
    from costmodel.providers.plausible_ranges import Input

MOVE, STAY, CANNOT_TELL = VERDICTS = ("move", "stay", "cannot_tell")
COMPOSED: Final = warnings.COMPOSED
MEASURED: Final = warnings.MEASURED
UNMEASURED_PROVENANCES: Final = (COMPOSED, warnings.PUBLISHED, warnings.STAND_IN)
"""Provenances of an unmeasured row."""
PAIRED: Final = 0.3
"""Budget of two simulated runs, relative to a row."""
PARTS: Final = 3
"""Simulated differences with unmeasured inputs: as assumed, at their worst, at their best."""
End = Literal["best", "worst"]
BEST: Final[End] = "best"
WORST: Final[End] = "worst"
"""The ends of an unmeasured input's range with the least and the highest bill."""
CAUSES_DO: Final = {
    "slowdown": "run the same commands on both, and name the reference with --full-speed",
    "contention": "record --concurrency 1 beside it, with CPU times",
    "dispatch": warnings.DO[warnings.RUN_UNKNOWN],
}

_SAID: Final = (COMPOSED, warnings.DISPATCH_BORROWED, warnings.SPEED_ASSUMED)
"""Warnings already contained in the ranges of an unmeasured substrate."""

Values = Mapping[str, float]
"""Unmeasured input of a side → value."""


class Unverified(NamedTuple):
    """An unverified assumption, and the measurement to verify the assumption."""

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
    saving: Interval  # of moving, with assumed values of unmeasured inputs; negative: moving costs more
    saving_at_worst: Interval | None  # of moving, with unmeasured inputs at their worst; None: the run would never end
    saving_at_best: Interval | None  # of moving, with unmeasured inputs at their best
    paired: bool  # simulated under common random streams
    open_points: tuple[Unverified, ...]  # why there is no verdict; empty where there is one
    doubts: tuple[Unverified, ...]  # the open points, then all further doubts, the most important first

    @property
    def inputs(self) -> list[tuple[Side, Input]]:
        """The unmeasured inputs of both sides."""
        sides = [side for side in (self.start, self.goal) if side.candidate is not None]
        return [(side, unmeasured) for side in sides if side.candidate for unmeasured in side.candidate.inputs]


def decide_between(
    start: Side, goal: Side, *, effort: float = 1.0, progress: Callable[[float], None] | None = None
) -> Decision:
    """Decide whether moving saves money, or worker-hours where nothing has a price.

    ``effort`` is the budget of both simulations (1: usual); ``progress`` receives the finished share.

    Raises:
        TrainingRunError: the two did not do the same work, one of them has no number, the model's time is missing, or
            only one of them has a price.
    """
    _check_comparable(start, goal)
    unit = USD if all(usd_of(side) is not None for side in (start, goal)) else WORKER_HOURS
    check_prices(start, goal, (bill(start, unit), bill(goal, unit)), unit)
    saved = Savings(start, goal, unit, effort * PAIRED, progress)
    saving, paired = saved.at({}, {}), saved.first is not None
    if saved.first is not None:
        goal = _with_saving(start, goal, saved.first)
    bills = bill(start, unit), bill(goal, unit)
    ends: list[Interval | None] = [saving, saving]
    if any(side.candidate is not None for side in (start, goal)):
        ends = [saved.end(BEST, WORST), saved.end(WORST, BEST)]
    if any(side_bill.whole.high is None for side_bill in bills):
        # The same trials bound neither side nor their difference.
        saving, ends = Interval(saving.value), [None if end is None else Interval(end.value) for end in ends]
    points = _all_open_points((start, goal), bills)
    return Decision(
        verdict=CANNOT_TELL if points else verdict(across(saving, *ends)),
        unit=unit,
        start=start,
        goal=goal,
        start_bill=bills[0],
        goal_bill=bills[1],
        saving=saving,
        saving_at_worst=ends[0],
        saving_at_best=ends[1],
        paired=paired,
        open_points=tuple(points),
        doubts=(*points, *_doubts(start, goal, bills, unit)),
    )


def _check_comparable(start: Side, goal: Side) -> None:
    start_row, goal_row = start.row, goal.row
    if (start_row.identity.tier, start_row.length) != (goal_row.identity.tier, goal_row.length):
        works = " and ".join(f"{row.identity.tier} {row.length}" for row in (start_row, goal_row))
        raise TrainingRunError(
            f"{start.name} and {goal.name} did different work, {works}; give the length with --length"
        )
    for side in (start, goal):
        if side.row.worker_hours is None:
            raise TrainingRunError(f"there is no number for {side.name}: {', '.join(side.row.flags)}")
        if side.training_run.think is None and not side.row.think_s and side.row.provenance != warnings.PUBLISHED:
            raise TrainingRunError(
                "the model's time before each action is missing, and the length of the run depends on it: "
                "add --think lognormal:8s,1 (--think 0s: it takes none)"
            )


def across(*savings: Interval | None) -> Interval:
    """Return the first saving with the outer limits of all; None among them removes the limits."""
    first = next(saving for saving in savings if saving is not None)
    limits = [saving.limits for saving in savings if saving is not None and saving.limits is not None]
    if len(limits) < len(savings):
        return Interval(first.value)
    return Interval(first.value, min(low for low, _ in limits), max(high for _, high in limits))


class Savings:
    """Savings of moving, at values of the unmeasured inputs of both sides.

    A run in steps is simulated on both sides under common random streams, and subtracted stream by stream. The time
    common to both, mostly generation, cancels.
    """

    def __init__(
        self,
        start: Side,
        goal: Side,
        unit: str,
        effort: float,
        progress: Callable[[float], None] | None = None,
        *,
        limits: bool = True,
    ) -> None:
        """``effort``: budget of both simulations, relative to a row. Without ``limits`` there are values only."""
        self._sides, self._unit, self._effort, self._progress = (start, goal), unit, effort, progress
        self._limits = limits
        self._parts = 1 if start.candidate is None and goal.candidate is None else PARTS
        self._finished = 0
        self._shared: Shared = {}
        self.first: RunDifference | None = None  # first simulated difference

    def at(self, start: Values, goal: Values) -> Interval:
        """Return the saving; absent values are as assumed.

        Raises:
            CostModelError: the run cannot be answered at these values.
        """
        start_runs, goal_runs = self._sides[0].runs_at(start), self._sides[1].runs_at(goal)
        if start_runs and goal_runs:
            # not imported for a run without steps
            from costmodel.attribution.paired_comparison import run_differences

            pairs = [
                (start_runs[0], goal_runs[0]),
                *((run, goal_runs[0]) for run in start_runs[1:]),
                *((start_runs[0], run) for run in goal_runs[1:]),
            ]
            effort = self._effort / self._parts / len(pairs)
            differences = run_differences(pairs, effort, self._progress_of_one(), self._shared, limits=self._limits)
            complete = [difference for difference in differences if difference is not None]
            if len(complete) == len(pairs):
                self.first = self.first or complete[0]
                return across(
                    *(difference.usd if self._unit == USD else difference.worker_hours for difference in complete)
                )
        mine, theirs = (
            side.row_at(values) if values else side for side, values in zip(self._sides, (start, goal), strict=True)
        )
        times = [
            1.0 if side.candidate is None else side.candidate.times(values)
            for side, values in zip(self._sides, (start, goal), strict=True)
        ]
        return by_rows(mine, theirs, self._unit, (times[0], times[1]))

    def end(self, start: End, goal: End) -> Interval | None:
        """Return the saving with all unmeasured inputs at these ends; None: some attempt would never succeed.

        Inputs whose worse end is unknown are tried at both.
        """
        savings = []
        for start_values, goal_values in product(
            *(list(_corners(side, end)) for side, end in zip(self._sides, (start, goal), strict=True))
        ):
            try:
                savings.append(self.at(start_values, goal_values))
            except CostModelError:
                return None
        value = (max if goal == BEST else min)(saving.value for saving in savings)
        return across(*sorted(savings, key=lambda saving: saving.value != value))

    def _progress_of_one(self) -> Callable[[float], None] | None:
        progress, finished = self._progress, self._finished
        self._finished += 1
        if progress is None:
            return None
        return lambda share: progress(min(1.0, (finished + share) / self._parts))


def _corners(side: Side, end: End) -> Iterator[Values]:
    if side.candidate is None:
        yield {}
        return
    values, either = (
        side.candidate.values(end),
        [unmeasured for unmeasured in side.candidate.inputs if unmeasured.either],
    )
    for ends in product(*((unmeasured.best, unmeasured.worst) for unmeasured in either)):
        yield values | {unmeasured.name: value for unmeasured, value in zip(either, ends, strict=True)}


def _all_open_points(sides: tuple[Side, Side], bills: tuple[Bill, Bill]) -> list[Unverified]:
    """Return the open points of both sides; an unmeasured side has the trials of the measured side."""
    pairs = sorted(zip(sides, bills, strict=True), key=lambda pair: pair[0].candidate is not None)
    points: list[Unverified] = []
    for side, side_bill in pairs:
        actions = {point.do for point in points}
        for point in _open_points(side, side_bill):
            if side.candidate is None or point.do not in actions:
                points.append(point)
    return points


def _open_points(side: Side, side_bill: Bill) -> list[Unverified]:
    """Return why there can be no verdict about a side: unmeasured, or without an upper limit."""
    row, name = side.row, side.name
    if row.provenance in UNMEASURED_PROVENANCES and side.candidate is None:
        return [Unverified(name, "nothing was measured there", "")]
    if side_bill.whole.high is not None or side_bill.whole.low is None:
        return []
    levels, wall = row.levels, row.wall_clock_hours
    if levels is not None and row.worker_hours is not None and row.worker_hours.high is None:
        words = f"measured with up to {levels.levels[-1][0]:,} at a time, and {levels.at_a_time:,} share a host"
        return [Unverified(name, words, f"taxtui run --concurrency {levels.at_a_time} there")]
    needs = "more" if wall is None or wall.needs_trials is None else f"{wall.needs_trials:,}"
    words = f"{row.trials or 0:,} trials do not bound how long the slowest rollouts of a step take"
    return [Unverified(name, words, f"record {needs} successes there (taxtui run --trials)")]


def verdict(saving: Interval) -> str:
    """Return the verdict of an interval of the saving."""
    if saving.low is not None and saving.high is not None:
        return MOVE if saving.low > 0 else STAY if saving.high <= 0 else CANNOT_TELL
    return CANNOT_TELL


def _with_saving(start: Side, goal: Side, less: RunDifference) -> Side:
    """Return the goal with the start's bill less the saving, so that both tables agree."""
    from costmodel.attribution.paired_comparison import with_difference

    if start.row.attribution is None or goal.row.attribution is None:
        return goal
    attribution = with_difference(start.row.attribution, goal.row.attribution, less)
    return replace(goal, row=replace(goal.row, attribution=attribution))


def by_rows(start: Side, goal: Side, unit: str, times: tuple[float, float] = (1.0, 1.0)) -> Interval:
    """Return the saving from the rows; worker-hours of the same repetitions are paired.

    Beyond the measured concurrency nothing is paired, because the slowdowns are independent. ``times`` multiplies each
    side's amount for failures outside its row.
    """
    start_bill, goal_bill = bill(start, unit), bill(goal, unit)
    rows = start.row, goal.row
    paired = all(row.attribution is None and (row.levels is None or row.levels.beyond == 1) for row in rows)
    if unit == WORKER_HOURS and paired and times == (1.0, 1.0):
        return judge_rows(start.row, goal.row, start_bill.whole, goal_bill.whole, start.training_run.run_sd).value
    return difference(start_bill.whole.times(times[0]), goal_bill.whole.times(times[1]))


def _doubts(start: Side, goal: Side, bills: tuple[Bill, Bill], unit: str) -> list[Unverified]:
    doubts = []
    measured = [side for side in (start, goal) if side.row.provenance not in UNMEASURED_PROVENANCES]
    for side, side_bill in zip((start, goal), bills, strict=True):
        if is_free(side_bill, unit):
            doubts.append(
                Unverified(
                    side.name, "its sandboxes cost nothing here", "give --node-usd-hour, or a price sheet with --prices"
                )
            )
    rates = start.training_run.failure_rate, goal.training_run.failure_rate
    if len(measured) == 2 and rates[0] is not None and rates[0] == rates[1]:
        doubts.append(
            Unverified(
                "", f"attempts fail as often at both ({rates[0]:.3g})", "count the failures of both over some days"
            )
        )
    for side in (start, goal):
        if (attribution := side.row.attribution) is not None:
            unknown = [cause for cause, share in attribution.causes.items() if share is None]
            separated = any(share is not None and share.worker_hours.value for share in attribution.causes.values())
            if unknown and separated:
                words = f"it is not known what these cost: {', '.join(unknown)}"
                doubts.append(Unverified(side.name, words, CAUSES_DO.get(unknown[0], "measure it")))
    flagged = warnings.ordered(dict.fromkeys((*start.row.flags, *goal.row.flags)))
    for flag in flagged:
        holders = measured if flag in _SAID else (start, goal)
        of = [side.name for side in holders if flag in side.row.flags]
        if of:
            doubts.append(Unverified(of[0] if len(of) == 1 else "", warnings.WORDS[flag], warnings.DO[flag]))
    return doubts
