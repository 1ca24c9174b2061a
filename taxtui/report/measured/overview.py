"""Summary of each cell in the terms of runtime benchmarks: delivered share, hazard, boot, set-up, lifetime, cost.

The quantities are those of PrimeIntellect's ``benchmarks/runtimes`` (verifiers #1593), with intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from costmodel import (
    FIXED_LENGTH,
    NS_PER_HOUR,
    Interval,
    PriceError,
    Prices,
    RecordedTrial,
    causes,
    characterization,
    mean_interval,
)
from taxtui.report.cells import Content, RowName, TableCell, amount_cell, percentile_cell
from taxtui.report.formats import Section
from taxtui.report.formats.json_rows import plain
from taxtui.report.measured.rows import HELD, MeasuredRow
from taxtui.report.measured.samples import Column, DurationSummary, summarize
from taxtui.report.numbers import COUNT, DOLLARS, NS, SHARE

SUMMARY: Final = "summary"
INSTANTS: Final = "instants"
_QUANTITIES: Final[dict[str, Callable[[RecordedTrial], int | None]]] = {
    "boot, image cached": lambda trial: _boot(trial) if trial.image_cached is True else None,
    "boot, image built": lambda trial: _boot(trial) if trial.image_cached is False else None,
    "boot": lambda trial: _boot(trial) if trial.image_cached is None else None,
    "preload": lambda trial: trial.measures.preload_ns or None,
    "set-up": lambda trial: trial.measures.setup_ns or None,
    "dispatch": lambda trial: trial.measures.dispatch_ns if trial.measures.divided and trial.durations_ns else None,
    "removal": lambda trial: trial.measures.cleanup_ns or None,
    "verification": lambda trial: trial.measures.verify_ns or None,
    "wall": lambda trial: max(0, trial.freed_ns - trial.start_ns),
}
"""Quantity → value of a delivered trial in ns; None: unknown, or no such trial."""
_KEYS: Final = {
    "boot, image cached": "boot_cached_ns",
    "boot, image built": "boot_built_ns",
    "set-up": "setup_ns",
    "verification": "verify_ns",
}
"""Quantity → key in JSON, if not the name with ``_ns``."""
NOTES: Final = [
    "boot: create and ready, without borrowed sandboxes. built: the sandbox waited for the first build of its image. "
    "preload: files of a tier, or the set-up of Harbor's agent. dispatch: of set-up and actions.",
    "wall: from the create request to the end of clean-up or verification, of delivered trials.",
    "sandbox lifetime: sum over all trials, failures included, with the interval of a repeated sample of equal size. "
    "Intervals: order statistics for percentiles, Wilson's for shares, Poisson's for a hazard.",
]


def _boot(trial: RecordedTrial) -> int | None:
    return None if trial.borrowed else trial.measures.create_ns + trial.measures.ready_ns or None


def quantities(row: MeasuredRow) -> dict[str, DurationSummary]:
    """Return the known durations of a cell's delivered trials."""
    summaries = {}
    for name, value in _QUANTITIES.items():
        column, origins = Column(), []
        for trial in row.good:
            ns = value(trial)
            column.add([] if ns is None else [ns])
            origins.append((trial.run, trial.block))
        if (summary := summarize(column, origins, row.assume)) is not None and not (name == "wall" and _unheld(row)):
            summaries[name] = summary
    return summaries


def lifetime_h(row: MeasuredRow) -> Interval | None:
    """Return the hours of all sandboxes of a cell; None if the time of trials is unknown."""
    return None if _unheld(row) else _sum([_lived_ns(trial) / NS_PER_HOUR for trial in row.cell.trials], row)


def job_wall_ns(row: MeasuredRow) -> int | None:
    """Return the time from the first create request to the last end of an imported job.

    None for trials of several runs or without dates, and for taxtui's own measurements, which interleave cells.
    """
    trials = row.cell.trials
    if (
        row.identity.length == FIXED_LENGTH
        or INSTANTS in row.cell.unreported
        or len({(trial.run, trial.worker) for trial in trials}) > 1
    ):
        return None
    return max(trial.freed_ns for trial in trials) - min(trial.start_ns for trial in trials)


