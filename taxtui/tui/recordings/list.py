"""The list of recordings, a line each, and the facts of a recording."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from rich.text import Text

from taxtui.live.catalogue import HOPELESS, CatalogueEntry, path_text
from taxtui.terminal_text import widest
from taxtui.tui import units
from taxtui.tui.colours import glyph, substrate_style, themed
from taxtui.tui.lists import MUTED, CursorList

STATES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "finished": ("✓", "text-success"),
        "running": ("▶", "text-primary"),
        "budget": ("◔", "text-warning"),
        "cancelled": ("■", "text-warning"),
        "interrupted": ("■", "text-warning"),
        "broken off": ("!", "text-warning"),
        "crashed": ("✗", "text-error"),
        "write_failed": ("✗", "text-error"),
        "complete": ("✓", "text-success"),
        "incomplete": ("!", "text-warning"),
        "damaged": ("✗", "text-error"),
        "newer version": ("✗", "text-error"),
        "not a recording": ("?", "foreground"),
        "empty": ("?", "foreground"),
        "unreadable": ("✗", "text-error"),
    }
)
"""Outcome of a measurement or state of a file → glyph and theme variable."""

TROUBLE: Final = HOPELESS | {"damaged"}
"""States of a file that hide the outcome."""

NAME_MAX: Final = 40
STATE_WIDTH, TRIALS_WIDTH, DATE_WIDTH = 15, 11, 18
FIXED_WIDTH: Final = 5 + STATE_WIDTH + 2 + 2 + 14
"""Columns of a line without name, trials and start; the substrates take 14 at least."""
UNKNOWN: Final = "–"


def progress(entry: CatalogueEntry) -> str:
    """Return ``34/40``: ended and planned trials; ``?`` for an unknown number."""
    ended, planned = ("?" if number is None else f"{number:,}" for number in (entry.ended_trials, entry.trials))
    return f"{ended}/{planned}"


class RecordingList(CursorList[CatalogueEntry]):
    """A recording per line: state, name, trials, start and substrates."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._name_width, self._trials_width = 4, TRIALS_WIDTH
        self._dated = False  # there is room for the start

    def present(self, entries: Sequence[CatalogueEntry]) -> None:
        self._trials_width = max([TRIALS_WIDTH, *(len(progress(entry)) for entry in entries)])
        room = self.scrollable_content_region.width - FIXED_WIDTH - self._trials_width
        self._name_width = max(min(widest(map(_named, entries)), NAME_MAX, room), 4)
        self._dated = room - self._name_width >= DATE_WIDTH
        heading = Text(f"{'':{5 + STATE_WIDTH}}{'name':<{self._name_width}}  {'trials':>{self._trials_width}}", MUTED)
        heading.append(f"  {'started':<{DATE_WIDTH - 2}}  on" if self._dated else "  on")
        self.show(entries, [heading] if entries else [])

    def on_resize(self) -> None:
        self.present(self.items)

    def draw(self, item: CatalogueEntry, number: int, width: int) -> Text:
        """``✓ finished  20261121t130312z-1a2b3c4d  800/800  2026-11-21 13:03  ○ local ● docker``."""
        state = _state(item)
        sign, variable = STATES.get(state, ("…", "foreground"))
        line = Text(f"{sign} {state:<{STATE_WIDTH}} ", themed(self.app.theme_variables, variable))
        name = Text(_named(item))
        name.truncate(self._name_width, overflow="ellipsis", pad=True)
        line.append_text(name)
        line.append(f"  {progress(item) if item.cells else UNKNOWN:>{self._trials_width}}")
        if self._dated:
            line.append(time.strftime("  %Y-%m-%d %H:%M", time.localtime(item.when_ns // 10**9)))
        line.append("  ")
        substrates = list(dict.fromkeys(label.partition(":")[0] for label in item.substrates))
        line.append_text(names(substrates))
        return self.marked(line, number, width)


def names(labels: Sequence[str]) -> Text:
    """Return ``○ local ● docker``."""
    return Text(" ").join(Text(f"{glyph(label)} {label}", substrate_style(label)) for label in labels)


def _named(entry: CatalogueEntry) -> str:
    return f"{entry.name} (shipped)" if entry.shipped else entry.name


def _state(entry: CatalogueEntry) -> str:
    """Return the outcome of the measurement, or the state of a damaged file."""
    return entry.state if entry.state in TROUBLE or not entry.fate else entry.fate


def facts(entry: CatalogueEntry) -> str:
    """Return path, state of the file, and plan, a line each."""
    missing = "the end of the run is missing" if entry.state == "incomplete" else ""
    state = (entry.state, entry.detail, missing, units.size(entry.size_bytes), "came with taxtui" * entry.shipped)
    provenance = ("STAND-IN, not the provider" * entry.stand_in, "IMPORTED, not measured" * entry.imported)
    plan = (" ".join(entry.substrates), ", ".join(entry.workloads), " ".join(entry.modes), *provenance)
    return "\n".join([path_text(entry.path), *(" · ".join(filter(None, line)) for line in (state, plan))])
