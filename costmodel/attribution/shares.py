"""Amount of each cause with its interval.

The step time with an ideal sandbox is common to all substrates. It is taken from the first rounds, with the same draws
in every row. Rows therefore differ by their sandboxes, not by drawn generation times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from statistics import variance
from typing import Final, NamedTuple

from costmodel.attribution.replications import Replications
from costmodel.projection.row import Attribution, GpuWaiting, Share
from costmodel.simulation.state import StepTaken
from costmodel.simulation.step_sampling import StepSample
from costmodel.statistics.intervals import Interval, student_t
from costmodel.units import NS_PER_HOUR, NS_PER_S

SURE: Final = 0.997
RUN, IDEAL, THINKLESS = 0, -2, -1
"""Index of the unchanged run, the run with an ideal sandbox, and the ideal run without think time."""
TINY: Final = 1e-300

PRECISE: Final = 0.05 / 1.96
"""Standard error of the simulation as a share of a printed value: 95 % are within 5 %."""
LEAST: Final = 0.1
"""Least share of the sandbox's amount with a precision requirement of its own."""
NOTHING: Final = 1e-4
"""Errors below this share of the run are ignored."""
Steps = list[float]
"""Amount of each simulated step under one stream, multiplied by its weight."""
CHANCE_AT_MOST: Final = 0.5
"""Largest share of the variance between streams and twins attributed to chance. With few twins a full subtraction would
give intervals with a coverage of 8 in 10."""
LONGEST: Final = math.sqrt(2)
"""Half of the trials understate a difference of the longest trials of a step. With this factor an equal pair is a
verdict in at most 5 % (``tests/studies/study_decide.py``)."""
ANOTHER: Final = math.sqrt(2)
"""Factor for other random numbers, which have the same error."""


class Weights(NamedTuple):
    """Weights of the simulated steps in the run."""

    steps: list[Steps]  # of each step, by counterfactual
    level: Steps  # for the ideal step time; []: as of the run


ValueOf = Callable[[Weights, list[Steps]], Steps]
"""Function from weights and the steps of a stream, by counterfactual, to an amount of each step."""


