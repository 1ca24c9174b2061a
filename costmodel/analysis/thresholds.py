"""Thresholds of a decision: for each main input the value at which both sides cost the same.

Values are searched by bisection, other inputs unchanged. Prices scale a bill without simulation. Inputs that change the
run are simulated on both sides under common random streams. The amount of a cause is scaled with its time, which holds
near its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from costmodel.analysis.bill import USD, Side
from costmodel.analysis.decision import Decision, Savings
from costmodel.errors import CostModelError
from costmodel.projection.row import Row
from costmodel.training.images import Images
from costmodel.training.length import Length
from costmodel.training.run import Think, TrainingRun

if TYPE_CHECKING:
    from costmodel.providers.plausible_ranges import Input

WITHIN: Final = 16.0
"""Search range of an input: its value divided and multiplied by this factor."""
NEAR: Final = 4.0
"""The same range for simulated inputs."""
QUICK: Final = 0.0025
"""Simulation budget of a tried value, relative to a row."""
CLOSE: Final = 0.05
"""A value is found to this share of itself."""

SWEPT: Final = 0.04
"""The same budget for an unmeasured input."""
NOT_TRIED: Final = math.nan
NEAR_ENOUGH: Final = 1 / 16
"""Precision of an unmeasured input's threshold, as a share of its range."""

OF_THE_RUN: Final = ("think", "actions", "workers")
"""Inputs common to all substrates."""

Saving = Callable[[float], float | None]
"""Saving of moving by the value of an input; None: invalid value."""
Vary = Callable[[TrainingRun, float], TrainingRun]


class Turn(NamedTuple):
    """An input with its threshold. ``at`` is None without a threshold from ``low`` to ``high``."""

    input: str  # field of the training run, or cause of a side
    side: str  # the side's name; "" for both
    unit: str
    now: float
    at: float | None
    low: float
    high: float


def turns(decision: Decision, *, simulate: bool = True) -> list[Turn]:
    """Return the inputs with a threshold, the nearest first, then the inputs without.

    Args:
        decision: the decision.
        simulate: whether to include inputs for which both sides must be simulated again.
    """
    turning = [*_prices(decision), *_causes(decision), *(_inputs(decision) if simulate else ())]
    return sorted(turning, key=lambda turn: math.inf if turn.at is None else abs(math.log(turn.at / turn.now)))


class InputEffect(NamedTuple):
    """An unmeasured input with its effect on the saving over its range; the remaining inputs are as assumed."""

    side: str
    input: Input
    best: float | None  # saving with the input at its best; None: the run would never end; not a number: not tried
    worst: float | None
    at: float | None  # threshold; None: nowhere in the range

    @property
    def near(self) -> float:
        """Distance of the threshold, as a share of the way from the assumed value to the end of the range."""
        if self.at is None:
            return math.inf
        unmeasured = self.input
        end = (
            unmeasured.worst
            if (self.at - unmeasured.assumed) * (unmeasured.worst - unmeasured.assumed) > 0
            else unmeasured.best
        )
        return 0.0 if end == unmeasured.assumed else (self.at - unmeasured.assumed) / (end - unmeasured.assumed)

    def swing(self, saving: float) -> float:
        """Return the largest change of the saving over the range."""
        if self.best is None or self.worst is None:
            return math.inf
        return max(abs(end - saving) for end in (self.best, self.worst, saving) if not math.isnan(end))


def input_effects(
    decision: Decision, progress: Callable[[float], None] | None = None, *, rough: bool = False
) -> list[InputEffect]:
    """Return every unmeasured input with its threshold, the nearest first.

    Inputs without a threshold follow, the largest effect first. ``progress`` receives the finished share. ``rough``:
    only the end against the saving is simulated, and the threshold is interpolated linearly.
    """
    savings = Savings(decision.start, decision.goal, decision.unit, QUICK if rough else SWEPT, limits=False)
    assumed_saving, effects = savings.at({}, {}).value, []
    inputs = decision.inputs
    for number, (side, unmeasured) in enumerate(inputs):
        at_start = side is decision.start

        def saving(value: float, at_start: bool = at_start, unmeasured: Input = unmeasured) -> float | None:
            values = {unmeasured.name: value}
            try:
                changed_saving = savings.at(*((values, {}) if at_start else ({}, values)))
            except CostModelError:
                return None
            # Only the difference of these less precise simulations is used.
            return decision.saving.value + changed_saving.value - assumed_saving

        against = "worst" if (decision.saving.value >= 0) != at_start else "best"
        tried = [end for end in ("best", "worst") if not rough or unmeasured.either or end == against]
        ends = {end: saving(getattr(unmeasured, end)) for end in tried}
        at = _threshold(decision.saving.value, unmeasured, ends, None if rough else saving)
        effects.append(
            InputEffect(side.name, unmeasured, ends.get("best", NOT_TRIED), ends.get("worst", NOT_TRIED), at)
        )
        if progress is not None:
            progress((number + 1) / len(inputs))
    return sorted(effects, key=lambda effect: (effect.near, -effect.swing(decision.saving.value)))


