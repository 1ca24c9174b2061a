"""The event log: finished trials and notices, filtered as a person types."""

from __future__ import annotations

import time

from rich.text import Text

from taxtui.live.state import LogLine, RunState
from taxtui.tui import units
from taxtui.tui.colours import LEVELS, substrate_style, themed
from taxtui.tui.lists.cursor_list import CursorList
from taxtui.tui.lists.line_list import MUTED
from taxtui.tui.live.cell_table import workload


class LogView(CursorList[LogLine]):
    """The latest lines, newest last; the cursor goes with them until a person moves it up."""

    follows = True

    def __init__(self, *, id: str | None = None) -> None:
        """Begin without a filter."""
        super().__init__(id=id)
        self.errors_only = False
        self.wanted = ""

    def present(self, state: RunState) -> None:
        """Show the lines of ``state`` that pass the filter."""
        self._labels = {cell.id: cell.label for cell in state.cells.values()}
        among = list(state.cells.values())
        self._workloads = {cell.id: workload(cell, among) for cell in among}
        before, newest = self.chosen, self.place == len(self.items) - 1
        self.show([line for line in state.log if self._passes(line)])
        same = [number for number, line in enumerate(self.items) if line is before]
        self.cursor = len(self.items) - 1 if newest or not same else same[0]

    def _passes(self, line: LogLine) -> bool:
        if self.errors_only and line.level not in ("error", "warning"):
            return False
        return not self.wanted or self.wanted.casefold() in self._words(line).casefold()

    def _words(self, line: LogLine) -> str:
        label = "" if line.cell is None else f"{self._labels.get(line.cell)} {self._workloads.get(line.cell)} "
        return f"#{line.trial} {label}{line.text}" if line.trial is not None else line.text

    def can_choose(self, number: int) -> bool:
        """Lines that are about a trial."""
        return self.items[number].trial is not None

    def draw(self, item: LogLine, number: int, width: int) -> Text:
        """The line, marked where the cursor stands on it and the log has the focus."""
        line = self._told(item)
        return self.marked(line, number, width) if self.has_focus else line

    def _told(self, item: LogLine) -> Text:
        """``14:02:11 ✗ #158 daytona T1×50 failed in create · Throttled: 429``."""
        glyph, variable = LEVELS.get(item.level, LEVELS["info"])
        line = Text()
        line.append(time.strftime("%H:%M:%S", time.localtime(item.unix_ns / 1e9)), MUTED)
        line.append(f" {glyph} ", themed(self.app.theme_variables, variable))
        if item.trial is None:
            return line.append(item.text)
        line.append(f"#{item.trial} ", MUTED)
        if item.cell is not None:
            label = self._labels.get(item.cell, "?")
            line.append(f"{label} ", substrate_style(label, dark=self.app.current_theme.dark))
            line.append(f"{self._workloads.get(item.cell, '?')} ")
        if item.level == "ok":
            line.append(f"ok after {units.duration(item.held_ns)}")
            line.append(f" · {item.text}" if item.text else "", MUTED)
        else:
            line.append(item.text, themed(self.app.theme_variables, variable))
        return line
