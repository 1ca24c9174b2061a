"""Which cells belong side by side, and what to say where a cell has nothing to show yet."""

from __future__ import annotations

from taxtui.cell_state import FACETS, CellState, OpenTrial
from taxtui.state import RunState, clean


def same_workload(a: CellState, b: CellState) -> bool:
    """They differ in the substrate alone."""
    return (a.tier, a.actions, a.mode, a.concurrency) == (b.tier, b.actions, b.mode, b.concurrency)


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


def _progress_of(key: int, trial: OpenTrial) -> str:
    return f"#{key} past {clean(trial.doing)}" if trial.doing else f"#{key} being created"
