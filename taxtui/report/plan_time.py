"""How long a plan is likely to take, from the recordings that there are; reading them is meant for another thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from costmodel import Follower, SourceError
from taxtui.live import catalogue
from taxtui.live.catalogue import CatalogueEntry
from taxtui.live.state import RunState
from taxtui.plan.spec import CellPlan, Plan, SubstrateRef
from taxtui.report.numbers import rough_duration

MOST_BYTES: Final = 64 << 20
"""Bytes of recordings that are read, the newest first."""

SLICE_BYTES: Final = 64 << 10
WHOLE: Final = ("0s", "create")
"""Think time and way to acquire of the cells that count: only these say how long a plain trial takes."""


class PastTrial(NamedTuple):
    """The mean trial of a recorded cell."""

    label: str  # substrate and variant: docker:runsc
    tier: str
    mode: str
    actions: float  # mean
    concurrency: int
    trial_ns: float  # mean, from the create request to the end of cleanup
    action_ns: float  # mean
    path: Path
    shipped: bool


class Table:
    """The recorded trials, those of newer recordings before those of older ones."""

    def __init__(self, trials: Iterable[PastTrial] = ()) -> None:
        """The first of equal cells is the one that counts."""
        self._cells: dict[tuple[str, str, str], dict[tuple[float, int], PastTrial]] = {}
        for trial in trials:
            same = self._cells.setdefault((trial.label, trial.tier, trial.mode), {})
            same.setdefault((trial.actions, trial.concurrency), trial)
        self._labels = list(dict.fromkeys(label for label, _, _ in self._cells))

    def label(self, ref: SubstrateRef, variant: str | None) -> str | None:
        """The label under which a substrate was recorded, None where it was not; ``variant`` is None if not known.

        Without a variant it is the newest label that tells of every option.
        """
        labels = [label for label in self._labels if label.partition(":")[0] == ref.name]
        if variant is not None:
            wanted = f"{ref.name}:{variant}" if variant else ref.name
            return wanted if wanted in labels else None
        said = {label: _words(label.partition(":")[2]) for label in labels}
        fitting = [label for label in labels if all(_named(key, ref.options[key], said[label]) for key in ref.options)]
        return next(iter(fitting), None)

    def trial(self, cell: CellPlan, label: str | None) -> PastTrial | None:
        """Return the closest recorded trial: the same concurrency, else 1, else any; then the closest length."""
        same = self._cells.get((label or "", cell.tier.name, cell.mode), {}).values()

        def distance(trial: PastTrial) -> tuple[int, float]:
            other = 0 if trial.concurrency == cell.concurrency else trial.concurrency
            return other, abs(trial.actions - cell.actions)

        return min(same, key=distance, default=None)


class Expected(NamedTuple):
    """The expected time of a planned cell; None where no recording has such a cell."""

    cell: CellPlan
    variant: str  # of the substrate, "" where it is not known
    trial: PastTrial | None
    trial_ns: float | None  # of one sandbox, as ``Trial.trial_ns``
    wall_ns: float | None  # of the whole cell


def expect(plan: Plan, table: Table, variants: Mapping[str, str]) -> list[Expected]:
    """Every cell of a plan beside what was recorded of it; ``variants`` by substrate, as ``-s`` takes it."""
    results = []
    for cell in plan.cells:
        told = variants.get(str(cell.substrate))
        label = table.label(cell.substrate, told)
        trial = table.trial(cell, label) if cell.acquire == WHOLE[1] else None
        variant = (label or "").partition(":")[2] if told is None else told
        if trial is None:
            results.append(Expected(cell, variant, None, None, None))
            continue
        think_ns = cell.actions * cell.think.mean_ns
        measured_ns = trial.trial_ns + (cell.actions - trial.actions) * trial.action_ns
        trial_ns = max(measured_ns, cell.actions * trial.action_ns) + think_ns
        results.append(Expected(cell, variant, trial, trial_ns, _wall_ns(cell, trial_ns)))
    return results


def _wall_ns(cell: CellPlan, trial_ns: float) -> float:
    """Warm-ups one after the other, then blocks of trials, each drained before the next, as the runner does it."""
    return cell.warmup * trial_ns + cell.arrival.wall_ns(cell.trials, cell.concurrency, trial_ns)


def time_words(plan: Plan, expected: Sequence[Expected]) -> str:
    """``~22 min, estimated from 2 recordings``, with what is not known and what a budget cuts."""
    known: dict[str, float] = {}
    for item in expected:
        if item.wall_ns is not None:
            name = str(item.cell.substrate)
            known[name] = known.get(name, 0.0) + item.wall_ns
    missing = _missing(expected)
    limit = f"at most {rough_duration(plan.budget_s * 1e9)}, the budget" if plan.budget_s else ""
    if not known:
        unknown = f"unknown for {missing}: no recording of it yet"
        return f"{limit}; {unknown}" if limit else unknown
    once_ns = max(known.values()) if plan.side_by_side else sum(known.values())
    total_ns = plan.repeat * once_ns + (plan.repeat - 1) * plan.gap_s * 1e9
    words = f"~{rough_duration(total_ns)}" + (f" + {missing} (not measured yet)" if missing else "")
    source = _source([item.trial for item in expected if item.trial])
    if plan.budget_s and (missing or total_ns > plan.budget_s * 1e9):
        return f"{limit} ({words} without it, {source})"
    return f"{words}, {source}"


def _source(trials: Sequence[PastTrial]) -> str:
    paths = {trial.path for trial in trials}
    shipped = "shipped " if all(trial.shipped for trial in trials) else ""
    return f"estimated from {len(paths)} {shipped}recording{'' if len(paths) == 1 else 's'}"


def _missing(expected: Sequence[Expected]) -> str:
    """Return the cells without a recording, as coarsely as is true: ``ec2``, ``docker T2``, ``docker T2 session``."""
    named: dict[str, None] = {}
    for item in expected:
        if item.wall_ns is None:
            words = [str(item.cell.substrate), item.cell.tier.name, item.cell.mode]
            depth = next(d for d in (1, 2, 3) if not any(_within(words[:d], e) for e in expected) or d == 3)
            named[" ".join(words[:depth])] = None
    shown = list(named)[:3]
    more = len(named) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _within(words: list[str], one: Expected) -> bool:
    """Whether a cell that was measured is one of those that the words name."""
    place = [str(one.cell.substrate), one.cell.tier.name, one.cell.mode]
    return one.wall_ns is not None and place[: len(words)] == words


def _words(variant: str) -> set[str]:
    return set(filter(None, re.split(r"[\s,=_]+", variant.lower())))


def _named(key: str, value: str, words: set[str]) -> bool:
    """Whether a variant tells of an option: by its value, or by its name where it is switched on."""
    return _words(value) <= words or (value.lower() in ("true", "1", "yes") and key.lower() in words)


def listing() -> Sequence[CatalogueEntry]:
    """The recordings of this machine, the newest first, then those that came with taxtui."""
    return catalogue.scan().entries


class HistoryReader:
    """Reads recordings into a table; what did not change since is not read again."""

    def __init__(self) -> None:
        self._read: dict[tuple[Path, tuple[int, int]], list[PastTrial]] = {}

    def table(self, stop: Callable[[], bool]) -> Table:
        """Return the table of the newest recordings, up to ``MOST_BYTES``; less where ``stop`` returns true."""
        left_bytes = MOST_BYTES
        trials: list[PastTrial] = []
        kept: dict[tuple[Path, tuple[int, int]], list[PastTrial]] = {}
        for entry in listing():
            if entry.state in catalogue.HOPELESS or entry.size_bytes > left_bytes:
                continue
            left_bytes -= entry.size_bytes
            key = entry.path, entry.stamp
            result = self._read.get(key)
            if result is None:
                result = _trials(entry, stop)
                if result is None:
                    break
            kept[key] = result
            trials += result
        self._read = self._read | kept if stop() else kept
        return Table(trials)


def _trials(entry: CatalogueEntry, stop: Callable[[], bool]) -> list[PastTrial] | None:
    """The cells of a recording, as far as it can be read; nothing of stand-ins. None: stopped on the way."""
    state = RunState()
    try:
        with Follower(entry.path) as follower:
            while events := follower.poll(SLICE_BYTES):
                if stop():
                    return None
                for event in events:
                    state.apply(event)
    except SourceError:
        pass  # what comes before the damage was measured all the same
    return [
        PastTrial(
            label=cell.label,
            tier=cell.tier,
            mode=cell.mode,
            actions=cell.mean_actions,
            concurrency=cell.concurrency,
            trial_ns=cell.trial_ns,
            action_ns=cell.facets["action"].mean,
            path=entry.path,
            shipped=entry.shipped,
        )
        for cell in state.cells.values()
        if cell.ok and cell.trial_ns and cell.provenance == "measured" and (cell.think, cell.acquire) == WHOLE
    ]
