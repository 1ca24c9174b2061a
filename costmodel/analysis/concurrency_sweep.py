"""A cell at several concurrencies: throughput of each level, saturation point, and the limiting side.

The saturation point is where linear scaling of the first level meets the ceiling, the highest throughput of the
universal scalability law. The law is fitted to four or more levels. With fewer it is the highest level with a
completion within 1.5 times the first. Intervals are bootstrapped, by block from three blocks a level on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from random import Random
from statistics import fmean, median
from typing import Final, NamedTuple, Self

from costmodel.recording.breakdown import has_schedule
from costmodel.recording.events import Health
from costmodel.recording.runner_health import CPU_LIMIT_PERMILLE, WorkerFitness
from costmodel.recording.throughput import BlockRate, RateSpan, summed, together
from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.intervals import MIN_CLUSTERS, Interval, quantile
from costmodel.statistics.repetitions import RunKey
from costmodel.statistics.scalability import MIN_LEVELS, Level, Scalability
from costmodel.workload.pool import Pool, by_levels, one_per_level

DRAWS: Final = 400
WITHIN: Final = 1.5
TURNS: Final = 2
"""Turns of the event loop per command at least: sending the command, and reading its result."""
RUNNER: Final = "runner"
SUBSTRATE: Final = "substrate"
UNKNOWN: Final = "unknown"


class RunnerLoad(NamedTuple):
    """Load of the measuring process during a level, over the seconds with health samples."""

    seconds: int
    cpu_permille: float  # medians
    lag_p50_ns: float
    lag_p99_ns: float
    waits: float  # share of seconds without a free thread


class LadderLevel(NamedTuple):
    """Measurements at a concurrency."""

    concurrency: int
    trials: int
    failures: int
    throughput_per_s: Interval  # of successful trials
    actions_per_s: Interval
    action_ns: float  # mean
    action_p50_ns: int
    action_p95_ns: int
    completion_ns: float  # mean
    runner: RunnerLoad | None  # None: no health sample


class SaturationPoint(NamedTuple):
    """Saturation point; ``at`` is None where no level shows saturation."""

    at: Interval | None
    throughput_per_s: Interval  # the ceiling of the law; without a law, of the level
    by_law: bool
    whose: str  # RUNNER, SUBSTRATE or UNKNOWN
    why: str


class Ladder(NamedTuple):
    """A cell at its levels, ascending."""

    pools: tuple[Pool, ...]
    levels: tuple[LadderLevel, ...]
    law: Scalability | None  # seconds of a slot per trial; None: fewer than four levels
    knee: SaturationPoint

    @classmethod
    def of(cls, pools: Sequence[Pool]) -> Self:
        """Return the ladder of pools with a success each and different concurrency."""
        steps = [_Step(pool) for pool in pools]
        drawn = [step.drawn() for step in steps]
        levels = tuple(step.level(draws) for step, draws in zip(steps, drawn, strict=True))
        at = [step.concurrency for step in steps]
        law = _law(at, [step.per_s for step in steps]) if len(steps) >= MIN_LEVELS else None
        knee = _by_level(levels) if law is None else _by_law(levels, law, at, drawn)
        whose, why = _whose(levels, knee)
        return cls(tuple(pools), levels, law, knee._replace(whose=whose, why=why))


def ladders(pools: Iterable[Pool]) -> list[Ladder]:
    """Return the ladders of all cells with two or more levels and full slots."""
    full = [pool for pool in pools if not has_schedule(pool.identity.arrival) and pool.succeeded]
    groups = [one_per_level(group) for group in by_levels(full)]
    return [Ladder.of(group) for group in groups if len(group) > 1]


class _Step:
    """Computation of a level."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.concurrency = pool.identity.concurrency
        groups: dict[tuple[RunKey, int], dict[int, list[RecordedTrial]]] = {}
        for trial in pool.trials:
            groups.setdefault((trial.run, trial.block), {}).setdefault(trial.worker, []).append(trial)
        rates = [
            [BlockRate.of([(t.start_ns, t.freed_ns, t.ok) for t in trials]) for trials in workers.values()]
            for workers in groups.values()
        ]
        self.spans: list[RateSpan] = [together(workers, self.concurrency) for workers in rates]
        self.per_s = summed(self.spans).per_s
        self._busy = [
            (run, worker, min(t.start_ns for t in trials), max(t.freed_ns for t in trials))
            for (run, _), workers in groups.items()
            for worker, trials in workers.items()
        ]

    def drawn(self) -> list[float]:
        """Throughputs per s of resampled blocks; of resampled trials where there are too few blocks."""
        source = Random(self.concurrency)
        if len(self.spans) >= MIN_CLUSTERS:
            return [summed(source.choices(self.spans, k=len(self.spans))).per_s for _ in range(DRAWS)]
        lanes_ns = [trial.freed_ns - trial.start_ns for trial in self.pool.trials]
        mean_ns, count = fmean(lanes_ns), len(lanes_ns)
        means_ns = (fmean(source.choices(lanes_ns, k=count)) for _ in range(DRAWS))
        return [self.per_s * mean_ns / drawn_ns if drawn_ns else self.per_s for drawn_ns in means_ns]

    def level(self, draws: Sequence[float]) -> LadderLevel:
        good = self.pool.successes
        actions_ns = sorted(ns for trial in good for ns in trial.durations_ns) or [0]
        throughput = _interval(self.per_s, draws)
        return LadderLevel(
            concurrency=self.concurrency,
            trials=len(self.pool.trials),
            failures=len(self.pool.trials) - len(good),
            throughput_per_s=throughput,
            actions_per_s=throughput.times(fmean(len(trial.durations_ns) for trial in good)),
            action_ns=fmean(actions_ns),
            action_p50_ns=quantile(actions_ns, 0.5),
            action_p95_ns=quantile(actions_ns, 0.95),
            completion_ns=fmean(trial.measures.trajectory_ns for trial in good),
            runner=self._load(),
        )

    def _load(self) -> RunnerLoad | None:
        recordings = {recording.run_id: recording for recording in self.pool.recordings}
        seconds: list[Health] = []
        for run, worker, start_ns, end_ns in self._busy:
            seconds += recordings[run.run_id].workers.get(worker, WorkerFitness()).within(start_ns, end_ns)
        if not seconds:
            return None
        return RunnerLoad(
            seconds=len(seconds),
            cpu_permille=median(second.cpu_permille for second in seconds),
            lag_p50_ns=median(second.lag_p50_ns for second in seconds),
            lag_p99_ns=median(second.lag_p99_ns for second in seconds),
            waits=sum(second.pool_waits > 0 for second in seconds) / len(seconds),
        )


