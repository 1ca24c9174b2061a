"""Savings per training step if sandboxes are suspended, forked or recycled, or if images are built before the run.

An action is compared with the same run without it, under common random streams. A latency missing from the training
file has the published range of ``providers.plausible_ranges``. The interval then contains the saving at both ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from costmodel.analysis.decision import across
from costmodel.attribution.paired_comparison import Shared, run_difference
from costmodel.attribution.replications import Rates
from costmodel.errors import TrainingRunError
from costmodel.projection.row import Share
from costmodel.providers.plausible_ranges import figures
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
EFFORT: Final = 0.03
"""Simulation budget of a saving, relative to a row."""
BEYOND: Final = 10
"""A threshold is searched up to this multiple of the highest plausible latency."""
ROUNDS: Final = 2


class AssumedInput(NamedTuple):
    """A latency missing from the training file, in seconds."""

    field: str
    low: float
    high: float
    sources: tuple[str, ...]

    @property
    def middle(self) -> float:
        """The geometric mean, or the mean of a range from zero."""
        return math.sqrt(self.low * self.high) if self.low else self.high / 2


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
        base = _without(base, action)
    return [_saving(run, base, action) for action in actions]


def _without(training_run: TrainingRun, action: str) -> TrainingRun:
    if action == "suspend":
        return replace(training_run, suspend_after_s=None, suspend_s=0.0, resume_s=0.0, suspended_usd_hour=None)
    off: dict[str, Any] = {} if action == "prebuild" else {ACTIONS[action]: None}
    return replace(training_run, **off)


def _saving(run: Alternatives, base: TrainingRun, action: str) -> Saving:
    """Return the saving of an action beside ``base``; an assumed latency gives the interval of both its ends."""
    requested, before = run.training_run, run._replace(training_run=base)
    shared: Shared = {}
    assumed: tuple[AssumedInput, ...] = ()
    if getattr(requested, ACTIONS[action]) is None:
        assumed = tuple(_range(field, run.value.identity.memory_mib) for field in INPUTS[action])
    usual: dict[str, Any] = {name: getattr(requested, name) or 0.0 for name in INPUTS[action]}
    usual |= {latency.field: latency.middle for latency in assumed}
    if action == "suspend":
        after_s = requested.suspend_after_s
        usual["suspend_after_s"] = sum(usual.values()) if after_s is None else after_s
        usual["suspended_usd_hour"] = requested.suspended_usd_hour

    def difference(values: dict[str, float]) -> Share:
        after = run._replace(training_run=replace(base, **usual | values))
        if action == "prebuild":  # without the builds
            built = replace(base, build_s=None, builders=None, built_images=0)
            result = run_difference(after, run._replace(training_run=built), EFFORT)
        else:
            result = run_difference(before, after, EFFORT, shared)
        if result is None:
            raise TrainingRunError(f"{action} cannot be compared: no attempt succeeds, or the steps differ")
        return result

    priced = Rates.of(requested, run.value, run.prices).priced

    def saved(field: str, value: float) -> float:
        result = difference({field: value})
        return (result.usd if priced and result.usd else result.step_s).value

    ends = [{latency.field: getattr(latency, end) for latency in assumed} for end in ("low", "high")]
    differences = [difference(values) for values in ({}, *(ends if assumed else ()))]
    steps = math.ceil(requested.trajectories / (requested.step_rollouts or 1))
    usd = across(*(each.usd and each.usd.times(1 / steps) for each in differences))
    step_s = across(*(each.step_s for each in differences))
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
