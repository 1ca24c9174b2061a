"""Amount of each cause with its interval.

A value is the mean over streams on the recorded trials. The variance between streams is the simulation error. The
variance between streams and twins, less up to half for chance within steps, is the uncertainty of the trials. Both add
up, each with Student's t.

The step time with an ideal sandbox is common to all substrates. It is taken from the first rounds, with the same draws
in every row. Rows therefore differ by their sandboxes, not by drawn generation times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from costmodel.attribution.assumptions import assumptions
from costmodel.attribution.replications import Worlds
from costmodel.attribution.resamples import Steps, interval_of, standard_error
from costmodel.pricing.sheet import Prices
from costmodel.projection.cost import nodes
from costmodel.projection.row import Attribution, GpuWaiting, Share
from costmodel.recording.causes import DROPPED, policy_of
from costmodel.simulation.timeline import StepTaken
from costmodel.statistics.intervals import Interval, student_t
from costmodel.statistics.repetitions import Basis
from costmodel.training.run import TrainingRun
from costmodel.units import NS_PER_HOUR, NS_PER_S
from costmodel.workload.pool import Pool

SURE: Final = 0.997
RUN, IDEAL, THINKLESS = 0, -2, -1
"""Index of the unchanged run, the run with an ideal sandbox, and the ideal run without think time."""
FEWEST: Final = 3
"""Counterfactuals of a run without separate causes."""
TINY: Final = 1e-300

PRECISE: Final = 0.05 / 1.96
"""Standard error of the simulation as a share of a printed value: 95 % are within 5 %."""
LEAST: Final = 0.1
"""Least share of the sandbox's amount with a precision requirement of its own."""
NOTHING: Final = 1e-4
"""Errors below this share of the run are ignored."""


class Rates(NamedTuple):
    """Dollars per hour."""

    lasting: float  # GPUs and nodes, for the duration of the run
    worker: float
    idle_sandbox: float
    suspended_sandbox: float
    priced: bool  # whether anything has a price

    @classmethod
    def of(cls, training_run: TrainingRun, pool: Pool, prices: Prices | None) -> Rates:
        """Return the rates of the training run and the price sheet."""
        lasting = cls.of_training_run(training_run)
        priced = prices is not None or training_run.gpu_usd_hour is not None or training_run.node_usd_hour is not None
        suspended = training_run.suspended_usd_hour
        if prices is None:
            return cls(lasting, 0.0, 0.0, suspended or 0.0, priced or bool(suspended))
        price = prices.sandbox(pool.identity)
        at_a_time = min(training_run.usable_workers, training_run.trajectories) + (training_run.warm_pool or 0)
        lasting += nodes(price, pool.identity, at_a_time, training_run) * price.rates.usd_per_node_hour
        suspended = price.suspended_usd_hour() if suspended is None else suspended
        return cls(lasting, prices.worker_usd_hour or 0.0, price.idle_usd_hour(pool.identity), suspended, priced)

    @staticmethod
    def of_training_run(training_run: TrainingRun) -> float:
        """Return the rate of GPUs and nodes in the training run."""
        return (training_run.gpus or 0) * (training_run.gpu_usd_hour or 0.0) + (training_run.nodes or 0) * (
            training_run.node_usd_hour or 0
        )

    def usd(self, step: StepTaken, worlds: Worlds) -> float:
        """Return dollars of a simulated step."""
        lasting, idle = step.wall_ns * self.lasting, worlds.times * step.idle_ns * self.idle_sandbox
        used = self.sandbox_usd(step) + step.held_ns / NS_PER_HOUR * self.worker
        return (lasting + idle) / NS_PER_HOUR + worlds.share * used

    def sandbox_usd(self, step: StepTaken) -> float:
        """Return dollars of the sandboxes of a simulated step, suspended or not."""
        return step.usd + step.suspended_ns / NS_PER_HOUR * self.suspended_sandbox


