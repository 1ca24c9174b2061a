"""Replications of a run with and without each cause, under common random streams.

Each stream draws from the recorded trials. Its twin draws from a resample of the trials with the same random numbers:
of repetitions, and of stretches of neighbouring trials. With fewer than three repetitions a repetition effect is
assumed. Rounds are added until the simulation error is small. ``shares`` computes the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final, NamedTuple

from costmodel.attribution.counterfactuals import (
    THINK,
    Counterfactuals,
    acting_causes,
    bill_of,
    chance_of_success,
    world_of,
)
from costmodel.attribution.resamples import draws_runs, halved, resampled
from costmodel.pricing.sheet import Prices
from costmodel.projection.row import CAUSES
from costmodel.simulation.attempts import Trials
from costmodel.simulation.random_streams import ThinkQuantiles, View, World
from costmodel.simulation.step_sampling import Horizon, HorizonPart, horizon, is_alike, rollouts_of, smaller
from costmodel.simulation.timeline import StepTaken, simulate_steps
from costmodel.statistics.repetitions import assumed
from costmodel.training.run import TrainingRun
from costmodel.workload.pool import Pool

WORLDS: Final = (6, 10)
"""Streams on the recorded trials, each with a twin: at least, and at most."""
ATTEMPTS: Final = 48_000_000
"""Largest number of attempts in a round: a larger system is simulated smaller. Half a minute to a minute."""
BUDGET: Final = 12_000_000
"""Attempts of a row: about fifteen seconds. The interval contains the remaining error."""
FIRST: Final = 600_000
"""Approximate attempts of the first round, for any number of causes, so that all rows have the same draws."""
SHARED: Final = 4
"""Relative cost of a run that shares more than workers."""
MOST_STEPS: Final = 16
"""Steps of a stream in a round."""
ROUGH: Final = 0.2
"""Below this effort there are as few worlds as can be."""
BEFORE: Final = 8
"""Growth of the number of rounds before the error is checked again."""


Looks = list[list[StepTaken]]
"""Simulated steps under a stream: of the run, without each acting cause, ideal, and ideal without think time."""


class Sampling(NamedTuple):
    """Size of a simulation."""

    plan: Horizon
    plain: int
    twins: int
    scale: int = 1  # divisor of the system's size
    salt: int = 0  # separates resamples of different repetitions


class Worlds(NamedTuple):
    """A run under several random streams, with and without each cause."""

    causes: dict[str, bool | None]  # whether each acts at all; None: unknown
    plan: Horizon
    plain: list[Looks]
    twins: list[Looks]  # of each plain stream
    scale: int  # divisor of the simulated system's size
    times: float  # weight of each rollout
    rounds: tuple[int, ...]  # of each look
    level: bool = False  # whether all steps of an ideal sandbox are alike
    repetitions: int = 0  # repetitions drawn whole by twins; 0: twins draw trials of each

    @property
    def share(self) -> float:
        """Return the factor from counted amounts of the steps to the run; the last step may be partial."""
        return self.times * self.plan.whole / self.plan.steps


Needed = Callable[[Worlds], tuple[float, frozenset[int]]]
"""Return the rounds for a small simulation error, and the counterfactuals with more rounds."""
Progress = Callable[[float], None]
"""Receives the finished share, from 0 to 1."""


def worlds(
    pool: Pool,
    training_run: TrainingRun,
    prices: Prices | None = None,
    full_speed: float | None = None,
    effort: float = 1.0,
    *,
    needed: Needed | None = None,
    progress: Progress | None = None,
    causes: bool = True,
) -> Worlds | None:
    """Simulate a run in steps until the ``needed`` rounds, or the ``effort`` is used. None: no attempt succeeds.

    ``full_speed``: share of the command time that the reference needs; None: no reference. ``effort`` 1 is usual.
    Without ``causes`` all causes are removed together only.

    Raises:
        TrainingRunError: next to no attempt would succeed.
        PriceError: the sheet lacks a price.
    """
    begun = Replications.of(pool, training_run, prices, full_speed, effort, causes=causes)
    if begun is None:
        return None

    def rounds_needed() -> float:
        assert needed is not None
        rounds, looks = needed(begun.worlds)
        begun.keep(looks)
        return rounds

    repeated([begun], rounds_needed if needed else None, progress)
    return begun.worlds


def repeated(runs: Sequence[Replications], needed: Callable[[], float] | None, progress: Progress | None) -> None:
    """Add rounds to all runs alike until ``needed`` or ``most_rounds``.

    Frequent checks would stop at a lucky moment, so they are few.
    """
    rounds, reported, allowed = 0, 0.0, min(run.most_rounds for run in runs)
    wanted = max(1, *(run.rounds for run in runs)) if len(runs) > 1 else 1
    while rounds < wanted:
        expected = wanted if needed is None or wanted == allowed else min(allowed, 2 * wanted)
        for number in range(rounds, wanted):
            for place, run in enumerate(runs):
                for part in run.simulate(number):
                    reported = max(reported, (number + (place + part) / len(runs)) / expected)
                    if progress is not None:
                        progress(reported)
        rounds = wanted
        if needed is not None:
            wanted = min(BEFORE * rounds, math.ceil(needed()))
            allowed = min(run.most_rounds for run in runs)
            wanted = min(allowed, wanted)
    if progress is not None:
        progress(1.0)


class Replications:
    """Replications of a run, added in rounds."""

    def __init__(
        self,
        counterfactuals: Counterfactuals,
        sampling: Sampling,
        causes: dict[str, bool | None],
        pool: Pool,
        rollouts: int,
        budget: float,
        *,
        halves: bool = False,
    ) -> None:
        """``rollouts``: of the whole run. ``budget``: rollouts to simulate, over all worlds and counterfactuals.

        ``halves``: twins draw from half of the trials.
        """
        self._counterfactuals, self._sampling, self._causes = counterfactuals, sampling, causes
        self._times = rollouts / counterfactuals.training_run.trajectories
        self._budget = budget
        self._rounds = [0] * len(counterfactuals.looks)
        spread = assumed(pool.identity.substrate, counterfactuals.training_run.run_sd)
        self._repetitions = len(pool.runs) if draws_runs(len(pool.runs), spread) else 0
        self._drawn: list[tuple[int, Sequence[int], float]] = []  # each world's seed, weights of trials, factor
        for number in range(sampling.plain):
            seed = counterfactuals.training_run.precision.seed + (number + 1 << 32)
            self._drawn.append((seed, [1] * len(pool.trials), 1.0))
            if number < sampling.twins:
                rng = Random(seed + (sampling.salt << 64))
                self._drawn.append((seed, *(halved if halves else resampled)(pool, spread, rng)))
        self._active = frozenset(range(len(counterfactuals.looks)))
        self._results: list[Looks] = [[[] for _ in counterfactuals.looks] for _ in self._drawn]

    @classmethod
    def of(
        cls,
        pool: Pool,
        training_run: TrainingRun,
        prices: Prices | None = None,
        full_speed: float | None = None,
        effort: float = 1.0,
        *,
        causes: bool = True,
        as_it_is: bool = False,
        twins: bool = True,
        sampling: Sampling | None = None,
    ) -> Replications | None:
        """Prepare a run without simulating.

        ``as_it_is``: no cause is removed, and twins draw half of the trials, because the longest trajectory of a step
        decides a difference. Without ``twins`` there is no interval. ``sampling``: given size of the simulation. Else
        as ``worlds``.
        """
        trials = Trials(pool, training_run, full_speed)
        if not trials.successes:
            return None
        law = None
        if training_run.think is not None:
            pauses = [attempt.pauses for attempt in (*trials.successes, *trials.failures)]
            law = ThinkQuantiles(training_run.think, pauses, training_run.suspension)
        acting = acting_causes(trials, training_run, pool, full_speed)
        everything = frozenset(cause for cause, acts in acting.items() if acts is not None)
        alone = [frozenset({cause}) for cause, acts in acting.items() if acts and causes]
        looks = (frozenset[str](), *([] if as_it_is else [*alone, everything, everything | {THINK}]))
        ones = [1] * len(pool.trials)
        counterfactuals = Counterfactuals(training_run, trials, law, looks, bill_of(pool, prices), {}, {})
        first, rules = world_of(counterfactuals, ones, training_run.precision.seed), counterfactuals.rules(frozenset())
        cost_per_rollout = (
            len(looks) / chance_of_success(counterfactuals, first) * (1 if rules.workers_only else SHARED)
        )
        rollouts = training_run.trajectories
        smallest = cost_per_rollout * rollouts_of(training_run, rules) * 2 * WORLDS[0]
        scale, training_run = smaller(
            training_run, math.ceil(smallest / ATTEMPTS) if sampling is None else sampling.scale
        )
        if scale > 1:
            counterfactuals = counterfactuals._replace(training_run=training_run, rules_without={})
            first, rules = (
                world_of(counterfactuals, ones, training_run.precision.seed),
                counterfactuals.rules(frozenset()),
            )
        if sampling is None:
            count = WORLDS[effort >= ROUGH]
            highest = int(min(1.0, effort) * FIRST / (len(CAUSES) * rules.launched(rules.size) * 2 * count))
            plan = horizon(training_run, rules, first, min(MOST_STEPS, highest))
            while count > WORLDS[0] and cost_per_rollout * _rollouts(plan) * 2 * count > effort * ATTEMPTS:
                count -= 1
            sampling = Sampling(plan, count, count * twins, scale)
        budget = effort * BUDGET * len(looks) / cost_per_rollout
        return cls(counterfactuals, sampling, acting, pool, rollouts, budget, halves=as_it_is)

    @property
    def sampling(self) -> Sampling:
        return self._sampling

    @property
    def most_rounds(self) -> int:
        """The largest number of rounds within the budget."""
        return max(1, self._rounds[0] + int(self._budget / self._cost(self._rounds[0] or 1)))

    def _cost(self, number: int) -> int:
        """Return the rollouts of a further round, over all streams and counterfactuals."""
        rollouts = sum(sum(part.stretch.sizes) for part in self._sampling.plan.of(number))
        return rollouts * len(self._drawn) * len(self._active)

    @property
    def worlds(self) -> Worlds:
        """All rounds so far."""
        plan, plain = self._sampling.plan._replace(rounds=self._rounds[0]), self._sampling.plain
        twins = self._sampling.twins
        paired, unpaired = self._results[: 2 * twins], self._results[2 * twins :]
        ideal = self._counterfactuals.looks[-2] if len(self._counterfactuals.looks) > 1 else frozenset[str]()
        return Worlds(
            self._causes,
            plan,
            [*paired[::2], *unpaired][:plain],
            paired[1::2],
            self._sampling.scale,
            self._times,
            tuple(self._rounds),
            len(self._counterfactuals.looks) > 1 and is_alike(self._counterfactuals.rules(ideal)),
            self._repetitions,
        )

    @property
    def rounds(self) -> int:
        """The number of simulated rounds."""
        return self._rounds[0]

    def simulate(self, number: int) -> Iterator[float]:
        """Simulate round ``number`` unless finished; yield the finished share."""
        if number < self.rounds:
            return
        plan = self._sampling.plan.of(number)
        for place, ((seed, times, factor), looks) in enumerate(zip(self._drawn, self._results, strict=True)):
            world = world_of(self._counterfactuals, times, seed)
            for look, (steps, without) in enumerate(zip(looks, self._counterfactuals.looks, strict=True)):
                if look in self._active:
                    steps += self._looked_at(world, factor, without, plan)
            yield (place + 1) / len(self._drawn)
        self._budget -= self._cost(number)
        for look in self._active:
            self._rounds[look] = number + 1

    def keep(self, looks: frozenset[int]) -> None:
        """Stop all counterfactuals except these."""
        self._active &= looks

    def _looked_at(
        self, world: World, factor: float, without: frozenset[str], plan: Sequence[HorizonPart]
    ) -> list[StepTaken]:
        """Simulate a round under a stream, without these causes."""
        view = View(
            world,
            *self._counterfactuals.timed(without, factor),
            failing="failures" not in without,
            thinking=THINK not in without,
            resuming="dispatch" not in without,
        )
        rules = self._counterfactuals.rules(without)
        steps: list[StepTaken] = []
        for part in plan:
            steps += simulate_steps(rules, view, part.stretch, self._counterfactuals.bill)[part.lead :]
        return steps


def _rollouts(plan: Horizon) -> int:
    """Return the rollouts of a round of a counterfactual."""
    return sum(sum(part.stretch.sizes) for part in plan.parts)
