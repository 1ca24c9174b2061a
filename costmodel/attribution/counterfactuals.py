"""The causes that act in a run, and the share of its attempts that succeed."""

from __future__ import annotations

import math
from typing import Final

from costmodel.errors import TrainingRunError
from costmodel.projection.row import CAUSES
from costmodel.simulation.attempts import Trials, timed
from costmodel.simulation.random_streams import AttemptStream, RandomStream
from costmodel.training.run import KEEP, MASK, RESAMPLE, TrainingRun
from costmodel.workload.pool import Pool

CHANCE_STEP: Final = 1 << 19
"""Number of an unused step, for the attempts of ``chance_of_success``."""
CHANCE_ATTEMPTS: Final = 1_000
LEAST_CHANCE: Final = 0.01


def chance_of_success(training_run: TrainingRun, trials: Trials, stream: RandomStream) -> float:
    """Return the share of attempts that succeed, or of groups where whole groups are redone.

    Raises:
        TrainingRunError: hardly any attempt succeeds, so a rollout would hardly ever end.
    """
    source = AttemptStream(stream, timed(trials.successes, (), 1.0), timed(trials.failures, (), 1.0, ok=False))
    attempts = source.first(stream.step(CHANCE_STEP, CHANCE_ATTEMPTS))
    limit_ns = math.inf if training_run.timeout_s is None else training_run.timeout_s * 1e9
    chance = sum(ok is True and span <= limit_ns for ok, span, *_ in attempts) / len(attempts)
    if training_run.on_failure == RESAMPLE:
        chance **= training_run.group_size or 1
    if training_run.max_attempts is None and training_run.on_failure not in (MASK, KEEP) and chance < LEAST_CHANCE:
        share_name = (
            "groups are without a failure" if training_run.on_failure == RESAMPLE else "attempts succeed in time"
        )
        raise TrainingRunError(
            f"{chance:.2%} of {share_name}, so that a rollout hardly ever ends: add --max-attempts A"
        )
    return max(chance, 1 / (training_run.max_attempts or 1 / LEAST_CHANCE))


def acting_causes(
    trials: Trials, training_run: TrainingRun, pool: Pool, full_speed: float | None
) -> dict[str, bool | None]:
    """Return whether each cause acts at all in this training run; None: unknown."""
    parts = (*trials.successes, *trials.failures)
    acts: dict[str, bool | None] = {
        cause: any(getattr(attempt, cause) for attempt in parts)
        for cause in ("create", "ready", "preload", "dispatch", "slowdown", "contention", "harness", "cleanup")
    }
    acts["image_pull"] = training_run.images is not None and (
        training_run.pull_gb_s is not None or bool(training_run.build_s)
    )
    acts["throttle"] = (
        training_run.create_rate is not None
        or training_run.quota is not None
        or any(attempt.queued for attempt in parts)
    )
    acts["failures"] = bool(training_run.failure_rate or training_run.failure_hazard or trials.failures)
    if not trials.run_known:
        acts |= {"dispatch": None, "slowdown": None, "contention": None}
    if full_speed is None:
        acts["slowdown"] = None
    if pool.contended is None:
        acts["contention"] = None
    return {cause: acts[cause] for cause in CAUSES}
