"""A measurement in words: the status in the first line, the next steps, and the end after quitting."""

from __future__ import annotations

import contextlib
from pathlib import Path

from rich.text import Text

from costmodel import CostModelError
from taxtui.live.state import RunState
from taxtui.report.numbers import rough_duration, short_duration, stopwatch
from taxtui.terminal_text import clean
from taxtui.tui import units
from taxtui.tui.live.replay import Feed, ReplayFeed
from taxtui.tui.projection import form


def status(state: RunState, feed: Feed, *, over: bool, brief: bool) -> Text:
    """``PAUSED  run 0c11 · 4:12 · left 3 min · REC 1.2 MB · runner ok``."""
    line = Text()
    if words := condition(state, feed, over=over):
        line.append(f" {words} ", "reverse bold")
        line.append(" ")
    facts = [f"run {state.run_id[-4:]}" if state.run_id else "", stopwatch(state.elapsed_ns / 1e9)]
    if state.repetitions > 1:
        facts.insert(1, f"repetition {state.repetition}/{state.repetitions}")
    remaining = state.remaining_ns(state.cells.values())
    if feed.live and not over and remaining:
        facts.append(f"left {rough_duration(remaining)}")
    facts.append(f"{'REC ' if feed.live and not over else ''}{units.size(feed.size_bytes)}")
    line.append(" · ".join(fact for fact in facts if fact))
    if state.runners:
        problems = state.runner.problems
        details = ", ".join([f"lag p99 {short_duration(state.runner.lag_p99_ns)}", *problems])
        words = f"runner {'late' if problems else 'ok'}{'' if brief else f' ({details})'}"
        line.append(f" · {words}", "reverse bold" if problems else "")
    return line


def condition(state: RunState, feed: Feed, *, over: bool) -> str:
    """Return a word or two about an unusual condition."""
    if isinstance(feed, ReplayFeed):
        if over:
            return "DAMAGED" if feed.damage else "REPLAY END" if state.outcome else "INCOMPLETE"
        return f"REPLAY {'‖' if feed.paused else '▶'}"
    if over:
        return (state.outcome or "incomplete").upper()
    if feed.cancelled:
        return "CLEANING UP"
    return "PAUSED" if feed.paused else ""


def last_lines(state: RunState, feed: Feed) -> Text:
    """Return the outcome and the next steps, or the damage of the file."""
    if isinstance(feed, ReplayFeed) and feed.damage:
        return Text.assemble((f" {feed.damage} ", "bold"), ("· the screen shows everything before the damage", "dim"))
    return Text.assemble(
        (f" {_counts(state)} ", "bold"),
        ("· 3 results · 4 projects to a training run · ", "dim"),
        f"$ {form.command([feed.path], {})}",
    )


def farewell(state: RunState, path: Path) -> str:
    """Return the answer as ``taxtui run`` prints it, the end of a measurement and the path, for after quitting."""
    from taxtui.report.answer.measured import summary

    lines = [f"{state.outcome or 'incomplete'} after {stopwatch(state.elapsed_ns / 1e9)}: {_counts(state)}"]
    with contextlib.suppress(CostModelError):  # no trial has succeeded
        lines.insert(0, f"{summary(path)}\n")
    if problems := state.runner.problems:
        lines.append(f"the runner was disturbed ({', '.join(problems)}): durations may be too long")
    return "\n".join([*lines, clean(str(path)), f"next: {form.command([path], {})}"])


def _counts(state: RunState) -> str:
    cells = state.cells.values()
    counts = f"{sum(cell.ok for cell in cells):,} ok, {sum(cell.failed for cell in cells):,} failed"
    cut = sum(cell.finished - cell.ok - cell.failed for cell in cells)
    return f"{counts}, {cut:,} cut off" if cut else counts
