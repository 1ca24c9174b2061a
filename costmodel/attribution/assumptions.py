"""Assumptions of an attribution: requested settings, and rules of the step model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from costmodel.statistics.repetitions import Basis
from costmodel.training.run import TrainingRun, poisoned_groups
from costmodel.workload.scenario_range import Assumption

REQUESTED: Final = "asked for"
STEP_MODEL_RULES: Final = "rules of the step model"
POISONED: Final = "groups with a failed attempt"
MEASURED_INPUT: Final = "measured"

_UNITS: Final = {
    "_usd_hour": " $ an hour",
    "_gb_s": " GB/s",
    "_gib": " GiB",
    "_s": " s",
    "_rate": "",
    "_hazard": " an hour",
}
_SETTINGS: Final = (
    *("actions", "prompts", "group_size", "batch", "policy", "staleness", "train_s", "think", "think_correlation"),
    *("gpus", "gpu_usd_hour", "nodes", "pods_per_node", "node_usd_hour", "node_disk_gib"),
    *("images", "pull_gb_s", "build_s", "builders", "built_images", "placement"),
    *("failure_rate", "failure_hazard", "failure_burst", "on_failure", "max_attempts", "backoff_s", "timeout_s"),
    *("quota", "create_rate", "create_burst", "warm_pool", "refill_s", "refill_rate"),
    *("over_provision", "partial_rollouts", "include_cleanup"),
    *("suspend_after_s", "suspend_s", "resume_s", "suspended_usd_hour", "fork_s", "recycle_s"),
)
"""Fields of the training run that are assumptions where they are set."""


def assumptions(
    training_run: TrainingRun, basis: Basis, *, failures: int, trials: int, dropped: int = 0, scale: int = 1
) -> tuple[Assumption, ...]:
    """Return the assumptions with their sources. ``failures`` of ``trials`` were recorded; 1/``scale`` was simulated.

    ``dropped`` of the failures have a cause without retry.
    """
    smaller = Assumption(
        "size", f"as 1/{scale} of the run: the longest of fewer is shorter, queues are longer", STEP_MODEL_RULES
    )
    return (
        tuple(_settings(training_run))
        + tuple(_rules(training_run, basis, failures, trials, dropped))
        + (smaller,) * (scale > 1)
    )


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
    usual = TrainingRun(trajectories=training_run.trajectories, workers=training_run.workers)
    for name in _SETTINGS:
        value = getattr(training_run, name)
        if value == getattr(usual, name):
            continue
        if name == "think":
            law = f"lognormal, median {value.median_ns / 1e9:g} s, sigma {value.sigma:g}"
            yield Assumption(name, law if value.sigma else f"{value.median_ns / 1e9:g} s before each action", REQUESTED)
            continue
        unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
        yield Assumption(
            name,
            "yes" if value is True else f"{value:g}{unit}" if isinstance(value, int | float) else str(value),
            REQUESTED,
        )


def _rules(training_run: TrainingRun, basis: Basis, failures: int, trials: int, dropped: int) -> Iterator[Assumption]:
    yield Assumption("run-to-run sd", f"{basis.sd:.1%} over {basis.runs} runs", basis.source)
    if training_run.failure_rate is None and training_run.failure_hazard is None:
        yield Assumption("failure_rate", f"{failures} of {trials:,} attempts", MEASURED_INPUT)
        if dropped and training_run.on_failure is None:
            yield Assumption("failures without a retry", f"{dropped} of {failures}, by cause", MEASURED_INPUT)
    elif training_run.failure_rate is not None:
        yield Assumption("moment of a failure", "any of the attempt is as likely", STEP_MODEL_RULES)
    else:
        yield Assumption("moment of a failure", "the same hazard at every moment", STEP_MODEL_RULES)
    rate = training_run.failure_rate if training_run.failure_rate is not None else failures / trials if trials else 0.0
    if training_run.group_size is not None and training_run.failure_hazard is None and rate:
        share = poisoned_groups(rate, training_run.group_size, training_run.failure_burst)
        source = REQUESTED if training_run.failure_rate is not None else MEASURED_INPUT
        yield Assumption(
            POISONED,
            f"{share:.0%}, 1 − (1 − {rate:.3g})^{training_run.group_size / training_run.failure_burst:.3g}",
            source,
        )
    if training_run.images is not None:
        yield Assumption("image of a prompt", "each is as likely, drawn anew every time", STEP_MODEL_RULES)
        if training_run.placement is None:
            yield Assumption("placement", training_run.effective_placement, STEP_MODEL_RULES)
        yield Assumption(
            "disks", "empty at the start, the image that was used longest ago leaves first", STEP_MODEL_RULES
        )
        if training_run.pull_gb_s is not None:
            yield Assumption("pulls", "one after another on each node (serializeImagePulls)", STEP_MODEL_RULES)
