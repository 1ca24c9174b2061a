"""From a cell to its slowest trials, and from a trial to its timeline; recordings are read in another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from costmodel.errors import CostModelError
from taxtui.errors import TaxtuiError
from taxtui.live.catalogue import command
from taxtui.live.cell_state import CellState
from taxtui.live.trial_story import EndedTrial, read_story, slowest
from taxtui.report.numbers import duration
from taxtui.terminal_text import clean
from taxtui.tui.dialogs import Choice, Choose, Tell
from taxtui.tui.numbered_screen import NumberedScreen
from taxtui.tui.trial.timeline import lines


async def show_trial(screen: NumberedScreen, path: Path, trial: int) -> None:
    """The timeline of a trial, or why there is none."""
    try:
        story = await asyncio.to_thread(read_story, path, trial)
    except (TaxtuiError, CostModelError, OSError) as error:
        screen.notify(str(error), severity="warning")
        return
    await screen.app.push_screen_wait(Tell(f"Trial #{trial}", partial(lines, story), copyable=command(path)))


async def show_slowest(
    screen: NumberedScreen, paths: Sequence[Path], wanted: Callable[[CellState], bool], title: str
) -> None:
    """The slowest trials of some cells; a choice leads to its timeline, and back."""
    try:
        found = await asyncio.to_thread(slowest, paths, wanted)
    except (TaxtuiError, CostModelError, OSError) as error:
        screen.notify(str(error), severity="warning")
        return
    if not found:
        screen.notify(f"no trial of {title} has ended yet", severity="warning")
        return
    choices = [Choice(f"#{one.trial}", _note(one), (path, one.trial)) for path, one in found]
    while chosen := await screen.app.push_screen_wait(Choose(f"Slowest trials · {title}", choices)):
        await show_trial(screen, *chosen)


def _note(one: EndedTrial) -> str:
    return f"{duration(one.held_ns):>9}  {one.outcome}  {clean(f'{one.cell.label} {one.cell.workload}')}"
