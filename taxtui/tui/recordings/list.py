"""The list of recordings, a line each, and the facts of the recording under the cursor."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from rich.table import Table
from rich.text import Text
from textual.widgets import Static

from taxtui.live.catalogue import HOPELESS, CatalogueEntry, shown
from taxtui.report.numbers import stopwatch
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

MARK: Final = "+"
NAME_MAX: Final = 40
STATE_WIDTH, TRIALS_WIDTH, DATE_WIDTH = 15, 11, 18
FIXED_WIDTH: Final = 7 + STATE_WIDTH + 2 + 2 + 14
"""Columns of a line without name, trials and start; the substrates take 14 at least."""
UNKNOWN: Final = "–"


def progress(entry: CatalogueEntry) -> str:
    """Return ``34/40``: ended and planned trials; ``?`` for an unknown number."""
    ended, planned = ("?" if number is None else f"{number:,}" for number in (entry.done, entry.trials))
    return f"{ended}/{planned}"


class RecordingList(CursorList[CatalogueEntry]):
    """A recording per line: state, name, trials, start and substrates."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._marks: Collection[Path] = ()
        self._name_width, self._trials_width = 4, TRIALS_WIDTH
        self._dated = False  # there is room for the start

    def present(self, entries: Sequence[CatalogueEntry], marks: Collection[Path]) -> None:
        """List entries, with a sign for marks."""
        self._marks = marks
        self._trials_width = max([TRIALS_WIDTH, *(len(progress(entry)) for entry in entries)])
        room = self.scrollable_content_region.width - FIXED_WIDTH - self._trials_width
        self._name_width = max(min(widest(map(_named, entries)), NAME_MAX, room), 4)
        self._dated = room - self._name_width >= DATE_WIDTH
        heading = Text(f"{'':{7 + STATE_WIDTH}}{'name':<{self._name_width}}  {'trials':>{self._trials_width}}", MUTED)
        heading.append(f"  {'started':<{DATE_WIDTH - 2}}  on" if self._dated else "  on")
        self.show(entries, [heading] if entries else [])

    def on_resize(self) -> None:
        self.present(self.items, self._marks)

    def draw(self, item: CatalogueEntry, number: int, width: int) -> Text:
        """``✓ finished  20261121t130312z-1a2b3c4d  800/800  2026-11-21 13:03  ○ local ● docker``."""
        state = _state(item)
        sign, variable = STATES.get(state, ("…", "foreground"))
        line = Text(f"{MARK if item.path in self._marks else ' '} ")
        line.append(f"{sign} {state:<{STATE_WIDTH}} ", themed(self.app.theme_variables, variable))
        name = Text(_named(item))
        name.truncate(self._name_width, overflow="ellipsis", pad=True)
        line.append_text(name)
        line.append(f"  {progress(item) if item.cells else UNKNOWN:>{self._trials_width}}")
        if self._dated:
            line.append(time.strftime("  %Y-%m-%d %H:%M", time.localtime(item.when_ns // 10**9)))
        line.append("  ")
        substrates = list(dict.fromkeys(label.partition(":")[0] for label in item.substrates))
        line.append_text(names(substrates, dark=self.app.current_theme.dark))
        return self.marked(line, number, width)


def names(labels: Sequence[str], *, dark: bool) -> Text:
    """Return ``○ local ● docker``."""
    return Text(" ").join(Text(f"{glyph(label)} {label}", substrate_style(label, dark=dark)) for label in labels)


def _named(entry: CatalogueEntry) -> str:
    return f"{entry.name} (shipped)" if entry.shipped else entry.name


def _state(entry: CatalogueEntry) -> str:
    """Return the outcome of the measurement, or the state of a damaged file."""
    return entry.state if entry.state in TROUBLE or not entry.fate else entry.fate


class RecordingFacts(Static):
    """A table of labels and facts; long facts continue in the next line."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)

    def present(self, entry: CatalogueEntry) -> None:
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(width=9, style=MUTED)
        table.add_column(ratio=1, overflow="fold")
        table.add_row("path", Text(shown(entry.path)))
        if entry.state not in HOPELESS:
            table.add_row("run", self._fate(entry))
        table.add_row("file", self._state(entry))
        if entry.state not in HOPELESS:
            for label, fact in self._facts(entry):
                table.add_row(label, Text(fact) if isinstance(fact, str) else fact)
            table.add_row("software", Text(software(entry.software)))
        self.update(table)

    def _fate(self, entry: CatalogueEntry) -> Text:
        """``■ cancelled after 34 of 40 trials: 31 ok, 3 cancelled``."""
        fate = entry.fate or "unknown"
        glyph, variable = STATES.get(fate, ("?", "foreground"))
        line = Text.assemble((f"{glyph} {fate}", themed(self.app.theme_variables, variable)))
        planned = "an unknown number of trials" if entry.trials is None else _many(entry.trials, "trial")
        if entry.done is None:
            return line.append(f" · number of ended trials unknown, of {planned}")
        counts = ", ".join(f"{n:,} {name}" for name, n in entry.counts.items())
        return line.append(f" after {entry.done:,} of {planned}: {counts or 'none'}")

    def _state(self, entry: CatalogueEntry) -> Text:
        state = "incomplete" if entry.state == "running" else entry.state
        glyph, variable = STATES[state]
        word, detail = (entry.detail, "") if entry.detail.startswith(state) else (state, entry.detail)
        line = Text.assemble((f"{glyph} {word}", themed(self.app.theme_variables, variable)))
        facts = [detail]
        if state == "incomplete":
            facts.append("still being written" if entry.state == "running" else "the end of the run is missing")
        facts.append(units.size(entry.size_bytes))
        if entry.shipped:
            facts.append("came with taxtui")
        return line.append(" · " + " · ".join(filter(None, facts)))

    def _facts(self, entry: CatalogueEntry) -> Iterator[tuple[str, Text | str]]:
        started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.started_unix_ns // 10**9))
        lasted = stopwatch(entry.elapsed_ns / 1e9)
        lasted = f", {lasted} so far" if entry.state == "running" else f", lasted {lasted}"
        lasted = lasted if entry.elapsed_ns else ""
        yield "started", f"{started}{lasted}" if entry.started_unix_ns else "unknown"
        yield "id", " · ".join(filter(None, [entry.run_id, f"scenario {entry.scenario}" if entry.scenario else ""]))
        where = names(entry.substrates, dark=self.app.current_theme.dark)
        if entry.stand_in:
            where.append(" STAND-IN, not the provider", "bold")
        if entry.imported:
            where.append(" IMPORTED, not measured", "bold")
        yield "on", where
        yield "plan", f"{_many(entry.cells, 'cell')}: {', '.join(entry.workloads)} · {' '.join(entry.modes)}"


def software(facts: Mapping[str, str]) -> str:
    """Return ``cpu … · cores 2 · … · taxtui 0.1.0 · …``, the machine first."""
    first: Sequence[str] = ("cpu", "cores", "kernel", "taxtui", "python")
    order = [*(key for key in first if key in facts), *(key for key in facts if key not in first)]
    return " · ".join(f"{key} {facts[key]}" for key in order)


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
