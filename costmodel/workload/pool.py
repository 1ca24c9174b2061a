"""Trials of equal cells, pooled over recordings and adjusted to a length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from costmodel.errors import SourceError
from costmodel.recording.breakdown import OPEN, UNKNOWN, Split
from costmodel.recording.reader import RecordedCell, Recording
from costmodel.recording.runner_health import DISTURBED_SHARE
from costmodel.recording.trial import CellIdentity, RecordedTrial
from costmodel.statistics.distribution import strata_of_sums
from costmodel.statistics.intervals import Interval, mean_interval
from costmodel.statistics.repetitions import RunKey
from costmodel.training.length import FIXED_LENGTH, Length
from costmodel.training.run import TrainingRun
from costmodel.workload.attempts import Attempt, continued

MIN_DRAWS = 1_000
"""Total versions of trials for a distribution of many lengths."""
FEW_LENGTHS = 8
"""Lengths that each trial has, however many trials."""
MANY_TRIALS = 200
"""Trials beyond which think time has a coarser grid per trial."""
HITS = 1_000_000
"""Parts of a share of hits."""


class Exposure(NamedTuple):
    """A cell's trajectories with and without the trials in bad seconds; means over successes, in ns.

    A second is bad if the runner's loop lagged or the runner was busy. Where most trials spent most of their time in
    bad seconds, absolute limits decide instead (``runner_health``).
    """

    exposed: int  # successes with a bad second
    successes: int
    every_ns: Interval
    clean_ns: Interval  # of unexposed successes, or of the less exposed half if larger
    share: float = 0.0  # share of bad seconds in the median success

    @property
    def difference_ns(self) -> float:
        """Excess of the mean due to exposed trials."""
        return self.every_ns.value - self.clean_ns.value

    @property
    def matters(self) -> bool:
        """Whether the difference exceeds half the width of the mean's interval."""
        low, high = self.every_ns.low, self.every_ns.high
        return low is None or high is None or abs(self.difference_ns) > (high - low) / 2


class Pool:
    """The trials of a cell from all recordings."""

    def __init__(self, cell: RecordedCell, identity: CellIdentity) -> None:
        self.identity = identity
        self.cycle = cell.cycle
        self.preload = cell.preload
        self.provenance = cell.provenance
        self.resolution_ns = cell.resolution_ns  # of the coarsest clock
        self.unreported = cell.unreported  # unreported by every source
        self.trials: list[RecordedTrial] = []
        self.recordings: list[Recording] = []
        self.contended: float | None = None  # contended share of the waiting; None: unknown

    @property
    def sources(self) -> list[str]:
        return list(dict.fromkeys(recording.name for recording in self.recordings))

    @property
    def complete(self) -> bool:
        return all(recording.whole for recording in self.recordings)

    @property
    def exposure(self) -> Exposure | None:
        """Effect of the measuring process's bad seconds; None: no success overlaps a bad second."""
        successes = self.successes
        exposed = sum(trial.exposed > 0 for trial in successes)
        if not exposed:
            return None
        limit = median(trial.exposed for trial in successes)
        every = mean_interval([trial.measures.trajectory_ns for trial in successes])
        clean = mean_interval([trial.measures.trajectory_ns for trial in successes if trial.exposed <= limit])
        return Exposure(exposed, len(successes), every, clean, limit)

    @property
    def disturbed(self) -> bool:
        """Whether the median success was in bad seconds most of the time, without a clean half to compare with."""
        return bool(self.succeeded) and median(trial.exposed for trial in self.successes) > DISTURBED_SHARE

    @property
    def runs(self) -> set[RunKey]:
        return {trial.run for trial in self.trials}

    @property
    def successes(self) -> list[RecordedTrial]:
        return [trial for trial in self.trials if trial.ok]

    @property
    def succeeded(self) -> int:
        """Number of successes."""
        return len(self.successes)

    @property
    def run_known(self) -> bool:
        """Whether the in-sandbox time of every success is known."""
        return all(trial.measures.divided for trial in self.successes)

    @property
    def cleanup_ns(self) -> float:
        """Mean clean-up of a success; an unmeasured clean-up counts as 0."""
        return sum(trial.measures.cleanup_ns or 0 for trial in self.successes) / (self.succeeded or 1)

    @property
    def length(self) -> Length:
        """Lengths of successes, or of all trials without a success."""
        if self.identity.length == FIXED_LENGTH or not self.trials:
            return Length.constant(self.identity.actions)
        return Length.weighted(Counter(len(trial.durations_ns) for trial in self.successes or self.trials))

    @property
    def waiting_ns(self) -> float | None:
        """Mean waiting of commands inside the sandbox over successes; None: CPU time is unknown."""
        waits = [trial.measures.waiting_ns for trial in self.successes]
        known_waits = [ns for ns in waits if ns is not None]
        return sum(known_waits) / len(waits) if waits and len(known_waits) == len(waits) else None

    @property
    def contention_unknown(self) -> bool:
        """Whether command time may contain unknown contention."""
        return self.identity.concurrency > 1 and self.contended is None and bool(self.succeeded)

    @property
    def alone(self) -> tuple[CellIdentity, str]:
        """Key of cells that differ in concurrency only.

        Concurrency is only an upper bound for open arrivals, so it stays in their key.
        """
        if self.identity.arrival.partition(":")[0] == OPEN:
            return self.identity, self.provenance
        return self.identity._replace(concurrency=1, arrival=""), self.provenance

    @property
    def at_a_time(self) -> int:
        """Guaranteed concurrency: 1 for open arrivals."""
        return 1 if self.identity.arrival.partition(":")[0] == OPEN else self.identity.concurrency

    @property
    def series(self) -> CellIdentity:
        """Key of cells that differ in length only."""
        return self.identity._replace(actions=0)