def cost_usd(row: MeasuredRow, prices: Prices | None) -> tuple[Interval | None, str]:
    """Return the cost of all sandboxes of a cell by a price sheet, or None and the reason."""
    if prices is None:
        return None, "--prices SHEET"
    if _unheld(row) or not row.identity.cpu_milli or not row.identity.memory_mib:
        return None, "the size of the sandbox or its time is unknown"
    try:
        price = prices.sandbox(row.identity)
    except PriceError as error:
        return None, str(error).partition("\n")[0]
    costs = [float(price.usd(row.identity, _lived_ns(trial), trial.cpu_ns)) for trial in row.cell.trials]
    return _sum(costs, row), ""


def failure_hazard(row: MeasuredRow) -> Interval | None:
    """Return the failures of sandboxes in an hour of a sandbox's life; None if the time is unknown."""
    if _unheld(row):
        return None
    trials = row.cell.trials
    events = [int(trial.cause == causes.SANDBOX and not trial.ok) for trial in trials]
    return characterization.hazard(events, [_lived_ns(trial) / NS_PER_HOUR for trial in trials], _clusters(row))


def sections(names: Mapping[MeasuredRow, Content], prices: Prices | None = None) -> list[Section]:
    """Return a table per cell, with a line per quantity; the last table has the notes for all."""
    tables = [_section(row, name, prices) for row, name in names.items()]
    return [*tables[:-1], tables[-1]._replace(notes=[*NOTES, *tables[-1].notes])]


def _section(row: MeasuredRow, name: Content, prices: Prices | None) -> Section:
    low, high = 1 - (row.failures.high or 0.0), 1 - (row.failures.low or 0.0)
    trials = TableCell(len(row.cell.trials), COUNT)
    failed = sum(trial.cause == causes.SANDBOX and not trial.ok for trial in row.cell.trials)
    lines: list[list[Content]] = [
        ["delivered", trials, TableCell(1 - row.failures.value, SHARE, low, high), "", ""],
        ["sandbox failures per hour", TableCell(failed, COUNT), amount_cell(failure_hazard(row)), "", ""],
    ]
    for quantity, summary in quantities(row).items():
        percentiles = map(percentile_cell, (summary.p50, summary.p95))
        lines.append([quantity, TableCell(summary.n, COUNT), amount_cell(summary.mean, NS), *percentiles])
    if (job_ns := job_wall_ns(row)) is not None:
        lines.append(["job, first to last", trials, TableCell(job_ns, NS), "", ""])
    cost, reason = cost_usd(row, prices)
    lines.append(["sandbox lifetime, hours", trials, amount_cell(lifetime_h(row)), "", ""])
    lines.append(["cost, $", trials, amount_cell(cost, DOLLARS), "", ""])
    notes = [f"cost, $: {reason}."] if reason else []
    title = f"{name.label}, {name.details}" if isinstance(name, RowName) else str(name).replace("\n", ", ")
    return Section(
        f"Summary of {title}", ["quantity\n", "n\n", "mean, share\nor total", "p50\n", "p95\n"], lines, notes
    )


def record(row: MeasuredRow, prices: Prices | None = None) -> dict[str, Any]:
    """Return the summary as plain data, with the same keys in every row."""
    amounts: dict[str, Any] = {_KEYS.get(name, f"{name}_ns"): None for name in _QUANTITIES}
    for name, item in quantities(row).items():
        fields = {"n": item.n, "p50": item.p50, "p95": item.p95, "mean": item.mean}
        amounts[_KEYS.get(name, f"{name}_ns")] = plain(fields)
    totals = {
        "sandbox_failures_per_hour": plain(failure_hazard(row)),
        "sandbox_lifetime_hours": plain(lifetime_h(row)),
        "job_wall_ns": job_wall_ns(row),
        "cost_usd": plain(cost_usd(row, prices)[0]),
    }
    return {SUMMARY: amounts | totals}


def _unheld(row: MeasuredRow) -> bool:
    return HELD in row.cell.unreported


def _lived_ns(trial: RecordedTrial) -> int:
    """Return the life of a sandbox, verification and clean-up included; 0 for a borrowed sandbox."""
    return 0 if trial.borrowed else max(0, trial.sandbox_ns) + max(0, trial.freed_ns - trial.end_ns)


def _clusters(row: MeasuredRow) -> list[Hashable]:
    return [trial.group or index for index, trial in enumerate(row.cell.trials)]


def _sum(values: Sequence[float], row: MeasuredRow) -> Interval:
    """Return the sum of a sample, with the interval of the mean times the number of trials."""
    mean, count = mean_interval(values, _clusters(row)), len(values)
    return Interval(math.fsum(values), *(None if limit is None else max(0.0, limit * count) for limit in mean[1:]))
