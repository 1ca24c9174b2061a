"""Recorded trials, as objects and as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from costmodel.recording.breakdown import NO_COMMANDS, NOTHING, UNKNOWN, Measures, Split
from costmodel.statistics.repetitions import Origin, RunKey

if TYPE_CHECKING:
    _Column = array[int]
else:
    _Column = array  # which takes no parameter at run time

_EMPTY: Final = msgspec.field(default_factory=lambda: array("q"))


class RecordedTrial(msgspec.Struct, eq=False, gc=False):
    """A counted trial: a success, a failure or a timeout. Durations are int ns."""

    run: RunKey
    block: int
    start_ns: int = 0
    worker: int = 0  # clock of the instants
    end_ns: int = 0
    freed_ns: int = 0  # after the clean-up: the slot is free
    exposed: float = 0.0  # share of the trial in bad seconds of the measuring process
    ok: bool = False
    failed_in: str = ""  # phase of the failure
    error: str = ""
    cause: str = ""  # as in costmodel.recording.causes; "": no failure
    image_cached: bool | None = None  # whether the image existed at the create request; None: unknown
    borrowed: bool = False  # another trial's sandbox
    group: str = ""  # rollouts of one prompt; "": unknown
    complete: bool = True  # no gap between the actions
    measures: Measures = NOTHING  # of the trial at its recorded length
    cpu_ns: int | None = None  # of set-up and actions; None: unknown
    sandbox_ns: int = 0  # the provider's clock: accepted create request to end, clean-up apart
    setup: Split = NO_COMMANDS  # the set-up's commands
    actions: Split = NO_COMMANDS
    gap_ns: int = 0  # harness time before actions
    durations_ns: _Column = _EMPTY  # per action
    gaps_ns: _Column = _EMPTY  # per action: harness time before it; empty where all are 0
    thinks_ns: _Column = _EMPTY  # per action; empty where all are 0
    runs_ns: _Column = _EMPTY  # per action: inside the sandbox, or UNKNOWN
    wrappers_ns: _Column = _EMPTY  # per action: wrapper time, 0 where unknown; empty where all are 0


_WIDTHS: Final = {"b": 7, "i": 31, "q": 63}
"""Array code → usable bits: most columns are small."""


class TrialColumns(NamedTuple):
    """Trials at their recorded length as columns, in int ns unless noted."""

    origins: list[tuple[Origin, int]]  # (run, block) and number of consecutive trials
    consistent: bool  # measures equal the sums of the commands in every trial
    exposed: Sequence[float]  # shares
    ok: Sequence[int]  # 1 or 0
    actions: Sequence[int]  # how many
    held_ns: Sequence[int]
    think_ns: Sequence[int]
    queued_ns: Sequence[int]
    cold_ns: Sequence[int]  # create and ready, not more than held
    startup_ns: Sequence[int]
    run_ns: Sequence[int]  # inside the sandbox, set-up included, or UNKNOWN
    cpu_ns: Sequence[int]  # used CPU time, or UNKNOWN
    dispatch_ns: Sequence[int]  # 0 where the run is unknown
    wrapper_ns: Sequence[int]  # 0 where it or the run is unknown
    unsplit_ns: Sequence[int]  # 0 where it is known
    harness_ns: Sequence[int]
    cleanup_ns: Sequence[int]  # or UNKNOWN
    sandbox_ns: Sequence[int]  # the provider's clock, clean-up included
    commands_ns: Sequence[int]  # actions, gaps and think time
    waiting_ns: Sequence[int]  # or UNKNOWN

    @property
    def runs(self) -> set[RunKey]:
        return {run for (run, _), _ in self.origins}

    @classmethod
    def of(cls, trials: Sequence[RecordedTrial]) -> TrialColumns:
        """Take the columns from trials at their recorded length."""
        measures = [trial.measures for trial in trials]
        setups, actions = [trial.setup for trial in trials], [trial.actions for trial in trials]
        splits = list(zip(setups, actions, strict=True))
        run_known = [setup.known and measure.known for setup, measure in splits]
        work = [setup.work_ns + measure.work_ns for setup, measure in splits]
        taken_ns = [measure.taken_ns for measure in actions]
        cleanups = [measure.cleanup_ns for measure in measures]
        cpus = [trial.cpu_ns if is_known else None for trial, is_known in zip(trials, run_known, strict=True)]
        keys = [(trial.run, trial.block) for trial in trials]
        return cls(
            [(origin, len(list(same))) for origin, same in groupby(keys)],
            work == [measure.work_ns for measure in measures],
            array("d", [trial.exposed for trial in trials]),
            array("b", [trial.ok for trial in trials]),
            *map(
                _packed,
                (
                    [len(trial.durations_ns) for trial in trials],
                    [measure.held_ns for measure in measures],
                    [measure.think_ns for measure in measures],
                    [measure.queued_ns for measure in measures],
                    [min(measure.create_ns + measure.ready_ns, measure.held_ns) for measure in measures],
                    [measure.startup_ns for measure in measures],
                    [ns if is_known else UNKNOWN for ns, is_known in zip(work, run_known, strict=True)],
                    [UNKNOWN if cpu is None else cpu for cpu in cpus],
                    [
                        setup.dispatch_ns + measure.dispatch_ns if is_known else 0
                        for (setup, measure), is_known in zip(splits, run_known, strict=True)
                    ],
                    [
                        setup.wrapper_ns + measure.wrapper_ns if is_known else 0
                        for (setup, measure), is_known in zip(splits, run_known, strict=True)
                    ],
                    [
                        0 if is_known else setup.taken_ns + ns
                        for setup, ns, is_known in zip(setups, taken_ns, run_known, strict=True)
                    ],
                    [measure.harness_ns for measure in measures],
                    [UNKNOWN if cleanup is None else cleanup for cleanup in cleanups],
                    [
                        max(0, trial.sandbox_ns) + (cleanup or 0)
                        for trial, cleanup in zip(trials, cleanups, strict=True)
                    ],
                    [ns + trial.gap_ns + trial.measures.think_ns for trial, ns in zip(trials, taken_ns, strict=True)],
                    [UNKNOWN if measure.waiting_ns is None else measure.waiting_ns for measure in measures],
                ),
            ),
        )


def _packed(values: list[int]) -> Sequence[int]:
    """Return the narrowest array that holds the values; a list where a sum of durations exceeds 64 bits."""
    lowest, highest = min(values, default=0), max(values, default=0)
    fits = (code for code, bits in _WIDTHS.items() if -(1 << bits) <= lowest and highest < 1 << bits)
    return values if (code := next(fits, None)) is None else array(code, values)


def origins_of(trials: Iterable[RecordedTrial]) -> list[Origin]:
    """Return run and block of each trial."""
    return [(trial.run, trial.block) for trial in trials]