def pools(recordings: Iterable[Recording], alike: Callable[[CellIdentity], CellIdentity] | None = None) -> list[Pool]:
    """Return a pool per group of cells, equal or with equal ``alike``, in the order of first appearance.

    Contention is the share of waiting in excess of the same cell at concurrency 1, if both are known: waiting for
    sleep, a disk or a peer also occurs alone.
    """
    by_key: dict[tuple[CellIdentity, str], Pool] = {}
    names: dict[str, str] = {}
    for recording in recordings:
        if recording.run_id in names:
            raise SourceError(f"{recording.name} and {names[recording.run_id]} hold the same run; give it once")
        names[recording.run_id] = recording.name
        for cell in recording.cells:
            identity = alike(cell.identity) if alike else cell.identity
            pool = by_key.setdefault((identity, cell.provenance), Pool(cell, identity))
            pool.resolution_ns = max(pool.resolution_ns, cell.resolution_ns)
            pool.unreported &= cell.unreported
            pool.trials += cell.trials
            if recording not in pool.recordings:
                pool.recordings.append(recording)
    waits = [(pool, pool.waiting_ns) for pool in by_key.values()]
    alone = {pool.alone: waiting_ns for pool, waiting_ns in waits if pool.identity.concurrency == 1}
    for pool, waiting_ns in waits:
        alone_ns = alone.get(pool.alone)
        if waiting_ns is not None and alone_ns is not None:
            crowded = pool.identity.concurrency > 1 and waiting_ns > 0
            pool.contended = max(0.0, 1 - alone_ns / waiting_ns) if crowded else 0.0
    return list(by_key.values())


def nearest_length(series: Sequence[Pool], length: Length) -> Pool:
    """Return the shortest pool of at least ``length``, else the longest pool."""

    def distance(pool: Pool) -> tuple[bool, int]:
        return pool.length.high < length.high, abs(pool.length.high - length.high)

    return min([pool for pool in series if pool.succeeded] or series, key=distance)


def by_levels(pools: Iterable[Pool]) -> list[list[Pool]]:
    """Group pools with a success that differ only in concurrency."""
    groups: dict[object, list[Pool]] = {}
    for index, pool in enumerate(pools):
        alone = (pool.alone, pool.length) if pool.succeeded else index
        groups.setdefault(alone, []).append(pool)
    return list(groups.values())


def one_per_level(pools: Sequence[Pool]) -> list[Pool]:
    """Return the pool with most successes at each concurrency, ascending."""
    levels = sorted({pool.identity.concurrency for pool in pools})
    same = ([pool for pool in pools if pool.identity.concurrency == level] for level in levels)
    return [max(level_pools, key=lambda pool: pool.succeeded) for level_pools in same]


