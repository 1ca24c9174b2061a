"""Write imported trials as an ordinary recording: a measurement's events, in the order of time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from costmodel import causes, events
from taxtui import __version__
from taxtui.importers.spool import CellFacts, Spool
from taxtui.importers.timeline import AFTERWARDS
from taxtui.importers.trial import ImportedAction, ImportedTrial
from taxtui.recording import digest
from taxtui.recording.writer import Recorder

PROVENANCE: Final = "imported"
MISSING: Final = "unknown:"
"""Prefix of a cell's capability: a quantity that every successful trial lacks."""
UNKNOWN: Final = "unknown"
MAX_ROWS: Final = 8192
"""Commands of an event: any values fit a frame."""


class Provenance(NamedTuple):
    """How the trials of a recording were measured, and by which software."""

    provenance: str
    software: Mapping[str, str]
    environment: str  # digest of the measuring machine and versions
    bracket: str = "none"  # how in-sandbox time was taken
    mode: str = UNKNOWN


def write(spool: Spool, name: str, notes: Sequence[str], out: Path, origin: Provenance | None = None) -> None:
    """Write a new recording of all trials in the spool.

    ``name`` is the format, ``notes`` are printed as notices. Without an ``origin`` the trials are imported.

    Raises:
        UsageError: ``out`` exists or cannot be created.
        WriteFailed: the disk is full. After any error there is no ``out``.
    """
    if origin is None:
        origin = Provenance(PROVENANCE, {"taxtui": __version__, "imported": name}, digest(PROVENANCE))
    anchor_ns = spool.anchor_ns
    begun = datetime.fromtimestamp(anchor_ns // 10**9, UTC)
    run_id = f"{begun:%Y%m%dt%H%M%Sz}-{spool.content[:8]}"
    spool.count_in_flight()
    cells = [_cell(name, facts, origin) for facts in spool.cells.values()]
    counts = [facts.trials for facts in spool.cells.values()]
    recorder = Recorder(out)
    try:
        with recorder:
            scenario = {"name": f"{origin.provenance} {name}", "cells": list(map(_plan, cells, counts))}
            recorder.add(events.Header(events.MAGIC, events.FORMAT_VERSION, run_id, scenario, dict(origin.software)))
            recorder.add(events.Clock(0, 0, anchor_ns, digest(origin.provenance, name)))
            for cell in cells:
                recorder.add(cell)
            for note in notes:
                recorder.add(events.Notice(0, "info", note))
            for event in _in_order(spool, origin):
                recorder.add(event)
            recorder.add(events.RunFinished("finished", dict(spool.outcomes)))
    except BaseException:
        out.unlink(missing_ok=True)
        raise


def _in_order(spool: Spool, origin: Provenance) -> Iterator[events.Event]:
    """Yield the events of all trials by time. Memory: the later events of trials in flight."""
    waiting: list[tuple[int, int, events.Event]] = []  # a heap of instant, order, event
    order = count()
    for number, (trial, cell, offset_ns) in enumerate(spool.ordered()):
        while waiting and waiting[0][0] <= trial.start_ns - offset_ns:
            yield heapq.heappop(waiting)[2]
        for at_ns, event in _events(number, trial, cell, offset_ns, f"{origin.provenance}-{number}"):
            heapq.heappush(waiting, (at_ns, next(order), event))
    while waiting:
        yield heapq.heappop(waiting)[2]


def _events(
    number: int, trial: ImportedTrial, cell: int, offset_ns: int, sandbox: str
) -> Iterator[tuple[int, events.Event]]:
    """Yield the events of a trial, each with an instant."""
    start_ns, end_ns = trial.start_ns - offset_ns, trial.end_ns - offset_ns
    yield (
        start_ns,
        events.TrialStarted(
            trial=number,
            cell=cell,
            sandbox=sandbox,
            scheduled_ns=start_ns,
            start_ns=start_ns,
            attempt=trial.attempt,
            task=trial.task,
            image=trial.image,
            image_bytes=trial.image_bytes,
            group=trial.group,
            training_step=trial.training_step,
        ),
    )
    if trial.image_cached is not None:
        name = events.IMAGE_CACHED if trial.image_cached else events.IMAGE_BUILT
        yield start_ns, events.Mark(number, name, start_ns, trial.resolution_ns)
    if trial.borrowed:
        yield start_ns, events.Mark(number, events.BORROWED, start_ns, trial.resolution_ns)
    for phase in trial.phases:
        if phase.name not in AFTERWARDS:
            at_ns = phase.start_ns + phase.duration_ns - offset_ns
            if phase.name == events.PRELOAD:
                yield from _commands(number, events.PRELOAD, trial.preload, at_ns)
            yield at_ns, events.PhaseEnded(number, phase.name, phase.start_ns - offset_ns, phase.duration_ns)
    yield from _commands(number, events.ACTION, trial.actions, end_ns)
    freed_ns = end_ns
    for phase in trial.phases:
        if phase.name in AFTERWARDS:
            freed_ns = max(freed_ns, phase.start_ns + phase.duration_ns - offset_ns)
            yield freed_ns, events.PhaseEnded(number, phase.name, phase.start_ns - offset_ns, phase.duration_ns)
    outcome, where, error, cause = events.OK, "", trial.limit, causes.cause_of(trial.limit) if trial.limit else ""
    if trial.failure is not None:
        error, where, outcome, cause = trial.failure
    yield freed_ns, events.TrialEnded(number, outcome, where, error, "", end_ns, 0, UNKNOWN, trial.node, cause)


def _commands(
    number: int, step: str, commands: Sequence[ImportedAction], at_ns: int
) -> Iterator[tuple[int, events.Event]]:
    for first in range(0, len(commands), MAX_ROWS):
        rows = commands[first : first + MAX_ROWS]
        yield (
            at_ns,
            events.Actions(
                trial=number,
                step=step,
                first=first,
                gap_ns=events.sparse([row.gap_ns for row in rows]),
                think_ns=events.sparse([row.think_ns for row in rows]),
                duration_ns=[row.duration_ns for row in rows],
                run_ns=events.sparse([row.run_ns for row in rows]),
                exit_code=events.sparse([row.exit_code for row in rows]),
                stdout_bytes=[],
                stderr_bytes=[],
            ),
        )


def _cell(name: str, cell: CellFacts, origin: Provenance) -> events.Cell:
    kind = cell.first
    return events.Cell(
        id=cell.number,
        substrate=kind.substrate,
        variant=kind.variant,
        tier=name,
        tier_digest=digest(name, *kind.workload),
        actions=0,
        mode=origin.mode,
        concurrency=cell.concurrency,
        arrival=kind.arrival or "closed",
        think=events.RECORDED_LENGTH,
        acquire="create",
        cache=UNKNOWN,
        cpu_milli=kind.cpu_milli,
        memory_mib=kind.memory_mib,
        network=UNKNOWN,
        image="",
        environment=origin.environment,
        substrate_version=kind.substrate_version,
        cycle=1,
        bracket=origin.bracket,
        bracket_cost_ns=events.UNKNOWN,
        preload="none",
        limits=UNKNOWN,
        provenance=origin.provenance,
        capabilities=tuple(MISSING + quantity for quantity in cell.missing),
        length=events.RECORDED_LENGTH,
        resolution_ns=cell.resolution_ns,
    )


def _plan(cell: events.Cell, trials: int) -> dict[str, Any]:
    """Return the part of a cell's plan for the live screen."""
    keys = ("actions", "mode", "concurrency", "arrival", "think", "acquire")
    return {
        "substrate": {"name": cell.substrate, "options": {}},
        "tier": {"name": cell.tier, "digest": cell.tier_digest},
        **{key: getattr(cell, key) for key in keys},
        "trials": trials,
        "warmup": 0,
    }