class Amount(NamedTuple):
    """A unit of a share, by stream, counterfactual and simulated step."""

    plain: list[list[Steps]]
    twins: list[list[Steps]]  # of the first rounds; []: no limits
    weights: Weights
    paired: Weights  # in the rounds with twins
    repetitions: int = 0  # that twins draw whole; 0: none
    signed: bool = False  # whether it is a difference of two runs

    def of(self, index: int) -> Interval:
        """Return the amount of the run in a counterfactual."""
        return self._interval(partial(self._amounts, index), index)

    def mean(self, index: int) -> float:
        """Return the amount of the run in a counterfactual, without limits."""
        return math.fsum(self._totals(partial(self._amounts, index))) / len(self.plain)

    def saved(self, index: int) -> Interval:
        """Return the saving of a counterfactual."""
        return self._interval(partial(self._saved, index), index)

    def together(self, indexes: Sequence[int]) -> Interval:
        """Return the saving of an ideal sandbox less the sum of these savings."""

        def steps_of(weights: Weights, stream: list[Steps]) -> Steps:
            ideal, *alone = (math.fsum(self._saved(index, weights, stream)) for index in (IDEAL, *indexes))
            return [ideal - math.fsum(alone)]

        return self._interval(steps_of)

    def less(self, other: Amount) -> Amount:
        """Return an amount whose saving of counterfactual 1 is the difference of two runs, stream by stream."""
        plain, twins = (
            [[mine[RUN], theirs[RUN]] for mine, theirs in zip(*both, strict=True)]
            for both in ((self.plain, other.plain), (self.twins, other.twins))
        )
        weights, paired = (Weights([both.steps[RUN]] * 2, []) for both in (self.weights, self.paired))
        fewest = min((count for count in (self.repetitions, other.repetitions) if count), default=0)
        return Amount(plain, twins, weights, paired, fewest, signed=True)

    def error(self, index: int = RUN) -> float:
        """Return the simulation's standard error of a saving, or of the run."""
        return standard_error(self._totals(partial(self._amounts if index == RUN else self._saved, index)))

    def _totals(self, value_of: ValueOf) -> list[float]:
        """Return a value of each stream on the recorded trials."""
        return [math.fsum(value_of(self.weights, stream)) for stream in self.plain]

    def _amounts(self, index: int, weights: Weights, stream: list[Steps]) -> Steps:
        """Return the amount of each step with a weight."""
        times, level = weights.steps[index], weights.level
        steps = stream[index][: len(times)]
        if not level or index == THINKLESS:
            return [w * step for w, step in zip(times, steps, strict=True)]
        columns = zip(times, level, steps, stream[IDEAL][: len(times)], strict=True)
        return [w * (step - ideal) + v * ideal for w, v, step, ideal in columns]

    def _saved(self, index: int, weights: Weights, stream: list[Steps]) -> Steps:
        times = weights.steps[index]
        columns = zip(times, stream[RUN][: len(times)], stream[index][: len(times)], strict=True)
        return [w * (step - less) for w, step, less in columns]

    def _interval(self, value_of: ValueOf, index: int | None = None) -> Interval:
        """Return the mean over streams with its limits; without ``index`` all steps of a stream are one.

        Two variances add up. The variance between a stream and its twin, less the variance from step to step, is the
        uncertainty of the trials. Nothing is subtracted from a ``signed`` difference, which a few longest trials
        decide. The variance between streams is the simulation error. An amount that is not ``signed`` has no negative
        limit where no stream is negative. Twins of n whole ``repetitions`` differ by (n − 1)/n of the variance between
        repetitions, and Student's t has n − 1 degrees of freedom.
        """
        totals = self._totals(value_of)
        value = math.fsum(totals) / len(totals)
        if not self.twins:
            return Interval(value)
        plain, twins = ([value_of(self.paired, stream) for stream in streams] for streams in (self.plain, self.twins))
        differences = [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(twins, plain, strict=True)]
        left_open = differing = variance(map(math.fsum, differences))
        if not self.signed:
            times = [1.0] if index is None else self.paired.steps[index]
            left_open = max(differing - _from_step_to_step(differences, times), (1 - CHANCE_AT_MOST) * differing)
        freedom = len(twins) - 1
        if self.repetitions:
            left_open *= self.repetitions / (self.repetitions - 1)
            freedom = min(freedom, self.repetitions - 1)
        of_trials = student_t(freedom) * math.sqrt(left_open) * (LONGEST if self.signed else 1.0)
        of_chance = student_t(len(totals) - 1) * standard_error(totals) * ANOTHER
        half = math.hypot(of_trials, of_chance)
        low = value - half
        return Interval(value, max(0.0, low) if min(totals) >= 0 and not self.signed else low, value + half)


def needed(replications: Replications) -> float:
    """Return the rounds for precise printed values; only the imprecise counterfactuals stay active."""
    step_s, hours, _, dollars = units(replications)
    indexes = len(replications.rounds)
    causes = range(1, indexes - 2) if replications.separate else range(0)
    wanted = {RUN, IDEAL % indexes} | ({THINKLESS % indexes} if not replications.ideal_alike else set())
    factor = 0.0
    for amount in (step_s, hours, *[dollars] * replications.rates.priced):
        run, sandbox = abs(amount.of(RUN).value), abs(amount.saved(IDEAL).value)
        nothing = max(NOTHING * run, TINY)
        factor = max(
            factor, amount.error() / max(PRECISE * run, TINY), amount.error(IDEAL) / max(PRECISE * sandbox, nothing)
        )
        for index in causes:
            off = amount.error(index) / max(PRECISE * max(abs(amount.saved(index).value), LEAST * sandbox), nothing)
            if off > 1:
                wanted.add(index)
                factor = max(factor, off)
    replications.active &= wanted
    return replications.rounds[0] * factor**2