def versions(pool: Pool, length: Length | None, seed: int) -> list[Attempt]:
    """Return all trials at a length (None: as recorded), with recorded think time and without clean-up."""
    if length is None:
        lengths: list[tuple[tuple[int, int], ...]] = [((len(trial.durations_ns), 1),) for trial in pool.trials]
    else:
        lengths = [law.weights for law in _dealt(length, len(pool.trials), Random(seed))]
    longest = max(pool.trials, key=lambda trial: len(trial.durations_ns), default=None)
    return [
        at_length(trial, index, actions, pool.cycle, pool.contended, longest, weight)
        for index, trial in enumerate(pool.trials)
        for actions, weight in lengths[index]
    ]


def attempts(pool: Pool, length: Length | None, training_run: TrainingRun) -> list[Attempt]:
    """Return all trials at a length (None: as recorded), with the training run's think time and clean-up.

    A distribution of think time gives a version of each attempt per stratum.
    """
    recorded = versions(pool, length, training_run.precision.seed)
    if training_run.include_cleanup:
        cleanups = [trial.measures.cleanup_ns or 0 for trial in pool.trials]
        recorded = [
            replace(version, held_ns=version.held_ns + cleanups[version.trial], cleanup_ns=cleanups[version.trial])
            for version in recorded
        ]
    think = training_run.think
    if think is None:
        return recorded
    per_octave = 4 if len(recorded) <= MANY_TRIALS else 1
    pauses = [max(0, attempt.actions - 1) for attempt in recorded]  # one fewer than actions
    laws = strata_of_sums(pauses, think.sigma, per_octave)
    return [
        replace(
            attempt,
            weight=attempt.weight * weight,
            think_ns=attempt.think_ns + change,
            held_ns=attempt.held_ns + change,
            sandbox_ns=max(0, attempt.sandbox_ns + change),
        )
        for attempt, number in zip(recorded, pauses, strict=True)
        for weight, medians in laws[number]
        for change in (round(medians * think.median_ns) - attempt.think_ns,)
    ]


