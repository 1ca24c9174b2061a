"""Trials of equal cells, pooled over recordings and brought to the length that is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from random import Random

from msgspec.structs import replace

from costmodel.errors import SourceError
from costmodel.recording.breakdown import OPEN, UNKNOWN, Split, contended
from costmodel.recording.reader import CellIdentity, RecordedCell, Recording
from costmodel.recording.trial import RecordedTrial, TrialColumns
from costmodel.statistics.lognormal_sum import strata_of_sum
from costmodel.statistics.repetitions import RunKey
from costmodel.training.length import FIXED_LENGTH, Length
from costmodel.training.run import Think, TrainingRun
from costmodel.workload.attempts import Attempt, Sample
from costmodel.workload.contamination import Exposure, exposure
from costmodel.workload.length_extrapolation import Continuation

MIN_DRAWS = 1_000
"""A law of many lengths gives each trial as many versions as make this many in all."""
MANY_TRIALS = 200
"""Beyond this, think time is told less finely for each trial: all of them together tell it finely enough."""
HITS = 1_000_000
"""A share of hits is told in parts of this."""


class Pool:
    """The trials of one cell from all recordings that measured it."""

    __slots__ = (
        "_columns",
        "contended",
        "cycle",
        "identity",
        "preload",
        "provenance",
        "recordings",
        "resolution_ns",
        "trials",
        "untold",
    )

    def __init__(self, cell: RecordedCell, identity: CellIdentity) -> None:
        """A pool without trials, for ``cell`` and its like, which ``identity`` is of all."""
        self.identity = identity
        self.cycle = cell.cycle
        self.preload = cell.preload
        self.provenance = cell.provenance
        self.resolution_ns = cell.resolution_ns  # of the clock, the coarsest
        self.untold = cell.untold  # quantities that no source tells
        self.trials: Sequence[RecordedTrial] = ()
        self._columns: tuple[Sequence[RecordedTrial], TrialColumns] | None = None
        self.recordings: list[Recording] = []
        self.contended: float | None = None  # the share of its waiting that is contention; None: not known

    @property
    def sources(self) -> list[str]:
        """The names of the recordings."""
        return list(dict.fromkeys(recording.name for recording in self.recordings))

    @property
    def complete(self) -> bool:
        """Whether nothing is missing of any of the recordings."""
        return all(recording.whole for recording in self.recordings)

    @property
    def exposure(self) -> Exposure | None:
        """What the seconds in which the measuring process was not fit did to it; None where they did nothing."""
        return exposure(self.columns)

    @property
    def distorted(self) -> bool:
        """Whether they did more than its mean claims to resolve."""
        found = self.exposure
        return found is not None and found.matters

    @property
    def disturbed(self) -> bool:
        """Whether its median trial spent most of its time in such seconds."""
        found = self.exposure
        return found is not None and found.throughout

    @property
    def columns(self) -> TrialColumns:
        """What every projection needs of its trials."""
        if self._columns is None or self._columns[0] is not self.trials:
            self._columns = self.trials, TrialColumns.of(self.trials)
        return self._columns[1]

    @property
    def runs(self) -> set[RunKey]:
        """Those that its trials are of."""
        return self.columns.runs

    @property
    def succeeded(self) -> int:
        """How many trials did."""
        return sum(self.columns.ok)

    @property
    def run_known(self) -> bool:
        """Whether the time inside the sandbox is known of every success."""
        return not any(ok and run == UNKNOWN for ok, run in zip(self.columns.ok, self.columns.run_ns, strict=True))

    @property
    def cleanup_ns(self) -> float:
        """Of a success, on average; one that was not taken is none."""
        columns = zip(self.columns.cleanup_ns, self.columns.ok, strict=True)
        return sum(ns for ns, ok in columns if ok and ns != UNKNOWN) / (self.succeeded or 1)

    @property
    def successes(self) -> list[RecordedTrial]:
        """The trials that succeeded."""
        return [trial for trial in self.trials if trial.ok]

    @property
    def length(self) -> Length:
        """The lengths of its trajectories: those of its successes, or of all trials where none succeeded."""
        if self.identity.length == FIXED_LENGTH or not self.trials:
            return Length.constant(self.identity.actions)
        ended = [actions for actions, ok in zip(self.columns.actions, self.columns.ok, strict=True) if ok]
        return Length.of(ended or self.columns.actions)

    @property
    def waiting_ns(self) -> float | None:
        """What its commands waited inside the sandbox, the mean over successes; None where CPU time is not known."""
        waits = [wait for wait, ok in zip(self.columns.waiting_ns, self.columns.ok, strict=True) if ok]
        return sum(waits) / len(waits) if waits and UNKNOWN not in waits else None

    @property
    def contention_unknown(self) -> bool:
        """Whether its work may hold contention that nobody can tell from it."""
        return self.identity.concurrency > 1 and self.contended is None and bool(self.succeeded)

    @property
    def alone(self) -> tuple[CellIdentity, str]:
        """The same for cells that differ in how many trials ran at a time only.

        By a schedule of its own that is not what its concurrency says, which is how many could at most.
        """
        if self.identity.arrival.partition(":")[0] == OPEN:
            return self.identity, self.provenance
        return self.identity._replace(concurrency=1, arrival=""), self.provenance

    @property
    def at_a_time(self) -> int:
        """How many trials ran at a time for sure: by a schedule of its own that may have been one."""
        return 1 if self.identity.arrival.partition(":")[0] == OPEN else self.identity.concurrency

    @property
    def series(self) -> CellIdentity:
        """The same for cells that differ in their length only."""
        return self.identity._replace(actions=0)


def itself(identity: CellIdentity) -> CellIdentity:
    """Equal for equal cells alone."""
    return identity


def pools(recordings: Iterable[Recording], alike: Callable[[CellIdentity], CellIdentity] = itself) -> list[Pool]:
    """One pool per cell, in the order in which cells first appear; cells of which ``alike`` is equal share one."""
    found: dict[tuple[CellIdentity, str], Pool] = {}
    trials: dict[Pool, list[Sequence[RecordedTrial]]] = {}
    names: dict[str, str] = {}
    for recording in recordings:
        if recording.run_id in names:
            raise SourceError(f"{recording.name} and {names[recording.run_id]} hold the same run; give it once")
        names[recording.run_id] = recording.name
        for cell in recording.cells:
            identity = alike(cell.identity)
            pool = found.setdefault((identity, cell.provenance), Pool(cell, identity))
            pool.resolution_ns = max(pool.resolution_ns, cell.resolution_ns)
            pool.untold &= cell.untold
            trials.setdefault(pool, []).append(cell.trials)
            if recording not in pool.recordings:
                pool.recordings.append(recording)
    for pool, each in trials.items():
        pool.trials = list(chain.from_iterable(each))
    _tell_contention(list(found.values()))
    return list(found.values())


def _tell_contention(cells: Sequence[Pool]) -> None:
    """What waiting at concurrency 1 is none of ours; elsewhere what exceeds it is, where both are known."""
    waits = [(pool, pool.waiting_ns) for pool in cells]
    alone = {pool.alone: waiting_ns for pool, waiting_ns in waits if pool.identity.concurrency == 1}
    for pool, waiting_ns in waits:
        alone_ns = alone.get(pool.alone)
        if waiting_ns is not None and alone_ns is not None:
            pool.contended = 0.0 if pool.identity.concurrency == 1 else contended(waiting_ns, alone_ns)


def nearest_length(series: Sequence[Pool], length: Length) -> Pool:
    """The pool to project ``length`` from: the shortest that is long enough, else the longest."""
    with_success = [pool for pool in series if pool.succeeded] or series
    longest = max(with_success, key=lambda pool: pool.length.high)
    long_enough = [pool for pool in with_success if pool.length.high >= length.high]
    return min(long_enough, key=lambda pool: pool.length.high, default=longest)


def by_levels(pools: Iterable[Pool]) -> list[list[Pool]]:
    """Pools of one cell but for how many trials ran at a time, with a success each, together."""
    groups: dict[object, list[Pool]] = {}
    for index, pool in enumerate(pools):
        alone = (pool.alone, pool.length) if pool.succeeded else index
        groups.setdefault(alone, []).append(pool)
    return list(groups.values())


def one_per_level(pools: Sequence[Pool]) -> list[Pool]:
    """One pool for each level, that of the most successes, ascending: arrivals may differ."""
    best: dict[int, Pool] = {}
    for pool in pools:
        level = pool.identity.concurrency
        if level not in best or pool.succeeded > best[level].succeeded:
            best[level] = pool
    return [best[level] for level in sorted(best)]


def attempts(pool: Pool, length: Length | None, training_run: TrainingRun) -> Sample:
    """Every trial at this length (None: at its own), with the training run's think time and clean-up."""
    if _recorded(pool, length):
        whole = Sample.recorded(pool.columns, pool.contended)
        if training_run.include_cleanup:
            whole = whole.with_cleanup(pool.columns.cleanup_ns)
        return whole if training_run.think is None else Sample(_with_think(whole, training_run.think))
    if length is None:
        lengths: list[tuple[tuple[int, int], ...]] = [((len(trial.durations_ns), 1),) for trial in pool.trials]
    else:
        lengths = [one.weights for one in _dealt(length, len(pool.trials), Random(training_run.seed))]
    longest = max(pool.trials, key=lambda trial: len(trial.durations_ns), default=None)
    found = [
        at_length(trial, index, actions, pool.cycle, pool.contended, longest, weight)
        for index, trial in enumerate(pool.trials)
        for actions, weight in lengths[index]
    ]
    if training_run.include_cleanup:
        cleanups = [trial.measures.cleanup_ns or 0 for trial in pool.trials]
        found = [replace(a, held_ns=a.held_ns + cleanups[a.trial], cleanup_ns=cleanups[a.trial]) for a in found]
    if training_run.think is not None:
        found = _with_think(found, training_run.think)
    return Sample(found)