def units(replications: Replications) -> tuple[Amount, Amount, Amount, Amount]:
    """Return the units of a share of every simulated step."""
    sample, training_run = replications.sample, replications.training_run
    part = replications.share  # counted amounts, without durations
    train_ns = training_run.train_s * NS_PER_S
    return (
        amount_of(replications, lambda step: step.wall_ns / NS_PER_S / sample.steps),
        amount_of(replications, lambda step: part * step.held_ns / NS_PER_HOUR),
        amount_of(replications, lambda step: (training_run.gpus or 0) * (step.wall_ns - train_ns) / NS_PER_HOUR),
        amount_of(replications, replications.usd),
    )


def attribution(replications: Replications) -> Attribution:
    """Return the attribution without its assumptions."""
    training_run, sample = replications.training_run, replications.sample
    rates = replications.rates
    step_s, hours, gpu, dollars = units(replications)
    usd_range = amount_of(replications, replications.usd_range)

    def usd(interval_of_amount: Callable[[Amount], Interval]) -> Interval:
        amount, half = interval_of_amount(dollars), abs(interval_of_amount(usd_range).value)
        wider = amount.widened(Interval(0.0, -half, half))
        return wider if amount.low is None or amount.low < 0 else wider.not_negative()

    def share(interval_of_amount: Callable[[Amount], Interval]) -> Share:
        return Share(
            interval_of_amount(step_s),
            interval_of_amount(hours),
            None if training_run.gpus is None else interval_of_amount(gpu),
            usd(interval_of_amount) if rates.priced else None,
        )

    acting = [cause for cause, acts in replications.causes.items() if acts] if replications.separate else []
    indexes = {cause: index for index, cause in enumerate(acting, 1)}
    causes: dict[str, Share | None] = {}
    for cause, acts in replications.causes.items():
        causes[cause] = None  # unknown, or not removed alone
        if cause in indexes:
            causes[cause] = share(partial(Amount.saved, index=indexes[cause]))
        elif acts is False:
            causes[cause] = share(lambda _: Interval(0.0, 0.0, 0.0))
    return Attribution(
        causes=causes,
        sandbox=share(lambda amount: amount.saved(IDEAL)),
        interaction=share(lambda amount: amount.together(list(indexes.values()))),
        run=share(lambda amount: amount.of(RUN)),
        waiting=None if training_run.gpus is None else _waiting(gpu, replications),
        usd_per_critical_second=sample.steps * rates.lasting / 3600 if rates.lasting else None,
        assumptions=(),
        steps=sample.steps,
        simulated_steps=sample.simulated,
        replicates=len(replications.plain),
        error_s=step_s.error() * student_t(len(replications.plain) - 1, SURE),
    )


def with_run(attribution: Attribution, by: Share, *, sandbox: bool) -> Attribution:
    """Return the attribution with a changed run; the change belongs to the ``sandbox``, or to the ideal run."""

    def more(share: Share) -> Share:
        amounts = (
            None if amount is None else amount.shifted(change.value if change else 0.0)
            for amount, change in zip(share, by, strict=True)
        )
        return Share(*amounts)  # type: ignore[arg-type]

    waiting, gpu = attribution.waiting, by.gpu_hours.value if by.gpu_hours else 0.0
    if waiting is not None:
        usd_hour = waiting.waiting_usd and waiting.waiting_usd / waiting.waiting_gpu_hours
        part = "stalled" if sandbox else "generation" if waiting.generation_gpu_hours is not None else "commands"
        old = getattr(waiting, f"{part}_gpu_hours")
        waiting = waiting._replace(
            wall_clock_hours=waiting.wall_clock_hours + by.step_s.value * attribution.steps / 3600,
            waiting_gpu_hours=waiting.waiting_gpu_hours + gpu,
            **{f"{part}_gpu_hours": None if old is None else old + gpu},
        ).priced(usd_hour)
    if sandbox:
        attribution = attribution._replace(sandbox=more(attribution.sandbox), interaction=more(attribution.interaction))
    return attribution._replace(run=more(attribution.run), waiting=waiting)


