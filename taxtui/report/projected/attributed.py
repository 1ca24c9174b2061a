"""Costs of the sandbox in a training run with steps: headline, causes and assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count
from string import ascii_lowercase
from typing import Final

from costmodel import Assumption, Attribution, Interval, Row, Share, TrainingRun
from taxtui.report.cells import Content, TableCell, amount_cell
from taxtui.report.formats import Section
from taxtui.report.numbers import NOTHING, SHORT, CostUnit, compact, duration, money, number, span, unit_of
from taxtui.report.projected.sections import gpu_waiting, name_of
from taxtui.report.words import CAUSES
from taxtui.terminal_text import clean

IN_DETAIL: Final = 3
"""Maximum rows with a table each; more rows share one table."""
MOST_CAUSES: Final = 3
"""Maximum causes in the headline."""


def headline(attribution: Attribution) -> str:
    """Return the answer: ``the sandbox costs this run $X (low–high) of $Y: failures $…, image pulls $…``.

    Causes whose interval includes zero are not named.
    """
    unit = unit_of(attribution)
    whole, total = unit.of(attribution.sandbox), unit.of(attribution.run)
    amounts = {cause: unit.of(share) for cause, share in attribution.causes.items() if share is not None}
    significant = [
        cause for cause, amount in amounts.items() if amount.value > 0 and (amount.low is None or amount.low > 0)
    ]
    largest = sorted(significant, key=lambda cause: -amounts[cause].value)[:MOST_CAUSES]
    causes = ", ".join(f"{CAUSES[cause]} {unit.format(amounts[cause].value)}" for cause in largest)
    limits = " (too few trials for limits)"
    if whole.low is not None:
        limits = f" ({span(whole, money if unit.usd else compact).replace('≥', 'at least')})"
    text = f"the sandbox costs this run {unit.format(whole.value)}{limits} of {unit.format(total.value)}"
    return f"{text}: {causes}" if causes else text


def sections(rows: Sequence[Row], training_run: TrainingRun) -> list[Section]:
    """Return the causes and the GPU waiting of each row with steps; nothing without steps."""
    results = [(name_of(row), row.attribution) for row in rows if row.attribution is not None]
    if not results:
        return []
    tables = [_causes(name, item) for name, item in results] if len(results) <= IN_DETAIL else [_rows(results)]
    if any(item.sandbox.step_s.high is None for _, item in results):
        needs = max(row.wall_clock_hours.needs_trials or 0 for row in rows if row.wall_clock_hours)
        measure = f": {needs:,} successes do" if needs else ""
        note = (
            f"The trials give no upper limit of the slowest rollouts of a step{measure}. ≥: at least. A cause without "
            "limits may cost less or more."
        )
        tables[-1] = tables[-1]._replace(notes=[*tables[-1].notes, note])
    waits = gpu_waiting([(name_of(row), row) for row in rows if row.attribution is not None], training_run)
    return [*tables, *[waits] * bool(waits.rows), _assumptions(results)]


def _one_line(name: str) -> str:
    return " ".join(name.split("\n"))


def _causes(name: str, attribution: Attribution) -> Section:
    gpus, dollars = attribution.run.gpu_hours is not None, attribution.run.usd is not None

    def line(title: str, share: Share | None) -> list[Content]:
        if share is None:
            return [title, *[NOTHING] * (2 + gpus + dollars)]
        amounts = [share.step_s, share.worker_hours, *[share.gpu_hours] * gpus, *[share.usd] * dollars]
        return [title, *(amount_cell(amount, SHORT) for amount in amounts)]

    lines = [
        line(CAUSES[cause], share) for cause, share in attribution.causes.items() if share is None or _is_present(share)
    ]
    lines += [
        line("interaction", attribution.interaction),
        line("the sandbox", attribution.sandbox),
        line("the run", attribution.run),
    ]
    head = ["cause\n", "s\nper step", "worker-hours\n", *["GPU-hours\nwaiting"] * gpus, *["$\n"] * dollars]
    usd = attribution.usd_per_critical_second
    second = f"{duration(attribution.steps * 1e9)} of wall-clock" if usd is None else money(usd)
    unknown = [CAUSES[cause] for cause, share in attribution.causes.items() if share is None]
    notes = [
        f"One second on the critical path of every step = {second}.",
        "Each cause: the saving of the same run without this cause, simulated with the same random numbers. "
        "interaction: savings that need two causes removed, or that two causes share. the sandbox: all causes at once.",
        f"{attribution.replicates} replicates of {attribution.simulated_steps:,} of {attribution.steps:,} steps; the "
        f"error of the simulation is ± {number(attribution.error_s)} s per step.",
    ]
    if unknown:
        notes.insert(1, f"–: unknown: {', '.join(unknown)}.")
    return Section(f"{_one_line(name)}: {headline(attribution)}", head, lines, notes)


def _is_present(share: Share) -> bool:
    return any(item is not None and item != Interval(0.0, 0.0, 0.0) and any(item) for item in share)


def _rows(results: Sequence[tuple[str, Attribution]]) -> Section:
    unit = CostUnit(usd=all(item.run.usd is not None for _, item in results))
    total = {
        cause: sum(unit.of(share).value for _, item in results if (share := item.causes[cause]) is not None)
        for cause in results[0][1].causes
    }
    columns = [cause for cause in sorted(total, key=lambda cause: -total[cause]) if total[cause]][:MOST_CAUSES]
    lines: list[list[Content]] = []
    for name, item in results:
        shares = [item.causes[cause] for cause in columns]
        parts = (NOTHING if share is None else TableCell(unit.of(share).value, SHORT) for share in shares)
        lines.append(
            [name, amount_cell(unit.of(item.sandbox), SHORT), TableCell(unit.of(item.run).value, SHORT), *parts]
        )
    head = ["sandbox\ntier n mode", f"the sandbox\n{unit.name}", f"the run\n{unit.name}"]
    head += [CAUSES[cause].replace(" ", "\n") for cause in columns]
    note = (
        f"The largest causes of all rows. Up to {IN_DETAIL} rows have every cause: choose with -s, -t, --mode and -n."
    )
    return Section("Costs of the sandbox in this training run", head, lines, [note])


def _assumptions(results: Sequence[tuple[str, Attribution]]) -> Section:
    """Return the unmeasured inputs of all rows, with a letter for each source."""
    rows: dict[Assumption, list[str]] = {}
    for name, item in results:
        for assumption in item.assumptions:
            rows.setdefault(assumption, []).append(_one_line(name))
    sources = dict.fromkeys(clean(assumption.source) for assumption in rows)
    letters = dict(zip(sources, chain(ascii_lowercase, map("({})".format, count(1))), strict=False))
    lines: list[list[Content]] = []
    for assumption, names in rows.items():
        scope = "" if len(names) == len(results) else f"\n{', '.join(names)}"
        lines.append([f"{clean(assumption.name)}: {clean(assumption.value)}{scope}", letters[clean(assumption.source)]])
    notes = [f"{letter}  {source}" for source, letter in letters.items()]
    return Section("Assumptions", ["input: value\n", "from\n"], lines, notes)
