"""What each cause costs, with how sure that is.

A value is the mean over the worlds that draw from the trials as they are; how these differ is the simulation's own
error. By how much they differ from their twins, which draw from a resample of the trials, is what the trials leave
open, once what differs from step to step is taken off, but no more than half. Both variances add up, each with
Student's t of as many worlds, or repetitions, as tell it.

How long a step takes with an ideal sandbox, which all places share, is told by the first rounds alone, of which every
row has the same: so rows differ by what their sandboxes cost, and not by what the model's generation happened to take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
"""Where a world has the run as it is, with an ideal sandbox, and that without think time."""
FEWEST: Final = 3
"""Looks of a world of which no cause is taken away alone."""
TINY: Final = 1e-300

PRECISE: Final = 0.05 / 1.96
"""The simulation's own standard error relative to what is printed: it is simulated until 95 % are within 5 %."""
LEAST: Final = 0.1
"""A cause of a smaller share of what the sandbox costs is precise enough if one of this share were."""
NOTHING: Final = 1e-4
"""Of the run: an error of less is none."""


class Rates(NamedTuple):
    """Dollars per hour."""

    lasting: float  # of the run: its GPUs and nodes
    worker: float
    idle_sandbox: float
    suspended_sandbox: float
    known: bool  # whether anything has a price

    @classmethod
    def of(cls, training_run: TrainingRun, pool: Pool, prices: Prices | None) -> Rates:
        """Those that are asked for, and the sheet's."""
        lasting = cls.asked(training_run)
        known = prices is not None or training_run.gpu_usd_hour is not None or training_run.node_usd_hour is not None
        suspended = training_run.suspended_usd_hour
        if prices is None:
            return cls(lasting, 0.0, 0.0, suspended or 0.0, known or bool(suspended))
        price = prices.sandbox(pool.identity)
        at_a_time = min(training_run.usable_workers, training_run.trajectories) + (training_run.warm_pool or 0)
        lasting += nodes(price, pool.identity, at_a_time, training_run) * price.rates.usd_per_node_hour
        suspended = price.suspended_usd_hour() if suspended is None else suspended
        return cls(lasting, prices.worker_usd_hour or 0.0, price.idle_usd_hour(pool.identity), suspended, known)

    @staticmethod
    def asked(training_run: TrainingRun) -> float:
        """Of the run, for its GPUs and nodes, without what a sheet charges for nodes."""
        return (training_run.gpus or 0) * (training_run.gpu_usd_hour or 0.0) + (training_run.nodes or 0) * (
            training_run.node_usd_hour or 0
        )

    def usd(self, step: StepTaken, found: Worlds) -> float:
        """Of a simulated step: of how long it lasts, and of what is counted."""
        lasting, idle = step.wall_ns * self.lasting, found.times * step.idle_ns * self.idle_sandbox
        used = self.sandbox_usd(step) + step.held_ns / NS_PER_HOUR * self.worker
        return (lasting + idle) / NS_PER_HOUR + found.share * used

    def sandbox_usd(self, step: StepTaken) -> float:
        """Of the sandboxes of a simulated step, suspended or not."""
        return step.usd + step.suspended_ns / NS_PER_HOUR * self.suspended_sandbox


class Amount(NamedTuple):
    """One unit of a share: in the worlds as they are, and in the twins, by world, look and simulated step."""

    plain: list[list[Steps]]
    twins: list[list[Steps]]
    stands_for: list[Steps]  # by look: for how many steps of the run each does
    level: Steps  # ... of those that tell what an ideal sandbox takes; []: as of the run
    repetitions: int = 0  # as ``interval_of`` has them

    def of(self, look: int) -> Interval:
        """What the run takes so."""
        return self._interval(self._taken(look), self.stands_for[look])

    def saved(self, look: int) -> Interval:
        """What it takes less so than as it is."""
        return self._interval(self._saved(look), self.stands_for[look])

    def together(self, looks: Sequence[int]) -> Interval:
        """What an ideal sandbox saves less what each of these looks does, each from the steps that it has."""
        saves = [self._saved(look) for look in (IDEAL, *looks)]

        def told(world: list[Steps]) -> Steps:
            ideal, *others = (math.fsum(own(world)) for own in saves)
            return [ideal - math.fsum(others)]

        return self._interval(told, [1.0])

    def error(self, look: int = RUN) -> float:
        """The simulation's own standard error, of what is saved so, or of the run as it is."""
        told = self._taken(RUN) if look == RUN else self._saved(look)
        return standard_error([math.fsum(told(world)) for world in self.plain])

    def _taken(self, look: int) -> Callable[[list[Steps]], Steps]:
        times, level = self.stands_for[look], self.level
        if not level:
            return lambda world: [w * step for w, step in zip(times, world[look], strict=True)]
        if look == THINKLESS:  # whose steps are as alike
            return lambda world: [v * step for v, step in zip(level, world[look], strict=False)]

        def told(world: list[Steps]) -> Steps:
            each = zip(times, level, world[look], world[IDEAL], strict=True)
            return [w * (step - ideal) + v * ideal for w, v, step, ideal in each]

        return told

    def _saved(self, look: int) -> Callable[[list[Steps]], Steps]:
        times = self.stands_for[look]
        return lambda world: [w * (step - less) for w, step, less in zip(times, world[RUN], world[look], strict=False)]

    def _interval(self, told: Callable[[list[Steps]], Steps], stands_for: Steps) -> Interval:
        plain, twins = ([told(world) for world in worlds] for worlds in (self.plain, self.twins))
        return interval_of(plain, twins, stands_for, repetitions=self.repetitions)