def _threshold(
    assumed_saving: float, unmeasured: Input, ends: Mapping[str, float | None], saving: Saving | None
) -> float | None:
    """Return the threshold nearest to the assumed value: by bisection, or linearly without ``saving``."""
    shares: dict[float, float] = {}  # end → share of the way to the end
    for name, end_saving in ends.items():
        end = getattr(unmeasured, name)
        if end_saving is None or end_saving * assumed_saving <= 0:
            if saving is None:
                shares[end] = _linear_share(assumed_saving, end_saving)
            else:
                shares[end] = _bisected_share(assumed_saving, unmeasured, end, saving)
    if not shares:
        return None
    end = min(shares, key=lambda candidate: shares[candidate])
    at = unmeasured.assumed + shares[end] * (end - unmeasured.assumed)
    if unmeasured.plans:
        return float(math.ceil(at) if end > unmeasured.assumed else math.floor(at))
    return at


def _linear_share(assumed_saving: float, end_saving: float | None) -> float:
    if end_saving is None:
        return 1.0
    change = assumed_saving - end_saving
    return assumed_saving / change if change else 0.0


def _bisected_share(assumed_saving: float, unmeasured: Input, end: float, saving: Saving) -> float:
    way = end - unmeasured.assumed
    same, changed = 0.0, 1.0
    smallest = max(NEAR_ENOUGH, 1 / abs(way)) if unmeasured.plans and way else NEAR_ENOUGH
    while changed - same > smallest:
        middle = (same + changed) / 2
        middle_saving = saving(unmeasured.assumed + middle * way)
        if middle_saving is not None and middle_saving * assumed_saving > 0:
            same = middle
        else:
            changed = middle
    return changed


def _turn(
    name: str, side: str, unit: str, now: float, saving: Saving, within: float = WITHIN, highest: float = math.inf
) -> Turn:
    """Bisect on a logarithmic scale, towards the nearer end with the opposite sign."""
    low, high = now / within, min(now * within, highest)
    saving_now = saving(now)
    turning_value = None
    for end in (high, low):
        saving_end = saving(end)
        if saving_now is not None and saving_end is not None and saving_now * saving_end < 0:
            at = _bisected(saving, now, saving_now, end)
            if turning_value is None or abs(math.log(at / now)) < abs(math.log(turning_value / now)):
                turning_value = at
    return Turn(name, side, unit, now, turning_value, low, high)


def _bisected(saving: Saving, now: float, saving_now: float, end: float) -> float:
    """Return the change of sign between two values."""
    while abs(math.log(end / now)) > CLOSE:
        middle = math.sqrt(now * end)
        saving_middle = saving(middle)
        if saving_middle is not None and saving_middle * saving_now > 0:
            now = middle
        else:
            end = middle
    return math.sqrt(now * end)


def _prices(decision: Decision) -> Iterator[Turn]:
    """Yield thresholds of GPU, node and sandbox prices."""
    if decision.unit != USD:
        return
    value, start_bill, goal_bill = decision.saving.value, decision.start_bill, decision.goal_bill
    if start_bill.gpus is not None and goal_bill.gpus is not None and decision.start.training_run.gpu_usd_hour:
        difference, now = start_bill.gpus.value - goal_bill.gpus.value, decision.start.training_run.gpu_usd_hour
        yield _turn("gpu_usd_hour", "", "$/h", now, lambda x: value + difference * (x / now - 1))
    for side, side_bill, sign in ((decision.start, start_bill, 1), (decision.goal, goal_bill, -1)):
        price = side.training_run.node_usd_hour
        if side_bill.nodes is not None and price:
            yield _turn("node_usd_hour", side.name, "$/h", price, _scaled(value, sign * side_bill.nodes.value, price))
        if side_bill.rest > 0 and side.row.cost is not None:
            rate = side.row.cost.usd_per_sandbox_hour
            yield _turn("price of a sandbox", side.name, "$/h", rate, _scaled(value, sign * side_bill.rest, rate))


def _scaled(value: float, amount: float, now: float) -> Saving:
    """Return the saving as a function of an input that scales this amount."""
    return lambda x: value + amount * (x / now - 1)


def _causes(decision: Decision) -> Iterator[Turn]:
    """Yield thresholds of the time of each cause, on either side."""
    for side, sign in ((decision.start, 1), (decision.goal, -1)):
        attribution = side.row.attribution
        if attribution is None or side.candidate is not None:  # inputs of candidates have ranges
            continue
        for cause in ("create", "ready", "dispatch"):
            share, now_s = attribution.causes[cause], _takes_s(side.row, cause)
            if share is None or not now_s:
                continue
            amount = share.usd if decision.unit == USD else share.worker_hours
            if amount is not None and amount.value > 0:
                unit = "s per action" if cause == "dispatch" else "s"
                yield _turn(cause, side.name, unit, now_s, _scaled(decision.saving.value, sign * amount.value, now_s))
    yield from _slower(decision)


