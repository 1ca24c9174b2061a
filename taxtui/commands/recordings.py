"""``taxtui recordings info|verify|compact``: what a file holds, whether all of it can be trusted, and a smaller one."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import click

from costmodel.errors import SourceError
from costmodel.recording.events import (
    FIXED,
    Actions,
    Cell,
    Event,
    Header,
    Notice,
    RunFinished,
    TrialEnded,
    TrialStarted,
)
from costmodel.recording.follower import RecordingSummary, read_events
from costmodel.training.length import Length
from taxtui.recording.compact import compact
from taxtui.recording.salvage import salvage
from taxtui.terminal_text import clean


@click.group("recordings")
def command() -> None:
    """Inspect, verify, salvage and compact recordings."""


@command.command("info")
@click.argument("files", nargs=-1, required=True, metavar="RECORDING...", type=click.Path(path_type=Path))
def info(files: tuple[Path, ...]) -> None:
    """Say what each recording holds: run, machine, cells, trials by outcome, and the reasons of failures."""
    for path in files:
        contents = _Contents()
        summary = read_events(path, contents.apply)
        _say(f"{path}: run {summary.header.run_id}, {_state(summary)}")
        _say(f"  {'ended':24} {contents.ending(summary.header)}")
        for key, value in sorted(summary.header.software.items()):
            _say(f"  {key:24} {value}")
        _say(f"  {'events':24} {summary.events} in {summary.frames} frames, {summary.size_bytes} bytes")
        for line in contents.lines():
            _say(f"  {line}")


@command.command("verify")
@click.argument("files", nargs=-1, required=True, metavar="RECORDING...", type=click.Path(path_type=Path))
@click.option(
    "--salvage", "out", type=click.Path(path_type=Path), help="Write the intact frames of the one RECORDING here."
)
@click.pass_context
def verify(ctx: click.Context, files: tuple[Path, ...], out: Path | None) -> None:
    """Check every byte. Exit 0: complete and intact; 1: incomplete but intact; 4: damaged or not a recording."""
    if out is not None:
        if len(files) != 1:
            raise click.UsageError("--salvage takes exactly one RECORDING")
        kept, lost = salvage(files[0], out)
        _say(f"{out}: {kept} frames kept, {lost} bytes lost")
        return
    worst = 0
    for path in files:
        try:
            summary = read_events(path, lambda event: None)
        except SourceError as error:
            _say(f"taxtui: {error}", err=True)
            worst = SourceError.exit_code
            continue
        _say(f"{path}: {_state(summary)}, {summary.events} events in {summary.frames} frames")
        worst = max(worst, 0 if summary.complete else 1)
    ctx.exit(worst)


@command.command("compact")
@click.argument("file", metavar="RECORDING", type=click.Path(path_type=Path))
@click.option("-o", "--output", "out", required=True, type=click.Path(path_type=Path), help="The file to write.")
def compact_(file: Path, out: Path) -> None:
    """Write a recording anew, smaller, with the same events.

    A run writes the actions of a trial piece by piece; here those of a step are in one piece.
    """
    found = compact(file, out)
    after = out.stat().st_size
    _say(f"{out}: {after} bytes, {after / found.size_bytes:.0%} of {file}; {_state(found)}")


class _Contents:
    """Trials by cell and outcome, and why some failed."""

    def __init__(self) -> None:
        self._cells: dict[int, Cell] = {}
        self._cell_of: dict[int, int] = {}
        self._warm_ups: set[int] = set()
        self._taken: Counter[int] = Counter()  # actions by trial
        self._lengths: defaultdict[int, Counter[int]] = defaultdict(Counter)  # of successes, by cell
        self._outcomes: defaultdict[int, Counter[str]] = defaultdict(Counter)  # by cell
        self._outcome = ""  # of the run; "" where its end is missing
        self._reasons: Counter[str] = Counter()
        self._notices: Counter[str] = Counter()

    def apply(self, event: Event) -> None:
        match event:
            case Cell():
                self._cells[event.id] = event
            case TrialStarted():
                self._cell_of[event.trial] = event.cell
                if event.warm_up:
                    self._warm_ups.add(event.trial)
            case Actions(step="action"):
                self._taken[event.trial] += len(event.duration_ns)
            case TrialEnded():
                actions, cell = self._taken.pop(event.trial, 0), self._cell_of.get(event.trial, -1)
                if event.trial not in self._warm_ups:
                    self._outcomes[cell][event.outcome] += 1
                    self._lengths[cell][actions] += event.outcome == "ok"
                if event.outcome != "ok":
                    self._reasons[f"{event.outcome} in {event.phase}: {event.error} {event.message}"] += 1
            case RunFinished():
                self._outcome = event.outcome
            case Notice() if event.level != "info":
                self._notices[event.text] += 1
            case _:
                pass

    def ending(self, header: Header) -> str:
        """How the run ended, which is not whether its file is whole: ``budget: 20 of 32 trials, 0 failed``."""
        from taxtui.live.state import RunState

        run = RunState()
        run.apply(header)
        plans = [cell.planned for cell in run.cells.values()]
        known = [planned for planned in plans if planned is not None]
        told = self._outcomes.values()
        done, ok = sum(one.total() for one in told), sum(one["ok"] for one in told)
        of = f" of {sum(known):,}" if known and len(known) == len(plans) else ""
        return f"{self._outcome or 'no end is recorded'}: {done:,}{of} trials, {done - ok:,} failed"

    def lines(self) -> list[str]:
        lines = []
        for number, cell in sorted(self._cells.items()):
            name = ":".join(filter(None, [cell.substrate, cell.variant]))
            counts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(self._outcomes[number].items()))
            told = {"stand_in": " STAND-IN, not the provider", "imported": " IMPORTED, not measured"}
            shape = f"{cell.tier} x {self._length(number, cell)} {cell.mode} c={cell.concurrency}"
            lines.append(f"{name:20} {shape:22} {counts or 'no trials'}{told.get(cell.provenance, '')}")
        lines += [f"{n} x {reason}" for reason, n in self._reasons.most_common()]
        lines += [f"{n} x notice: {text}" for text, n in self._notices.most_common()]
        return lines

    def _length(self, number: int, cell: Cell) -> str:
        lengths = self._lengths[number]
        if cell.length == FIXED:
            return f"{cell.actions:,}"
        return str(Length.weighted(lengths)) if lengths.total() else "varied"


def _state(summary: RecordingSummary) -> str:
    why = "trials are missing, the end of the run counts others" if summary.ended else "no end of the run"
    parts = ["complete" if summary.complete else f"incomplete ({why})"]
    if summary.torn_bytes:
        parts.append(f"{summary.torn_bytes} bytes of a torn frame dropped")
    if summary.skipped:
        parts.append(f"{summary.skipped} events of a newer version skipped")
    if not summary.chained:
        parts.append("unchained (of an early version: frames taken out or put in would not be seen)")
    return ", ".join(parts)


def _say(line: str, *, err: bool = False) -> None:
    """A line with texts from a file in it, or its name."""
    click.echo(clean(line), err=err)
