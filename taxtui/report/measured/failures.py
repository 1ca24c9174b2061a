"""Failure rates by cause, for ``taxtui report --table failures``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from costmodel import causes, characterization
from taxtui.report.cells import Content, TableCell, amount_cell
from taxtui.report.formats import Section
from taxtui.report.measured.rows import HELD, MeasuredRow
from taxtui.report.numbers import COUNT, NOTHING, SHARE

FAILURES: Final = "failures"
NOTES: Final = [
    "share: of the counted trials, with Wilson's interval. per hour: in an hour of a sandbox's life, with an exact "
    "Poisson interval, wider if groups fail together. Cancelled trials are not counted.",
    f"model: {causes.RETRIED}: the time is lost and the trajectory is tried again. {causes.KEPT}: a delivered "
    f"trajectory, mostly with reward 0. {causes.DROPPED}: the time is lost without a retry. "
    "`on_failure` of the training file overrides this.",
    "The causes are named as by Harbor: sandbox_failed is a failure of the sandbox, harbor_failed of any harness.",
]


def rates_of(row: MeasuredRow) -> tuple[characterization.CauseRate, ...]:
    """Return the rates of a row by cause, without hazards if the duration of trials is unknown."""
    rates = characterization.cause_rates(row.cell.trials)
    return tuple(rate._replace(per_hour=None) for rate in rates) if HELD in row.cell.unreported else rates


def sections(names: Mapping[MeasuredRow, Content], head: str) -> list[Section]:
    """Return a table with a line per row and cause."""
    lines: list[list[Content]] = []
    for row, name in names.items():
        for rate in rates_of(row):
            amounts = amount_cell(rate.share, SHARE), amount_cell(rate.per_hour)
            lines.append([name, rate.cause, TableCell(rate.trials, COUNT), *amounts, rate.treatment])
        if not any(line[0] is name for line in lines):
            lines.append([name, NOTHING, TableCell(0, COUNT), TableCell(0.0, SHARE), NOTHING, NOTHING])
    return [
        Section("Failures by cause", [head, "cause\n", "trials\n", "share\n", "per hour\n", "model\n"], lines, NOTES)
    ]


def record(row: MeasuredRow) -> dict[str, Any]:
    """Return the rates by cause as plain data, with the same keys in every row."""
    rates = {rate.cause: rate for rate in rates_of(row)}
    return {"failures_by_cause": {cause: _plain(rates.get(cause), cause) for cause in causes.CAUSE_POLICIES}}


def _plain(rate: characterization.CauseRate | None, cause: str) -> dict[str, Any]:
    per_hour = rate.per_hour if rate else None
    return {
        "trials": rate.trials if rate else 0,
        "share": rate.share._asdict() if rate else None,
        "per_hour": per_hour._asdict() if per_hour else None,
        "model": rate.treatment if rate else causes.CAUSE_POLICIES[cause].treatment,
        **causes.CAUSE_POLICIES[cause]._asdict(),
    }
