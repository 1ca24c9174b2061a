"""Groups of rows for one panel: rows that differ in substrate, variant, mode and length only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from costmodel import WORK_FIELDS
from taxtui.report.measured.rows import PROVENANCES, MeasuredRow
from taxtui.terminal_text import clean, cut

MOST_PANELS: Final = 6
MOST_ROWS: Final = 24
"""Maximum rows of a panel."""
MOST_DRAWN: Final = 36
"""Maximum rows of all panels of a figure; drawing takes most of a page's time."""
MOST_NAMED: Final = 6
"""Maximum names of omitted panels in a note."""
CHOOSE: Final = "To draw other rows choose some with --tier, --mode, --substrate or --actions."
NAME_COLUMNS: Final = 30
"""Columns of a row's name in a figure; tables have the whole name."""
_FIELDS: Final = ("tier", *(field for field in WORK_FIELDS if field not in ("tier", "mode")))
_WORDS: Final = {
    "concurrency": "concurrency {}",
    "arrival": "{}",
    "think": "think {}",
    "acquire": "{}",
    "cpu_milli": "{} mCPU",
    "memory_mib": "{} MiB",
}


class PanelRows(NamedTuple):
    """The rows of one panel."""

    title: str
    provenance: str  # "" if measured
    rows: list[MeasuredRow]
    hidden: int  # further rows of the group

    @property
    def trials(self) -> int:
        return sum(len(row.cell.trials) for row in self.rows)

    @property
    def name(self) -> str:
        return file_name(self.title)


def file_name(text: str) -> str:
    """Return the letters and digits of a text."""
    return re.sub("[^A-Za-z0-9]+", "-", text).strip("-")[:40] or "rows"


def mode_of(row: MeasuredRow) -> str:
    """Return the mode, short enough for a figure."""
    return cut(clean(row.identity.mode), NAME_COLUMNS)


def kind_of(row: MeasuredRow) -> str:
    """Return substrate, variant and mode for a legend."""
    return f"{cut(row.own_label, NAME_COLUMNS)} {mode_of(row)}".strip()


def count_text(rows: Sequence[MeasuredRow]) -> str:
    """Return the range of successful trials: ``n=72–100``."""
    counts = [len(row.good) for row in rows]
    return f"n={'–'.join(dict.fromkeys(f'{count:,}' for count in (min(counts), max(counts))))}"


def panels_of(rows: Sequence[MeasuredRow]) -> list[PanelRows]:
    """Group rows into panels with distinct titles, measured rows first."""
    groups = [(key, list(group)) for key, group in groupby(sorted(rows, key=_key), _key)]
    results: list[PanelRows] = []
    for (provenance, *values), members in groups:
        members.sort(key=lambda row: (float(row.length.mean), row.identity.mode, row.label))
        same_tier = [dict(zip(_FIELDS, key[1:], strict=True)) for key, _ in groups if key[1] == values[0]]
        fields = dict(zip(_FIELDS, values, strict=True))
        prefix = PROVENANCES.get(provenance, "")
        differing = [
            words.format(fields[field])
            for field, words in _WORDS.items()
            if len({group[field] for group in same_tier}) > 1
        ]
        title = ", ".join([*([prefix] if prefix else []), cut(clean(str(fields["tier"])), 40), *differing])
        namesakes = sum(item.title.partition(" #")[0] == title for item in results)
        title = f"{title} #{namesakes + 1}" if namesakes else title
        results.append(PanelRows(title, prefix, members[:MOST_ROWS], len(members[MOST_ROWS:])))
    return sorted(results, key=lambda item: item.provenance)


def fitting_panels(panels: Sequence[PanelRows]) -> tuple[list[PanelRows], list[str]]:
    """Return the panels with most trials that fit a page, in their order, and notes about the omissions."""
    by_trials = sorted(range(len(panels)), key=lambda number: -panels[number].trials)
    chosen = sorted(by_trials[number] for number in fitting([len(panels[number].rows) for number in by_trials]))
    omitted = [item.title for number, item in enumerate(panels) if number not in chosen]
    results = [panels[number] for number in chosen]
    return results, omission_notes(omitted, [(item.title, item.hidden) for item in results])


def fitting(counts: Sequence[int]) -> list[int]:
    """Return the indices of the panels to draw, from their numbers of rows: whole panels up to the limits."""
    results: list[int] = []
    room = MOST_DRAWN
    for number, count in enumerate(counts):
        if count <= room and len(results) < MOST_PANELS:
            results.append(number)
            room -= count
    return results


def omission_notes(omitted: Sequence[str], hidden: Sequence[tuple[str, int]]) -> list[str]:
    """Return notes about panels and rows outside of a figure, and how to choose them."""
    more = len(omitted) - MOST_NAMED
    names = "; ".join([*omitted[:MOST_NAMED], *([f"{more:,} more"] if more > 0 else [])])
    notes = [f"Not drawn, but in the tables: {names}."] if omitted else []
    notes += [f"{title}: {count:,} more rows in the tables." for title, count in hidden if count > 0]
    return [*notes, CHOOSE] if notes else []


def name_in(row: MeasuredRow, rows: Sequence[MeasuredRow], letters: str = "") -> str:
    """Return the shortest distinct name of a row in its panel, with the letters of its warnings."""
    parts = [cut(row.label, NAME_COLUMNS)]
    if len({item.length for item in rows}) > 1:
        parts.append(str(row.length))
    if len({item.identity.mode for item in rows}) > 1:
        parts.append(mode_of(row))
    return " ".join([*parts, *([f"[{letters}]"] if letters else [])])


def identified(row: MeasuredRow) -> dict[str, Any]:
    """Return the identifying columns of a row in the CSV of a figure."""
    return {
        "sandbox": row.label,
        "tier": row.identity.tier,
        "actions": str(row.length),
        "mode": row.identity.mode,
        "concurrency": row.identity.concurrency,
        "provenance": row.cell.provenance,
        "n": len(row.good),
        "failed": row.failed,
        "flags": list(row.flags),
    }


def _key(row: MeasuredRow) -> tuple[Any, ...]:
    return (row.cell.provenance, *(getattr(row.identity, field) for field in _FIELDS))
