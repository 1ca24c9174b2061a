"""Suspension, forks, recycling and builds: the part of a training run that changes the life of a sandbox."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from costmodel.errors import TrainingRunError

ACTIONS: Final = {"suspend": "suspend_after_s", "fork": "fork_s", "recycle": "recycle_s", "prebuild": "build_s"}
"""Action of a life cycle → field of ``TrainingRun``; ``prebuild`` removes builds."""


class Suspension(NamedTuple):
    """Idle time before a suspension, and the durations of suspending and resuming."""

    after_ns: int
    suspend_ns: int
    resume_ns: int

    def split(self, pause_ns: float) -> tuple[float, float]:
        """Return the delay of the next action, and the suspended time, in ns, for one pause."""
        awake_ns = self.after_ns + self.suspend_ns
        if pause_ns <= self.after_ns:
            return 0.0, 0.0
        return self.resume_ns + max(0.0, awake_ns - pause_ns), max(0.0, pause_ns - awake_ns)


def check(training_run: Any) -> None:
    """Refuse combinations of a ``TrainingRun`` that have no answer.

    Raises:
        TrainingRunError: an input lacks the input that it depends on, or two inputs contradict each other.
    """
    if training_run.suspend_after_s is None:
        if training_run.suspend_s or training_run.resume_s or training_run.suspended_usd_hour is not None:
            raise TrainingRunError("a suspension needs its threshold: add --suspend-after-seconds S")
    elif training_run.think is None:
        raise TrainingRunError("a suspension depends on each pause of the model: add --think lognormal:8s,1.2")
    if training_run.recycle_s is not None:
        refused = {
            "include_cleanup": training_run.include_cleanup,
            "warm_pool": training_run.warm_pool is not None,
            "over_provision": training_run.over_provision > 0,
            "on_failure resample": training_run.on_failure == "resample",
        }
        if names := [name for name, is_set in refused.items() if is_set]:
            raise TrainingRunError(f"--recycle-seconds does not go with {' or '.join(names)}: leave one of them out")
    if training_run.build_s is None:
        if training_run.builders is not None or training_run.built_images:
            raise TrainingRunError("builders and built images need the time of a build: add --build-seconds S")
    elif training_run.images is None:
        raise TrainingRunError(
            "each image is built on its first use: add --images SET, --nodes N and --pods-per-node P"
        )
    elif training_run.built_images > training_run.images.count:
        raise TrainingRunError(
            f"built_images must be at most the {training_run.images.count} images, not {training_run.built_images}"
        )
