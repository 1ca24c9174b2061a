"""Expected wall-clock of a run, with waits for throttles, warm pool and over-provisioning.

The run is simulated with independent random streams until the error of its wall-clock is below the tolerance, or the
budget of attempts is used. The mean occupied time of an attempt is known exactly, and serves as a control variate.

Trajectories without training steps are a stream with no training time. A step of many rollouts per worker is simulated
at two smaller sizes, and extrapolated on a straight line. A system too large for the budget is simulated smaller. The
error contains the loss: a longer queue, and a shorter longest attempt.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from costmodel.simulation.attempts import Trials, timed
from costmodel.simulation.makespan import CONFIDENCE, expected_max, unseen_chance
from costmodel.simulation.random_streams import ThinkQuantiles, View, World
from costmodel.simulation.rules import StepRules
from costmodel.simulation.step_sampling import Horizon, horizon, settling, smaller
from costmodel.simulation.timeline import StepTaken, simulate_steps
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import student_t
from costmodel.training.policies import ASYNC
from costmodel.training.run import TrainingRun

ATTEMPTS: Final = 64_000
"""Budget of attempts of one run: some tenths of a second."""
ENOUGH: Final = 5
"""Least simulated share of the run before a small error is accepted."""
WORLDS: Final = 8
MOST_WORLDS: Final = 512
MOST_STEPS: Final = 40
LONG, SHORT = 26, 13
"""Rollouts per worker in the two smaller steps that a long step is extrapolated from."""


class SimulatedValue(NamedTuple):
    """An expectation with half its 99.7 % interval, including the possible loss of a smaller system."""

    value: float
    error: float = 0.0


class SimulatedRun(NamedTuple):
    """Expectations of a whole run. ns are sums over workers or sandboxes, except the first three."""

    wall_ns: SimulatedValue
    step_ns: SimulatedValue  # the rollouts of a full step
    rollouts_ns: SimulatedValue  # ... summed over the steps
    held_ns: SimulatedValue  # by workers, waits for creates and backoff included
    waited_ns: SimulatedValue  # for creates; part of the above
    wasted_ns: SimulatedValue  # by cut rollouts; part of the above
    attempts: SimulatedValue
    hits: SimulatedValue  # of the warm pool
    idle_ns: SimulatedValue  # of ready sandboxes
    clocks: dict[int, float]  # with over-provisioning: how many sandboxes existed for so many ns


_COUNTED: Final = ("held_ns", "waited_ns", "wasted_ns", "attempts", "hits", "idle_ns")


class _Plan(NamedTuple):
    """The simulated part of a run, and its weight."""

    rules: StepRules
    horizon: Horizon
    share: float  # weight of each counted rollout
    weight: float  # of this plan in the sum


def simulate_run(
    trials: Trials, training_run: TrainingRun, law: Distribution, attempt_ns: tuple[float, float] | None
) -> SimulatedRun:
    """Return the expected run with attempts drawn from these trials.

    ``law`` is the distribution of a worker's busy time per trajectory. ``attempt_ns`` is the mean occupied time of an
    attempt, with a new sandbox and with a sandbox of the pool; None: unknown.
    """
    scale, plans = _plans(trials, training_run, law, max(WORLDS, training_run.precision.effort * ATTEMPTS))
    thinking = None
    if training_run.think is not None:
        thinking = ThinkQuantiles(
            training_run.think, [attempt.pauses for attempt in (*trials.successes, *trials.failures)]
        )
    successes, failures = timed(trials.successes, (), 1.0), timed(trials.failures, (), 1.0, ok=False)
    weights = trials.weighted([1] * trials.count)
    worlds_found: list[list[float]] = []
    off: list[float] = []
    clocks: Counter[int] = Counter()
    spent = 0.0
    controlled = attempt_ns is not None and training_run.over_provision == 0
    while True:
        seed = training_run.precision.seed + (len(worlds_found) + 1 << 32)
        world = World(training_run, trials.successes, trials.failures, weights, thinking, seed)
        view = View(world, successes, failures)
        totals = [0.0] * (3 + len(_COUNTED))
        noise = 0.0
        for plan in plans:
            steps = _steps(plan, view, clocks)
            for place, amount in enumerate(_amounts(steps, plan)):
                totals[place] += plan.weight * amount
            if controlled and attempt_ns is not None:
                noise += plan.weight * plan.share * _noise(steps, plan.rules, attempt_ns)
            spent += sum(step.attempts for _, step, _ in steps)
        worlds_found.append(totals)
        off.append(noise)
        looks = len(worlds_found) % WORLDS == 0 and (len(worlds_found) // WORLDS).bit_count() == 1
        full = spent >= training_run.precision.effort * ATTEMPTS or len(worlds_found) >= MOST_WORLDS
        if len(worlds_found) >= WORLDS and (
            full or (looks and ENOUGH * spent >= training_run.precision.effort * ATTEMPTS)
        ):
            values = [expected(column, off if controlled else None) for column in zip(*worlds_found, strict=True)]
            wall, step, rollouts, *counted = values
            wall = _rare(wall, [world[0] for world in worlds_found], law)
            if full or wall.error <= training_run.precision.tolerance / 2 * wall.value:
                break
    mean_clocks = {ns: times / len(worlds_found) for ns, times in clocks.items()}
    outcome = SimulatedRun(wall, step, rollouts, **dict(zip(_COUNTED, counted, strict=True)), clocks=mean_clocks)
    return _with_size(outcome, training_run, law, scale) if scale > 1 else outcome


def _steps(plan: _Plan, view: View, clocks: Counter[int]) -> list[tuple[float, StepTaken, int]]:
    """Return each simulated step with its weight in the run and its size."""
    sampled: list[tuple[float, StepTaken, int]] = []
    clocks_of_steps: list[Sequence[int]] = []

    def bill(clocks_ns: Sequence[int]) -> float:
        if plan.rules.over_provision:
            clocks_of_steps.append(clocks_ns)
        return 0.0

    for part in plan.horizon.parts:
        steps = simulate_steps(plan.rules, view, part.stretch, bill)
        sampled += zip(part.stands_for, steps[part.lead :], part.stretch.sizes[part.lead :], strict=True)
    for (times, _, _), clocks_ns in zip(sampled, clocks_of_steps, strict=False):
        for ns in clocks_ns:
            clocks[ns] += plan.weight * plan.share * times  # type: ignore[assignment]
    return sampled


def _amounts(steps: Sequence[tuple[float, StepTaken, int]], plan: _Plan) -> Iterable[float]:
    """Return the totals of the run under one random stream, in the order of ``SimulatedRun``."""
    full = [(times, step.rollouts_ns) for times, step, size in steps if size == plan.rules.size]
    yield math.fsum(times * step.wall_ns for times, step, _ in steps)
    yield math.fsum(times * ns for times, ns in full) / math.fsum(times for times, _ in full)
    yield math.fsum(times * step.rollouts_ns for times, step, _ in steps)
    for name in _COUNTED:
        yield plan.share * math.fsum(times * getattr(step, name) for times, step, _ in steps)


def _noise(steps: Iterable[tuple[float, StepTaken, int]], rules: StepRules, attempt_ns: tuple[float, float]) -> float:
    """Return the excess of the attempts' occupied time, with expectation 0."""
    made_ns, pooled_ns = attempt_ns
    return math.fsum(
        times
        * (
            step.held_ns
            - step.waited_ns
            - (step.attempts - size) * rules.backoff_ns
            - (step.attempts - step.hits) * made_ns
            - step.hits * pooled_ns
        )
        for times, step, size in steps
    )