def amount_of(replications: Replications, value: Callable[[StepTaken], float]) -> Amount:
    """Return a unit of every simulated step."""
    plain, twins = (
        [[[value(step) for step in steps] for steps in stream] for stream in streams]
        for streams in (replications.plain, replications.twins)
    )
    rounds, twin_rounds = replications.rounds[RUN], replications.twin_rounds
    weights = _weights(replications, rounds)
    paired = _weights(replications, twin_rounds) if twin_rounds and twin_rounds < rounds else weights
    return Amount(plain, twins, weights, paired, replications.repetitions)


def _weights(replications: Replications, most_rounds: int) -> Weights:
    """Return the weights of the first rounds, ``most_rounds`` at most."""
    samples = [replications.sample._replace(rounds=min(rounds, most_rounds)) for rounds in replications.rounds]
    steps, level = [sample.stands_for for sample in samples], []
    if replications.ideal_alike:
        train_ns = replications.training_run.train_s * NS_PER_S
        ideal = [[step.wall_ns - train_ns for step in stream[IDEAL]] for stream in replications.plain]
        level = _level(samples[RUN], ideal)
        steps[THINKLESS] = _level(samples[THINKLESS], ideal)  # with fewer rounds
    return Weights(steps, level)


def _level(sample: StepSample, ideal: list[Steps]) -> Steps:
    """Return step weights for the ideal step time. They cover the fewest rounds with precise rollouts of a step, whose
    error is the largest of all units; they are common to rows with different numbers of rounds."""
    rounds = 1
    pulls = any(any(segment.disks) for segment in sample.segments)  # stretches along the run, alike without pulls
    while True:
        level = sample._replace(rounds=min(rounds, sample.rounds)).stands_for
        if pulls:
            level = [math.fsum(level) / len(level)] * len(level)
        totals = [math.fsum(v * step for v, step in zip(level, steps, strict=False)) for steps in ideal]
        off = standard_error(totals)
        if rounds >= sample.rounds or off <= PRECISE / 2 * abs(math.fsum(totals)) / len(totals):
            return level + [0.0] * (len(sample.stands_for) - len(level))
        rounds *= 2


def _waiting(gpu: Amount, replications: Replications) -> GpuWaiting:
    """Return the GPU waiting of the run under its own policy."""
    training_run, pool = replications.training_run, replications.pool
    run, ideal, thinkless = map(gpu.mean, (RUN, IDEAL, THINKLESS))
    separated = replications.causes["dispatch"] is not None
    thinks = training_run.think is not None or any(trial.measures.think_ns for trial in pool.trials)
    if not thinks:
        thinkless = ideal
    trained = replications.sample.steps * training_run.train_s / 3600
    return GpuWaiting(
        run / (training_run.gpus or 1) + trained,
        run,
        ideal - thinkless if thinks else None,
        thinkless if separated else None,
        run - ideal if separated else None,
    ).priced(training_run.gpu_usd_hour)


def _from_step_to_step(sums: Sequence[Steps], stands_for: Steps) -> float:
    """Return the variance of a sum over steps due to chance within steps.

    This is the residual of a table of streams × steps without the means of both. The uncertainty of the trials is the
    same in every step. Each step has the same weight here.
    """
    streams, steps = len(sums), len(stands_for)
    if steps < 2:
        return 0.0
    values = [[value / times for value, times in zip(amounts, stands_for, strict=True)] for amounts in sums]
    rows = [math.fsum(amounts) / steps for amounts in values]
    columns = [math.fsum(column) / streams for column in zip(*values, strict=True)]
    mean = math.fsum(rows) / streams
    squares = math.fsum(
        (value - row - column + mean) ** 2
        for row, amounts in zip(rows, values, strict=True)
        for column, value in zip(columns, amounts, strict=True)
    )
    return math.fsum(times * times for times in stands_for) * squares / ((streams - 1) * (steps - 1))


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean."""
    return math.sqrt(variance(values) / len(values))
