"""Waiting time of the trainer's GPUs by part: most of it is the model's, and no tax of the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from costmodel import GpuWaiting, Row, TrainingRun
from taxtui.report.cells import DOLLARS, CellGroup, Content, TableCell, hours_cell
from taxtui.report.formats import Section
from taxtui.report.numbers import NOTHING

PARTS: Final = ("waiting", "generation", "commands", "stalled")
NOTE: Final = (
    "waiting: not training, whatever for. generation: for the model; commands: for useful commands; stalled: for the "
    "sandbox, and only that is its tax."
)


def waits(row: Row, training_run: TrainingRun) -> dict[str, GpuWaiting]:
    """By policy; of a run in steps whose causes are known, as its attribution has them."""
    if row.attribution is not None and row.attribution.waiting is not None:
        return {training_run.effective_policy.name: row.attribution.waiting}
    return row.gpu or {}


def section(rows: Sequence[tuple[str, Row]], training_run: TrainingRun) -> Section:
    """A line per row, by its name, and policy; none where nothing waits."""
    results = [(name, policy, item) for name, row in rows for policy, item in waits(row, training_run).items()]
    lines: list[list[Content]] = [
        [name, policy, hours_cell(item.wall_clock_hours), *(_amount(item, part) for part in PARTS)]
        for name, policy, item in results
    ]
    unit = "GPU-hours" if training_run.gpu_usd_hour is None else "GPU-h, $"
    head = ["sandbox\n", "policy\n", "wall-clock\n", *(f"{part}\n{unit}" for part in PARTS)]
    notes = [NOTE]
    if any(item.generation_gpu_hours is None for _, _, item in results):
        notes.append("generation –: there is no think time in the row; --think TIME adds it.")
    if any(item.stalled_gpu_hours is None for _, _, item in results):
        notes.append("stalled –: the commands' own time is unknown, so what is theirs and what the sandbox's is too.")
    return Section(f"Waiting time of {training_run.gpus} GPUs", head, lines, notes)


def _amount(waiting: GpuWaiting, part: str) -> Content:
    amount, price = getattr(waiting, f"{part}_gpu_hours"), getattr(waiting, f"{part}_usd")
    if amount is None:
        return NOTHING
    return TableCell(amount) if price is None else CellGroup((TableCell(amount), TableCell(price, DOLLARS)), below=True)