def _recorded(pool: Pool, length: Length | None) -> bool:
    """Whether no trial has to be cut or prolonged: then an attempt is what was recorded."""
    if not pool.columns.consistent:  # as of trials that were remade
        return False
    if length is None:
        return True
    [(actions, weight), *others] = length.weights
    lengths = zip(pool.columns.actions, pool.columns.ok, strict=True)
    return not others and weight == 1 and all(own == actions or (own < actions and not ok) for own, ok in lengths)


def _dealt(length: Length, trials: int, rng: Random) -> list[Length]:
    """For each trial the lengths that it is brought to, with weights of one sum.

    All lengths of the law where these are few. Of many, quantiles: as many of each equal share of the law for every
    trial, at random which, so that a law of a thousand lengths takes no longer and its mean stays.
    """
    versions = -(-MIN_DRAWS // max(1, trials))
    if len(length.weights) <= versions:
        return [length] * trials
    drawn = length.draws(versions * trials)
    strata = [drawn[i * trials : (i + 1) * trials] for i in range(versions)]
    for stratum in strata:
        rng.shuffle(stratum)
    return [Length(tuple(Counter(lengths).items())) for lengths in zip(*strata, strict=True)]


def from_pool(recorded: Iterable[Attempt], hits: int) -> list[Attempt]:
    """Each attempt twice: as it is, and as it would be with a ready sandbox, for so many hits of ``HITS``."""
    mixed = []
    for attempt in recorded:
        weight = attempt.weight
        if hits:
            mixed.append(attempt.warm(weight * hits))
        if hits < HITS:
            mixed.append(replace(attempt, weight=weight * (HITS - hits)))
    return mixed


def killed_after(recorded: Iterable[Attempt], timeout_s: float) -> list[Attempt]:
    """Whatever would be held longer fails at that moment."""
    limit = round(timeout_s * 1e9)
    return [attempt if attempt.held_ns <= limit else _killed(attempt, limit) for attempt in recorded]


def at_length(
    trial: RecordedTrial,
    index: int,
    actions: int,
    cycle: int,
    contended: float | None = None,
    longest: RecordedTrial | None = None,
    weight: int = 1,
) -> Attempt:
    """The trial cut to its first ``actions``, or prolonged by what its own later cycles cost.

    One without an action has none: it goes on as the ``longest`` of its cell. A trial that failed after more than
    ``actions`` commands had gone well is a success at this length.
    """
    measured, recorded = trial.measures, len(trial.durations_ns)
    ok = trial.ok or recorded > actions
    if not ok:
        actions = recorded
    cut = min(actions, recorded)
    like = trial if recorded or longest is None else longest
    if cut == recorded:
        own, gap_ns, think_ns = trial.actions, trial.gap_ns, measured.think_ns
    else:
        own = Split.of(trial.durations_ns[:cut], trial.runs_ns[:cut], trial.wrappers_ns[:cut])
        gap_ns, think_ns = sum(trial.gaps_ns[:cut]), sum(trial.thinks_ns[:cut])
    duration_ns, run_ns, wrapper_ns = own.taken_ns, own.work_ns, own.wrapper_ns
    more_ns = more_gap_ns = 0
    if actions > cut:
        more = Continuation.of_trial(len(like.durations_ns), actions - cut, cycle)
        more_ns, more_gap_ns = more.of(like.durations_ns), more.of(like.gaps_ns)
        duration_ns += more_ns
        gap_ns += more_gap_ns
        think_ns += more.of(like.thinks_ns)
        run_ns += more.of(like.runs_ns)
        wrapper_ns += more.of(like.wrappers_ns)
    longer_ns = gap_ns - trial.gap_ns
    change_ns = duration_ns - trial.actions.taken_ns + longer_ns + think_ns - measured.think_ns
    known = trial.setup.known and own.known and (like is trial or like.actions.known)
    run_ns += trial.setup.work_ns
    contention_ns = measured.contention_ns(contended)
    if contention_ns and run_ns != measured.work_ns:  # in proportion
        contention_ns = contention_ns * run_ns // measured.work_ns
    cpu_ns = UNKNOWN if trial.cpu_ns is None or not known else trial.cpu_ns
    if cpu_ns > 0 and run_ns != measured.work_ns:  # in proportion, too
        cpu_ns = cpu_ns * run_ns // (measured.work_ns or 1)
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
        run_ns=run_ns if known else UNKNOWN,
        contention_ns=contention_ns,
        cpu_ns=cpu_ns,
        dispatch_ns=trial.setup.dispatch_ns + trial.setup.work_ns + duration_ns - run_ns - wrapper_ns if known else 0,
        wrapper_ns=trial.setup.wrapper_ns + wrapper_ns if known else 0,
        unsplit_ns=0 if known else trial.setup.taken_ns + duration_ns,
        harness_ns=measured.harness_ns + longer_ns,
        cleanup_ns=0,
        sandbox_ns=max(0, trial.sandbox_ns + change_ns) + (measured.cleanup_ns or 0),
        commands_ns=duration_ns + gap_ns + think_ns,
        continued_ns=more_ns + more_gap_ns,
    )


