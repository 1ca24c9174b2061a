"""Runs of the step model from durations alone, without a recording."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from costmodel import TrainingRun
from costmodel.simulation.attempts import Parts, Trials, timed
from costmodel.simulation.random_streams import AttemptStream, RandomStream, ThinkQuantiles
from costmodel.simulation.rules import StepRules
from costmodel.simulation.simulator import Segment, simulate_steps
from costmodel.simulation.state import StepTaken
from costmodel.statistics.distribution import Distribution

S = 1_000_000_000


def parts(**seconds: float) -> Parts:
    """An attempt of these parts, in seconds; whatever is not named takes no time."""
    told = {name: round(value * S) for name, value in seconds.items() if name != "pauses"}
    empty: dict[str, Any] = dict.fromkeys(Parts._fields, 0) | {"weight": 1, "pauses": int(seconds.get("pauses", 0))}
    return Parts(**empty | told)


def trials_of(successes: Sequence[Parts], failures: Sequence[Parts] = ()) -> Trials:
    """Trials of these attempts."""
    trials = Trials.__new__(Trials)
    trials.successes, trials.failures, trials.run_known = list(successes), list(failures), True
    return trials


def parts_of(law: Distribution) -> list[Parts]:
    """Attempts with the durations of a distribution, as command time only."""
    counted = enumerate(zip(law.values, law.counts, strict=True))
    return [parts()._replace(trial=number, weight=count, work=ns) for number, (ns, count) in counted]


def stepped(
    training_run: TrainingRun,
    successes: Sequence[Parts],
    failures: Sequence[Parts] = (),
    *,
    steps: int = 1,
    without: Container[str] = (),
    seed: int = 0,
) -> list[StepTaken]:
    """The first steps of a run whose attempts are drawn from these; dollars are hours of sandboxes."""
    trials = trials_of(successes, failures)
    law = None
    if training_run.think is not None:
        law = ThinkQuantiles(training_run.think, trials, training_run.suspension)
    fork_ns = None if training_run.fork_s is None else round(training_run.fork_s * S)
    view = AttemptStream(
        RandomStream(training_run, trials, law, seed),
        timed(successes, without, 1.0, fork_ns),
        timed(failures, without, 1.0, fork_ns, ok=False),
        without,
    )
    size = training_run.step_rollouts
    assert size is not None
    segment = Segment(0, (size,) * steps)
    return simulate_steps(StepRules(training_run, without), view, segment, lambda ns, suspended_ns: sum(ns) / 3600 / S)


def training_run(**asked: Any) -> TrainingRun:
    """Steps of 4 prompts of 4 rollouts with a worker for each, unless it says otherwise."""
    usual = {"trajectories": 10**6, "workers": 16}
    if "batch" not in asked:
        usual |= {"prompts": 4, "group_size": 4}
    return TrainingRun(**usual | asked)
