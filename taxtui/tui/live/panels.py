"""The lists of the Live screen: progress, cells, phases, log."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from taxtui.live.cell_state import CellState
from taxtui.live.state import LogLine, RunState
from taxtui.report.numbers import rough_duration, short_duration
from taxtui.terminal_text import fit
from taxtui.tui import units
from taxtui.tui.colours import LEVELS, colour, glyph, substrate_style, themed
from taxtui.tui.lists import MUTED, CursorList, LineList

NUMBER_WIDTH = 7


class CellTable(CursorList[CellState]):
    """One row per cell, with percentiles of a duration."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.facet = "cold_start"

    def present(self, cells: Sequence[CellState], facet: str) -> None:
        """Show the percentiles of the duration ``facet``."""
        self.facet = facet
        self._names = {cell.id: workload(cell, cells) for cell in cells}
        self._label_width = max(self.room_for(cell.label for cell in cells), len("substrate"))
        self._name_width = max(self.room_for(self._names.values()), len("workload"))
        self.show(cells, self._heading())

    @property
    def wide(self) -> bool:
        return self.size.width >= self._label_width + self._name_width + 3 * (NUMBER_WIDTH + 1) + 4 + 14

    def _heading(self) -> list[Text]:
        label = fit("substrate", self._label_width)
        counts = f"{'n':>7}{'fail':>6} " if self.wide else " "
        quantiles = " ".join(f"{'≈' + name:>{NUMBER_WIDTH}}" for name in units.QUANTILES)
        return [Text(f"    {label} {'workload':<{self._name_width}}{counts}{quantiles}", MUTED)]

    def draw(self, item: CellState, number: int, width: int) -> Text:
        """Return ``● docker:runc T0 x 10   281   0  612ms  803ms  n≥368``."""
        histogram = item.facets[self.facet]
        label = fit(item.label, self._label_width)
        line = Text.assemble(
            (f"{glyph(item.label)} {label} ", substrate_style(item.label)),
            fit(self._names[item.id], self._name_width),
        )
        if self.wide:
            line.append(f"{histogram.n:>7}")
            line.append(f"{item.failed:>6}", themed(self.app.theme_variables, "text-error") if item.failed else MUTED)
        line.append(" ")
        for place, name in enumerate(units.QUANTILES):
            text = units.percentile(histogram, name)
            is_known = text.startswith("≈")  # the heading has the sign
            line.append(" " * (place > 0) + f"{text.removeprefix('≈'):>{NUMBER_WIDTH}}", None if is_known else MUTED)
        return self.marked(line, number, width)


def workload(cell: CellState, among: Sequence[CellState]) -> str:
    """Return ``T0 x 10``, with mode and concurrency only if the cells differ there."""
    parts = [cell.workload]
    if len({peer.mode for peer in among}) > 1:
        parts.append({"session": "sess"}.get(cell.mode, cell.mode))
    if len({peer.concurrency for peer in among}) > 1:
        parts.append(f"c{cell.concurrency}")
    return " ".join(parts)


PARTIAL = " ▏▎▍▌▋▊▉"


class Group(NamedTuple):
    """The cells of a substrate, and the remaining time."""

    label: str
    cells: Sequence[CellState]
    remaining_ns: float | None
    over: bool


class ProgressBars(LineList[Group]):
    """A progress bar per substrate."""

    def present(self, state: RunState, *, over: bool) -> None:
        """Show the progress; ``over``: the measurement has ended."""
        groups = state.by_substrate()
        self._label_width = self.room_for(groups)
        self.show([Group(label, cells, state.remaining_ns(cells), over) for label, cells in groups.items()])

    def draw(self, item: Group, number: int, width: int) -> Text:
        """Return ``● docker ██████▌░░░░ 281/400  left 2 min  ok 281 fail 0``."""
        finished = sum(cell.finished for cell in item.cells)
        planned = None if any(c.planned is None for c in item.cells) else sum(c.planned or 0 for c in item.cells)
        ok, failed = sum(cell.ok for cell in item.cells), sum(cell.failed for cell in item.cells)
        remaining = "" if item.over else f"left {rough_duration(item.remaining_ns)}" if item.remaining_ns else ""
        tail = Text.assemble(
            f" {finished:>5}/{planned if planned is not None else '?':<5}",
            (f" {remaining:<16}", "" if remaining else MUTED),
            f"ok {ok:<5}",
            (f" fail {failed:<4}", themed(self.app.theme_variables, "text-error") if failed else MUTED),
        )
        line = Text()
        line.append(f"{glyph(item.label)} {fit(item.label, self._label_width)} ", substrate_style(item.label))
        room = max(4, width - line.cell_len - tail.cell_len)
        eighths = round(min(1.0, finished / planned) * room * 8) if planned else 0
        full, rest = divmod(eighths, 8)
        bar = "█" * full + PARTIAL[rest] * bool(rest)
        line.append(bar, colour(item.label))
        line.append("░" * (room - len(bar)), MUTED)
        return line.append_text(tail)


class LogView(CursorList[LogLine]):
    """The latest lines, the newest last; the cursor stays on the newest until a person moves the cursor up."""

    follows = True

    def present(self, state: RunState) -> None:
        """Show the lines of the log."""
        self._labels = {cell.id: cell.label for cell in state.cells.values()}
        among = list(state.cells.values())
        self._workloads = {cell.id: workload(cell, among) for cell in among}
        before, newest = self.chosen, self.place == len(self.items) - 1
        self.show(list(state.log))
        same = [number for number, line in enumerate(self.items) if line is before]
        self.cursor = len(self.items) - 1 if newest or not same else same[0]

    def can_choose(self, number: int) -> bool:
        return self.items[number].trial is not None

    def draw(self, item: LogLine, number: int, width: int) -> Text:
        """Return the line, with the cursor if the log has the focus."""
        line = self._line_of(item)
        return self.marked(line, number, width) if self.has_focus else line

    def _line_of(self, item: LogLine) -> Text:
        """Return ``14:02:11 ✗ #158 daytona T1 x 50 failed in create · Throttled: 429``."""
        glyph, variable = LEVELS.get(item.level, LEVELS["info"])
        line = Text()
        line.append(time.strftime("%H:%M:%S", time.localtime(item.unix_ns / 1e9)), MUTED)
        line.append(f" {glyph} ", themed(self.app.theme_variables, variable))
        if item.trial is None:
            return line.append(item.text)
        line.append(f"#{item.trial} ", MUTED)
        if item.cell is not None:
            label = self._labels.get(item.cell, "?")
            line.append(f"{label} ", substrate_style(label))
            line.append(f"{self._workloads.get(item.cell, '?')} ")
        if item.level == "ok":
            line.append(f"ok after {short_duration(item.held_ns)}")
            line.append(f" · {item.text}" if item.text else "", MUTED)
        else:
            line.append(item.text, themed(self.app.theme_variables, variable))
        return line
