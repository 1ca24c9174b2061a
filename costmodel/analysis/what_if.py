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
from costmodel.attribution.paired_comparison import RunDifference, RunInSteps, Shared, run_differences
from costmodel.attribution.shares import Rates
from costmodel.errors import TrainingRunError
from costmodel.providers.plausible_ranges import figures
from costmodel.statistics.intervals import Interval
from costmodel.training.run import ACTIONS, TrainingRun

INPUTS: Final = {
    "suspend": ("suspend_s", "resume_s"),
    "fork": ("fork_s",),
    "recycle": ("recycle_s",),
    "prebuild": ("build_s",),
}
"""Latencies of each action."""
EFFORT: Final = 0.03
"""Simulation budget of a saving, relative to a row."""
COARSE: Final = 0.01
"""Simulation budget of a saving of which the sign is used."""
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
    reuses: bool = True  # False: no sandbox is reused, so that the action does nothing


def what_if(
    run: RunInSteps, actions: Sequence[str], effort: float = 1.0, progress: Callable[[float], None] | None = None
) -> list[Saving]:
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
    effects = []
    for place, action in enumerate(actions):
        effects.append(_Comparison(run, base, action, effort).effect())
        if progress is not None:
            progress((place + 1) / len(actions))
    return effects


def _without(training_run: TrainingRun, action: str) -> TrainingRun:
    if action == "suspend":
        return replace(training_run, suspend_after_s=None, suspend_s=0.0, resume_s=0.0, suspended_usd_hour=None)
    off: dict[str, Any] = {} if action == "prebuild" else {ACTIONS[action]: None}
    return replace(training_run, **off)


class _Comparison:
    """A run without an action, and with the action at any values of its inputs."""

    def __init__(self, run: RunInSteps, base: TrainingRun, action: str, effort: float) -> None:
        self._run, self._action, self._effort = run, action, effort
        self._base = run._replace(training_run=base)
        self._shared: dict[bool, Shared] = {True: {}, False: {}}
        self._steps = math.ceil(run.training_run.trajectories / (run.training_run.step_rollouts or 1))
        self._rates = Rates.of(run.training_run, run.pool, run.prices)
        stated = getattr(run.training_run, ACTIONS[action]) is not None
        self.assumed = () if stated else tuple(map(self._range, INPUTS[action]))
        self._values: dict[str, Any] = {name: getattr(run.training_run, name) or 0.0 for name in INPUTS[action]}
        self._values |= {latency.field: latency.middle for latency in self.assumed}

    def _range(self, field: str) -> AssumedInput:
        """Return the published range of a latency; a latency per GiB is multiplied by the cell's memory."""
        gib = self._run.pool.identity.memory_mib / 1024
        printed = [
            (figure, gib if figure.unit == "s per GiB" else 1.0) for figure in figures() if figure.input == field
        ]
        return AssumedInput(
            field,
            min(figure.low * times for figure, times in printed),
            max(figure.high * times for figure, times in printed),
            tuple(f"{figure.source} ({figure.date})" for figure, _ in printed),
        )

    def effect(self) -> Saving:
        """Return the saving with its interval, and the thresholds of its inputs."""
        differences = [self._saved({})]
        for end in ("low", "high") if self.assumed else ():
            differences.append(self._saved({latency.field: getattr(latency, end) for latency in self.assumed}))
        if self._action == "recycle" and not any(difference.reuses for difference in differences):
            nothing = Interval(0.0, 0.0, 0.0)
            return Saving(self._action, nothing if self._rates.priced else None, nothing, (), (), reuses=False)
        usd = (
            across(*(difference.usd.times(1 / self._steps) for difference in differences))
            if self._rates.priced
            else None
        )
        return Saving(
            self._action,
            usd,
            across(*(difference.step_s for difference in differences)),
            self.assumed,
            tuple(self._thresholds()),
        )

    def _saved(self, values: dict[str, Any], price: float | None = None, *, limits: bool = True) -> RunDifference:
        """Return the run without the action less the run with the action."""
        training_run, values, requested = self._base.training_run, self._values | values, self._run.training_run
        before = self._base
        if self._action == "prebuild":
            before = before._replace(training_run=replace(training_run, **values))
            after = replace(training_run, build_s=None, builders=None, built_images=0)
        elif self._action == "suspend":
            threshold = requested.suspend_after_s
            threshold = sum(self._values.values()) if threshold is None else threshold
            usd_hour = requested.suspended_usd_hour if price is None else price
            after = replace(training_run, suspend_after_s=threshold, suspended_usd_hour=usd_hour, **values)
        else:
            after = replace(training_run, **values)
        shared = self._shared[limits] if before is self._base else {}
        effort = self._effort * (EFFORT if limits else COARSE)
        [difference] = run_differences(
            [(before, before._replace(training_run=after))], effort, None, shared, limits=limits
        )
        if difference is None:
            raise TrainingRunError(f"{self._action} cannot be compared: no attempt succeeds, or the steps differ")
        return difference

    def _value(self, values: dict[str, Any], price: float | None = None) -> float:
        difference = self._saved(values, price, limits=False)
        return difference.usd.value if self._rates.priced else difference.step_s.value

    def _thresholds(self) -> list[Threshold]:
        thresholds = []
        if self._action == "suspend" and self._run.prices is not None:
            thresholds.append(self._price())
        if self._action != "prebuild":
            thresholds.append(self._latency(INPUTS[self._action][-1]))
        return thresholds

    def _price(self) -> Threshold:
        """Return the price of a suspended sandbox for a saving of zero; the saving is linear in the price."""
        assert self._run.prices is not None
        full = self._run.prices.sandbox(self._run.pool.identity).usd_hour(self._run.pool.identity)
        free, paid = self._value({}, 0.0), self._value({}, full)
        turns = free > 0 >= paid and free > paid
        return Threshold("suspended_usd_hour", full * free / (free - paid) if turns else None, full, free > 0)

    def _latency(self, field: str) -> Threshold:
        """Return the latency for a saving of zero, by the secant rule."""
        highest = max([latency.high for latency in self.assumed if latency.field == field] + [self._values[field], 1.0])
        low, high = 0.0, max(60.0, BEYOND * highest)
        at_low, at_high = self._value({field: low}), self._value({field: high})
        if at_low <= 0 or at_high >= 0:
            return Threshold(field, None, high, at_low > 0)
        for _ in range(ROUNDS):
            middle = low + (high - low) * at_low / (at_low - at_high)
            at_middle = self._value({field: middle})
            if at_middle > 0:
                low, at_low = middle, at_middle
            else:
                high, at_high = middle, at_middle
        return Threshold(field, low + (high - low) * at_low / (at_low - at_high), high, True)
