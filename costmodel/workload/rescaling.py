"""A recorded trial as it would have been elsewhere: another start, other dispatch, work at another speed."""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from costmodel.recording.breakdown import UNKNOWN, Measures, Split
from costmodel.recording.trial import RecordedTrial


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaking:
    """What becomes of a trial's parts. Times that are not named stay."""

    startup: Callable[[Measures], tuple[int, int, int]]  # create, ready and preload, in ns
    work: float = 1.0  # times as long; CPU time too
    dispatch: float = 1.0  # times as long, of commands whose run is known
    dispatches: Callable[[int], Sequence[int]] | None = None  # instead: of each of so many commands, in ns
    unsplit: float = 1.0  # times as long, of commands whose run is unknown
    unsplit_more_ns: int = 0  # ... and so much longer each
    harness: float = 1.0
    ends: bool = True  # clean-up and what a throttle imposed are the same; else they are not known, and none


def remade(trial: RecordedTrial, change: Remaking) -> RecordedTrial:
    """The same commands with the same think time, one of a success that is complete. Its marks are gone."""
    new, old = copy.copy(trial), trial.measures
    new.setup = _setup(trial, change)
    new.durations_ns, new.runs_ns = _commands(trial, change)
    new.actions = Split.of(new.durations_ns, new.runs_ns)
    new.gaps_ns = array("q", (round(gap * change.harness) for gap in trial.gaps_ns))
    new.gap_ns = sum(new.gaps_ns)
    harness_ns = round((old.harness_ns - trial.gap_ns) * change.harness) + new.gap_ns
    create_ns, ready_ns, preload_ns = change.startup(old)
    queued_ns = old.queued_ns if change.ends else 0
    commands = new.setup.plus(new.actions)
    held_ns = queued_ns + create_ns + ready_ns + preload_ns + commands.taken_ns + harness_ns + old.think_ns
    new.cpu_ns = None if trial.cpu_ns is None else round(trial.cpu_ns * change.work)
    new.measures = msgspec.structs.replace(
        old,
        create_ns=create_ns,
        ready_ns=ready_ns,
        preload_ns=preload_ns,
        setup_ns=old.setup_ns + new.setup.taken_ns - trial.setup.taken_ns,
        work_ns=commands.work_ns,
        dispatch_ns=commands.dispatch_ns,
        unsplit_ns=commands.unsplit_ns,
        harness_ns=harness_ns,
        queued_ns=queued_ns,
        held_ns=held_ns,
        ready_again_ns=None,
        cleanup_ns=old.cleanup_ns if change.ends else None,
        verify_ns=None,
        orchestration_ns=None,
        waiting_ns=None if old.waiting_ns is None else round(old.waiting_ns * change.work),
    )
    new.sandbox_ns = max(0, trial.sandbox_ns + held_ns - old.held_ns) if change.ends else held_ns
    new.end_ns = trial.start_ns + held_ns
    return new


def _setup(trial: RecordedTrial, change: Remaking) -> Split:
    own, dispatch = trial.setup, change.dispatch
    if change.dispatches is not None and trial.actions.dispatch_ns:
        # How many commands a set-up has is not kept: its dispatch changes as that of the actions does.
        others = change.dispatches(len(trial.durations_ns))
        dispatch = sum(others) / trial.actions.dispatch_ns
    return Split(
        round(own.work_ns * change.work),
        round(own.dispatch_ns * dispatch),
        round(own.unsplit_ns * change.unsplit),
        own.known,
    )


def _commands(trial: RecordedTrial, change: Remaking) -> tuple[array[int], array[int]]:
    durations, runs = array("q"), array("q")
    others = None if change.dispatches is None else change.dispatches(len(trial.durations_ns))
    for place, (taken_ns, run_ns) in enumerate(zip(trial.durations_ns, trial.runs_ns, strict=True)):
        if run_ns == UNKNOWN:
            durations.append(round(taken_ns * change.unsplit) + change.unsplit_more_ns)
            runs.append(UNKNOWN)
            continue
        own_ns = round(run_ns * change.work)
        dispatch_ns = round((taken_ns - run_ns) * change.dispatch) if others is None else others[place]
        durations.append(own_ns + dispatch_ns)
        runs.append(own_ns)
    return durations, runs