def _interval(value: float, draws: Sequence[float]) -> Interval:
    """Return the value with the middle 95 % of the draws; an infinite limit is None."""
    ordered = sorted(draws)
    low, high = ordered[round(0.025 * (len(draws) - 1))], ordered[round(0.975 * (len(draws) - 1))]
    return Interval(value, min(value, low), max(value, high) if math.isfinite(high) else None)


def _law(at: Sequence[int], per_s: Sequence[float]) -> Scalability | None:
    """Fit the time of a slot per trial; None where a level has no throughput."""
    if not all(per_s):
        return None
    return Scalability.of([Level(n, n / rate) for n, rate in zip(at, per_s, strict=True)])


def ceiling_per_s(law: Scalability) -> float:
    """Return the highest throughput of the law; infinite without a limit."""
    a, b, c = law.parameters
    if a <= b:
        return 1 / a if a else 1 / b if b else math.inf  # more at a time were never faster
    if not c:
        return 1 / b if b else math.inf
    peak = math.sqrt((a - b) / c)
    return peak / (a + b * (peak - 1) + c * peak * (peak - 1)) if peak > 1 else 1 / a


def _by_law(
    levels: Sequence[LadderLevel], law: Scalability, at: Sequence[int], drawn: Sequence[list[float]]
) -> SaturationPoint:
    """Return the saturation point with the measured first level as the throughput of one slot."""
    ceilings, knees = [], []
    for rates in zip(*drawn, strict=True):
        fitted = _law(at, rates)
        if fitted is not None:
            ceilings.append(ceiling_per_s(fitted))
            knees.append(ceilings[-1] * at[0] / rates[0])
    ceiling = ceiling_per_s(law)
    knee = ceiling * at[0] / levels[0].throughput_per_s.value
    highest = max(levels, key=lambda level: level.throughput_per_s.value).throughput_per_s
    if not knees or knee > at[-1]:
        return SaturationPoint(None, highest, True, UNKNOWN, "")
    return SaturationPoint(_interval(max(1.0, knee), knees), _interval(ceiling, ceilings), True, UNKNOWN, "")


def _by_level(levels: Sequence[LadderLevel]) -> SaturationPoint:
    last = levels[0]
    for level in levels[1:]:
        if level.completion_ns > WITHIN * levels[0].completion_ns:
            return SaturationPoint(Interval(last.concurrency), last.throughput_per_s, False, UNKNOWN, "")
        last = level
    return SaturationPoint(None, last.throughput_per_s, False, UNKNOWN, "")


def _whose(levels: Sequence[LadderLevel], knee: SaturationPoint) -> tuple[str, str]:
    """Return the limiting side and the reason, from the first level beyond saturation."""
    if knee.at is None:
        return UNKNOWN, f"not reached with {levels[-1].concurrency:,} at a time: go higher"
    at = knee.at.value * (1 + 1e-9)  # a level at the saturation point, but for rounding, is not beyond it
    level = next((candidate for candidate in levels if candidate.concurrency > at), levels[-1])
    load, where = level.runner, f"at {level.concurrency:,}"
    if load is None:
        return UNKNOWN, f"the level {where} was over before the runner's health was told: plan more trials"
    cpu, lag_ms = f"{load.cpu_permille / 10:.0f} % of a core", load.lag_p50_ns / 1e6
    if load.cpu_permille > CPU_LIMIT_PERMILLE:
        return RUNNER, f"its CPU: {cpu} {where}"
    if load.waits > 0.5:
        return RUNNER, f"its threads: calls waited for one in {load.waits:.0%} of the seconds {where}"
    grown_ns = level.action_ns - levels[0].action_ns
    if TURNS * load.lag_p50_ns > grown_ns / 2:
        return RUNNER, f"its event loop: {lag_ms:.3g} ms late at the median {where}, twice in a command"
    return SUBSTRATE, f"the runner took {cpu} and was {lag_ms:.3g} ms late at the median {where}"