class Amount(NamedTuple):
    """A unit of a share, by stream, counterfactual and simulated step."""

    plain: list[list[Steps]]
    twins: list[list[Steps]]
    stands_for: list[Steps]  # weight of each step in the run, by counterfactual
    level: Steps  # weights for the ideal step time; []: as of the run
    repetitions: int = 0  # as in ``interval_of``

    def of(self, look: int) -> Interval:
        """Return the amount of the run in a counterfactual."""
        return self._interval(self._amounts(look), self.stands_for[look])

    def saved(self, look: int) -> Interval:
        """Return the saving of a counterfactual."""
        return self._interval(self._saved(look), self.stands_for[look])

    def together(self, looks: Sequence[int]) -> Interval:
        """Return the saving of an ideal sandbox less the sum of these savings."""
        saves = [self._saved(look) for look in (IDEAL, *looks)]

        def steps_of(world: list[Steps]) -> Steps:
            ideal, *alone = (math.fsum(saving(world)) for saving in saves)
            return [ideal - math.fsum(alone)]

        return self._interval(steps_of, [1.0])

    def error(self, look: int = RUN) -> float:
        """Return the simulation's standard error of a saving, or of the run."""
        steps = self._amounts(RUN) if look == RUN else self._saved(look)
        return standard_error([math.fsum(steps(world)) for world in self.plain])

    def _amounts(self, look: int) -> Callable[[list[Steps]], Steps]:
        times, level = self.stands_for[look], self.level
        if not level:
            return lambda world: [w * step for w, step in zip(times, world[look], strict=True)]
        if look == THINKLESS:  # whose steps are as alike
            return lambda world: [v * step for v, step in zip(level, world[look], strict=False)]

        def steps_of(world: list[Steps]) -> Steps:
            columns = zip(times, level, world[look], world[IDEAL], strict=True)
            return [w * (step - ideal) + v * ideal for w, v, step, ideal in columns]

        return steps_of

    def _saved(self, look: int) -> Callable[[list[Steps]], Steps]:
        times = self.stands_for[look]
        return lambda world: [w * (step - less) for w, step, less in zip(times, world[RUN], world[look], strict=False)]

    def _interval(self, value_of: Callable[[list[Steps]], Steps], stands_for: Steps) -> Interval:
        plain, twins = ([value_of(world) for world in worlds] for worlds in (self.plain, self.twins))
        return interval_of(plain, twins, stands_for, repetitions=self.repetitions)


def needed(
    worlds: Worlds, training_run: TrainingRun, pool: Pool, prices: Prices | None
) -> tuple[float, frozenset[int]]:
    """Return the rounds for precise printed values, and the counterfactuals with more rounds."""
    amounts = units(worlds, training_run, pool, prices)
    looks = len(worlds.rounds)
    causes = range(1, looks - 2) if looks > FEWEST else range(0)
    wanted = {look % looks for look in (RUN, IDEAL)} | {look % looks for look in (THINKLESS,) if not worlds.level}
    factor = 0.0
    for amount in (amounts.step_s, amounts.hours, *[amounts.dollars] * amounts.priced):
        run, sandbox = abs(amount.of(RUN).value), abs(amount.saved(IDEAL).value)
        nothing = max(NOTHING * run, TINY)
        factor = max(
            factor, amount.error() / max(PRECISE * run, TINY), amount.error(IDEAL) / max(PRECISE * sandbox, nothing)
        )
        for look in causes:
            off = amount.error(look) / max(PRECISE * max(abs(amount.saved(look).value), LEAST * sandbox), nothing)
            if off > 1:
                wanted.add(look)
                factor = max(factor, off)
    return worlds.plan.rounds * factor**2, frozenset(wanted)


class Units(NamedTuple):
    """All units of a run."""

    step_s: Amount
    hours: Amount
    gpu: Amount
    dollars: Amount
    priced: bool  # whether anything has a price


def units(worlds: Worlds, training_run: TrainingRun, pool: Pool, prices: Prices | None) -> Units:
    """Return the units of every simulated step."""
    rates, plan = Rates.of(training_run, pool, prices), worlds.plan
    part = worlds.share  # counted amounts, without durations
    train_ns = training_run.train_s * NS_PER_S
    return Units(
        amount_of(worlds, lambda step: step.wall_ns / NS_PER_S / plan.steps),
        amount_of(worlds, lambda step: part * step.held_ns / NS_PER_HOUR),
        amount_of(worlds, lambda step: (training_run.gpus or 0) * (step.wall_ns - train_ns) / NS_PER_HOUR),
        amount_of(worlds, lambda step: rates.usd(step, worlds)),
        rates.priced,
    )


