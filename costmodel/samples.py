"""Trials of equal cells, pooled over recordings and brought to the length that is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from costmodel.demand import Demand, Think
from costmodel.errors import SourceError
from costmodel.measures import UNKNOWN, Split
from costmodel.recording import CellIdentity, RecordedCell, RecordedTrial, Recording
from costmodel.thinking import strata_of_sum

MANY_TRIALS = 200
"""Beyond this, think time is told less finely for each trial: all of them together tell it finely enough."""
HITS = 1_000_000
"""A share of hits is told in parts of this."""


class Pool:
    """The trials of one cell from all recordings that measured it."""

    __slots__ = ("cycle", "identity", "preload", "provenance", "recordings", "trials")

    def __init__(self, cell: RecordedCell) -> None:
        """A pool without trials, for ``cell`` and its equals."""
        self.identity = cell.identity
        self.cycle = cell.cycle
        self.preload = cell.preload
        self.provenance = cell.provenance
        self.trials: list[RecordedTrial] = []
        self.recordings: list[Recording] = []

    @property
    def sources(self) -> list[str]:
        """The names of the recordings."""
        return list(dict.fromkeys(recording.name for recording in self.recordings))

    @property
    def complete(self) -> bool:
        """Whether nothing is missing of any of the recordings."""
        return all(recording.whole for recording in self.recordings)

    @property
    def distorted(self) -> bool:
        """Whether one of the recordings comes from a process that was too busy."""
        return any(recording.distorted for recording in self.recordings)

    @property
    def successes(self) -> list[RecordedTrial]:
        """The trials that succeeded."""
        return [trial for trial in self.trials if trial.ok]

    @property
    def series(self) -> CellIdentity:
        """The same for cells that differ in their length only."""
        return self.identity._replace(actions=0)


class Attempt(NamedTuple):
    """One attempt at a trajectory of the length asked for: a trial, or a version of it. Durations are int ns."""

    trial: int  # versions of one trial are not independent
    weight: int  # the same total for every trial
    ok: bool
    held_ns: int
    think_ns: int
    queued_ns: int
    cold_ns: int  # create and ready
    startup_ns: int  # that and preload
    run_ns: int  # inside the sandbox, set-up included, or UNKNOWN
    dispatch_ns: int  # the rest of every command; meaningless where run_ns is UNKNOWN
    harness_ns: int  # our own time between phases and commands
    cleanup_ns: int  # as far as it is part of held
    sandbox_ns: int  # the provider's clock
    commands_ns: int  # from the set-up's end to the last action's: actions, gaps and think time

    @property
    def trajectory_ns(self) -> int:
        """What the paper calls trajectory latency: without think time and throttles."""
        return self.held_ns - self.queued_ns - self.think_ns

    def unthrottled(self) -> Attempt:
        """The same without the waits that throttles imposed when it was recorded."""
        return self._replace(held_ns=self.held_ns - self.queued_ns, queued_ns=0)

    def warm(self, weight: int) -> Attempt:
        """The same, had a ready sandbox been there; the provider's clock ran all the same."""
        cold_ns = self.cold_ns
        return self._replace(
            weight=weight, held_ns=self.held_ns - cold_ns, startup_ns=self.startup_ns - cold_ns, cold_ns=0
        )


def pools(recordings: Iterable[Recording]) -> list[Pool]:
    """One pool per cell, in the order in which cells first appear."""
    found: dict[tuple[CellIdentity, str], Pool] = {}
    names: dict[str, str] = {}
    for recording in recordings:
        if recording.run_id in names:
            raise SourceError(f"{recording.name} and {names[recording.run_id]} hold the same run; give it once")
        names[recording.run_id] = recording.name
        for cell in recording.cells:
            pool = found.setdefault((cell.identity, cell.provenance), Pool(cell))
            pool.trials += cell.trials
            if recording not in pool.recordings:
                pool.recordings.append(recording)
    return list(found.values())


def nearest_length(series: Sequence[Pool], actions: int) -> Pool:
    """The pool to project ``actions`` from: the shortest that is long enough, else the longest."""
    with_success = [pool for pool in series if any(trial.ok for trial in pool.trials)] or series
    longest = max(with_success, key=lambda pool: pool.identity.actions)
    long_enough = [pool for pool in with_success if pool.identity.actions >= actions]
    return min(long_enough, key=lambda pool: pool.identity.actions, default=longest)


def attempts(pool: Pool, actions: int, demand: Demand) -> list[Attempt]:
    """Every trial at this length, with the demand's think time and clean-up."""
    recorded = [at_length(trial, index, actions, pool.cycle) for index, trial in enumerate(pool.trials)]
    if demand.include_cleanup:
        cleanups = (trial.measures.cleanup_ns or 0 for trial in pool.trials)
        recorded = [a._replace(held_ns=a.held_ns + ns, cleanup_ns=ns) for a, ns in zip(recorded, cleanups, strict=True)]
    if demand.think is not None:
        recorded = _with_think(recorded, pool.trials, actions, demand.think)
    return recorded