def moved(one: Interval, by: float) -> Interval:
    """As wide, with another value."""
    return Interval(*(None if end is None else end + by for end in one))  # type: ignore[arg-type]


def needed(found: Worlds, training_run: TrainingRun, pool: Pool, prices: Prices | None) -> tuple[float, frozenset[int]]:
    """How many rounds it takes until all that is printed of them is precise, and of which looks."""
    told_in = units(found, training_run, pool, prices)
    looks = len(found.rounds)
    causes = range(1, looks - 2) if looks > FEWEST else range(0)
    wanted = {look % looks for look in (RUN, IDEAL)} | {look % looks for look in (THINKLESS,) if not found.level}
    factor = 0.0
    for one in (told_in.step_s, told_in.hours, *[told_in.dollars] * told_in.known):
        run, sandbox = abs(one.of(RUN).value), abs(one.saved(IDEAL).value)
        nothing = max(NOTHING * run, TINY)
        factor = max(factor, one.error() / max(PRECISE * run, TINY), one.error(IDEAL) / max(PRECISE * sandbox, nothing))
        for look in causes:
            off = one.error(look) / max(PRECISE * max(abs(one.saved(look).value), LEAST * sandbox), nothing)
            if off > 1:
                wanted.add(look)
                factor = max(factor, off)
    return found.plan.rounds * factor**2, frozenset(wanted)


class Units(NamedTuple):
    """All that a run is paid in."""

    step_s: Amount
    hours: Amount
    gpu: Amount
    dollars: Amount
    known: bool  # whether anything has a price


def units(found: Worlds, training_run: TrainingRun, pool: Pool, prices: Prices | None) -> Units:
    """Of every simulated step."""
    rates, plan = Rates.of(training_run, pool, prices), found.plan
    part = found.share  # of what is counted, not of how long it lasts
    train_ns = training_run.train_s * NS_PER_S
    return Units(
        amount_of(found, lambda step: step.wall_ns / NS_PER_S / plan.steps),
        amount_of(found, lambda step: part * step.held_ns / NS_PER_HOUR),
        amount_of(found, lambda step: (training_run.gpus or 0) * (step.wall_ns - train_ns) / NS_PER_HOUR),
        amount_of(found, lambda step: rates.usd(step, found)),
        rates.known,
    )


def attribution(
    found: Worlds, training_run: TrainingRun, pool: Pool, prices: Prices | None, basis: Basis
) -> Attribution:
    """From the worlds to shares; ``basis`` is what the run-to-run part of the intervals rests on."""
    rates, plan = Rates.of(training_run, pool, prices), found.plan
    step_s, hours, gpu, dollars, _ = units(found, training_run, pool, prices)

    def share(told: Callable[[Amount], Interval]) -> Share:
        return Share(
            told(step_s),
            told(hours),
            None if training_run.gpus is None else told(gpu),
            told(dollars) if rates.known else None,
        )

    acting = [cause for cause, acts in found.causes.items() if acts]
    looks = {cause: look for look, cause in enumerate(acting, 1)}
    acts_how = found.causes
    if len(found.rounds) == FEWEST:  # none was taken away alone
        looks, acts_how = {}, {cause: None if acts else acts for cause, acts in found.causes.items()}
    nothing = share(lambda _: Interval(0.0, 0.0, 0.0))
    causes: dict[str, Share | None] = {
        cause: share(lambda one, look=looks[cause]: one.saved(look)) if acts else None if acts is None else nothing  # type: ignore[misc]
        for cause, acts in acts_how.items()
    }
    failed = [policy_of(trial.cause, trial.error).treatment for trial in pool.trials if not trial.ok]
    return Attribution(
        causes=causes,
        sandbox=share(lambda one: one.saved(IDEAL)),
        interaction=share(lambda one: one.together(list(looks.values()))),
        run=share(lambda one: one.of(RUN)),
        waiting=None if training_run.gpus is None else _waiting(gpu, found, training_run, pool),
        usd_per_critical_second=plan.steps * rates.lasting / 3600 if rates.lasting else None,
        assumptions=assumptions(
            training_run,
            basis,
            failures=len(failed),
            trials=len(pool.trials),
            dropped=failed.count(DROPPED),
            scale=found.scale,
        ),
        steps=plan.steps,
        simulated_steps=plan.simulated,
        replicates=len(found.plain) + len(found.twins),
        error_s=step_s.error() * student_t(len(found.plain) - 1, SURE),
    )


