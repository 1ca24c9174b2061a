"""A measurement in words: the status in the first line, the next steps, the summary after quitting."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from taxtui.live.state import RunState
from taxtui.terminal_text import clean, fit, widest
from taxtui.tui import units
from taxtui.tui.live.feed import Feed, RunFeed
from taxtui.tui.live.replay import ReplayFeed
from taxtui.tui.projection import form


def status(state: RunState, feed: Feed, *, over: bool, brief: bool) -> Text:
    """``PAUSED  run 0c11 · 00:04:12 · left 3m05s · REC 1.2 MB · runner ok``."""
    line = Text()
    if words := condition(state, feed, over=over):
        line.append(f" {words} ", "reverse bold")
        line.append(" ")
    facts = [f"run {state.run_id[-4:]}" if state.run_id else "", units.clock(state.elapsed_ns)]
    if state.repetitions > 1:
        facts.insert(1, f"repetition {state.repetition}/{state.repetitions}")
    remaining = state.eta_ns()
    if feed.live and not over and remaining:
        facts.append(f"left {units.clock(remaining, short=True)}")
    facts.append(f"{'REC ' if feed.live and not over else ''}{units.size(feed.size_bytes)}")
    line.append(" · ".join(fact for fact in facts if fact))
    if state.runner.latest:
        problems = state.runner.problems
        details = ", ".join([f"lag p99 {units.duration(state.runner.lag_p99_ns)}", *problems])
        words = f"runner {'late' if problems else 'ok'}{'' if brief else f' ({details})'}"
        line.append(f" · {words}", "reverse bold" if problems else "")
    return line


def condition(state: RunState, feed: Feed, *, over: bool) -> str:
    """Return a word or two about an unusual condition."""
    if isinstance(feed, ReplayFeed):
        if over:
            return "DAMAGED" if feed.damage else "REPLAY END" if state.outcome else "INCOMPLETE"
        return f"REPLAY {'‖' if feed.paused else '▶'} {f'{feed.speed:g}×' if feed.speed else 'max'}"
    if over:
        return (state.outcome or "incomplete").upper()
    if isinstance(feed, RunFeed) and feed.cancelled:
        return "CLEANING UP"
    return "PAUSED" if feed.paused else ""


def last_lines(state: RunState, feed: Feed) -> Text:
    """Return the outcome and the next steps, or the damage of the file."""
    if isinstance(feed, ReplayFeed) and feed.damage:
        return Text.assemble((f" {feed.damage} ", "bold"), ("· the screen shows everything before the damage", "dim"))
    return Text.assemble(
        (f" {_counts(state)} ", "bold"),
        ("· 3 results · 4 projects to a training run · ", "dim"),
        f"$ {form.command([feed.path])}",
    )


def farewell(state: RunState, path: Path) -> str:
    """Return the summary for the terminal after quitting."""
    lines = [
        f"run {state.run_id} {state.outcome or 'incomplete'} after {units.clock(state.elapsed_ns)}: {_counts(state)}"
    ]
    columns = widest(cell.label for cell in state.cells.values())
    for cell in state.cells.values():
        cold, action = (units.percentile(cell.facets[name], "p50") for name in ("cold_start", "action"))
        lines.append(
            f"  {fit(cell.label, columns)}  {cell.workload} {cell.mode:<7}"
            f"  {cell.ok} ok, {cell.failed} failed  cold start p50 {cold}  action p50 {action}"
        )
    if problems := state.runner.problems:
        lines.append(f"  the runner was disturbed ({', '.join(problems)}): durations may be too long")
    lines += [f"recording: {clean(str(path))}", f"next: {form.command([path])}"]
    return "\n".join(lines)


def _counts(state: RunState) -> str:
    cells = state.cells.values()
    counts = f"{sum(cell.ok for cell in cells):,} ok, {sum(cell.failed for cell in cells):,} failed"
    cut = sum(cell.finished - cell.ok - cell.failed for cell in cells)
    return f"{counts}, {cut:,} cut off" if cut else counts