def from_pool(recorded: Iterable[Attempt], hits: int) -> list[Attempt]:
    """Each attempt twice: as it is, and as it would be with a ready sandbox, for so many hits of ``HITS``."""
    mixed = []
    for attempt in recorded:
        weight = attempt.weight
        if hits:
            mixed.append(attempt.warm(weight * hits))
        if hits < HITS:
            mixed.append(attempt._replace(weight=weight * (HITS - hits)))
    return mixed


def killed_after(recorded: Iterable[Attempt], timeout_s: float) -> list[Attempt]:
    """Whatever would be held longer fails at that moment."""
    limit = round(timeout_s * 1e9)
    return [attempt if attempt.held_ns <= limit else _killed(attempt, limit) for attempt in recorded]


def at_length(trial: RecordedTrial, index: int, actions: int, cycle: int) -> Attempt:
    """The trial cut to its first ``actions``, or prolonged by repeating its own last whole cycle.

    Its own: a sandbox that started slowly tends to go on slowly, and that stays in the sample. A trial that failed
    after more than ``actions`` commands had gone well is a success at this length.
    """
    measured, recorded = trial.measures, len(trial.durations_ns)
    ok = trial.ok or recorded > actions
    if not ok:
        actions = recorded
    cut = min(actions, recorded)
    more = _Continuation(actions - cut, min(cycle, recorded))
    if cut == recorded:
        own, gap_ns, think_ns = trial.actions, trial.gap_ns, measured.think_ns
    else:
        own = Split.of(trial.durations_ns[:cut], trial.runs_ns[:cut])
        gap_ns, think_ns = sum(trial.gaps_ns[:cut]), sum(trial.thinks_ns[:cut])
    duration_ns = own.taken_ns + more.of(trial.durations_ns)
    gap_ns += more.of(trial.gaps_ns)
    think_ns += more.of(trial.thinks_ns)
    run_ns = own.work_ns + more.of(trial.runs_ns)
    longer_ns = gap_ns - trial.gap_ns
    change_ns = duration_ns - trial.actions.taken_ns + longer_ns + think_ns - measured.think_ns
    known = trial.setup.known and own.known
    return Attempt(
        trial=index,
        weight=1,
        ok=ok,
        held_ns=measured.held_ns + change_ns,
        think_ns=think_ns,
        queued_ns=measured.queued_ns,
        cold_ns=min(measured.cold_start_ns, measured.held_ns),
        startup_ns=measured.startup_ns,
        run_ns=trial.setup.work_ns + run_ns if known else UNKNOWN,
        dispatch_ns=trial.setup.dispatch_ns + duration_ns - run_ns if known else 0,
        harness_ns=measured.harness_ns + longer_ns,
        cleanup_ns=0,
        sandbox_ns=max(0, trial.sandbox_ns + change_ns) + (measured.cleanup_ns or 0),
        commands_ns=duration_ns + gap_ns + think_ns,
    )


class _Continuation(NamedTuple):
    """``extra`` more actions, taken from the last ``cycle`` recorded ones over and over."""

    extra: int
    cycle: int

    def of(self, column: Sequence[int]) -> int:
        if not self.extra or not len(column):
            return 0
        last = column[len(column) - self.cycle :]
        whole, rest = divmod(self.extra, self.cycle)
        return whole * sum(last) + sum(last[:rest])


def _killed(attempt: Attempt, limit_ns: int) -> Attempt:
    """The attempt, had it been killed after ``limit_ns``: a failure, of which only the time it held counts."""
    saved = attempt.held_ns - limit_ns
    return attempt._replace(
        ok=False,
        held_ns=limit_ns,
        cold_ns=min(attempt.cold_ns, limit_ns),
        sandbox_ns=max(0, attempt.sandbox_ns - saved),
    )


def _with_think(recorded: list[Attempt], trials: Sequence[RecordedTrial], actions: int, think: Think) -> list[Attempt]:
    """Each attempt with the demand's think time; one version for each stratum of its law where it is a distribution.

    There is a pause between two actions, as where it is recorded: one fewer than actions.
    """
    per_octave = 4 if len(recorded) <= MANY_TRIALS else 1
    thought = []
    for attempt in recorded:
        done = actions if attempt.ok else len(trials[attempt.trial].durations_ns)
        for weight, medians in strata_of_sum(max(0, done - 1), think.sigma, per_octave):
            new = round(medians * think.median_ns)
            change = new - attempt.think_ns
            thought.append(
                attempt._replace(
                    weight=weight,
                    think_ns=new,
                    held_ns=attempt.held_ns + change,
                    sandbox_ns=max(0, attempt.sandbox_ns + change),
                    commands_ns=attempt.commands_ns + change,
                )
            )
    return thought
