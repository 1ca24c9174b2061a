"""``taxtui recordings``: list, inspect and verify recordings, and print one trial."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from costmodel import Follower, SourceError, events, read_events
from taxtui.commands.files import find_recording
from taxtui.errors import RecordingError, UsageError
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from taxtui.live.catalogue import CatalogueEntry
    from taxtui.report.cells import Content
    from taxtui.report.formats import Section


@click.group("recordings")
def command() -> None:
    """List, inspect and verify recordings, and print one trial."""


@command.command("list")
@click.argument("folder", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
def list_(folder: Path | None) -> None:
    """List the recordings in FOLDER, the newest first.

    Without FOLDER: the folder of `taxtui run`, and the shipped recordings.
    """
    from taxtui.live import catalogue
    from taxtui.report.formats.plain_tables import terminal_width, to_text

    entries, _, problem = catalogue.scan(folder=folder)
    if problem:
        raise UsageError(problem)
    if not entries:
        raise UsageError(f"no recordings in {folder}", fix="make one: taxtui run -o NAME.msgpack")
    click.echo(to_text([_table(entries)], terminal_width()))


def _table(entries: Sequence[CatalogueEntry]) -> Section:
    """Return a table with a line per file."""
    from taxtui.report.cells import TableCell
    from taxtui.report.formats import Section
    from taxtui.report.numbers import COUNT, NOTHING

    rows: list[list[Content]] = []
    for entry in entries:
        count = entry.ended_trials if entry.ended_trials is not None else entry.trials
        date = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.when_ns / 1e9)) if entry.when_ns else "unknown"
        name = f"{entry.name}\n{'shipped' if entry.shipped else ''}"
        state = entry.fate if entry.state == "complete" else entry.state
        workloads = "\n".join(", ".join(texts) for texts in (entry.substrates, entry.workloads))
        rows.append([name, state, date, NOTHING if count is None else TableCell(count, COUNT), workloads])
    return Section("", ["recording", "state", "date", "trials", "substrates\nworkloads"], rows, [])


@command.command("trial")
@click.argument("file", metavar="RECORDING")
@click.argument("number", metavar="TRIAL", type=click.IntRange(0))
def trial(file: str, number: int) -> None:
    """Print the phases and actions of one trial; `taxtui export` lists the numbers of all trials."""
    from taxtui.live.trial_story import read_story
    from taxtui.report import trial_timeline
    from taxtui.report.formats.plain_tables import terminal_width, to_text

    story, width = read_story(find_recording(file), number), terminal_width()
    click.echo(trial_timeline.lines(story, min(width, trial_timeline.WIDEST)))
    if (table := trial_timeline.commands(story)).rows:
        click.echo(f"\n{to_text([table], width)}")


@command.command("info")
@click.argument("files", nargs=-1, required=True, metavar="RECORDING...")
def info(files: tuple[str, ...]) -> None:
    """Print the run, machine, cells, trials by outcome and reasons of failures of each recording."""
    for path in map(find_recording, files):
        contents = _Contents()
        summary = read_events(path, contents.apply)
        header = summary.finish()
        _say(f"{path}: run {header.run_id}, {_state(summary)}")
        _say(f"  {'ended':24} {contents.ending()}")
        for key, value in sorted(header.software.items()):
            _say(f"  {key:24} {value}")
        _say(f"  {'events':24} {summary.events} in {summary.frames} frames, {summary.size_bytes} bytes")
        for line in contents.lines():
            _say(f"  {line}")


@command.command("verify")
@click.argument("files", nargs=-1, required=True, metavar="RECORDING...")
@click.pass_context
def verify(context: click.Context, files: tuple[str, ...]) -> None:
    """Check every byte. Exit 0: complete and intact; 1: incomplete but intact; 4: damaged or not a recording."""
    worst = 0
    for file in files:
        try:
            path = find_recording(file)
            summary = read_events(path, lambda event: None)
        except (SourceError, RecordingError) as error:
            _say(f"taxtui: {error}", err=True)
            worst = SourceError.exit_code
            continue
        _say(f"{path}: {_state(summary)}, {summary.events} events in {summary.frames} frames")
        worst = max(worst, 0 if summary.complete else 1)
    context.exit(worst)


class _Contents:
    """The state of a run at the end of its recording, with the reasons of failures and the notices."""

    def __init__(self) -> None:
        from taxtui.live.state import RunState

        self._run = RunState()
        self._reasons: Counter[str] = Counter()
        self._notices: Counter[str] = Counter()

    def apply(self, event: events.Event) -> None:
        self._run.apply(event)
        match event:
            case events.TrialEnded() if event.outcome != "ok":
                self._reasons[f"{event.outcome} in {event.phase}: {event.error} {event.message}"] += 1
            case events.Notice() if event.level != "info":
                self._notices[event.text] += 1

    def ending(self) -> str:
        """Return the end of the run, such as ``budget: 20 of 32 trials, 0 failed``; the file may be incomplete."""
        cells = self._run.cells.values()
        failed = sum(cell.failed for cell in cells)
        ended = sum(cell.finished - cell.outcomes[events.INTERRUPTED] for cell in cells)
        plans = [cell.planned for cell in cells if cell.planned is not None]
        planned = f" of {sum(plans):,}" if plans and len(plans) == len(cells) else ""
        return f"{self._run.outcome or 'no end is recorded'}: {ended:,}{planned} trials, {failed:,} failed"

    def lines(self) -> list[str]:
        lines = []
        provenances = {"stand_in": " STAND-IN, not the provider", "imported": " IMPORTED, not measured"}
        for cell in (self._run.cells[number] for number in sorted(self._run.cells)):
            counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(cell.outcomes.items()))
            workload = f"{cell.workload} {cell.mode} c={cell.concurrency}"
            lines.append(f"{cell.label:20} {workload:22} {counts or 'no trials'}{provenances.get(cell.provenance, '')}")
        lines += [f"{count} x {reason}" for reason, count in self._reasons.most_common()]
        lines += [f"{count} x notice: {text}" for text, count in self._notices.most_common()]
        return lines


def _state(summary: Follower) -> str:
    reason = "trials are missing, the end of the run counts others" if summary.ended else "no end of the run"
    parts = ["complete" if summary.complete else f"incomplete ({reason})"]
    if summary.torn_bytes:
        parts.append(f"{summary.torn_bytes} bytes of a torn frame dropped")
    if summary.skipped:
        parts.append(f"{summary.skipped} events of a newer version skipped")
    if not summary.chained:
        parts.append("unchained (of an early version: frames taken out or put in would not be seen)")
    return ", ".join(parts)


def _say(line: str, *, err: bool = False) -> None:
    """Print a line with texts from a file, or with its name."""
    click.echo(clean(line), err=err)
