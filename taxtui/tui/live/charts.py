"""Which cells belong together: the charts, the phase bars, and what to say where there is nothing to show yet."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from taxtui.live.cell_state import FACETS, CellState, TrialInFlight
from taxtui.live.histogram import LogHistogram
from taxtui.live.state import RunState
from taxtui.terminal_text import clean
from taxtui.tui.colours import colour
from taxtui.tui.live.cell_table import workload
from taxtui.tui.live.histogram_plot import HistogramPlot, view
from taxtui.tui.live.phase_bars import PhaseBars, legend


def paint_charts(
    charts: tuple[HistogramPlot, HistogramPlot],
    state: RunState,
    chosen: CellState | None,
    facet: int,
    zoom: int,
    *,
    dark: bool,
) -> None:
    """Show a facet of the chosen cell, and beside it what it is compared with, on one axis where that is alike."""
    cells = list(state.cells.values())
    shown = [(chosen, facet), counterpart(chosen, cells, facet)]
    bounds = [view(cell.facets[FACETS[which]], zoom) if cell else (1.0, 10.0) for cell, which in shown]
    alike = shown[0][1] == shown[1][1] and all(cell and cell.facets[FACETS[facet]].n for cell, _ in shown)
    if charts[1].display and alike:
        both = (min(low for low, _ in bounds), max(high for _, high in bounds))
        bounds = [both, both]  # so that two substrates can be compared by eye
    for chart, (cell, which), limits in zip(charts, shown, bounds, strict=True):
        title = FACETS[which].replace("_", " ")
        if cell is None:
            chart.show(title, LogHistogram(), "#999999", limits, waiting(state, None))
            continue
        zoomed = f" · zoom {2**zoom}×" if zoom else ""
        chart.show(
            f"{title} · {cell.label} {workload(cell, cells)}{zoomed}",
            cell.facets[FACETS[which]],
            colour(cell.label, dark=dark),
            limits,
            waiting(state, cell),
        )


def paint_phases(bars: PhaseBars, cells: Sequence[CellState], chosen: CellState | None, *, dark: bool) -> None:
    """Show the phases of the cells with the chosen one's workload."""
    like = [cell for cell in cells if chosen and same_workload(cell, chosen)]
    bars.present(like)
    bars.empty = "the mean time of a trial by phase, once the first has finished"
    name = f"phases of {workload(chosen, cells)}" if chosen else "phases"
    legends = legend(like, dark=dark)
    bars.entitle(Text.assemble(name, " ·" if legends else "", legends))


def same_workload(a: CellState, b: CellState) -> bool:
    """They differ in the substrate alone."""
    return (a.tier, a.actions, a.length, a.mode, a.concurrency) == (b.tier, b.actions, b.length, b.mode, b.concurrency)


def counterpart(chosen: CellState | None, cells: list[CellState], facet: int) -> tuple[CellState | None, int]:
    """What the second chart shows: the same workload on another substrate, else the cell's next facet."""
    if chosen is not None:
        for cell in cells:
            if cell.label != chosen.label and same_workload(cell, chosen):
                return cell, facet
    return chosen, (facet + 1) % len(FACETS)


def waiting(state: RunState, cell: CellState | None) -> str:
    """Why a chart is empty: what is in flight, and the last notice."""
    name = f" of {cell.label}" if cell else ""
    lines = [f"waiting for the first trial{name} to finish …"]
    if cell and cell.ok:
        lines = ["not known for this cell"]
    elif cell and state.outcome is not None:
        lines = [f"no trial{name} has succeeded"]
    lines += [_progress_of(key, trial) for key, trial in list(state.open.items())[-2:]]
    notices = [line.text for line in state.log if line.trial is None]
    return "\n".join(lines + notices[-1:])


def _progress_of(key: int, trial: TrialInFlight) -> str:
    return f"#{key} past {clean(trial.doing)}" if trial.doing else f"#{key} being created"
