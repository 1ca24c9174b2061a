"""Savings per training step if sandboxes are suspended, forked or recycled, or if images are built before the run.

An action is compared with the same run without it, under common random streams. A latency missing from the training
file has the published range of ``providers.plausible_ranges``. The interval then contains the saving at both ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from costmodel.analysis.decision import across
from costmodel.attribution.paired_comparison import Shared, run_difference
from costmodel.attribution.shares import Rates
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


def what_if(run: Alternatives, actions: Sequence[str], progress: Callable[[float], None] | None = None) -> list[Saving]:
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
    savings = []
    for place, action in enumerate(actions):
        savings.append(_Comparison(run, base, action).saving())
        if progress is not None:
            progress((place + 1) / len(actions))
    return savings


def _without(training_run: TrainingRun, action: str) -> TrainingRun:
    if action == "suspend":
        return replace(training_run, suspend_after_s=None, suspend_s=0.0, resume_s=0.0, suspended_usd_hour=None)
    off: dict[str, Any] = {} if action == "prebuild" else {ACTIONS[action]: None}
    return replace(training_run, **off)


class _Comparison:
    """A run without an action, and with the action at any values of its inputs."""

    def __init__(self, run: Alternatives, base: TrainingRun, action: str) -> None:
        self._run, self._action = run, action
        self._base = run._replace(training_run=base)
        self._shared: Shared = {}
        self._steps = math.ceil(run.training_run.trajectories / (run.training_run.step_rollouts or 1))
        self._priced = Rates.of(run.training_run, run.value, run.prices).priced
        stated = getattr(run.training_run, ACTIONS[action]) is not None
        self._assumed = () if stated else tuple(map(self._range, INPUTS[action]))
        self._values: dict[str, Any] = {name: getattr(run.training_run, name) or 0.0 for name in INPUTS[action]}
        self._values |= {latency.field: latency.middle for latency in self._assumed}

    def _range(self, field: str) -> AssumedInput:
        """Return the published range of a latency; a latency per GiB is multiplied by the cell's memory."""
        gib = self._run.value.identity.memory_mib / 1024
        printed = [
            (figure, gib if figure.unit == "s per GiB" else 1.0) for figure in figures() if figure.input == field
        ]
        return AssumedInput(
            field,
            min(figure.low * times for figure, times in printed),
            max(figure.high * times for figure, times in printed),
            tuple(f"{figure.source} ({figure.date})" for figure, _ in printed),
        )

    def saving(self) -> Saving:
        """Return the saving with its interval, and the thresholds of its inputs."""
        ends = [{latency.field: getattr(latency, end) for latency in self._assumed} for end in ("low", "high")]
        differences = [self._difference(values) for values in [{}, *(ends if self._assumed else [])]]
        usd = across(*(difference.usd and difference.usd.times(1 / self._steps) for difference in differences))
        step_s = across(*(difference.step_s for difference in differences))
        return Saving(self._action, usd if self._priced else None, step_s, self._assumed, tuple(self._thresholds()))

    def _difference(self, values: dict[str, Any]) -> Share:
        """Return the run without the action less the run with the action."""
        training_run, requested, values = self._base.training_run, self._run.training_run, self._values | values
        before, shared = self._base, self._shared
        if self._action == "prebuild":
            before, shared = before._replace(training_run=replace(training_run, **values)), {}
            after = replace(training_run, build_s=None, builders=None, built_images=0)
        else:
            if self._action == "suspend":
                after_s = requested.suspend_after_s
                values["suspend_after_s"] = sum(self._values.values()) if after_s is None else after_s
                values.setdefault("suspended_usd_hour", requested.suspended_usd_hour)
            after = replace(training_run, **values)
        difference = run_difference(before, before._replace(training_run=after), EFFORT, None, shared)
        if difference is None:
            raise TrainingRunError(f"{self._action} cannot be compared: no attempt succeeds, or the steps differ")
        return difference

    def _thresholds(self) -> list[Threshold]:
        thresholds, prices, identity = [], self._run.prices, self._run.value.identity
        if self._action == "suspend" and prices is not None:
            thresholds.append(self._threshold("suspended_usd_hour", prices.sandbox(identity).usd_hour(identity)))
        if self._action != "prebuild":
            field = INPUTS[self._action][-1]
            highest = max(self._values[field], 1.0, *(item.high for item in self._assumed if item.field == field))
            thresholds.append(self._threshold(field, max(60.0, BEYOND * highest)))
        return thresholds

    def _threshold(self, field: str, high: float) -> Threshold:
        """Return the value of an input up to ``high`` for a saving of zero, by the secant rule."""

        def saved(value: float) -> float:
            difference = self._difference({field: value})
            return (difference.usd if self._priced and difference.usd else difference.step_s).value

        low, searched = 0.0, high
        at_low, at_high = saved(low), saved(high)
        if at_low <= 0 or at_high > 0:
            return Threshold(field, None, searched, at_low > 0)
        for _ in range(ROUNDS):
            middle = low + (high - low) * at_low / (at_low - at_high)
            at_middle = saved(middle)
            if at_middle > 0:
                low, at_low = middle, at_middle
            else:
                high, at_high = middle, at_middle
        return Threshold(field, low + (high - low) * at_low / (at_low - at_high), searched, True)