def _plans(trials: Trials, training_run: TrainingRun, law: Distribution, budget: float) -> tuple[int, list[_Plan]]:
    """How many times smaller the simulated system is, and its plans: two where a step is long."""
    run, workers, group = training_run, training_run.usable_workers, training_run.group_size or 1
    if run.step_rollouts is None:
        size = min(run.trajectories, -(-workers // group) * group)
        run = replace(run, batch=size, prompts=None, policy=ASYNC.name, train_s=0.0)
    size = run.step_rollouts or 1
    steps, long = -(-run.trajectories // size), run.effective_policy.barrier and size > LONG * workers
    if long:
        run = _with_steps(run, LONG, steps)
    rules = StepRules.of(run)
    settled = settling(rules, law.mean)
    needed = settled + (3 * rules.launched(rules.size) if rules.policy.barrier else LONG * workers)
    scale, less = smaller(run, math.ceil(min(run.trajectories, needed) * WORLDS / budget))
    parts = [(1.0, less)]
    if long:
        parts = [(1.0, _with_steps(less, LONG, steps)), (0.0, _with_steps(less, SHORT, steps))]
        waves, (longer, shorter) = (
            size / workers,
            ((part_run.step_rollouts or 1) / part_run.usable_workers for _, part_run in parts),
        )
        more = (waves - longer) / (longer - shorter)
        parts = [(1 + more, parts[0][1]), (-more, parts[1][1])]
    plans = []
    for weight, part in parts:
        rules = StepRules.of(part)
        highest = int(budget / WORLDS / rules.launched(rules.size))
        world = World(part, trials.successes, trials.failures, trials.weighted([1] * trials.count), None, 0)
        plan = horizon(
            part, rules, world, highest if not rules.policy.barrier else min(MOST_STEPS, highest), settled / scale
        )
        # A long step has as many waves as the part has; else the part has all of the run's rollouts.
        rollouts = training_run.trajectories if not long else part.trajectories * workers / part.usable_workers
        plans.append(_Plan(rules, plan, rollouts / part.trajectories * plan.whole / plan.steps, weight))
    return scale, plans


def _with_steps(training_run: TrainingRun, waves: int, steps: int) -> TrainingRun:
    """The same system with steps of so many rollouts for each worker."""
    group = training_run.group_size or 1
    size = -(-waves * training_run.usable_workers // group) * group
    return replace(training_run, batch=size, prompts=None, trajectories=size * steps)


def expected(values: Sequence[float], off: Sequence[float] | None) -> SimulatedValue:
    """Return the mean with its error; ``off`` is noise with expectation 0."""
    count = len(values)
    mean = math.fsum(values) / count
    deviations = [value - mean for value in values]
    freedom = count - 1
    if off is not None:
        center = math.fsum(off) / count
        around = [number - center for number in off]
        square = math.fsum(number * number for number in around)
        if square > 0:
            slope = math.fsum(d * number for d, number in zip(deviations, around, strict=True)) / square
            deviations = [d - slope * number for d, number in zip(deviations, around, strict=True)]
            mean -= slope * center
            freedom -= 1
    variance = math.fsum(d * d for d in deviations) / freedom
    return SimulatedValue(mean, student_t(freedom, CONFIDENCE) * math.sqrt(variance / count))


def _rare(wall: SimulatedValue, walls: Sequence[float], law: Distribution) -> SimulatedValue:
    """Return the value widened by a possible unseen outcome, where all streams agree."""
    if max(walls) > min(walls):
        return wall
    return wall._replace(error=wall.error + (law.values[-1] - law.values[0]) * unseen_chance(len(walls)))


def _with_size(outcome: SimulatedRun, training_run: TrainingRun, law: Distribution, scale: int) -> SimulatedRun:
    """Return the value with the possible loss of the smaller system."""
    at_once = min(training_run.trajectories, training_run.step_rollouts or training_run.trajectories)
    steps = -(-training_run.trajectories // at_once)
    missed = 0.0
    if training_run.over_provision == 0:
        missed = expected_max(law, at_once) - expected_max(law, max(1, round(at_once / scale)))
    shortest = (outcome.held_ns.value - outcome.waited_ns.value) / training_run.usable_workers
    if training_run.create_rate is not None:
        shortest = max(shortest, (outcome.attempts.value - training_run.create_burst) / training_run.create_rate * 1e9)
    lost = (
        1 - 1 / math.sqrt(scale) if training_run.create_rate is not None or training_run.warm_pool is not None else 0.0
    )
    error = steps * missed + max(0.0, outcome.rollouts_ns.value - shortest) * lost

    def more(simulated: SimulatedValue, by: float) -> SimulatedValue:
        return SimulatedValue(simulated.value, simulated.error + by)

    return outcome._replace(
        wall_ns=more(outcome.wall_ns, error),
        step_ns=more(outcome.step_ns, error / steps),
        rollouts_ns=more(outcome.rollouts_ns, error),
        waited_ns=more(outcome.waited_ns, outcome.waited_ns.value * lost),
    )
