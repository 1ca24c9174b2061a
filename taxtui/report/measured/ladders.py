"""Concurrency sweeps: throughput at each concurrency and the saturation point, for ``--table ladder``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from costmodel import Interval, concurrency_sweep
from taxtui.report import variation
from taxtui.report.cells import CellGroup, Content, TableCell, amount_cell, duration_cell
from taxtui.report.formats import Section
from taxtui.report.formats.json_rows import plain
from taxtui.report.measured.rows import PROVENANCES, MeasuredRow
from taxtui.report.numbers import CLOSED_LOOP, COUNT, NOTHING, NS, SHARE, number, span
from taxtui.terminal_text import clean

LADDER: Final = "ladder"
_HEAD: Final = (
    *("at a\ntime", "n\nfailed", "trials/s\n", "actions/s\n", "action\np50", "action\np95", "completion\nmean"),
    "runner CPU\nlag p50",
)
NONE: Final = "no cell was measured at two levels of concurrency with all slots busy"


def ladders_of(rows: Sequence[MeasuredRow]) -> list[concurrency_sweep.Ladder]:
    """Return the concurrency sweeps of the cells of these rows."""
    run_sd = next((row.assume.sd for row in rows if row.assume.by_user), None)
    return concurrency_sweep.ladders((row.cell for row in rows), run_sd)


def sections(ladders: Sequence[concurrency_sweep.Ladder]) -> list[Section]:
    """Return a table per sweep, with a line per concurrency and the saturation point below."""
    if not ladders:
        return [Section("", [], [], [f"{NONE}; measure one: taxtui run --ladder 1:64"])]
    tables = []
    for ladder in ladders:
        lines = [_line(level) for level in ladder.levels]
        tables.append(Section(f"Ladder: {title(ladder)}", list(_HEAD), lines, [in_words(ladder)]))
    how = (
        "trials/s: successes per second with all slots busy: slots x successes / time in the slots. actions/s: actions "
        "of the successes, so create and clean-up reduce the rate. "
        f"{variation.in_words(level.basis for ladder in ladders for level in ladder.levels)} {CLOSED_LOOP}."
    )
    return [*tables[:-1], tables[-1]._replace(notes=[*tables[-1].notes, how])]


def title(ladder: concurrency_sweep.Ladder) -> str:
    """Return ``docker:runc T0 x 50 exec``."""
    pool = ladder.pools[0]
    label = f"{PROVENANCES.get(pool.provenance, '')} {pool.identity.label}".strip()
    return clean(f"{label} {pool.identity.tier} x {pool.length} {pool.identity.mode}")


def in_words(ladder: concurrency_sweep.Ladder) -> str:
    """Return the saturation point and the limit behind it."""
    knee, last = ladder.knee, ladder.levels[-1]
    within = f"completion surely within {concurrency_sweep.WITHIN:g}x of the first level"
    if knee.at is None:
        return f"knee: {knee.why}; most {_with_limits(knee.throughput_per_s)} trials/s, with a {within}"
    limited_by = {concurrency_sweep.RUNNER: "the runner's, ", concurrency_sweep.SUBSTRATE: "the substrate's: "}.get(
        knee.whose, "the limit is unknown: "
    )
    more = f" x {last.actions_per_s.value / last.throughput_per_s.value:.4g} actions"
    return (
        f"knee: {knee.at:,} at a time, the last level with a {within}, at {_with_limits(knee.throughput_per_s)} "
        f"trials/s{more}; {limited_by}{knee.why}"
    )


def _with_limits(interval: Interval) -> str:
    limits = span(interval)
    return f"{number(interval.value)} ({limits})" if limits else number(interval.value)


def _line(level: concurrency_sweep.LadderLevel) -> list[Content]:
    load = level.runner
    busy: Content = NOTHING
    if load is not None:
        busy = CellGroup((TableCell(load.cpu_permille / 1000, SHARE), TableCell(load.lag_p50_ns, NS)), below=True)
    return [
        f"{level.concurrency:,}\n",
        CellGroup((TableCell(level.trials, COUNT), TableCell(level.failures, COUNT)), below=True),
        amount_cell(level.throughput_per_s),
        amount_cell(level.actions_per_s),
        *(duration_cell(ns) for ns in (level.action_p50_ns, level.action_p95_ns, level.completion_ns)),
        busy,
    ]


def records(ladders: Sequence[concurrency_sweep.Ladder]) -> list[dict[str, Any]]:
    """Return a mapping per concurrency, with the saturation point of its sweep; ns and per s."""
    return [_record(ladder, place) for ladder in ladders for place in range(len(ladder.levels))]


def _record(ladder: concurrency_sweep.Ladder, place: int) -> dict[str, Any]:
    level, pool = ladder.levels[place], ladder.pools[place]
    load = dict.fromkeys(("seconds", "cpu_permille", "lag_p50_ns", "lag_p99_ns", "waits"))
    return {
        "cell_id": pool.identity.cell_id,
        **pool.identity._asdict(),
        "provenance": pool.provenance,
        "recordings": pool.sources,
        **plain(level),
        "runner": plain(level.runner) or load,
        "knee": plain(ladder.knee),
    }
