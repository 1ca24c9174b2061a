"""Distributions of a cell, for ``taxtui report --table distributions``: model time, lengths, failures.

JSON has delays for simulators too: quantiles and a lognormal fit of model time, commands, startup and set-up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from costmodel import FIXED_LENGTH, NS_PER_S, Interval, RecordedTrial, characterization, events, quantile
from taxtui.report.cells import COUNT, NS, CellGroup, Content, TableCell, amount_cell, text_of
from taxtui.report.formats import Section
from taxtui.report.measured import failures
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.numbers import NOTHING


def sections(names: Mapping[MeasuredRow, Content], head: str) -> list[Section]:
    """Return a table per distribution with any data."""
    think = {text_of(name): characterization.think_law(row.cell.trials) for row, name in names.items()}
    length = {text_of(name): _length_law(row) for row, name in names.items()}
    tables = [_think(think, head), _length(length, head), *failures.sections(names, head)]
    return [table for table in tables if table is not None]


def _think(laws: Mapping[str, characterization.ThinkLaw | None], head: str) -> Section | None:
    if not any(laws.values()):
        return None
    columns = [head, "n\ntrials", "median\n", "sigma\n", "mean\n", "distance\n"]
    lines = [_think_line(name, law) for name, law in laws.items()]
    notes = [
        "A lognormal distribution of the times above 0; sigma: of the logarithm. Intervals are 95 %, with the "
        "rollouts of a group, else a trial, as one draw. distance: Kolmogorov's, from 0 (a perfect fit) to 1.",
        "for --think: lognormal:MEDIANs,SIGMA",
    ]
    return Section("Think time before an action", columns, lines, notes)


def _counts(*amounts: int) -> CellGroup:
    return CellGroup(tuple(TableCell(amount, COUNT) for amount in amounts), below=True)


def _think_line(name: str, law: characterization.ThinkLaw | None) -> list[Content]:
    if law is None:
        return [name, _counts(0), *[NOTHING] * 4]
    median, mean = (amount_cell(value.times(NS_PER_S), NS) for value in (law.median_s, law.mean_s))
    return [name, _counts(law.thinks, law.trials), median, amount_cell(law.sigma), mean, TableCell(law.distance)]


def _length(laws: Mapping[str, characterization.LengthLaw | None], head: str) -> Section | None:
    if not any(laws.values()):
        return None
    columns = [head, "trials\ncut off", "p50\n", "p95\n", "mean\n", "range\n"]
    lines = [_length_line(name, law) for name, law in laws.items()]
    notes = [
        "Actions per trajectory. cut off: trials that failed before the last action. Percentiles treat failed trials "
        f"as censored (Kaplan and Meier); {NOTHING} if too many failed. The mean is over the successes."
    ]
    return Section("Length", columns, lines, notes)


def _length_law(row: MeasuredRow) -> characterization.LengthLaw | None:
    """Return the distribution of lengths; None: a fixed length has none."""
    return None if row.identity.length == FIXED_LENGTH else characterization.length_law(row.cell.trials)


def _length_line(name: str, law: characterization.LengthLaw | None) -> list[Content]:
    if law is None:
        return [name, _counts(0), *[NOTHING] * 4]
    p50, p95 = (NOTHING if value is None else TableCell(value, COUNT) for value in (law.p50, law.p95))
    shortest_to_longest = f"{law.shortest:,}–{law.longest:,}"
    return [name, _counts(law.trials, law.censored), p50, p95, amount_cell(law.mean), shortest_to_longest]


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
