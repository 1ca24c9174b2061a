"""The run with and without each cause, in the same random worlds.

Most worlds draw from the trials as they are. Some have a twin that draws, with the same random numbers, from a
resample of the trials: of runs and of stretches of neighbouring trials within them, times a run effect that is assumed
where fewer than three runs show it. ``shares`` says what follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Final, NamedTuple

from costmodel.billing import by_clock
from costmodel.demand import MASK, RESAMPLE, Demand
from costmodel.errors import DemandError
from costmodel.pricing import Prices
from costmodel.results import CAUSES
from costmodel.runs import MIN_RUNS, Assumed, assumed
from costmodel.samples import Pool
from costmodel.step.chance import ThinkQuantiles, View, World
from costmodel.step.horizon import FEW, Horizon, horizon
from costmodel.step.rules import StepRules
from costmodel.step.timeline import StepTaken, taken
from costmodel.step.trials import AttemptTimes, Trials, timed
from costmodel.uncertainty import correlation_time

PLAIN: Final = (6, 16)
TWINS: Final = (6, 10)
"""Worlds that draw from the trials as they are, and those of them that have a twin: at least, and at most."""
ATTEMPTS: Final = 2_400_000
"""That all worlds of one attribution may cost, without and with every cause: a few seconds."""
SHARED: Final = 4
"""So many times as much costs one that shares more than workers with others."""
MOST_STEPS: Final = 16
"""Of one world."""
THINK: Final = "think"
FOR_CHANCE: Final = 1 << 19
"""The number of a step that no run has."""
ASKED: Final = 1_000
HARDLY: Final = 0.01


Looks = list[list[StepTaken]]
"""The simulated steps of one world: as it is, without each cause that acts, ideal, and ideal without think time."""


class _Asked(NamedTuple):
    """All that the worlds have in common."""

    demand: Demand
    trials: Trials
    law: ThinkQuantiles | None
    looks: tuple[frozenset[str], ...]  # without what: nothing, each cause, all of them, and think time too
    bill: Callable[[Sequence[int]], float]
    known: dict[frozenset[str], tuple[list[AttemptTimes], list[AttemptTimes]]]
    ruled: dict[frozenset[str], StepRules]

    def rules(self, without: frozenset[str]) -> StepRules:
        """The demand's without these causes, made once: with how long each image takes."""
        if without not in self.ruled:
            self.ruled[without] = StepRules.of(self.demand, without)
        return self.ruled[without]

    def timed(self, without: frozenset[str], factor: float) -> tuple[list[AttemptTimes], list[AttemptTimes]]:
        """Successes and failures without these causes; those of plain worlds, whose ``factor`` is 1, are made once."""
        if factor == 1.0 and without in self.known:
            return self.known[without]
        made = timed(self.trials.successes, without, factor), timed(self.trials.failures, without, factor)
        if factor == 1.0:
            self.known[without] = made
        return made


class Sampling(NamedTuple):
    """What is simulated."""

    plan: Horizon
    plain: int
    twins: int
    scale: int = 1  # of so much smaller a system
    salt: int = 0  # tells resamples of trials apart that are not of the same runs


class Worlds(NamedTuple):
    """A run in many worlds, without nothing and without each cause."""

    causes: dict[str, bool | None]  # whether each acts at all; None: nobody can tell
    plan: Horizon
    plain: list[Looks]
    twins: list[Looks]  # of the first of those
    scale: int  # a system of so much smaller a size was simulated ...
    times: float  # ... and its rollouts stand for so many each

    @property
    def share(self) -> float:
        """How much more of what is counted there is in the run than in the steps: of the last only a part is there."""
        return self.times * self.plan.whole / self.plan.steps


