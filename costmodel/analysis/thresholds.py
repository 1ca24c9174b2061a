"""Thresholds: the value of an input at which two sides cost the same.

``input_effects``: each unmeasured input of a decision, searched by bisection, other inputs unchanged. ``what_if``: the
savings per training step if sandboxes are suspended, forked or recycled, or if images are built before the run. An
action is compared with the same run without it. A latency missing from the training file has the published range of
``providers.plausible_ranges``; the interval then contains the saving at both ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from costmodel.analysis.decision import Decision, Savings, across
from costmodel.attribution.paired_comparison import Shared, run_difference
from costmodel.attribution.replications import Rates
from costmodel.errors import CostModelError, TrainingRunError
from costmodel.projection.row import Share
from costmodel.providers.plausible_ranges import Input, figures
from costmodel.statistics.intervals import Interval
from costmodel.training.run import ACTIONS, TrainingRun
from costmodel.workload.rescaling import Alternatives

INPUTS: Final = {
    "suspend": ("suspend_s", "resume_s"),
    "fork": ("fork_s",),
    "recycle": ("recycle_s",),
    "prebuild": ("build_s",),
}
"""Latencies of each action."""
OFF: Final[dict[str, dict[str, Any]]] = {
    "suspend": {"suspend_after_s": None, "suspend_s": 0.0, "resume_s": 0.0, "suspended_usd_hour": None},
    "fork": {"fork_s": None},
    "recycle": {"recycle_s": None},
    "prebuild": {},
}
"""Fields of a training run without an action."""
EFFORT: Final = 0.03
"""Simulation budget of a saving, relative to a row."""
BEYOND: Final = 10
"""A threshold is searched up to this multiple of the highest plausible latency."""
ROUNDS: Final = 2
SWEPT: Final = 0.04
"""Simulation budget of a tried value, relative to a row."""
QUICK: Final = 0.0025
"""The same of a rough simulation."""
NOT_TRIED: Final = math.nan
NEAR_ENOUGH: Final = 1 / 16
"""Precision of a threshold, as a share of the range."""
SavingAt = Callable[[float], float | None]
"""Saving of moving by the value of an input; None: the run would never end."""


class InputEffect(NamedTuple):
    """An unmeasured input with its effect on the saving over its range; the remaining inputs are as assumed."""

    input: Input
    best: float | None  # saving with the input at its best; None: the run would never end; not a number: not tried
    worst: float | None
    at: float | None  # threshold; None: nowhere in the range

    @property
    def near(self) -> float:
        """Distance of the threshold, as a share of the way from the assumed value to the end of the range."""
        if self.at is None:
            return math.inf
        way = self.at - self.input.assumed
        end = self.input.worst if way * (self.input.worst - self.input.assumed) > 0 else self.input.best
        return 0.0 if end == self.input.assumed else way / (end - self.input.assumed)


class AssumedInput(NamedTuple):
    """A latency missing from the training file, in seconds."""

    field: str
    low: float
    high: float
    sources: tuple[str, ...]


class Threshold(NamedTuple):
    """Value of an input with a saving of zero."""

    field: str
    value: float | None  # None: the sign is the same at every value up to ``searched``
    searched: float
    saves: bool  # at zero


class Saving(NamedTuple):
    """Saving of an action per training step; negative: a loss."""

    action: str
    usd: Interval | None  # None: nothing has a price
    step_s: Interval
    assumed: tuple[AssumedInput, ...]
    thresholds: tuple[Threshold, ...]


def what_if(run: Alternatives, actions: Sequence[str]) -> list[Saving]:
    """Return the saving of each action alone; the training run has none of the named actions otherwise.

    Raises:
        TrainingRunError: the run has no steps, or lacks an input of an action.
        PriceError: the sheet lacks a price.
    """
    if run.training_run.step_rollouts is None:
        raise TrainingRunError("--what-if compares training steps: add --prompts P --group-size G, or --batch B")
    if not run.training_run.trajectories:
        raise TrainingRunError("--what-if needs at least one trajectory")
    base = run.training_run
    for action in actions:
        base = replace(base, **OFF[action])
    return [_saving(run, base, action) for action in actions]


def _saving(run: Alternatives, base: TrainingRun, action: str) -> Saving:
    """Return the saving of an action beside ``base``; an assumed latency gives the interval of both its ends."""
    requested, before = run.training_run, run._replace(training_run=base)
    shared: Shared = {}
    assumed: tuple[AssumedInput, ...] = ()
    if getattr(requested, ACTIONS[action]) is None:
        assumed = tuple(_range(field, run.value.identity.memory_mib) for field in INPUTS[action])
    usual: dict[str, Any] = {name: getattr(requested, name) or 0.0 for name in INPUTS[action]}
    for latency in assumed:  # the geometric mean, or the mean of a range from zero
        usual[latency.field] = math.sqrt(latency.low * latency.high) if latency.low else latency.high / 2
    if action == "suspend":
        after_s = requested.suspend_after_s
        usual["suspend_after_s"] = sum(usual.values()) if after_s is None else after_s
        usual["suspended_usd_hour"] = requested.suspended_usd_hour

    def difference(values: dict[str, float], *, limits: bool = True) -> Share:
        after = run._replace(training_run=replace(base, **usual | values))
        if action == "prebuild":  # without the builds
            built = replace(base, build_s=None, builders=None, built_images=0)
            result = run_difference(after, run._replace(training_run=built), EFFORT, limits=limits)
        else:
            result = run_difference(before, after, EFFORT, shared, limits=limits)
        if result is None:
            raise TrainingRunError(f"{action} cannot be compared: no attempt succeeds, or the steps differ")
        return result

    priced = Rates.of(run).priced

    def saved(field: str, value: float) -> float:
        result = difference({field: value}, limits=False)
        return (result.usd if priced and result.usd else result.step_s).value

    ends = [{latency.field: getattr(latency, end) for latency in assumed} for end in ("low", "high")]
    differences = [difference(values) for values in ({}, *(ends if assumed else ()))]
    steps = math.ceil(requested.trajectories / (requested.step_rollouts or 1))
    usd = across(*(saving.usd and saving.usd.times(1 / steps) for saving in differences))
    step_s = across(*(saving.step_s for saving in differences))
    highest: dict[str, float] = {}  # value up to which a threshold is searched, by input
    if action == "suspend" and run.prices is not None:
        identity = run.value.identity
        highest["suspended_usd_hour"] = run.prices.sandbox(identity).usd_hour(identity)
    if action != "prebuild":
        field = INPUTS[action][-1]
        plausible = max(usual[field], 1.0, *(latency.high for latency in assumed if latency.field == field))
        highest[field] = max(60.0, BEYOND * plausible)
    thresholds = tuple(_threshold(field, high, partial(saved, field)) for field, high in highest.items())
    return Saving(action, usd if priced else None, step_s, assumed, thresholds)


def _threshold(field: str, searched: float, saved: Callable[[float], float]) -> Threshold:
    """Return the value of an input up to ``searched`` for a saving of zero, by the secant rule."""
    low, high = 0.0, searched
    at_low, at_high = saved(low), saved(high)
    if at_low <= 0 or at_high > 0:
        return Threshold(field, None, searched, at_low > 0)
    middle = _secant(low, at_low, high, at_high)
    for _ in range(ROUNDS):
        at_middle = saved(middle)
        if at_middle > 0:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
        middle = _secant(low, at_low, high, at_high)
    return Threshold(field, middle, searched, True)


def _secant(low: float, at_low: float, high: float, at_high: float) -> float:
    return low + (high - low) * at_low / (at_low - at_high)


def _range(field: str, memory_mib: int) -> AssumedInput:
    """Return the published range of a latency; a latency per GiB is multiplied by the cell's memory."""
    printed = [
        (figure, memory_mib / 1024 if figure.unit == "s per GiB" else 1.0)
        for figure in figures()
        if figure.input == field
    ]
    return AssumedInput(
        field,
        min(figure.low * times for figure, times in printed),
        max(figure.high * times for figure, times in printed),
        tuple(f"{figure.source} ({figure.date})" for figure, _ in printed),
    )


