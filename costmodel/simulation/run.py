"""Expected wall-clock of a run, with waits for throttles, warm pool and over-provisioning.

The run is simulated with independent random streams, twice as many each time, until the error of its wall-clock is
below half of the tolerance, or the budget of attempts is used.

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
from costmodel.simulation.random_streams import AttemptStream, RandomStream, ThinkQuantiles
from costmodel.simulation.rules import StepRules
from costmodel.simulation.step_sampling import StepSample, sample_steps, settling, smaller
from costmodel.simulation.timeline import StepTaken, simulate_steps
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import student_t
from costmodel.training.run import ASYNC, TrainingRun

ATTEMPTS: Final = 64_000
"""Budget of attempts of one run: some tenths of a second."""
FIRST: Final = 4
"""The first random streams use one part in four of the budget, more only where a run settles late."""
STREAMS: Final = 8
"""Random streams before the error is looked at."""
MOST_STREAMS: Final = 512
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
    sample: StepSample
    share: float  # weight of each counted rollout
    weight: float  # of this plan in the sum


def simulate_run(trials: Trials, training_run: TrainingRun, law: Distribution) -> SimulatedRun:
    """Return the expected run with attempts drawn from these trials.

    ``law`` is the distribution of a worker's busy time per trajectory.
    """
    precision = training_run.precision
    budget = precision.effort * ATTEMPTS
    scale, plans = _plans(trials, training_run, law, max(STREAMS, budget))
    thinking = None if training_run.think is None else ThinkQuantiles(training_run.think, trials)
    successes, failures = timed(trials.successes, (), 1.0), timed(trials.failures, (), 1.0, ok=False)
    totals_by_stream: list[list[float]] = []
    clocks: Counter[int] = Counter()
    spent, wanted = 0.0, STREAMS
    while True:
        stream = RandomStream(training_run, trials, thinking, precision.seed + (len(totals_by_stream) + 1 << 32))
        source = AttemptStream(stream, successes, failures)
        totals = [0.0] * (3 + len(_COUNTED))
        for plan in plans:
            steps = _steps(plan, source, clocks)
            for place, amount in enumerate(_amounts(steps, plan)):
                totals[place] += plan.weight * amount
            spent += sum(step.attempts for _, step, _ in steps)
        totals_by_stream.append(totals)
        if len(totals_by_stream) < wanted:
            continue
        wall, step, rollouts, *counted = map(expected, zip(*totals_by_stream, strict=True))
        wall = _rare(wall, [totals[0] for totals in totals_by_stream], law)
        wanted *= 2
        if wall.error <= precision.tolerance / 2 * wall.value or wanted > MOST_STREAMS or 2 * spent > budget:
            break
    mean_clocks = {ns: times / len(totals_by_stream) for ns, times in clocks.items()}
    outcome = SimulatedRun(wall, step, rollouts, **dict(zip(_COUNTED, counted, strict=True)), clocks=mean_clocks)
    return _with_size(outcome, training_run, law, scale) if scale > 1 else outcome


def _steps(plan: _Plan, source: AttemptStream, clocks: Counter[int]) -> list[tuple[float, StepTaken, int]]:
    """Return each simulated step with its weight in the run and its size."""
    sampled: list[tuple[float, StepTaken, int]] = []
    clocks_of_steps: list[Sequence[int]] = []

    def bill(clocks_ns: Sequence[int]) -> float:
        if plan.rules.over_provision:
            clocks_of_steps.append(clocks_ns)
        return 0.0

    for segment in plan.sample.segments:
        steps = simulate_steps(plan.rules, source, segment, bill)
        sampled += zip(segment.stands_for, steps, segment.sizes[segment.lead :], strict=True)
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
    scale, less = smaller(run, math.ceil(min(run.trajectories, needed) * STREAMS / budget))
    parts = [(1.0, less)]
    if long:
        shorter = _with_steps(less, SHORT, steps)
        less = _with_steps(less, LONG, steps)
        waves = [part.step_rollouts / part.usable_workers for part in (less, shorter) if part.step_rollouts]
        more = (size / workers - waves[0]) / (waves[0] - waves[1])
        parts = [(1 + more, less), (-more, shorter)]
    plans = []
    for weight, part in parts:
        rules = StepRules.of(part)
        highest = min(MOST_STEPS, int(budget / FIRST / STREAMS / rules.launched(rules.size)))
        sample = sample_steps(part, rules, RandomStream(part, trials, None, 0), highest, settled / scale)
        # A long step has as many waves as the part has; else the part has all of the run's rollouts.
        rollouts = training_run.trajectories if not long else part.trajectories * workers / part.usable_workers
        plans.append(_Plan(rules, sample, rollouts / part.trajectories * sample.whole / sample.steps, weight))
    return scale, plans


def _with_steps(training_run: TrainingRun, waves: int, steps: int) -> TrainingRun:
    """The same system with steps of so many rollouts for each worker."""
    group = training_run.group_size or 1
    size = -(-waves * training_run.usable_workers // group) * group
    return replace(training_run, batch=size, prompts=None, trajectories=size * steps)


def expected(values: Sequence[float]) -> SimulatedValue:
    """Return the mean with its error."""
    count = len(values)
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return SimulatedValue(mean, student_t(count - 1, CONFIDENCE) * math.sqrt(variance / count))


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