def _killed(attempt: Attempt, limit_ns: int) -> Attempt:
    """The attempt, had it been killed after ``limit_ns``: a failure, of which only the time it held counts."""
    saved = attempt.held_ns - limit_ns
    return replace(
        attempt,
        ok=False,
        held_ns=limit_ns,
        cold_ns=min(attempt.cold_ns, limit_ns),
        sandbox_ns=max(0, attempt.sandbox_ns - saved),
    )


def _with_think(recorded: Sequence[Attempt], think: Think) -> list[Attempt]:
    """Each attempt with the training run's think time; one version for each stratum of its law where it is a
    distribution.

    There is a pause between two actions, as where it is recorded: one fewer than actions.
    """
    per_octave = 4 if len(recorded) <= MANY_TRIALS else 1
    thought = []
    for attempt in recorded:
        for weight, medians in strata_of_sum(max(0, attempt.actions - 1), think.sigma, per_octave):
            new = round(medians * think.median_ns)
            change = new - attempt.think_ns
            thought.append(
                replace(
                    attempt,
                    weight=attempt.weight * weight,
                    think_ns=new,
                    held_ns=attempt.held_ns + change,
                    sandbox_ns=max(0, attempt.sandbox_ns + change),
                    commands_ns=attempt.commands_ns + change,
                )
            )
    return thought
