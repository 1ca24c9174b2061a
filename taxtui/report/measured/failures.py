"""Rates of failures by cause with intervals, for ``taxtui report --table failures``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from costmodel import CAUSE_POLICIES, DROPPED, KEPT, RETRIED, characterization
from taxtui.report.cells import COUNT, Content, TableCell
from taxtui.report.formats import Section
from taxtui.report.measured.rows import HELD, MeasuredRow
from taxtui.report.numbers import NOTHING, percent
from taxtui.terminal_text import clean

FAILURES: Final = "failures"
NOTES: Final = [
    "share: of the counted trials, Wilson's interval. per hour: in an hour of a sandbox's life, an exact Poisson "
    "interval, widened where groups fail together. Cancelled trials are not counted.",
    f"model: {RETRIED}: the attempt's time is spent and the trajectory is tried again. {KEPT}: a delivered trajectory, "
    f"mostly with reward 0. {DROPPED}: the time is spent, and nobody tries again. `--on-failure` of a training run "
    "overrides it.",
    "Causes are Harbor's: only sandbox_failed is the sandbox's. harbor_failed is any harness's.",
]


def rates_of(row: MeasuredRow) -> tuple[characterization.CauseRate, ...]:
    """Rates of a row by cause; no hazard where the time of trials is unknown."""
    rates = characterization.cause_rates(row.cell.trials)
    return tuple(rate._replace(per_hour=None) for rate in rates) if HELD in row.cell.unreported else rates


def sections(names: Mapping[MeasuredRow, Content], head: str) -> list[Section]:
    """A line per row and cause."""
    lines: list[list[Content]] = []
    for row, name in names.items():
        for rate in rates_of(row):
            lines.append([name, rate.cause, TableCell(rate.trials, "n"), *_amounts(rate), rate.treatment])
        if not any(line[0] is name for line in lines):
            lines.append([name, NOTHING, TableCell(0, "n"), "0 %", NOTHING, NOTHING])
    return [
        Section("Failures by cause", [head, "cause\n", "trials\n", "share\n", "per hour\n", "model\n"], lines, NOTES)
    ]


def _amounts(rate: characterization.CauseRate) -> tuple[str, str]:
    share, per_hour = rate.share, rate.per_hour
    shares = f"{percent(share.value)}\n{percent(share.low or 0.0)} … {percent(share.high or 0.0)}"
    if per_hour is None or per_hour.low is None or per_hour.high is None:
        return shares, NOTHING
    return shares, f"{per_hour.value:.3g}\n{per_hour.low:.3g} … {per_hour.high:.3g}"


def errors(rows: Sequence[MeasuredRow]) -> Section:
    """Table of the phase and class of error of each row's failures; empty where nothing failed."""
    lines: list[list[Content]] = []
    for row in rows:
        counts = Counter((trial.failed_in or "?", trial.error or "?") for trial in row.cell.trials if not trial.ok)
        for (phase, error), count in counts.most_common():
            trials = [TableCell(number, COUNT) for number in (count, len(row.cell.trials))]
            lines.append([f"{row.label}\n{row.details}", clean(phase), clean(error), *trials])
    head = ["sandbox\ntier actions mode", "phase\n", "error\n", "failed\n", "of trials\n"]
    return Section("Failures by phase and class", head, lines, [])


def record(row: MeasuredRow) -> dict[str, Any]:
    """Rates by cause as plain data; the same keys in every row."""
    rates = {rate.cause: rate for rate in rates_of(row)}
    return {"failures_by_cause": {cause: _plain(rates.get(cause), cause) for cause in CAUSE_POLICIES}}


def _plain(rate: characterization.CauseRate | None, cause: str) -> dict[str, Any]:
    per_hour = rate.per_hour if rate else None
    return {
        "trials": rate.trials if rate else 0,
        "share": rate.share._asdict() if rate else None,
        "per_hour": per_hour._asdict() if per_hour else None,
        "model": rate.treatment if rate else CAUSE_POLICIES[cause].treatment,
        **CAUSE_POLICIES[cause]._asdict(),
    }