def attribution(
    worlds: Worlds, training_run: TrainingRun, pool: Pool, prices: Prices | None, basis: Basis
) -> Attribution:
    """Return the attribution; ``basis`` is the source of the between-repetition part of the intervals."""
    rates, plan = Rates.of(training_run, pool, prices), worlds.plan
    step_s, hours, gpu, dollars, _ = units(worlds, training_run, pool, prices)

    def share(interval_of_amount: Callable[[Amount], Interval]) -> Share:
        return Share(
            interval_of_amount(step_s),
            interval_of_amount(hours),
            None if training_run.gpus is None else interval_of_amount(gpu),
            interval_of_amount(dollars) if rates.priced else None,
        )

    acting = [cause for cause, acts in worlds.causes.items() if acts]
    looks = {cause: look for look, cause in enumerate(acting, 1)}
    acts_how = worlds.causes
    if len(worlds.rounds) == FEWEST:  # none was taken away alone
        looks, acts_how = {}, {cause: None if acts else acts for cause, acts in worlds.causes.items()}
    causes: dict[str, Share | None] = {
        cause: None if acts is None else share(lambda _: Interval(0.0, 0.0, 0.0)) for cause, acts in acts_how.items()
    }
    for cause, look in looks.items():
        causes[cause] = share(partial(Amount.saved, look=look))
    failed = [policy_of(trial.cause, trial.error).treatment for trial in pool.trials if not trial.ok]
    return Attribution(
        causes=causes,
        sandbox=share(lambda amount: amount.saved(IDEAL)),
        interaction=share(lambda amount: amount.together(list(looks.values()))),
        run=share(lambda amount: amount.of(RUN)),
        waiting=None if training_run.gpus is None else _waiting(gpu, worlds, training_run, pool),
        usd_per_critical_second=plan.steps * rates.lasting / 3600 if rates.lasting else None,
        assumptions=assumptions(
            training_run,
            basis,
            failures=len(failed),
            trials=len(pool.trials),
            dropped=failed.count(DROPPED),
            scale=worlds.scale,
        ),
        steps=plan.steps,
        simulated_steps=plan.simulated,
        replicates=len(worlds.plain) + len(worlds.twins),
        error_s=step_s.error() * student_t(len(worlds.plain) - 1, SURE),
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
        part = "stalled" if sandbox else "generation" if waiting.generation_gpu_hours is not None else "commands"
        old = getattr(waiting, f"{part}_gpu_hours")
        waiting = waiting._replace(
            wall_clock_hours=waiting.wall_clock_hours + by.step_s.value * attribution.steps / 3600,
            waiting_gpu_hours=waiting.waiting_gpu_hours + gpu,
            **{f"{part}_gpu_hours": None if old is None else old + gpu},
        )
        if waiting.waiting_usd is not None and waiting.waiting_gpu_hours:
            assert attribution.waiting is not None
            waiting = waiting.priced(attribution.waiting.waiting_usd / attribution.waiting.waiting_gpu_hours)  # type: ignore[operator]
    attribution = attribution._replace(run=more(attribution.run), waiting=waiting)
    return (
        attribution._replace(sandbox=more(attribution.sandbox), interaction=more(attribution.interaction))
        if sandbox
        else attribution
    )


def amount_of(result: Worlds, value: Callable[[StepTaken], float]) -> Amount:
    """Return a unit of every simulated step."""
    plain, twins = (
        [[[value(step) for step in look] for look in world] for world in worlds]
        for worlds in (result.plain, result.twins)
    )
    by_rounds = {rounds: result.plan._replace(rounds=rounds).stands_for for rounds in set(result.rounds)}
    return Amount(
        plain, twins, [by_rounds[rounds] for rounds in result.rounds], _level(result, plain), result.repetitions
    )


def _level(worlds: Worlds, plain: list[list[Steps]]) -> Steps:
    """Return step weights for the ideal step time. They cover the fewest precise rounds, common to rows with different
    numbers of rounds."""
    if not worlds.level:
        return []
    times, rounds = worlds.plan.stands_for, 1
    while True:
        level = _alike(worlds, min(rounds, worlds.plan.rounds))
        totals = [math.fsum(v * step for v, step in zip(level, world[IDEAL], strict=False)) for world in plain]
        off = standard_error(totals)
        if rounds >= worlds.plan.rounds or off <= PRECISE / 2 * abs(math.fsum(totals)) / len(totals):
            return level + [0.0] * (len(times) - len(level))
        rounds *= 2


def _alike(worlds: Worlds, rounds: int) -> Steps:
    """Return the weight of each step, if all of these rounds are alike."""
    times = worlds.plan._replace(rounds=rounds).stands_for
    if any(any(part.stretch.disks) for part in worlds.plan.parts):  # stretches along the run, alike without pulls
        return [math.fsum(times) / len(times)] * len(times)
    return times


def _waiting(gpu: Amount, worlds: Worlds, training_run: TrainingRun, pool: Pool) -> GpuWaiting:
    """Return the GPU waiting of the run under its own policy."""
    run, ideal, thinkless = (gpu.of(look).value for look in (RUN, IDEAL, THINKLESS))
    separated = worlds.causes["dispatch"] is not None
    thinks = training_run.think is not None or any(trial.measures.think_ns for trial in pool.trials)
    trained = worlds.plan.steps * training_run.train_s / 3600
    return GpuWaiting(
        run / (training_run.gpus or 1) + trained,
        run,
        ideal - thinkless if thinks else None,
        thinkless if separated else None,
        run - ideal if separated else None,
    ).priced(training_run.gpu_usd_hour)
