"""Summary of each cell as runtime benchmarks print it: delivered share, hazard, boot, set-up, lifetime, cost.

The quantities are those of PrimeIntellect's ``benchmarks/runtimes`` (verifiers #1593), with intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from costmodel import (
    FIXED_LENGTH,
    NS_PER_HOUR,
    SANDBOX,
    Interval,
    PriceError,
    Prices,
    RecordedTrial,
    characterization,
    mean_interval,
    ratio_interval,
)
from taxtui.report.cells import Content, RowName, TableCell
from taxtui.report.formats import Section
from taxtui.report.measured.rows import HELD, MeasuredRow
from taxtui.report.measured.samples import Column
from taxtui.report.measured.summary import DurationSummary, summarize
from taxtui.report.numbers import NOTHING, number, percent, usd

SUMMARY: Final = "summary"
INSTANTS: Final = "instants"
_QUANTITIES: Final[dict[str, Callable[[RecordedTrial], int | None]]] = {
    "boot, image cached": lambda one: _boot(one) if one.image_cached is True else None,
    "boot, image built": lambda one: _boot(one) if one.image_cached is False else None,
    "boot": lambda one: _boot(one) if one.image_cached is None else None,
    "set-up": lambda one: one.measures.preload_ns + one.measures.setup_ns or None,
    "dispatch": lambda one: one.measures.dispatch_ns if one.measures.divided and one.durations_ns else None,
    "removal": lambda one: one.measures.cleanup_ns or None,
    "verification": lambda one: one.measures.verify_ns or None,
    "wall": lambda one: max(0, one.freed_ns - one.start_ns),
}
"""Quantity → its value for a delivered trial in ns; None: unknown, or not of this trial."""
_KEYS: Final = {
    "boot, image cached": "boot_cached_ns",
    "boot, image built": "boot_built_ns",
    "set-up": "setup_ns",
    "verification": "verify_ns",
}
"""Quantity → its key in JSON; of others the name with ``_ns``."""
NOTES: Final = [
    "boot: create and ready; a borrowed sandbox has none. built: the image was built while the sandbox waited, its "
    "first use. share: of the occupied time, to the last action's end. dispatch: of set-up and actions.",
    "wall: from the create request to the end of clean-up or verification, of delivered trials.",
    "sandbox lifetime: sum over all trials, failed ones too; its interval is that of another sample of as many trials. "
    "Intervals: order statistics for percentiles, Wilson's for shares, Poisson's for a hazard.",
]


class Total(NamedTuple):
    """A sum over all trials; None: unknown."""

    amount: Interval | None
    why: str = ""  # it is unknown


def _boot(trial: RecordedTrial) -> int | None:
    return None if trial.borrowed else trial.measures.create_ns + trial.measures.ready_ns or None


def quantities(row: MeasuredRow) -> dict[str, DurationSummary]:
    """Durations of delivered trials that a cell has."""
    found = {}
    for name, value in _QUANTITIES.items():
        column, origins = Column(), []
        for trial in row.good:
            ns = value(trial)
            column.add([] if ns is None else [ns])
            origins.append((trial.run, trial.block))
        if (summary := summarize(column, origins, row.assume)) is not None and not (name == "wall" and _unheld(row)):
            found[name] = summary
    return found


def lifetime_h(row: MeasuredRow) -> Total:
    """Hours of all sandboxes of a cell."""
    if _unheld(row):
        return Total(None, "the time of trials is unknown")
    return Total(_sum([_lived_ns(trial) / NS_PER_HOUR for trial in row.cell.trials], row))


def job_wall_ns(row: MeasuredRow) -> int | None:
    """From the first create request to the last end of a job; None for trials of several runs, or without dates.

    taxtui's own measurements interleave cells, so that they have no such time.
    """
    trials = row.cell.trials
    if (
        row.identity.length == FIXED_LENGTH
        or INSTANTS in row.cell.unreported
        or len({(trial.run, trial.worker) for trial in trials}) > 1
    ):
        return None
    return max(trial.freed_ns for trial in trials) - min(trial.start_ns for trial in trials)


def cost_usd(row: MeasuredRow, prices: Prices | None) -> Total:
    """Cost of all sandboxes of a cell by a price sheet."""
    if prices is None:
        return Total(None, "--prices SHEET")
    if _unheld(row) or not row.identity.cpu_milli or not row.identity.memory_mib:
        return Total(None, "the size of the sandbox or its time is unknown")
    try:
        price = prices.sandbox(row.identity)
    except PriceError as error:
        return Total(None, str(error).partition("\n")[0])
    return Total(_sum([float(price.usd(row.identity, _lived_ns(one), one.cpu_ns)) for one in row.cell.trials], row))


def failure_hazard(row: MeasuredRow) -> Interval | None:
    """Failures of sandboxes in an hour of a sandbox's life."""
    if _unheld(row):
        return None
    trials = row.cell.trials
    events = [int(trial.cause == SANDBOX and not trial.ok) for trial in trials]
    return characterization.hazard(events, [_lived_ns(trial) / NS_PER_HOUR for trial in trials], _clusters(row))


