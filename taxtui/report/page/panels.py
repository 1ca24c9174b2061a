"""Groups of rows for one panel: rows that differ in substrate, variant, mode and length only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

from costmodel import WORK_FIELDS
from taxtui.report.measured.rows import PROVENANCES, MeasuredRow
from taxtui.report.numbers import duration
from taxtui.report.page.figure import Panel, legend_height
from taxtui.terminal_text import clean, cut

MOST_PANELS: Final = 6
MOST_ROWS: Final = 36
"""Maximum rows of all panels of a figure; drawing takes most of a page's time."""
CHOOSE: Final = "To draw other rows choose some with --tier, --mode, --substrate or --actions."
NAME_COLUMNS: Final = 30
"""Columns of a row's name in a figure; tables have the whole name."""
_FIELDS: Final = ("tier", *(field for field in WORK_FIELDS if field not in ("tier", "mode")))


class PanelRows(NamedTuple):
    """The rows of one panel."""

    title: str
    provenance: str  # "" if measured
    rows: list[MeasuredRow]

    @property
    def kinds(self) -> dict[tuple[str, str], str]:
        """Label and mode → name in a legend, with the range of successful trials: ``docker exec, n=72–100``."""
        groups: dict[tuple[str, str], list[int]] = {}
        for row in self.rows:
            groups.setdefault((row.own_label, row.identity.mode), []).append(len(row.good))
        spans = {kind: dict.fromkeys(f"{n:,}" for n in (min(counts), max(counts))) for kind, counts in groups.items()}
        return {
            kind: f"{cut(kind[0], NAME_COLUMNS)} {cut(clean(kind[1]), NAME_COLUMNS)}, n={'–'.join(span)}"
            for kind, span in spans.items()
        }


def panels_of(rows: Sequence[MeasuredRow]) -> tuple[list[PanelRows], list[str]]:
    """Group rows into panels, measured rows first; return the panels that fit a page, and a note about the rest."""
    fields = [field for field in _FIELDS if len({getattr(row.identity, field) for row in rows}) > 1 and field != "tier"]
    panels: list[PanelRows] = []
    room, hidden = MOST_ROWS, 0
    for (provenance, *_), group in groupby(sorted(rows, key=_key), _key):
        members = sorted(group, key=lambda row: (float(row.length.mean), row.identity.mode, row.label))
        fitting = members[: room if len(panels) < MOST_PANELS else 0]
        room, hidden = room - len(fitting), hidden + len(members) - len(fitting)
        if fitting:
            identity, prefix = fitting[0].identity, PROVENANCES.get(provenance, "")
            differing = (f"{field.replace('_', ' ')} {clean(str(getattr(identity, field)))}" for field in fields)
            title = ", ".join([*([prefix] if prefix else []), clean(identity.tier), *differing])
            panels.append(PanelRows(cut(title, 80), prefix, fitting))
    panels.sort(key=lambda item: item.provenance)
    return panels, [f"{hidden:,} more rows are in the tables. {CHOOSE}"] if hidden else []


def curves(name: str, groups: Sequence[PanelRows], column: str, height: int, draw: Callable[..., None]) -> list[Panel]:
    """Return a panel for each group, with the medians of a column as its description, and room for a legend."""
    panels = []
    for number, group in enumerate(groups, 1):
        medians = {row: summary.p50.value or 0 for row in group.rows if (summary := row.summary(column))}
        about = "; ".join(f"{row.label} {row.details}: {duration(ns)}" for row, ns in medians.items())
        whole = height + legend_height(len(group.kinds), 1)
        picture = partial(draw, group=group)
        panels.append(Panel(f"{name}-{number}", group.title, f"Medians: {about}", whole, picture, group.provenance))
    return panels


def _key(row: MeasuredRow) -> tuple[Any, ...]:
    return (row.cell.provenance, *(getattr(row.identity, field) for field in _FIELDS))
