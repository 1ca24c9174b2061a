"""Rows that belong into one picture: those that nothing but substrate, variant, mode and length tells apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from costmodel import WORK_FIELDS
from taxtui.report.measured.rows import PROVENANCES, MeasuredRow
from taxtui.terminal_text import clean, cut

MOST_SETTINGS: Final = 6
MOST_ROWS: Final = 24
"""Of a panel."""
MOST_DRAWN: Final = 36
"""Rows of all panels of one figure: three tiers of three lengths in two modes on two substrates. Drawing is what a page
takes longest for, and nobody compares more by eye."""
MOST_TOLD: Final = 6
"""Names of what is not drawn, in a note; the tables have them all."""
CHOOSE: Final = "To draw other rows choose some with --tier, --mode, --substrate or --actions."
NAME_COLUMNS: Final = 30
"""Columns of a row's name in a picture; tables have the whole name."""
_FIELDS: Final = ("tier", *(field for field in WORK_FIELDS if field not in ("tier", "mode")))
_WORDS: Final = {
    "concurrency": "concurrency {}",
    "arrival": "{}",
    "think": "think {}",
    "acquire": "{}",
    "cpu_milli": "{} mCPU",
    "memory_mib": "{} MiB",
}


class Setting(NamedTuple):
    """One panel's rows, by work, and what they have in common."""

    title: str
    apart: str  # "" where it was measured here
    rows: list[MeasuredRow]
    hidden: int  # more rows than a panel takes, not among them

    @property
    def trials(self) -> int:
        return sum(len(row.cell.trials) for row in self.rows)

    @property
    def name(self) -> str:
        return file_name(self.title)


def file_name(text: str) -> str:
    """The letters and digits of a text."""
    return re.sub("[^A-Za-z0-9]+", "-", text).strip("-")[:40] or "rows"


def mode_of(row: MeasuredRow) -> str:
    """As a picture names it."""
    return cut(clean(row.identity.mode), NAME_COLUMNS)


def kind_of(row: MeasuredRow) -> str:
    """Substrate, variant and mode, as a legend names a curve."""
    return f"{cut(row.own_label, NAME_COLUMNS)} {mode_of(row)}".strip()


def counted(rows: Sequence[MeasuredRow]) -> str:
    """``n=72…100``: of the trials that succeeded."""
    ends = dict.fromkeys(f"{count:,}" for count in (min(len(r.good) for r in rows), max(len(r.good) for r in rows)))
    return f"n={'…'.join(ends)}"


def settings(rows: Sequence[MeasuredRow]) -> list[Setting]:
    """All of them, what was measured here first; of one title each."""
    keyed = sorted(rows, key=_key)
    groups = [(key, list(group)) for key, group in groupby(keyed, _key)]
    results: list[Setting] = []
    for (provenance, *values), members in groups:
        members.sort(key=lambda row: (float(row.length.mean), row.identity.mode, row.label))
        same_tier = [dict(zip(_FIELDS, other[1:], strict=True)) for other, _ in groups if other[1] == values[0]]
        told = dict(zip(_FIELDS, values, strict=True))
        apart = PROVENANCES.get(provenance, "")
        differing = [
            words.format(told[field])
            for field, words in _WORDS.items()
            if len({other[field] for other in same_tier}) > 1
        ]
        title = ", ".join([*([apart] if apart else []), cut(clean(str(told["tier"])), 40), *differing])
        taken = sum(item.title.partition(" #")[0] == title for item in results)
        title = f"{title} #{taken + 1}" if taken else title
        results.append(Setting(title, apart, members[:MOST_ROWS], len(members[MOST_ROWS:])))
    return sorted(results, key=lambda item: item.apart)


def drawn(found: Sequence[Setting]) -> tuple[list[Setting], list[str]]:
    """Return the groups with most trials that fit a page, in their order, and notes about the others."""
    by_trials = sorted(range(len(found)), key=lambda place: -found[place].trials)
    kept = sorted(by_trials[place] for place in fitting([len(found[place].rows) for place in by_trials]))
    left_out = [item.title for place, item in enumerate(found) if place not in kept]
    shown = [found[place] for place in kept]
    return shown, left_notes(left_out, [(item.title, item.hidden) for item in shown])


def fitting(counts: Sequence[int]) -> list[int]:
    """Places of the panels of so many rows, at most ``MOST_ROWS``, that are drawn: each whole, as there is room."""
    results: list[int] = []
    left = MOST_DRAWN
    for place, count in enumerate(counts):
        if count <= left and len(results) < MOST_SETTINGS:
            results.append(place)
            left -= count
    return results


def left_notes(left_out: Sequence[str], hidden: Sequence[tuple[str, int]]) -> list[str]:
    """Return notes about panels and rows that a figure does not draw, and how to choose them."""
    notes = [f"Not drawn, but in the tables: {_named(left_out)}."] if left_out else []
    notes += [f"{title}: {count:,} more rows in the tables." for title, count in hidden if count > 0]
    return [*notes, CHOOSE] if notes else []


def _named(left_out: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = len(left_out) - MOST_TOLD
    return "; ".join([*left_out[:MOST_TOLD], *([f"{more:,} more"] if more > 0 else [])])


def name_in(row: MeasuredRow, rows: Sequence[MeasuredRow], letters: str = "") -> str:
    """Return the name that separates a row from the others of its panel, with the letters of its warnings."""
    parts = [cut(row.label, NAME_COLUMNS)]
    if len({other.length for other in rows}) > 1:
        parts.append(str(row.length))
    if len({other.identity.mode for other in rows}) > 1:
        parts.append(mode_of(row))
    return " ".join([*parts, *([f"[{letters}]"] if letters else [])])


def identified(row: MeasuredRow) -> dict[str, Any]:
    """Return the columns that identify a row in the data of a picture."""
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
