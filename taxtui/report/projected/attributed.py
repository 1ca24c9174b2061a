"""Costs of the sandbox in a training run with steps: headline, causes, assumptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, count
from string import ascii_lowercase
from typing import Final, NamedTuple

from costmodel import Assumption, Attribution, Interval, Row, Share, TrainingRun
from taxtui.report.cells import SHORT, Content, TableCell, amount_cell
from taxtui.report.formats import Section
from taxtui.report.numbers import NOTHING, compact, duration, money, number, span
from taxtui.report.projected import waiting
from taxtui.report.projected.sections import name_of
from taxtui.report.words import CAUSES
from taxtui.terminal_text import clean

IN_DETAIL: Final = 3
"""Up to this number of rows each row has a table of causes; more rows share one table."""
TOLD: Final = 3
"""Causes that the headline names."""


class Unit(NamedTuple):
    """The unit of a run's costs: dollars where anything has a price, else workers' time."""

    name: str
    usd: bool

    def of(self, share: Share) -> Interval:
        return share.usd if self.usd and share.usd is not None else share.worker_hours

    def shown(self, amount: float) -> str:
        return money(amount) if self.usd else f"{compact(amount)} worker-hours"


def unit_of(found: Attribution) -> Unit:
    """In dollars where there are any prices."""
    return Unit("$", True) if found.run.usd is not None else Unit("worker-hours", False)


def headline(found: Attribution) -> str:
    """The answer: ``the sandbox costs this run $X (low … high) of $Y: failures $…, image pulls $…``; it names no cause
    that may as well cost nothing."""
    unit = unit_of(found)
    whole, total = unit.of(found.sandbox), unit.of(found.run)
    known = {cause: unit.of(share) for cause, share in found.causes.items() if share is not None}
    sure = [cause for cause, amount in known.items() if amount.value > 0 and (amount.low is None or amount.low > 0)]
    largest = sorted(sure, key=lambda cause: -known[cause].value)[:TOLD]
    causes = ", ".join(f"{CAUSES[cause]} {unit.shown(known[cause].value)}" for cause in largest)
    limits = " (too few trials for limits)"
    if whole.low is not None:
        limits = f" ({in_words(whole, money if unit.usd else compact)})"
    text = f"the sandbox costs this run {unit.shown(whole.value)}{limits} of {unit.shown(total.value)}"
    return f"{text}: {causes}" if causes else text


def in_words(amount: Interval, show: Callable[[float], str]) -> str:
    """The limits of an amount in a sentence: ``at least $301k`` where there is a lower one only."""
    return span(amount, show).replace("≥", "at least")


def critical_second(found: Attribution) -> str:
    """Return the cost of one more second in every step: ``one second on the critical path = $347``."""
    if found.usd_per_critical_second is None:
        return f"One second on the critical path of every step = {duration(found.steps * 1e9)} of wall-clock."
    return f"One second on the critical path of every step = {money(found.usd_per_critical_second)}."


def sections(rows: Sequence[Row], training_run: TrainingRun) -> list[Section]:
    """The causes of each row, and what its GPUs wait for; nothing where no row is of a run in steps."""
    results = [(name_of(row), row.attribution) for row in rows if row.attribution is not None]
    if not results:
        return []
    tables = [_causes(name, item) for name, item in results] if len(results) <= IN_DETAIL else [_rows(results)]
    tables[-1] = tables[-1]._replace(notes=[*tables[-1].notes, *_too_few(rows)])
    waits = waiting.section([(name_of(row), row) for row in rows if row.attribution is not None], training_run)
    return [*tables, *[waits] * bool(waits.rows), _assumptions(results)]


def _too_few(rows: Sequence[Row]) -> list[str]:
    """Why an attribution has no limits, or a lower one only, where that is so."""
    few = [row for row in rows if row.attribution is not None and row.attribution.sandbox.step_s.high is None]
    if not few:
        return []
    needs = max(row.wall_clock_hours.needs_trials or 0 for row in few if row.wall_clock_hours)
    measure = f": {needs:,} successes do" if needs else ""
    return [
        f"The trials do not bound how long the slowest rollouts of a step take{measure}. ≥: at least. A cause without "
        "limits may cost less or more in such a step."
    ]


def _one_line(name: str) -> str:
    return " ".join(name.split("\n"))


def _causes(name: str, found: Attribution) -> Section:
    """One row: what each cause takes of everything that a run is paid in."""
    gpus, dollars = found.run.gpu_hours is not None, found.run.usd is not None

    def line(title: str, share: Share | None) -> list[Content]:
        if share is None:
            return [title, *[NOTHING] * (2 + gpus + dollars)]
        amounts = [share.step_s, share.worker_hours, *[share.gpu_hours] * gpus, *[share.usd] * dollars]
        return [title, *(amount_cell(amount, SHORT) for amount in amounts)]

    lines = [line(CAUSES[cause], share) for cause, share in found.causes.items() if share is None or _anything(share)]
    lines += [line("interaction", found.interaction), line("the sandbox", found.sandbox), line("the run", found.run)]
    head = ["cause\n", "s\nper step", "worker-hours\n", *["GPU-hours\nwaiting"] * gpus, *["$\n"] * dollars]
    unknown = [CAUSES[cause] for cause, share in found.causes.items() if share is None]
    notes = [
        critical_second(found),
        "Each cause: the same run simulated without it, with the same random numbers. interaction: what is saved only "
        "when two go together, or by either of two. the sandbox: all of them at once.",
        f"{found.replicates} replicates of {found.simulated_steps:,} of {found.steps:,} steps; the simulation's own "
        f"error is ± {number(found.error_s)} s per step.",
    ]
    if unknown:
        notes.insert(1, f"–: the data do not tell {', '.join(unknown)}.")
    return Section(f"{_one_line(name)}: {headline(found)}", head, lines, notes)


def _anything(share: Share) -> bool:
    """Whether there is anything of it."""
    return any(item is not None and item != Interval(0.0, 0.0, 0.0) and any(item) for item in share)


def _rows(found: Sequence[tuple[str, Attribution]]) -> Section:
    """Many rows: the whole and its largest causes, in one unit."""
    unit = Unit("$", True) if all(item.run.usd is not None for _, item in found) else Unit("worker-hours", False)
    total = {
        cause: sum(unit.of(share).value for _, item in found if (share := item.causes[cause]) is not None)
        for cause in found[0][1].causes
    }
    columns = [cause for cause in sorted(total, key=lambda cause: -total[cause]) if total[cause]][:TOLD]
    lines: list[list[Content]] = []
    for name, item in found:
        shares = [item.causes[cause] for cause in columns]
        parts = (NOTHING if share is None else TableCell(unit.of(share).value, SHORT) for share in shares)
        lines.append(
            [name, amount_cell(unit.of(item.sandbox), SHORT), TableCell(unit.of(item.run).value, SHORT), *parts]
        )
    head = ["sandbox\ntier n mode", f"the sandbox\n{unit.name}", f"the run\n{unit.name}"]
    head += [CAUSES[cause].replace(" ", "\n") for cause in columns]
    note = f"The largest causes of all rows. Up to {IN_DETAIL} rows have every cause: -s, -t, --mode and -n pick one."
    return Section("Costs of the sandbox in this training run", head, lines, [note])


def _assumptions(found: Sequence[tuple[str, Attribution]]) -> Section:
    """Return the inputs that the trials did not measure, once for all rows, with a letter for each source."""
    rows: dict[Assumption, list[str]] = {}
    for name, item in found:
        for assumption in item.assumptions:
            rows.setdefault(assumption, []).append(_one_line(name))
    sources = dict.fromkeys(clean(assumption.source) for assumption in rows)
    letters = dict(zip(sources, chain(ascii_lowercase, map("({})".format, count(1))), strict=False))
    lines: list[list[Content]] = []
    for assumption, names in rows.items():
        of = "" if len(names) == len(found) else f"\n{', '.join(names)}"
        lines.append([f"{clean(assumption.name)}: {clean(assumption.value)}{of}", letters[clean(assumption.source)]])
    notes = [f"{letter}  {source}" for source, letter in letters.items()]
    return Section("Assumptions", ["input: value\n", "from\n"], lines, notes)