def with_run(found: Attribution, by: Share, *, sandbox: bool) -> Attribution:
    """The same where the run takes so much more: for the ``sandbox``, or for what an ideal one takes too."""

    def more(share: Share) -> Share:
        amounts = (
            None if one is None else moved(one, change.value if change else 0.0)
            for one, change in zip(share, by, strict=True)
        )
        return Share(*amounts)  # type: ignore[arg-type]

    waiting, gpu = found.waiting, by.gpu_hours.value if by.gpu_hours else 0.0
    if waiting is not None:
        part = "stalled" if sandbox else "generation" if waiting.generation_gpu_hours is not None else "commands"
        old = getattr(waiting, f"{part}_gpu_hours")
        waiting = waiting._replace(
            wall_clock_hours=waiting.wall_clock_hours + by.step_s.value * found.steps / 3600,
            waiting_gpu_hours=waiting.waiting_gpu_hours + gpu,
            **{f"{part}_gpu_hours": None if old is None else old + gpu},
        )
        if waiting.waiting_usd is not None and waiting.waiting_gpu_hours:
            assert found.waiting is not None
            waiting = waiting.priced(found.waiting.waiting_usd / found.waiting.waiting_gpu_hours)  # type: ignore[operator]
    found = found._replace(run=more(found.run), waiting=waiting)
    return found._replace(sandbox=more(found.sandbox), interaction=more(found.interaction)) if sandbox else found


def amount_of(found: Worlds, value: Callable[[StepTaken], float]) -> Amount:
    """One unit of every simulated step."""
    plain, twins = (
        [[[value(step) for step in look] for look in world] for world in worlds]
        for worlds in (found.plain, found.twins)
    )
    by_rounds = {rounds: found.plan._replace(rounds=rounds).stands_for for rounds in set(found.rounds)}
    return Amount(plain, twins, [by_rounds[rounds] for rounds in found.rounds], _level(found, plain), found.repetitions)


def _level(found: Worlds, plain: list[list[Steps]]) -> Steps:
    """For how many steps of the run each stands that tells what an ideal sandbox takes: those of as few rounds as tell
    it well enough, so that rows which it takes more rounds to tell apart have this in common."""
    if not found.level:
        return []
    times, rounds = found.plan.stands_for, 1
    while True:
        told = _alike(found, min(rounds, found.plan.rounds))
        totals = [math.fsum(v * step for v, step in zip(told, world[IDEAL], strict=False)) for world in plain]
        off = standard_error(totals)
        if rounds >= found.plan.rounds or off <= PRECISE / 2 * abs(math.fsum(totals)) / len(totals):
            return told + [0.0] * (len(times) - len(told))
        rounds *= 2


def _alike(found: Worlds, rounds: int) -> Steps:
    """For how many steps of the run each stands, if all of these rounds are alike."""
    times = found.plan._replace(rounds=rounds).stands_for
    if any(any(part.stretch.disks) for part in found.plan.parts):  # places along the run, which are alike without pulls
        return [math.fsum(times) / len(times)] * len(times)
    return times


def _waiting(gpu: Amount, found: Worlds, training_run: TrainingRun, pool: Pool) -> GpuWaiting:
    """Of the run as it is, under its own policy."""
    run, ideal, thinkless = (gpu.of(look).value for look in (RUN, IDEAL, THINKLESS))
    known = found.causes["dispatch"] is not None
    thinks = training_run.think is not None or any(trial.measures.think_ns for trial in pool.trials)
    trained = found.plan.steps * training_run.train_s / 3600
    return GpuWaiting(
        run / (training_run.gpus or 1) + trained,
        run,
        ideal - thinkless if thinks else None,
        thinkless if known else None,
        run - ideal if known else None,
    ).priced(training_run.gpu_usd_hour)
