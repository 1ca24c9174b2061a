"""Which cells belong together: the charts, the phase bars, and what to say where there is nothing to show yet."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from costmodel.recording.breakdown import has_schedule
from taxtui.live.cell_state import FACETS, CellState, TrialInFlight
from taxtui.live.histogram import LogHistogram
from taxtui.live.state import RunState
from taxtui.report.numbers import CLOSED_LOOP
from taxtui.terminal_text import clean
from taxtui.tui.colours import colour
from taxtui.tui.ladder_plot import LadderPlot, LadderPoint
from taxtui.tui.live.cell_table import workload
from taxtui.tui.live.ecdf_plot import EcdfLine, EcdfPlot
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
    overlaid: bool,
) -> None:
    """Show a facet of the chosen cell, and beside it the cell's next one, for where there is nothing to overlay.

    ``overlaid``: all substrates are on a chart of their own beside it.
    """
    cells, cell = list(state.cells.values()), chosen
    for chart, which in zip(charts, (facet, (facet + 1) % len(FACETS)), strict=True):
        title = FACETS[which].replace("_", " ")
        limits = view(cell.facets[FACETS[which]], zoom) if cell else (1.0, 10.0)
        if cell is None:
            chart.show(title, LogHistogram(), "#999999", limits, waiting(state, None, FACETS[which]))
            continue
        zoomed = f" · zoom {2**zoom}×" if zoom else ""
        like = sum(same_workload(other, cell) for other in cells)
        others = f" · 1 of {like}, v all" if like > 1 and not overlaid else ""
        chart.show(
            f"{title} · {cell.label} {workload(cell, cells)}{zoomed}{others}",
            cell.facets[FACETS[which]],
            colour(cell.label, dark=dark),
            limits,
            waiting(state, cell, FACETS[which]),
        )


def paint_overlay(plot: EcdfPlot, state: RunState, chosen: CellState | None, facet: int) -> bool:
    """Show a facet of all substrates with the chosen cell's workload; False where that is one alone."""
    cells = list(state.cells.values())
    like = [cell for cell in cells if chosen and same_workload(cell, chosen)]
    if chosen is None or len(like) < 2:
        return False
    title = f"{FACETS[facet].replace('_', ' ')} · {workload(chosen, cells)} · share done by then, of all {len(like)}"
    plot.show(title, [EcdfLine(cell.label, cell.facets[FACETS[facet]]) for cell in like])
    return True


def paint_ladder(plot: LadderPlot, state: RunState, chosen: CellState | None) -> bool:
    """Show what the chosen cell gets done at each of its levels of concurrency; False where there is one alone."""
    like = [cell for cell in state.cells.values() if chosen and _same_but_level(cell, chosen)]
    if chosen is None or len({cell.concurrency for cell in like}) < 2:
        return False
    points = [
        LadderPoint(
            cell.concurrency,
            cell.rates.per_s(cell.concurrency) * cell.mean_actions,
            cell.facets["action"].quantile(0.95) if cell.ok else 0.0,
        )
        for cell in sorted(like, key=lambda cell: cell.concurrency)
    ]
    plot.present(f"{chosen.label} {chosen.workload} · l one level", points)
    return True


def _same_but_level(a: CellState, b: CellState) -> bool:
    """They differ in how many ran at a time alone, with their lanes kept full."""
    fields = ("label", "tier", "actions", "length", "mode", "think", "acquire", "provenance")
    return not has_schedule(a.arrival) and all(getattr(a, name) == getattr(b, name) for name in fields)


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


def waiting(state: RunState, cell: CellState | None, facet: str) -> str:
    """Why a chart is empty: what is in flight, and the last notice."""
    name = f" of {cell.label}" if cell else ""
    lines = [f"waiting for the first trial{name} to finish …"]
    if cell and cell.ok:
        lines = [CLOSED_LOOP if facet == "response" else "not known for this cell"]
    elif cell and state.outcome is not None:
        lines = [f"no trial{name} has succeeded"]
    lines += [_progress_of(key, trial) for key, trial in list(state.open.items())[-2:]]
    notices = [line.text for line in state.log if line.trial is None]
    return "\n".join(lines + notices[-1:])


def _progress_of(key: int, trial: TrialInFlight) -> str:
    return f"#{key} past {clean(trial.doing)}" if trial.doing else f"#{key} being created"
