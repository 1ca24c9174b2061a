"""Distributions of a cell, for ``taxtui report --table distributions``: model time and failures.

JSON has quantiles of lengths and delays for simulators too, and lognormal fits of the delays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from costmodel import NS_PER_S, Interval, RecordedTrial, characterization, events, quantile
from taxtui.report.cells import Content, amount_cell
from taxtui.report.formats import Section
from taxtui.report.measured import failures
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.numbers import NOTHING, NS


def sections(names: Mapping[MeasuredRow, Content], head: str) -> list[Section]:
    """Return the table of model time, and the failures by cause."""
    lines: list[list[Content]] = []
    for row, name in names.items():
        think = characterization.think_law(row.cell.trials)
        median: list[Content] = [NOTHING, NOTHING]
        if think is not None:
            median = [amount_cell(think.median_s.times(NS_PER_S), NS), amount_cell(think.sigma)]
        lines.append([name, *median])
    columns = [head, "think\nmedian", "think\nsigma"]
    notes = [
        "think: a lognormal distribution of the times above 0 before an action, for --think: lognormal:MEDIANs,SIGMA.",
        "--format json has every distribution, with quantiles of lengths and of all delays. Lengths are of successes "
        "only: failed trajectories would have been longer.",
    ]
    return [Section("Distributions", columns, lines, notes), *failures.sections(names, head)]


def record(row: MeasuredRow) -> dict[str, Any]:
    """Return the distributions as plain data, in s, actions and hours, with the same keys in every row."""
    return {
        "think_law": _plain(characterization.ThinkLaw, characterization.think_law(row.cell.trials)),
        "delays": {name: _delay(row.cell.trials, values_of) for name, values_of in _DELAYS.items()},
        "actions_per_trajectory": _quantiles([len(trial.durations_ns) for trial in row.good], 1, "actions")
        | {"left_out": len(row.cell.trials) - len(row.good)},
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
    law = characterization.think_law(trials, values_of)
    fit = _plain(characterization.ThinkLaw, law)
    names = ("median_s", "sigma", "mean_s")
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
