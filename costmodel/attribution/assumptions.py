"""Assumptions of an attribution: requested settings, and rules of the step model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from costmodel.projection.diagnostics import settings_in_use
from costmodel.statistics.repetitions import Basis
from costmodel.training.run import SPREAD, Think, TrainingRun, poisoned_groups
from costmodel.workload.rescaling import Assumption

REQUESTED: Final = "asked for"
STEP_MODEL_RULES: Final = "rules of the step model"
POISONED: Final = "groups with a failed attempt"
MEASURED_INPUT: Final = "measured"

_UNITS: Final = {
    "_usd_hour": " $ an hour",
    "_gb_s": " GB/s",
    "_gib": " GiB",
    "_s": " s",
    "_hazard": " an hour",
}
_NOT_ASSUMED: Final = ("trajectories", "workers", "baseline", "full_speed", "run_sd", "precision")
"""Fields of the training run that are no assumptions."""


def assumptions(
    training_run: TrainingRun, basis: Basis, *, failures: int, trials: int, dropped: int = 0, scale: int = 1
) -> tuple[Assumption, ...]:
    """Return the assumptions with their sources. ``failures`` of ``trials`` were recorded; 1/``scale`` was simulated.

    ``dropped`` of the failures have a cause without retry.
    """
    results = [*_settings(training_run), *_rules(training_run, basis, failures, trials, dropped)]
    if scale > 1:
        smaller = f"as 1/{scale} of the run: the longest of fewer is shorter, queues are longer"
        results.append(Assumption("size", smaller, STEP_MODEL_RULES))
    return tuple(results)


def borrowed(measured: Iterable[Assumption]) -> Iterator[Assumption]:
    """Yield the assumptions of an unmeasured substrate, marked as unmeasured in their sources."""
    for assumption in measured:
        name, source = assumption.name, assumption.source
        if name == "run-to-run sd":
            yield assumption._replace(source=f"unmeasured: as where the work was recorded ({source})")
        elif name == "failure_rate" and source == MEASURED_INPUT:
            yield assumption._replace(value="none", source="unmeasured: give failure_rate of this place")
        elif name in ("quota", "create_rate", "create_burst") and source == REQUESTED:
            yield assumption._replace(source="published limits of its plan")
        else:
            yield assumption


def _settings(training_run: TrainingRun) -> Iterator[Assumption]:
    for name in settings_in_use(training_run):
        value = getattr(training_run, name)
        if name in _NOT_ASSUMED:
            continue
        text = str(value)
        if value is True:
            text = "yes"
        elif isinstance(value, Think):
            text = f"{value.median_ns / 1e9:g} s"
            text = f"lognormal, median {text}, sigma {value.sigma:g}" if value.sigma else f"{text} before each action"
        elif isinstance(value, int | float):
            text = f"{value:g}{next((unit for end, unit in _UNITS.items() if name.endswith(end)), '')}"
        yield Assumption(name, text, REQUESTED)


def _rules(training_run: TrainingRun, basis: Basis, failures: int, trials: int, dropped: int) -> Iterator[Assumption]:
    yield Assumption("run-to-run sd", f"{basis.sd:.1%} over {basis.runs} runs", basis.source)
    if training_run.failure_rate is None and training_run.failure_hazard is None:
        yield Assumption("failure_rate", f"{failures} of {trials:,} attempts", MEASURED_INPUT)
        if dropped and training_run.on_failure is None:
            yield Assumption("failures without a retry", f"{dropped} of {failures}, by cause", MEASURED_INPUT)
    rate = training_run.failure_rate if training_run.failure_rate is not None else failures / trials if trials else 0.0
    if training_run.group_size is not None and training_run.failure_hazard is None and rate:
        share = poisoned_groups(rate, training_run.group_size, training_run.failure_burst)
        source = REQUESTED if training_run.failure_rate is not None else MEASURED_INPUT
        yield Assumption(
            POISONED,
            f"{share:.0%}, 1 − (1 − {rate:.3g})^{training_run.group_size / training_run.failure_burst:.3g}",
            source,
        )
    if training_run.images is not None and training_run.placement is None:
        yield Assumption("placement", SPREAD, STEP_MODEL_RULES)
