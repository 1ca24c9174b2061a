"""Distributions of a cell, for ``taxtui report --table distributions``: model time, lengths, failures.

JSON has delays for simulators too: quantiles and a lognormal fit of model time, commands, startup and set-up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from costmodel import FIXED_LENGTH, NS_PER_S, Interval, RecordedTrial, characterization, events, quantile
from taxtui.report.cells import CellGroup, Content, TableCell, amount_cell
from taxtui.report.formats import Section
from taxtui.report.measured import failures
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.numbers import COUNT, NOTHING, NS


def sections(names: Mapping[MeasuredRow, Content], head: str) -> list[Section]:
    """Return the table of model time and length, and the failures by cause."""
    lines: list[list[Content]] = []
    for row, name in names.items():
        think, length = characterization.think_law(row.cell.trials), _length_law(row)
        median: list[Content] = [NOTHING, NOTHING]
        if think is not None:
            median = [amount_cell(think.median_s.times(NS_PER_S), NS), amount_cell(think.sigma)]
        counts: list[Content] = [NOTHING, NOTHING]
        if length is not None:
            quantiles = (TableCell(value, COUNT) for value in (length.p50, length.p95))
            counts = [CellGroup(tuple(quantiles), below=True), amount_cell(length.mean)]
        lines.append([name, *median, *counts])
    columns = [head, "think\nmedian", "think\nsigma", "actions\np50, p95", "actions\nmean"]
    notes = [
        "think: a lognormal distribution of the times above 0 before an action, for --think: lognormal:MEDIANs,SIGMA.",
        "actions: percentiles treat failed trials as censored (Kaplan and Meier); the mean is over the successes.",
        "--format json has every distribution, with quantiles of all delays.",
    ]
    return [Section("Distributions", columns, lines, notes), *failures.sections(names, head)]


def _length_law(row: MeasuredRow) -> characterization.LengthLaw | None:
    """Return the distribution of lengths; None: a fixed length has none."""
    return None if row.identity.length == FIXED_LENGTH else characterization.length_law(row.cell.trials)


def record(row: MeasuredRow) -> dict[str, Any]:
    """Return the distributions as plain data, in s, actions and hours, with the same keys in every row."""
    return {
        "think_law": _plain(characterization.ThinkLaw, characterization.think_law(row.cell.trials)),
        "length_law": _plain(characterization.LengthLaw, _length_law(row)),
        "delays": {name: _delay(row.cell.trials, values_of) for name, values_of in _DELAYS.items()},
        "actions_per_trajectory": _quantiles([len(trial.durations_ns) for trial in row.good], 1, "actions"),
    }


_DELAYS: Final[dict[str, Callable[[RecordedTrial], Sequence[int]]]] = {
    "model_time": lambda trial: trial.thinks_ns,
    "command": lambda trial: trial.durations_ns,
    "in_sandbox": lambda trial: [ns for ns in trial.runs_ns if ns != events.UNKNOWN],
    "create": lambda trial: [] if trial.borrowed else [trial.measures.create_ns],
    "ready": lambda trial: [trial.measures.ready_ns],
    "setup": lambda trial: [trial.measures.preload_ns + trial.measures.setup_ns],
}
"""Name of a delay → values of a trial in ns. Unmeasured values are 0 and ignored."""
_SHARES: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


def _delay(trials: Sequence[RecordedTrial], values_of: Callable[[RecordedTrial], Sequence[int]]) -> dict[str, Any]:
    """Return quantiles of a delay in seconds, and the fitted lognormal distribution."""
    values = [ns for trial in trials for ns in values_of(trial) if ns > 0]
    law = characterization.duration_law(trials, values_of)
    fit = _plain(characterization.ThinkLaw, law)
    names = ("median_s", "sigma", "mean_s", "distance")
    return {**_quantiles(values, 1e9, "s"), "lognormal": {name: fit[name] for name in names}}


def _quantiles(values: Sequence[int], unit: float, name: str) -> dict[str, Any]:
    """Return sample quantiles; None without values."""
    ascending = sorted(values)
    shares = {f"p{100 * p:02.0f}": quantile(ascending, p) / unit if ascending else None for p in _SHARES}
    return {"unit": name, "n": len(ascending), "quantiles": shares}


def _plain(kind: type[Any], law: Any) -> dict[str, Any]:
    fields = dict.fromkeys(kind._fields) if law is None else law._asdict()
    intervals = {key: value for key, value in fields.items() if isinstance(value, Interval)}
    plain: dict[str, Any] = fields | {key: interval._asdict() for key, interval in intervals.items()}
    return plain
