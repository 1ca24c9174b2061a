"""Expected wall-clock of a run without training steps, with waits for throttles and a warm pool.

The stream of rollouts is simulated with independent random streams, twice as many each time, until the error of its
wall-clock is below half of the tolerance, or the budget of attempts is used. A system too large for the budget is
simulated smaller. The error contains the loss: a longer queue, and a shorter longest attempt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from costmodel.simulation.attempts import Trials, timed
from costmodel.simulation.makespan import CONFIDENCE, error_of_mean, expected_max, sooner
from costmodel.simulation.random_streams import AttemptStream, RandomStream, ThinkQuantiles
from costmodel.simulation.rules import StepRules
from costmodel.simulation.simulator import simulate_steps
from costmodel.simulation.step_sampling import sample_steps, settling, smaller
from costmodel.statistics.distribution import Distribution
from costmodel.training.run import ASYNC, TrainingRun

ATTEMPTS: Final = 64_000
"""Budget of attempts of one run: some tenths of a second."""
FIRST: Final = 4
"""The first random streams use one part in four of the budget, more only where a run settles late."""
STREAMS: Final = 8
"""Random streams before the error is looked at."""
MOST_STREAMS: Final = 512
MOST_STEPS: Final = 40
LONG: Final = 26
"""Rollouts per worker that are simulated at least, as far as the run has them."""


class SimulatedValue(NamedTuple):
    """An expectation with half its 99.7 % interval, including the possible loss of a smaller system."""

    value: float
    error: float = 0.0


class SimulatedRun(NamedTuple):
    """Expectations of a whole run. ns are sums over workers or sandboxes, except the first."""

    wall_ns: SimulatedValue
    held_ns: SimulatedValue  # by workers, waits for creates and backoff included
    waited_ns: SimulatedValue  # for creates; part of the above
    attempts: SimulatedValue
    hits: SimulatedValue  # of the warm pool
    idle_ns: SimulatedValue  # of ready sandboxes


def simulate_run(trials: Trials, training_run: TrainingRun, law: Distribution) -> SimulatedRun:
    """Return the expected run with attempts drawn from these trials.

    ``law`` is the distribution of a worker's busy time per trajectory.
    """
    precision = training_run.precision
    budget = max(STREAMS, precision.effort * ATTEMPTS)
    workers, group = training_run.usable_workers, training_run.group_size or 1
    batch = min(training_run.trajectories, -(-workers // group) * group)
    stream = replace(training_run, batch=batch, policy=ASYNC.name)
    settled = settling(StepRules(stream), law.mean)
    needed = min(training_run.trajectories, settled + LONG * workers)
    scale, stream = smaller(stream, math.ceil(needed * STREAMS / budget))
    rules = StepRules(stream)
    highest = min(MOST_STEPS, int(budget / FIRST / STREAMS / rules.size))
    sample = sample_steps(stream, rules, RandomStream(stream, trials, None, 0), highest, settled / scale)
    thinking = None if training_run.think is None else ThinkQuantiles(training_run.think, trials)
    successes, failures = timed(trials.successes, (), 1.0), timed(trials.failures, (), 1.0, ok=False)
    totals: list[tuple[float, ...]] = []
    spent, wanted = 0.0, STREAMS
    while True:
        draws = RandomStream(training_run, trials, thinking, precision.seed + (len(totals) + 1 << 32))
        source = AttemptStream(draws, successes, failures)
        steps = [
            (times, step)
            for segment in sample.segments
            for times, step in zip(
                segment.stands_for,
                simulate_steps(rules, source, segment, lambda clocks_ns, suspended_ns: 0.0),
                strict=True,
            )
        ]
        wall_ns, *sums = (
            math.fsum(times * getattr(step, name) for times, step in steps) for name in SimulatedRun._fields
        )
        totals.append((wall_ns, *(training_run.trajectories / stream.trajectories * total for total in sums)))
        spent += sum(step.attempts for _, step in steps)
        if len(totals) < wanted:
            continue
        outcome = SimulatedRun(*map(expected, zip(*totals, strict=True)))
        walls = [amounts[0] for amounts in totals]
        # A duration that no random stream shows is in no spread, so that the law says what it may change.
        shortest, longest = _surely_drawn(law, len(totals) * sample.rollouts(0))
        missed = max(sooner(law, stream.trajectories, walls), expected_max(law, stream.trajectories, longest) - longest)
        wall = _at_least(expected(walls, law.values[-1] - law.values[0]), missed)
        wanted *= 2
        if wall.error <= precision.tolerance / 2 * wall.value or wanted > MOST_STREAMS or 2 * spent > budget:
            break
    beyond = (count * max(shortest - ns, ns - longest, 0) for ns, count in zip(law.values, law.counts, strict=True))
    held = _at_least(outcome.held_ns, training_run.trajectories * math.fsum(beyond) / law.size)
    outcome = outcome._replace(wall_ns=wall, held_ns=held)
    if scale == 1:
        return outcome
    jobs = training_run.trajectories  # possible loss of the smaller system:
    missed = expected_max(law, jobs) - expected_max(law, max(1, round(jobs / scale)))
    least_ns = (outcome.held_ns.value - outcome.waited_ns.value) / training_run.usable_workers
    if training_run.create_rate is not None:
        least_ns = max(least_ns, (outcome.attempts.value - training_run.create_burst) / training_run.create_rate * 1e9)
    lost = 1 - 1 / math.sqrt(scale)
    error, waited = missed + max(0.0, wall.value - least_ns) * lost, outcome.waited_ns
    return outcome._replace(
        wall_ns=wall._replace(error=wall.error + error),
        waited_ns=waited._replace(error=waited.error + waited.value * lost),
    )


def expected(values: Sequence[float], possible: float = 0.0) -> SimulatedValue:
    """Return the mean with its error, where values can differ by ``possible``."""
    return SimulatedValue(math.fsum(values) / len(values), error_of_mean(values, possible))


def _surely_drawn(law: Distribution, drawn: int) -> tuple[int, int]:
    """Return a short and a long duration: one of the drawn rollouts goes as far with 99.7 % probability each."""
    share = math.pow(1 - CONFIDENCE, 1 / drawn)
    return law.quantile(1 - share), law.quantile(share)


def _at_least(amount: SimulatedValue, error: float) -> SimulatedValue:
    return amount._replace(error=max(amount.error, error))