def _dealt(length: Length, trials: int, rng: Random) -> list[Length]:
    """Return the lengths of each trial, with equal total weight.

    Few lengths: all of them. Many lengths: quantiles, shuffled over trials within equal shares of the distribution. The
    cost stays constant. Lengths rarer than one draw are left out.
    """
    versions = -(-MIN_DRAWS // max(1, trials))
    if len(length.weights) <= max(versions, FEW_LENGTHS):
        return [length] * trials
    drawn = length.draws(versions * trials)
    strata = [drawn[i * trials : (i + 1) * trials] for i in range(versions)]
    for stratum in strata:
        rng.shuffle(stratum)
    return [Length(tuple(Counter(lengths).items())) for lengths in zip(*strata, strict=True)]


def from_pool(recorded: Iterable[Attempt], hits: int) -> list[Attempt]:
    """Split each attempt into a cold and a warm version, with ``hits`` parts of ``HITS`` warm.

    The warm version lacks create and ready, but the provider bills the same time.
    """
    mixed = []
    for attempt in recorded:
        weight = attempt.weight
        if hits:
            held_ns, startup_ns = attempt.held_ns - attempt.cold_ns, attempt.startup_ns - attempt.cold_ns
            mixed.append(replace(attempt, weight=weight * hits, held_ns=held_ns, startup_ns=startup_ns, cold_ns=0))
        if hits < HITS:
            mixed.append(replace(attempt, weight=weight * (HITS - hits)))
    return mixed


def killed_after(recorded: Iterable[Attempt], timeout_s: float) -> list[Attempt]:
    """End attempts longer than the timeout as failures; the clean-up goes on beyond the limit."""
    limit_ns = round(timeout_s * 1e9)

    def part(attempt: Attempt, ns: int) -> int:  # spread over the life; an unknown time stays unknown
        return ns * limit_ns // attempt.held_ns if ns > 0 else ns

    return [
        attempt
        if attempt.held_ns <= limit_ns
        else replace(
            attempt,
            ok=False,
            held_ns=limit_ns,
            think_ns=part(attempt, attempt.think_ns),
            run_ns=part(attempt, attempt.run_ns),
            unsplit_ns=part(attempt, attempt.unsplit_ns),
            cpu_ns=part(attempt, attempt.cpu_ns),
            cold_ns=min(attempt.cold_ns, limit_ns),
            sandbox_ns=max(0, attempt.sandbox_ns - max(0, attempt.held_ns - attempt.cleanup_ns - limit_ns)),
        )
        for attempt in recorded
    ]


def at_length(
    trial: RecordedTrial,
    index: int,
    actions: int,
    cycle: int,
    contended: float | None = None,
    longest: RecordedTrial | None = None,
    weight: int = 1,
) -> Attempt:
    """Cut a trial to its first ``actions``, or extend it by the cost of later cycles.

    A trial without an action continues as the ``longest`` of its cell. A trial that failed after more than ``actions``
    successful commands is a success at this length.
    """
    measured, recorded = trial.measures, len(trial.durations_ns)
    ok = trial.ok or recorded > actions
    if not ok:
        actions = recorded
    cut = min(actions, recorded)
    like = trial if recorded or actions == cut or longest is None else longest
    split, gap_ns, think_ns, continued_ns = trial.actions, trial.gap_ns, measured.think_ns, 0
    if cut < recorded:
        split = Split.of(trial.durations_ns[:cut], trial.runs_ns[:cut], trial.wrappers_ns[:cut])
        gap_ns, think_ns = sum(trial.gaps_ns[:cut]), sum(trial.thinks_ns[:cut])
    if actions > cut:
        columns = (like.durations_ns, like.gaps_ns, like.thinks_ns, like.runs_ns, like.wrappers_ns)
        more = (continued(column, actions - cut, cycle) for column in columns)
        taken_ns, more_gap_ns, more_think_ns, run_ns, wrapper_ns = more
        split = split.plus(Split(run_ns, taken_ns - run_ns - wrapper_ns, 0, like.actions.divided, wrapper_ns))
        gap_ns, think_ns, continued_ns = gap_ns + more_gap_ns, think_ns + more_think_ns, taken_ns + more_gap_ns
    commands, longer_ns = trial.setup.plus(split), gap_ns - trial.gap_ns
    if ok and not trial.ok:  # the time after the last finished action is that of the failure, at a later action
        longer_ns -= measured.harness_ns - trial.gap_ns - max(0, measured.setup_ns - trial.setup.taken_ns)
    change_ns = split.taken_ns - trial.actions.taken_ns + longer_ns + think_ns - measured.think_ns
    busy = trial if measured.work_ns else like  # the trial with the CPU time and the contention of the commands
    contention_ns, busy_ns = busy.measures.contention_ns(contended), busy.measures.work_ns
    if contention_ns and commands.work_ns != busy_ns:  # in proportion
        contention_ns = contention_ns * commands.work_ns // busy_ns
    cpu_ns = UNKNOWN if busy.cpu_ns is None or not commands.divided else busy.cpu_ns
    if cpu_ns > 0 and commands.work_ns != busy_ns:  # in proportion, too
        cpu_ns = cpu_ns * commands.work_ns // (busy_ns or 1)
    return Attempt(
        trial=index,
        actions=actions,
        weight=weight,
        ok=ok,
        held_ns=measured.held_ns + change_ns,
        think_ns=think_ns,
        queued_ns=measured.queued_ns,
        cold_ns=min(measured.cold_start_ns, measured.held_ns),
        startup_ns=measured.startup_ns,
        run_ns=commands.work_ns if commands.divided else UNKNOWN,
        contention_ns=contention_ns,
        cpu_ns=cpu_ns,
        dispatch_ns=commands.dispatch_ns if commands.divided else 0,
        wrapper_ns=commands.wrapper_ns if commands.divided else 0,
        unsplit_ns=0 if commands.divided else commands.taken_ns,
        harness_ns=measured.harness_ns + longer_ns,
        cleanup_ns=0,
        sandbox_ns=max(0, trial.sandbox_ns + change_ns) + (measured.cleanup_ns or 0),
        continued_ns=continued_ns,
    )