def _takes_s(row: Row, cause: str) -> float | None:
    """Return the time of a cause per trajectory, or per action."""
    split, hours = row.by_cause_worker_hours, row.worker_hours
    if split is None or hours is None or row.held_per_success_s is None or not hours.value:
        return None
    scale = row.held_per_success_s.value / hours.value
    if cause == "dispatch":
        return None if split.dispatch is None else split.dispatch * scale / row.length.actions
    return split.startup * scale if cause == "create" else None


def _slower(decision: Decision) -> Iterator[Turn]:
    """Yield the threshold of the goal's command time: a second more in each step has a constant price."""
    attribution = decision.goal.row.attribution
    if (
        decision.goal.candidate is not None
        or attribution is None
        or attribution.waiting is None
        or decision.unit != USD
    ):
        return
    waits, per_second = attribution.waiting, attribution.usd_per_critical_second
    if waits.commands_gpu_hours is None or per_second is None or not decision.goal.training_run.gpus:
        return
    commands_s = waits.commands_gpu_hours / decision.goal.training_run.gpus / attribution.steps * 3600
    if commands_s > 0:
        amount = -per_second * commands_s
        yield _turn(
            "time of the commands", decision.goal.name, "times", 1.0, _scaled(decision.saving.value, amount, 1.0)
        )


def _inputs(decision: Decision) -> Iterator[Turn]:
    """Yield thresholds of inputs that change the run: of the run on both sides, of a substrate on its side."""
    for name, unit, vary, highest in _VARIED:
        sides = [
            side
            for side in (decision.start, decision.goal)
            if _value(side.training_run, name) and not _ranged(side, name)
        ]
        if not sides:
            continue
        now = _value(sides[0].training_run, name)
        both = name in OF_THE_RUN and len(sides) == 2 and _value(sides[1].training_run, name) == now
        for side in sides[:1] if both else sides:
            changed = {changed_side.name for changed_side in (sides if both else [side])}
            now = _value(side.training_run, name)
            yield _turn(name, "" if both else side.name, unit, now, _simulated(decision, vary, changed), NEAR, highest)


def _simulated(decision: Decision, vary: Vary, changed: set[str]) -> Saving:
    """Return the saving by the value of an input of these sides."""
    sides = decision.start, decision.goal

    def saving(value: float) -> float | None:
        try:
            start, goal = (
                side.at(vary(side.training_run, value), with_row=not decision.paired) if side.name in changed else side
                for side in sides
            )
            return Savings(start, goal, decision.unit, QUICK, limits=False).at({}, {}).value
        except CostModelError:  # refused by the cost model
            return None

    return saving


def _ranged(side: Side, name: str) -> bool:
    """Whether an input of this side has a range."""
    return side.candidate is not None and any(unmeasured.name == name for unmeasured in side.candidate.inputs)


def _value(training_run: TrainingRun, name: str) -> float:
    """Return the value of an input; 0: not set."""
    if name == "think":
        return 0.0 if training_run.think is None else training_run.think.median_ns / 1e9
    if name == "images":
        return 0.0 if training_run.images is None else training_run.images.total_gb / training_run.images.count
    if name == "actions":
        return 0.0 if training_run.length is None else float(training_run.length.actions)
    return float(getattr(training_run, name) or 0.0)


def _thinking(training_run: TrainingRun, seconds: float) -> TrainingRun:
    assert training_run.think is not None
    return replace(training_run, think=Think(round(seconds * 1e9), training_run.think.sigma))


def _of_size(training_run: TrainingRun, mean_gb: float) -> TrainingRun:
    assert training_run.images is not None
    factor = mean_gb / _value(training_run, "images")
    return replace(training_run, images=Images.of(size * factor for size in training_run.images.sizes_gb))


def _long(training_run: TrainingRun, actions: float) -> TrainingRun:
    assert training_run.length is not None
    factor = actions / float(training_run.length.actions)
    weights: dict[int, int] = {}
    for number, weight in training_run.length.weights:
        scaled = max(1, round(number * factor))
        weights[scaled] = weights.get(scaled, 0) + weight
    return replace(training_run, actions=Length.weighted(weights))


def _number(name: str) -> Vary:
    return lambda training_run, value: replace(training_run, **{name: value})  # type: ignore[arg-type]


def _count(name: str) -> Vary:
    return lambda training_run, value: replace(training_run, **{name: max(1, round(value))})  # type: ignore[arg-type]


_VARIED: Final[tuple[tuple[str, str, Vary, float], ...]] = (
    ("failure_rate", "of attempts", _number("failure_rate"), 0.9),
    ("failure_hazard", "per hour", _number("failure_hazard"), math.inf),
    ("pull_gb_s", "GB/s", _number("pull_gb_s"), math.inf),
    ("images", "GB on average", _of_size, math.inf),
    ("think", "s, the median", _thinking, math.inf),
    ("actions", "on average", _long, math.inf),
    ("workers", "", _count("workers"), math.inf),
)
"""Input, unit, function that changes it, upper bound."""
