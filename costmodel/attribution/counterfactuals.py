"""A run with and without each cause: the acting causes, attempts without some causes, and the chance of success."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from costmodel.errors import TrainingRunError
from costmodel.pricing.sheet import Prices
from costmodel.projection.cost import by_clock
from costmodel.projection.row import CAUSES
from costmodel.simulation.attempts import AttemptTimes, Trials, timed
from costmodel.simulation.random_streams import ThinkQuantiles, View, World
from costmodel.simulation.rules import StepRules
from costmodel.training.run import KEEP, MASK, RESAMPLE, TrainingRun
from costmodel.workload.pool import Pool

THINK: Final = "think"
CHANCE_STEP: Final = 1 << 19
"""Number of an unused step, for the attempts of ``chance_of_success``."""
CHANCE_ATTEMPTS: Final = 1_000
LEAST_CHANCE: Final = 0.01


class Counterfactuals(NamedTuple):
    """A run with the sets of causes to remove."""

    training_run: TrainingRun
    trials: Trials
    law: ThinkQuantiles | None
    looks: tuple[frozenset[str], ...]  # causes taken away: none, each alone, all, all and think time
    bill: Callable[[Sequence[int]], float]
    times_without: dict[frozenset[str], tuple[list[AttemptTimes], list[AttemptTimes]]]
    rules_without: dict[frozenset[str], StepRules]

    def rules(self, without: frozenset[str]) -> StepRules:
        """Return the rules of the training run without these causes, made once."""
        if without not in self.rules_without:
            self.rules_without[without] = StepRules.of(self.training_run, without)
        return self.rules_without[without]

    def timed(self, without: frozenset[str], factor: float) -> tuple[list[AttemptTimes], list[AttemptTimes]]:
        """Return successes and failures without these causes, times a factor; with factor 1 they are made once."""
        if factor == 1.0 and without in self.times_without:
            return self.times_without[without]
        fork_ns = None if self.training_run.fork_s is None else round(self.training_run.fork_s * 1e9)
        parts = self.trials.successes, self.trials.failures
        times = timed(parts[0], without, factor, fork_ns), timed(parts[1], without, factor, fork_ns, ok=False)
        if factor == 1.0:
            self.times_without[without] = times
        return times


def chance_of_success(counterfactuals: Counterfactuals, world: World) -> float:
    """Return the share of attempts that succeed, or of groups where whole groups are redone.

    Raises:
        TrainingRunError: hardly any attempt succeeds, so a rollout would hardly ever end.
    """
    training_run, trials = counterfactuals.training_run, counterfactuals.trials
    view = View(world, timed(trials.successes, (), 1.0), timed(trials.failures, (), 1.0, ok=False))
    attempts = view.first(world.step(CHANCE_STEP, CHANCE_ATTEMPTS))
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


def bill_of(pool: Pool, prices: Prices | None) -> Callable[[Sequence[int]], float]:
    """Return a function from how many ns each sandbox existed to dollars."""
    if prices is None:
        return lambda clocks_ns: 0.0
    return by_clock(pool, prices.sandbox(pool.identity))


def world_of(counterfactuals: Counterfactuals, times: Sequence[int], seed: int) -> World:
    """Return the random stream with these weights of trials."""
    trials = counterfactuals.trials
    return World(
        counterfactuals.training_run,
        trials.successes,
        trials.failures,
        trials.weighted(times),
        counterfactuals.law,
        seed,
    )
