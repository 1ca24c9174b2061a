"""Decide to move or stay from two rows of the same workload.

An unmeasured input has a range of plausible values, and the verdict must hold at both ends of every range. The amount
is the whole bill of a run: GPUs and nodes for its duration, workers for occupied time, sandboxes by tariff. Without any
price it is worker-hours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from costmodel.analysis.baseline import judge_rows
from costmodel.analysis.project import rows_of
from costmodel.errors import CostModelError, TrainingRunError
from costmodel.pricing.sheet import BILLED_RATES
from costmodel.projection import warnings
from costmodel.projection.row import Row, Share
from costmodel.statistics.intervals import Interval, difference
from costmodel.training.run import TrainingRun
from costmodel.workload.rescaling import Alternatives

if TYPE_CHECKING:
    from costmodel.attribution.paired_comparison import Shared
    from costmodel.providers.plausible_ranges import Candidate, Input

USD, WORKER_HOURS = "usd", "worker_hours"
MOVE, STAY, CANNOT_TELL = "move", "stay", "cannot_tell"
UNMEASURED_PROVENANCES: Final = (warnings.COMPOSED, warnings.PUBLISHED, warnings.STAND_IN)
"""Provenances of an unmeasured row."""
PAIRED: Final = 0.3
"""Budget of two simulated runs, relative to a row."""
PARTS: Final = 3
"""Shares of the budget with unmeasured inputs: as assumed, at their worst, at their best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A substrate: its row, and the inputs of the row."""

    row: Row
    inputs: Alternatives
    candidate: Candidate | None = None  # unmeasured inputs with their ranges, of an unmeasured substrate

    @property
    def name(self) -> str:
        return self.row.label

    @property
    def training_run(self) -> TrainingRun:
        return self.inputs.training_run


class Bill(NamedTuple):
    """Bill of a side, in dollars where anything has a price, else in worker-hours."""

    whole: Interval
    sandbox: Interval | None  # saving of an ideal sandbox, part of ``whole``; None where the run is not in steps
    gpus: Interval | None  # for the duration of the run; None without a price
    nodes: Interval | None  # likewise
    rest: float  # workers and sandboxes, by the price sheet


class Unverified(NamedTuple):
    """An unverified assumption, and the measurement to verify the assumption."""

    side: str  # a side's name; "" for both
    words: str
    do: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether to move from ``start`` to ``goal``. Amounts are of the whole run, in ``unit``."""

    verdict: str  # ``MOVE``, ``STAY`` or ``CANNOT_TELL``
    unit: str  # ``USD`` or ``WORKER_HOURS``
    start: Side
    goal: Side  # alone may be unmeasured
    start_bill: Bill
    goal_bill: Bill
    saving: Interval  # of moving, with assumed values of unmeasured inputs; negative: moving costs more
    saving_at_worst: Interval | None  # of moving, with unmeasured inputs at their worst; None: the run would never end
    saving_at_best: Interval | None  # of moving, with unmeasured inputs at their best
    open_points: tuple[Unverified, ...]  # why there is no verdict; empty where there is one

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The unmeasured inputs of the goal."""
        return self.goal.candidate.inputs if self.goal.candidate is not None else ()


def decide_between(start: Side, goal: Side, *, effort: float = 1.0) -> Decision:
    """Decide whether moving saves money, or worker-hours where nothing has a price.

    ``sides`` refuses sandboxes that are free on one side only; sides built otherwise are not checked for that.
    ``effort`` is the budget of both simulations (1: usual).

    Raises:
        TrainingRunError: the two did not do the same work, one of them has no number, or the model's time is missing.
    """
    start_row, goal_row = start.row, goal.row
    if (start_row.identity.tier, start_row.length) != (goal_row.identity.tier, goal_row.length):
        works = " and ".join(f"{row.identity.tier} {row.length}" for row in (start_row, goal_row))
        raise TrainingRunError(
            f"{start.name} and {goal.name} did different work, {works}; give the length with --length"
        )
    for side in (start, goal):
        if side.row.worker_hours is None:
            raise TrainingRunError(f"there is no number for {side.name}: {', '.join(side.row.flags)}")
        if side.training_run.think is None and not side.row.think_s:
            raise TrainingRunError(
                "the model's time between actions is missing, and the length of the run depends on it: "
                "add --think lognormal:8s,1 (--think 0s: it takes none)"
            )
    unit = USD if all(usd_of(side.row) is not None for side in (start, goal)) else WORKER_HOURS
    # Trials that bound no side do not bound the difference either.
    bounded = all(bill(side, unit).whole.high is not None for side in (start, goal))
    saved = Savings(start, goal, unit, effort * PAIRED, limits=bounded)
    saving = saved.at({})
    first, second = start_row.attribution, goal_row.attribution
    if saved.first is not None and first is not None and second is not None:  # so that both tables agree
        from costmodel.attribution.paired_comparison import with_difference

        goal = replace(goal, row=replace(goal.row, attribution=with_difference(first, second, saved.first)))
    bills = bill(start, unit), bill(goal, unit)
    ends: list[Interval | None] = [saving, saving]
    if goal.candidate is not None:
        ends = [saved.end("worst", saving), saved.end("best", saving)]
    if not bounded:
        saving, ends = Interval(saving.value), [None if end is None else Interval(end.value) for end in ends]
    points = _open_points(start, bills[0])
    actions = {point.do for point in points}  # an unmeasured goal has the trials of the start
    points += [point for point in _open_points(goal, bills[1]) if goal.candidate is None or point.do not in actions]
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
        open_points=tuple(points),
    )


def across(*savings: Interval | None) -> Interval:
    """Return the first saving with the outer limits of all; None among them removes the limits."""
    first = next(saving for saving in savings if saving is not None)
    limits = [saving.limits for saving in savings if saving is not None and saving.limits is not None]
    if len(limits) < len(savings):
        return Interval(first.value)
    return Interval(first.value, min(low for low, _ in limits), max(high for _, high in limits))


class Savings:
    """Savings of moving, at values of the goal's unmeasured inputs.

    A run in steps is simulated on both sides under common random streams, and subtracted stream by stream. The time
    common to both, mostly generation, cancels.
    """

    def __init__(self, start: Side, goal: Side, unit: str, effort: float, *, limits: bool) -> None:
        """``effort``: budget of both simulations, relative to a row. Without ``limits`` simulated savings have none."""
        self._start, self._goal, self._unit = start, goal, unit
        self._effort = effort / (1 if goal.candidate is None else PARTS)
        self._limits = limits
        self._beyond = _beyond_recorded(start, goal, unit)
        self._shared: Shared = {}
        self.first: Share | None = None  # first simulated difference

    def at(self, values: Mapping[str, float]) -> Interval:
        """Return the saving; absent inputs are as assumed. Raises ``CostModelError``: there is no answer."""
        start, goal, candidate = self._start, self._goal.inputs, self._goal.candidate
        if candidate is not None and values:
            goal = candidate.at(values)
        if goal.training_run.step_rollouts is not None:
            from costmodel.attribution.paired_comparison import run_difference  # not imported for a run without steps

            ends = [(start.inputs._replace(value=end), goal) for end in start.inputs.ends]
            ends += [(start.inputs, goal._replace(value=end)) for end in goal.ends]
            pairs = [(start.inputs, goal), *ends]
            effort = self._effort / len(pairs)
            differences = [run_difference(*pair, effort, self._shared, limits=self._limits) for pair in pairs]
            complete = [difference for difference in differences if difference is not None]
            if len(complete) == len(pairs):
                self.first = self.first or complete[0]
                saved = (share.usd if self._unit == USD else share.worker_hours for share in complete)
                return across(*saved).widened(self._beyond)
        if candidate is None:
            return by_rows(start, self._goal, self._unit)
        [row] = rows_of([goal]) if values else [self._goal.row]
        return by_rows(start, replace(self._goal, row=row), self._unit, candidate.times(values))

    def end(self, end: Literal["best", "worst"], assumed: Interval) -> Interval | None:
        """Return the saving with all unmeasured inputs at this end; None: some attempt would never succeed.

        Inputs whose worse end is unknown are tried at both. The end is no less extreme than the ``assumed`` saving.
        """
        candidate, savings = self._goal.candidate, []
        assert candidate is not None
        either = [unmeasured for unmeasured in candidate.inputs if unmeasured.either]
        for ends in product(*((unmeasured.best, unmeasured.worst) for unmeasured in either)):
            corner = {unmeasured.name: value for unmeasured, value in zip(either, ends, strict=True)}
            try:
                savings.append(self.at(candidate.values(end) | corner))
            except CostModelError:
                return None
        sign = 1 if end == "best" else -1
        ordered = sorted(savings, key=lambda saving: -sign * saving.value)
        return max(across(*ordered), assumed, key=lambda saving: sign * saving.value)


def _beyond_recorded(start: Side, goal: Side, unit: str) -> Interval:
    """Return the error of a saving due to actions beyond the recorded ones; those of both sides are independent."""
    rows = ((side.row.evidence, bill(side, unit).whole.value) for side in (start, goal))
    errors = [evidence.beyond.times(whole) if evidence else Interval(0.0, 0.0, 0.0) for evidence, whole in rows]
    (_, low, high), (_, goal_low, goal_high) = errors
    return Interval(0.0, (low or 0.0) - (goal_high or 0.0), (high or 0.0) - (goal_low or 0.0))


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


def by_rows(start: Side, goal: Side, unit: str, times: float = 1.0) -> Interval:
    """Return the saving from the rows; worker-hours of the same repetitions are paired.

    Beyond the measured concurrency nothing is paired, because the slowdowns are independent. ``times`` multiplies the
    goal's amount for failures outside its row.
    """
    rows, bills = (start.row, goal.row), (bill(start, unit).whole, bill(goal, unit).whole)
    paired = all(row.attribution is None and (row.levels is None or row.levels.beyond == 1) for row in rows)
    if unit == WORKER_HOURS and paired and times == 1.0:
        saving = judge_rows(*rows, *bills, start.training_run.run_sd).value  # without actions beyond the recorded ones
        return saving.widened(_beyond_recorded(start, goal, unit))
    return difference(bills[0], bills[1].times(times))


def check_prices(start: Alternatives, goal: Alternatives) -> None:
    """Refuse a decision in dollars where sandboxes are free on a single side; nothing is simulated before.

    Raises:
        TrainingRunError: the message says which price to add.
    """
    billing = [_bills_sandboxes(side) for side in (start, goal)]
    if None in billing or billing[0] == billing[1]:
        return  # without a price on a side the decision is about worker-hours
    free, billed = (start, goal) if billing[1] else (goal, start)
    substrate = free.value.identity.substrate
    add = f"nodes, pods_per_node and node_usd_hour under [at.{substrate}.nodes] of --training FILE, or --prices FILE"
    if free.value.provenance == warnings.COMPOSED:
        add = f"a price sheet with --compose {substrate}:prices=FILE"
    names = (side.value.identity.label for side in (free, billed))
    raise TrainingRunError("{} costs nothing here and {} is billed: add {}".format(*names, add))


def _bills_sandboxes(side: Alternatives) -> bool | None:
    """Whether sandboxes, workers or nodes cost more than 0; None: nothing has a price, not even GPUs.

    Raises ``NoPrice``: the sheet lacks the substrate.
    """
    training_run, prices = side.training_run, side.prices
    if training_run.suspended_usd_hour or training_run.node_usd_hour:
        return True
    if prices is not None:
        rates = prices.sandbox(side.value.identity).rates
        return bool(prices.worker_usd_hour) or any(high for rate, (_, high) in rates.items() if rate in BILLED_RATES)
    return None if training_run.gpu_usd_hour is None and training_run.node_usd_hour is None else False


def bill(side: Side, unit: str) -> Bill:
    """Return the bill of a side, in dollars or worker-hours."""
    row, training_run, attribution = side.row, side.training_run, side.row.attribution
    assert row.worker_hours is not None
    if unit == WORKER_HOURS:
        sandbox = row.tax_worker_hours if attribution is None else attribution.sandbox.worker_hours
        return Bill(row.worker_hours if attribution is None else attribution.run.worker_hours, sandbox, None, None, 0.0)
    whole = usd_of(row)
    assert whole is not None
    if attribution is None:
        return Bill(whole, None, None, None, whole.value)
    hours = attribution.run.step_s.times(attribution.steps / 3600)
    gpus, nodes = (
        hours.times(count * usd_hour) if count and usd_hour else None
        for count, usd_hour in (
            (training_run.gpus, training_run.gpu_usd_hour),
            (training_run.nodes, training_run.node_usd_hour),
        )
    )
    rest = whole.value - sum(part.value for part in (gpus, nodes) if part)
    rest = rest if rest > 1e-9 * whole.value else 0.0  # ignore a remainder due to rounding
    return Bill(whole, attribution.sandbox.usd, gpus, nodes, rest)


def usd_of(row: Row) -> Interval | None:
    """Return all priced amounts; None: no price."""
    if row.attribution is not None:
        return row.attribution.run.usd
    if row.cost is None:
        return None
    return row.cost.sandbox_usd.shifted(row.cost.total_usd - row.cost.sandbox_usd.value)
