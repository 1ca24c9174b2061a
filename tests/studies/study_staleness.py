"""Mean staleness and period of asynchronous runs: the step model against the closed form of their mean staleness.

Staleness of a rollout: trainings that end between its start and the start of its own training. In a run that is bound
by its rollouts, C rollouts in flight and batches of B have a mean of C / B + u. C / B are the trainings while it runs:
Little's law. u is the share of the time in which the trainer is busy: a rollout that ends then waits for one more.
Applied Compute derive the same sum ("Predicting and Controlling Staleness in Fully Asynchronous RL Training", 3 July
2026; its beginning and a summary were at hand), with a factor for groups: rollouts are counted here, so that it is 1.
"""

from __future__ import annotations

from itertools import accumulate
from random import Random

from costmodel.simulation.state import StepTaken
from tests.support.cost_model.stepping import S, parts, stepped, training_run

SYSTEMS = ((120, 240, 0.63), (120, 120, 0.67), (240, 120, 0.86), (240, 120, 0.92), (64, 64, 0.3), (32, 128, 0.5))
"""Rollouts in flight, the batch, and the share of the time in which the trainer is busy."""
STEPS, WARM_UP = 120, 20
MEAN_S = 10.0


def asynchronous(in_flight: int, batch: int, train_s: float, spread: float) -> list[StepTaken]:
    """Return steps of one stream; a rollout takes ``MEAN_S`` on average, lognormal with this sigma."""
    rng = Random(f"{in_flight} {batch} {spread}")
    times = [rng.lognormvariate(0, spread) for _ in range(4_000)]
    trials = [parts(unexplained=MEAN_S * time / (sum(times) / len(times)), weight=1) for time in times]
    asked = training_run(batch=batch, workers=in_flight, policy="async", train_s=train_s)
    return stepped(asked, trials, steps=STEPS)


def mean_staleness(steps: list[StepTaken], batch: int, train_s: float) -> float:
    """Rollouts that have started, and whose training has not, whenever a training ends; divided by the batch.

    Every training that ends while a rollout waits adds 1 to its staleness, so both sums are equal.
    """
    trained = list(accumulate(step.wall_ns / S for step in steps))
    complete = [end - train_s for end in trained]  # a batch is trained as soon as it is complete
    launched = list(accumulate(step.attempts for step in steps))  # until it was complete
    waiting = []
    for number in range(WARM_UP, STEPS - 2 * WARM_UP):
        later = next(place for place, time in enumerate(complete) if time > trained[number])
        share = (trained[number] - complete[later - 1]) / (complete[later] - complete[later - 1])
        at_end = launched[later - 1] + share * (launched[later] - launched[later - 1])
        waiting.append((at_end - (number + 1) * batch) / batch)
    return sum(waiting) / len(waiting)


def mean_period_s(steps: list[StepTaken]) -> float:
    """The time from one trained step to the next, without the first and the last ones."""
    periods = [step.wall_ns / S for step in steps[WARM_UP : -2 * WARM_UP]]
    return sum(periods) / len(periods)


def main() -> None:
    heads = f"{'C/B + u':>8} {'model':>6} {'period':>8} {'model':>8}"
    print(f"{'in flight':>9} {'batch':>6} {'trainer':>8} {'sigma':>6} {heads}")
    for in_flight, batch, busy in SYSTEMS:
        for spread in (0.0, 0.4, 1.0):
            period_s = MEAN_S * batch / in_flight
            steps = asynchronous(in_flight, batch, busy * period_s, spread)
            told = f"{in_flight / batch + busy:8.2f} {mean_staleness(steps, batch, busy * period_s):6.2f}"
            periods = f"{period_s:6.2f} s {mean_period_s(steps):6.2f} s"
            print(f"{in_flight:>9} {batch:>6} {busy:>8.0%} {spread:>6} {told} {periods}", flush=True)


if __name__ == "__main__":
    main()