def setup_share(row: MeasuredRow) -> Interval | None:
    """Boot and set-up as a share of occupied time, of delivered trials; None where a time is unknown."""
    held = [trial.measures.held_ns for trial in row.good]
    if _unheld(row) or {"create", "cold_start"} & row.untold or not sum(held):
        return None
    before = [(_boot(trial) or 0) + trial.measures.preload_ns + trial.measures.setup_ns for trial in row.good]
    return ratio_interval(before, held, [trial.group or index for index, trial in enumerate(row.good)])


def sections(names: Mapping[MeasuredRow, Content], prices: Prices | None = None) -> list[Section]:
    """A table per cell: a line per quantity."""
    return [_section(row, name, prices) for row, name in names.items()]


def _section(row: MeasuredRow, name: Content, prices: Prices | None) -> Section:
    delivered = 1 - row.failures.value
    low, high = 1 - (row.failures.high or 0.0), 1 - (row.failures.low or 0.0)
    share = f"{percent(delivered)}\n{percent(low)} … {percent(high)}"
    failed = sum(trial.cause == SANDBOX and not trial.ok for trial in row.cell.trials)
    risk = failure_hazard(row)
    lines: list[list[Content]] = [
        ["delivered", TableCell(len(row.cell.trials), "n"), share, "", ""],
        ["sandbox failures per hour", TableCell(failed, "n"), _ranged(risk, lambda value: f"{value:.3g}"), "", ""],
    ]
    for quantity, summary in quantities(row).items():
        percentiles = [
            f"needs\nn≥{one.needs:,}" if one.value is None else TableCell(one.value, "ns", one.low, one.high)
            for one in (summary.p50, summary.p95)
        ]
        mean = TableCell(summary.mean.value, "ns", summary.mean.low, summary.mean.high)
        lines.append([quantity, TableCell(summary.n, "n"), mean, *percentiles])
    notes = list(NOTES)
    if (part := setup_share(row)) is not None:
        lines.append(["boot and set-up, share", TableCell(len(row.good), "n"), _ranged(part, percent), "", ""])
    if (job_ns := job_wall_ns(row)) is not None:
        lines.append(["job, first to last", TableCell(len(row.cell.trials), "n"), TableCell(job_ns, "ns"), "", ""])
    for label, total, show in (
        ("sandbox lifetime, hours", lifetime_h(row), number),
        ("cost, $", cost_usd(row, prices), usd),
    ):
        lines.append([label, TableCell(len(row.cell.trials), "n"), _ranged(total.amount, show), "", ""])
        notes += [f"{label}: {total.why}."] if total.why else []
    title = f"{name.label}, {name.details}" if isinstance(name, RowName) else str(name).replace("\n", ", ")
    return Section(
        f"Summary of {title}", ["quantity\n", "n\n", "mean, share\nor total", "p50\n", "p95\n"], lines, notes
    )


def record(row: MeasuredRow, prices: Prices | None = None) -> dict[str, Any]:
    """The same as plain data; the same keys in every row."""
    found = quantities(row)
    amounts = {_KEYS.get(name, f"{name}_ns"): found.get(name) for name in _QUANTITIES}
    share = setup_share(row)
    risk, hours, cost = failure_hazard(row), lifetime_h(row).amount, cost_usd(row, prices).amount
    return {
        SUMMARY: {
            **{
                key: one
                and {"n": one.n, "p50": one.p50._asdict(), "p95": one.p95._asdict(), "mean": one.mean._asdict()}
                for key, one in amounts.items()
            },
            "sandbox_failures_per_hour": risk and risk._asdict(),
            "sandbox_lifetime_hours": hours and hours._asdict(),
            "setup_share": share and share._asdict(),
            "job_wall_ns": job_wall_ns(row),
            "cost_usd": cost and cost._asdict(),
        }
    }


def _unheld(row: MeasuredRow) -> bool:
    return HELD in row.cell.unreported


def _lived_ns(trial: RecordedTrial) -> int:
    """A sandbox's life, verification and clean-up included; a borrowed one is its owner's."""
    return 0 if trial.borrowed else max(0, trial.sandbox_ns) + max(0, trial.freed_ns - trial.end_ns)


def _clusters(row: MeasuredRow) -> list[Hashable]:
    return [trial.group or index for index, trial in enumerate(row.cell.trials)]


def _sum(values: Sequence[float], row: MeasuredRow) -> Interval:
    """The sum of a sample, with the interval of the mean times the number of trials."""
    mean, count = mean_interval(values, _clusters(row)), len(values)
    return Interval(math.fsum(values), *(None if end is None else max(0.0, end * count) for end in mean[1:]))


def _ranged(interval: Interval | None, show: Callable[[float], str]) -> str:
    if interval is None:
        return NOTHING
    if interval.low is None or interval.high is None:
        return show(interval.value)
    return f"{show(interval.value)}\n{show(interval.low)} … {show(interval.high)}"