def input_effects(decision: Decision, *, rough: bool = False) -> list[InputEffect]:
    """Return every unmeasured input with its threshold, the nearest first.

    Inputs without a threshold follow. ``rough``: only the end against the saving is simulated, and the threshold is
    interpolated linearly.
    """
    if not decision.inputs:
        return []
    savings = Savings(decision.start, decision.goal, decision.unit, QUICK if rough else SWEPT, limits=False)
    saving, assumed_saving, effects = decision.saving.value, savings.at({}).value, []
    for unmeasured in decision.inputs:

        def saving_at(value: float, name: str = unmeasured.name) -> float | None:
            try:  # only the difference of these less precise simulations is used
                return saving + savings.at({name: value}).value - assumed_saving
            except CostModelError:
                return None

        against = "worst" if saving >= 0 else "best"
        tried = [end for end in ("best", "worst") if not rough or unmeasured.either or end == against]
        ends = {end: saving_at(getattr(unmeasured, end)) for end in tried}
        at = _turning_value(saving, unmeasured, ends, None if rough else saving_at)
        effects.append(InputEffect(unmeasured, ends.get("best", NOT_TRIED), ends.get("worst", NOT_TRIED), at))
    return sorted(effects, key=lambda effect: effect.near)


def _turning_value(
    assumed_saving: float, unmeasured: Input, ends: Mapping[str, float | None], saving: SavingAt | None
) -> float | None:
    """Return the threshold nearest to the assumed value: by bisection, or linearly without ``saving``."""
    shares: dict[float, float] = {}  # end → share of the way to the end
    for name, end_saving in ends.items():
        end = getattr(unmeasured, name)
        if end_saving is not None and end_saving * assumed_saving > 0:
            continue
        if saving is not None:
            shares[end] = _bisected_share(assumed_saving, unmeasured, end, saving)
        elif end_saving is None:
            shares[end] = 1.0
        else:
            shares[end] = assumed_saving / (assumed_saving - end_saving) if assumed_saving != end_saving else 0.0
    if not shares:
        return None
    end = min(shares, key=lambda candidate: shares[candidate])
    at = unmeasured.assumed + shares[end] * (end - unmeasured.assumed)
    if unmeasured.plans:
        return float(math.ceil(at) if end > unmeasured.assumed else math.floor(at))
    return at


def _bisected_share(assumed_saving: float, unmeasured: Input, end: float, saving: SavingAt) -> float:
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
