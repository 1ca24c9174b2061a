"""Dialogs: the slowest trials of a cell, and the timeline of a trial."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.text import Text

from costmodel import CostModelError
from taxtui.errors import TaxtuiError
from taxtui.live.catalogue import command
from taxtui.live.cell_state import CellState
from taxtui.live.trial_story import EndedTrial, read_story, slowest
from taxtui.report.numbers import duration
from taxtui.report.trial_timeline import lines
from taxtui.terminal_text import clean
from taxtui.tui.dialogs import Choice, Choose, Tell, columns
from taxtui.tui.numbered_screen import NumberedScreen


async def show_trial(screen: NumberedScreen, path: Path, trial: int) -> None:
    """Show the timeline of a trial, or the reason for its absence."""
    try:
        story = await asyncio.to_thread(read_story, path, trial)
    except (TaxtuiError, CostModelError, OSError) as error:
        screen.notify(str(error), severity="warning")
        return
    timeline = Text(lines(story, columns(screen.app)), no_wrap=True)
    await screen.app.push_screen_wait(Tell(f"Trial #{trial}", timeline, copyable=command(path)))


async def show_slowest(
    screen: NumberedScreen, paths: Sequence[Path], wanted: Callable[[CellState], bool], title: str
) -> None:
    """Show the slowest trials of some cells, and the timeline of each choice."""
    try:
        trials = await asyncio.to_thread(slowest, paths, wanted)
    except (TaxtuiError, CostModelError, OSError) as error:
        screen.notify(str(error), severity="warning")
        return
    if not trials:
        screen.notify(f"no trial of {title} has ended yet", severity="warning")
        return
    choices = [Choice(f"#{ended.trial}", _note(ended), (path, ended.trial)) for path, ended in trials]
    while chosen := await screen.app.push_screen_wait(Choose(f"Slowest trials · {title}", choices)):
        await show_trial(screen, *chosen)


def _note(ended: EndedTrial) -> str:
    return f"{duration(ended.held_ns):>9}  {ended.outcome}  {clean(f'{ended.cell.label} {ended.cell.workload}')}"