def worlds(
    pool: Pool,
    demand: Demand,
    prices: Prices | None = None,
    full_speed: float | None = None,
    effort: float = 1.0,
    *,
    as_it_is: bool = False,
    sampling: Sampling | None = None,
) -> Worlds | None:
    """This run in steps. None: no attempt succeeds.

    ``full_speed`` is the share of its work that the reference takes for it; None: there is no reference. ``effort`` is
    how much is simulated, relative to the usual. ``as_it_is``: only that, no cause is taken away. ``sampling`` is
    what is simulated, where that is not up to this run.

    Raises:
        DemandError: next to no attempt would succeed.
        PriceError: the sheet lacks a price.
    """
    trials = Trials(pool, demand, full_speed)
    if not trials.successes:
        return None
    law = None
    if demand.think is not None:
        law = ThinkQuantiles(demand.think, [one.pauses for one in (*trials.successes, *trials.failures)])
    causes = _causes(trials, demand, pool, full_speed)
    everything = frozenset(cause for cause, acts in causes.items() if acts is not None)
    alone = [frozenset({cause}) for cause, acts in causes.items() if acts]
    looks = (frozenset[str](), *([] if as_it_is else [*alone, everything, everything | {THINK}]))
    ones = [1] * len(pool.trials)
    asked = _Asked(demand, trials, law, looks, _billed(pool, prices), {}, {})
    first, rules = _world(asked, ones, demand.seed), asked.rules(frozenset())
    each = len(looks) / _checked_chance(asked, first) * (1 if rules.workers_only else SHARED)
    least = each * rules.rules.launched(rules.size) * FEW * (PLAIN[0] + TWINS[0])
    rollouts = demand.trajectories
    scale, demand = smaller(demand, math.ceil(least / ATTEMPTS) if sampling is None else sampling.scale)
    if scale > 1:
        asked = asked._replace(demand=demand, ruled={})
        first, rules = _world(asked, ones, demand.seed), asked.rules(frozenset())
    if sampling is None:
        steps = effort * ATTEMPTS / (each * rules.rules.launched(rules.size))  # of all worlds
        count = max(PLAIN[0], min(PLAIN[1], int(steps / FEW * 3 / 5)))
        resamples = max(TWINS[0], min(TWINS[1], count * 2 // 3))
        plan = horizon(demand, rules, first, min(MOST_STEPS, int(steps / (count + resamples))))
        sampling = Sampling(plan, count, resamples, scale)
    spread = assumed(pool.identity.substrate, demand.run_sd)
    plain, twins = [], []
    for number in range(sampling.plain):
        seed = demand.seed + (number + 1 << 32)
        plain.append(_looked_at(asked, ones, 1.0, seed, sampling.plan))
        if number < sampling.twins:
            drawn = resampled(pool, spread, Random(seed + (sampling.salt << 64)))
            twins.append(_looked_at(asked, *drawn, seed, sampling.plan))
    return Worlds(causes, sampling.plan, plain, twins, scale, rollouts / demand.trajectories)


def smaller(demand: Demand, scale: int) -> tuple[int, Demand]:
    """The same steps with 1/``scale`` of their rollouts, workers, nodes, and of all that they share.

    Or less small than that, so that there is still one group, one pod for each of it, and one worker.
    """
    size, group = demand.step_rollouts or 1, demand.group_size or 1
    scale = min(scale, size // group, demand.workers, demand.trajectories)
    if demand.nodes is not None and demand.pods is not None:
        scale = min(scale, demand.nodes, demand.pods // group)
    if scale <= 1:
        return 1, demand
    prompts = None if demand.prompts is None else max(1, round(demand.prompts / scale))
    kept = max(1, round(size / scale)) if prompts is None else prompts * group

    share = kept / size

    def less(count: int | None) -> int | None:
        return None if count is None else max(1, round(count * share))

    full, rest = divmod(demand.trajectories, size)
    return scale, replace(
        demand,
        trajectories=full * kept + max(1, round(rest * share)) * (rest > 0),
        workers=max(1, round(demand.workers * share)),
        prompts=prompts,
        batch=None if prompts is not None else kept,
        quota=less(demand.quota),
        create_rate=None if demand.create_rate is None else demand.create_rate * share,
        create_burst=max(1, round(demand.create_burst * share)),
        warm_pool=demand.warm_pool if demand.image_pool else less(demand.warm_pool),
        refill_rate=None if demand.refill_rate is None else demand.refill_rate * share,
        nodes=less(demand.nodes),
    )


def _checked_chance(asked: _Asked, world: World) -> float:
    """The share of attempts that succeed, of a thousand; of groups, where these are redone as a whole.

    Raises:
        DemandError: next to none does, so that a rollout would hardly ever end.
    """
    demand, trials = asked.demand, asked.trials
    view = View(world, timed(trials.successes, (), 1.0), timed(trials.failures, (), 1.0))
    told = view.first(world.step(FOR_CHANCE, ASKED))
    limit_ns = math.inf if demand.timeout_s is None else demand.timeout_s * 1e9
    chance = sum(ok and span <= limit_ns for ok, span, *_ in told) / len(told)
    if demand.on_failure == RESAMPLE:
        chance **= demand.group_size or 1
    if demand.max_attempts is None and demand.on_failure != MASK and chance < HARDLY:
        what = "groups are without a failure" if demand.on_failure == RESAMPLE else "attempts succeed in time"
        raise DemandError(f"{chance:.2%} of {what}, so that a rollout hardly ever ends: add --max-attempts A")
    return max(chance, 1 / (demand.max_attempts or 1 / HARDLY))


def _causes(trials: Trials, demand: Demand, pool: Pool, full_speed: float | None) -> dict[str, bool | None]:
    """Whether each cause acts at all in this demand; None: nobody can tell."""
    parts = (*trials.successes, *trials.failures)
    acts: dict[str, bool | None] = {
        cause: any(getattr(one, cause) for one in parts)
        for cause in ("create", "ready", "preload", "dispatch", "slowdown", "contention", "harness", "cleanup")
    }
    acts["image_pull"] = demand.images is not None and demand.pull_gb_s is not None
    acts["throttle"] = demand.create_rate is not None or demand.quota is not None or any(one.queued for one in parts)
    acts["failures"] = bool(demand.failure_rate or demand.failure_hazard or trials.failures)
    if not trials.known:
        acts |= {"dispatch": None, "slowdown": None, "contention": None}
    if full_speed is None:
        acts["slowdown"] = None
    if pool.contended is None:
        acts["contention"] = None
    return {cause: acts[cause] for cause in CAUSES}


def _billed(pool: Pool, prices: Prices | None) -> Callable[[Sequence[int]], float]:
    """Dollars for sandboxes that existed for so many ns each."""
    if prices is None:
        return lambda clocks_ns: 0.0
    return by_clock(pool, prices.sandbox(pool.identity))


def _world(asked: _Asked, times: Sequence[int], seed: int) -> World:
    trials = asked.trials
    return World(asked.demand, trials.successes, trials.failures, trials.weighted(times), asked.law, seed)


def _looked_at(asked: _Asked, times: Sequence[int], factor: float, seed: int, plan: Horizon) -> Looks:
    """One world without each of ``asked.looks``."""
    world = _world(asked, times, seed)
    found = []
    for without in asked.looks:
        view = View(
            world,
            *asked.timed(without, factor),
            failing="failures" not in without,
            thinking=THINK not in without,
        )
        rules = asked.rules(without)
        steps: list[StepTaken] = []
        for part in plan.parts:
            steps += taken(rules, view, part.stretch, asked.bill)[part.lead :]
        found.append(steps)
    return found


def resampled(pool: Pool, spread: Assumed, rng: Random) -> tuple[list[int], float]:
    """How often each trial is in a resample, and how much slower its runs were: 1 where the runs themselves were drawn.

    Stretches of neighbouring trials are drawn, as long as trials hang together.
    """
    by_run: dict[object, list[int]] = {}
    for index, trial in enumerate(pool.trials):
        by_run.setdefault(trial.run, []).append(index)
    runs = list(by_run.values())
    factor = 1.0
    if len(runs) >= MIN_RUNS and not spread.given:
        runs = rng.choices(runs, k=len(runs))
    else:
        share = math.sqrt(sum(len(run) ** 2 for run in runs)) / len(pool.trials)
        factor = math.exp(rng.gauss(0, spread.sd * share))
    times = [0] * len(pool.trials)
    for run in runs:
        held = [float(pool.trials[index].measures.held_ns) for index in run]
        mean = math.fsum(held) / len(held)
        stretch = min(len(run), math.ceil(correlation_time([[ns - mean for ns in held]], only_if_seen=True)))
        drawn: list[int] = []
        while len(drawn) < len(run):
            begin = rng.randrange(len(run))
            drawn += [run[(begin + place) % len(run)] for place in range(stretch)]
        for index in drawn[: len(run)]:
            times[index] += 1
    if not any(times[index] for index, trial in enumerate(pool.trials) if trial.ok):
        times = [1] * len(times)  # without a success there is nothing to draw
    return times, factor
