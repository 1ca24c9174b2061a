"""Savings per training step if sandboxes are suspended, forked or recycled, or if images are built before the run.

An action is compared with the same run without it, in the same random worlds. An input that the training file does not
state has the published range of ``providers.plausible_ranges``; the interval then contains the saving at both ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from costmodel.analysis.decision import across
from costmodel.attribution.paired_comparison import Apart, RunInSteps, Shared, apart
from costmodel.attribution.shares import Rates
from costmodel.errors import TrainingRunError
from costmodel.providers.plausible_ranges import figures
from costmodel.statistics.intervals import Interval
from costmodel.training.life_cycle import ACTIONS
from costmodel.training.run import TrainingRun

INPUTS: Final = {
    "suspend": ("suspend_s", "resume_s"),
    "fork": ("fork_s",),
    "recycle": ("recycle_s",),
    "prebuild": ("build_s",),
}
"""Latencies of each action."""
EFFORT: Final = 0.03
"""Of one saving, relative to the usual of one row."""
COARSE: Final = 0.01
"""Of a saving that only shows where its sign changes."""
BEYOND: Final = 10
"""A threshold is searched up to this multiple of the highest plausible latency."""
ROUNDS: Final = 2


class AssumedInput(NamedTuple):
    """A latency that the training file does not state, in seconds."""

    field: str
    low: float
    high: float
    sources: tuple[str, ...]

    @property
    def middle(self) -> float:
        """The geometric mean, or the mean of a range from zero."""
        return math.sqrt(self.low * self.high) if self.low else self.high / 2


class Threshold(NamedTuple):
    """The value of an input at which an action stops saving."""

    field: str
    value: float | None  # None: the sign is the same at every value up to ``searched``
    searched: float
    saves: bool  # at zero


class Saving(NamedTuple):
    """One action's saving per training step; negative: a loss."""

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
    """A run without one action, and with the action at any values of its inputs."""

    def __init__(self, run: RunInSteps, base: TrainingRun, action: str, effort: float) -> None:
        self._asked, self._action, self._effort = run, action, effort
        self._base = run._replace(training_run=base)
        self._shared: dict[bool, Shared] = {True: {}, False: {}}
        self._steps = math.ceil(run.training_run.trajectories / (run.training_run.step_rollouts or 1))
        self._rates = Rates.of(run.training_run, run.pool, run.prices)
        stated = getattr(run.training_run, ACTIONS[action]) is not None
        self.assumed = () if stated else tuple(map(self._range, INPUTS[action]))
        self._values: dict[str, Any] = {name: getattr(run.training_run, name) or 0.0 for name in INPUTS[action]}
        self._values |= {one.field: one.middle for one in self.assumed}

    def _range(self, field: str) -> AssumedInput:
        """Return the published range of a latency; one per GiB is that of the cell's memory."""
        gib = self._asked.pool.identity.memory_mib / 1024
        printed = [(one, gib if one.unit == "s per GiB" else 1.0) for one in figures() if one.input == field]
        return AssumedInput(
            field,
            min(one.low * times for one, times in printed),
            max(one.high * times for one, times in printed),
            tuple(f"{one.source} ({one.date})" for one, _ in printed),
        )

    def effect(self) -> Saving:
        """Return the saving with its interval, and the thresholds of its inputs."""
        found = [self._saved({})]
        for end in ("low", "high") if self.assumed else ():
            found.append(self._saved({one.field: getattr(one, end) for one in self.assumed}))
        if self._action == "recycle" and not any(one.reuses for one in found):
            nothing = Interval(0.0, 0.0, 0.0)
            return Saving(self._action, nothing if self._rates.known else None, nothing, (), (), reuses=False)
        usd = across(*(one.usd.times(1 / self._steps) for one in found)) if self._rates.known else None
        return Saving(
            self._action, usd, across(*(one.step_s for one in found)), self.assumed, tuple(self._thresholds())
        )

    def _saved(self, values: dict[str, Any], price: float | None = None, *, limits: bool = True) -> Apart:
        """Return the run without the action less the run with it, at these values of its inputs."""
        training_run, values, asked = self._base.training_run, self._values | values, self._asked.training_run
        before = self._base
        if self._action == "prebuild":
            before = before._replace(training_run=replace(training_run, **values))
            after = replace(training_run, build_s=None, builders=None, built_images=0)
        elif self._action == "suspend":
            threshold = asked.suspend_after_s
            threshold = sum(self._values.values()) if threshold is None else threshold
            usd_hour = asked.suspended_usd_hour if price is None else price
            after = replace(training_run, suspend_after_s=threshold, suspended_usd_hour=usd_hour, **values)
        else:
            after = replace(training_run, **values)
        shared = self._shared[limits] if before is self._base else {}
        effort = self._effort * (EFFORT if limits else COARSE)
        [found] = apart([(before, before._replace(training_run=after))], effort, None, shared, limits=limits)
        if found is None:
            raise TrainingRunError(f"{self._action} cannot be compared: no attempt succeeds, or the steps differ")
        return found

    def _value(self, values: dict[str, Any], price: float | None = None) -> float:
        found = self._saved(values, price, limits=False)
        return found.usd.value if self._rates.known else found.step_s.value

    def _thresholds(self) -> list[Threshold]:
        found = []
        if self._action == "suspend" and self._asked.prices is not None:
            found.append(self._price())
        if self._action != "prebuild":
            found.append(self._latency(INPUTS[self._action][-1]))
        return found

    def _price(self) -> Threshold:
        """Return the price of a suspended sandbox at which the saving is zero; the saving is linear in the price."""
        assert self._asked.prices is not None
        full = self._asked.prices.sandbox(self._asked.pool.identity).usd_hour(self._asked.pool.identity)
        free, paid = self._value({}, 0.0), self._value({}, full)
        turns = free > 0 >= paid and free > paid
        return Threshold("suspended_usd_hour", full * free / (free - paid) if turns else None, full, free > 0)

    def _latency(self, field: str) -> Threshold:
        """Return the latency at which the saving is zero, by the secant rule."""
        highest = max([one.high for one in self.assumed if one.field == field] + [self._values[field], 1.0])
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
