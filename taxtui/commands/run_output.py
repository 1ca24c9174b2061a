"""The output of ``taxtui run``: progress, the end, the answer, and the path of the recording."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from taxtui.errors import RunCrashed, located
from taxtui.report.numbers import stopwatch
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from taxtui.runner.run import Run
    from taxtui.runner.run_control import Progress

PLAIN_LINES: Final = 10
"""Lines of plain progress in the whole measurement."""
INTERRUPTED: Final = ("interrupted", "cancelled")
"""Outcomes of a measurement after Ctrl-C, a signal or a command of the interface."""


def say(text: str, *, nl: bool = True) -> None:
    """Print on standard error, which may have no reader."""
    click.echo(text, nl=nl, err=True)


def say_clean(text: str) -> None:
    """Print a line with names from a file, a provider or a person."""
    say(clean(text))


class RunOutput:
    """Progress on standard error: a line that is rewritten, lines, or nothing."""

    def __init__(
        self, kind: str, budget_s: float | None, *, controlled: bool = False, load: str = "", plan: str = ""
    ) -> None:
        """Prepare the output of a measurement. Load and plan follow its start: a refusal is one line.

        Args:
            kind: value of ``--progress``.
            budget_s: upper limit of the printed remaining time.
            controlled: another program shows the answer.
            load: a warning about the load of the machine, or "".
            plan: lines about a plan chosen by taxtui, or "".
        """
        self.kind = ("line" if sys.stderr.isatty() else "plain") if kind == "auto" else kind
        self.for_people = not controlled
        self._first_lines = [text for text in (*plan.splitlines(), load) if text and self.for_people]
        self._budget_s = budget_s
        self._began = time.monotonic()
        self._tenth = -1

    @property
    def clock(self) -> str:
        return stopwatch(time.monotonic() - self._began)

    def show(self, progress: Progress) -> None:
        """Print the progress after a change."""
        self._say_first_lines()
        if self.kind == "line":
            say(f"\r\x1b[K{self._line(progress)}", nl=False)
        elif self.kind == "plain":
            tenth = progress.ended * PLAIN_LINES // max(1, progress.planned)
            if tenth != self._tenth:
                self._tenth = tenth
                say(self._line(progress))

    def end(self) -> None:
        """Erase the line; ``conclude`` prints the end."""
        self._say_first_lines()
        if self.kind == "line":
            say("\r\x1b[K", nl=False)

    def _say_first_lines(self) -> None:
        for text in self._first_lines:
            say_clean(f"taxtui: {text}")
        self._first_lines = []

    def _line(self, progress: Progress) -> str:
        left_s = self._remaining_s(progress)
        remaining = "" if left_s is None or progress.ended >= progress.planned else f", about {stopwatch(left_s)} left"
        repetition = f"repetition {progress.repetition}/{progress.repetitions}, " if progress.repetitions > 1 else ""
        return f"{repetition}{_counts(progress)}, {self.clock}{remaining}"

    def _remaining_s(self, progress: Progress) -> float | None:
        elapsed_s = time.monotonic() - self._began
        left_s = progress.left_s(elapsed_s)
        return left_s if left_s is None or self._budget_s is None else min(left_s, max(0.0, self._budget_s - elapsed_s))


def conclude(run: Run, output: RunOutput) -> None:
    """Print the end and the answer on standard error and the path on standard output; exit with the documented code.

    Raises:
        WriteFailed: the recording could not be written.
        RunCrashed: a bug ended the measurement.
    """
    progress, outcome = run.progress, run.outcome
    intact = run.control.write_error is None and run.control.crash is None
    if intact and output.for_people:
        if outcome not in INTERRUPTED and progress.ok:
            _say_answer(run)
        say_clean(_ending(progress, outcome, output))
        _say_closed_loop(run)
    elif intact and progress.cut_short:
        say_clean(_ending(progress, outcome, output))
    click.echo(run.path)
    if run.control.write_error is not None:
        raise run.control.write_error
    check = f"taxtui clean --run {run.run_id} --force --dry-run"
    if run.cleanup_failed:
        say(f"taxtui: a clean-up failed; check with: {check}")
    if run.control.crash is not None:
        raise _crashed(run.control.crash, check)
    if outcome in INTERRUPTED:
        sys.exit(130)
    reason = "" if progress.cut_short else "; taxtui recordings info says why"
    for cell in run.unmeasured:
        say_clean(f"taxtui: {cell}: no trial succeeded{reason}")
    if run_ids := run.left_behind:
        say_clean(f"taxtui: earlier runs left sandboxes: {', '.join(run_ids)}; list them: taxtui clean --dry-run")
    if run.cleanup_failed or run.unmeasured:
        sys.exit(1)
    path = shlex.quote(str(run.path))
    say_clean(f"next: taxtui project {path}; the answer again: taxtui report {path}")


def _crashed(error: BaseException, check: str) -> RunCrashed:
    from taxtui.runner.redaction import scrub

    cause = scrub(str(error))
    if not isinstance(error, RunCrashed):  # the error of a repetition has its location already
        cause = f"{located(error)} {cause}".rstrip()
    return RunCrashed(
        f"the run crashed: {cause}; the recording keeps all measured trials, and the watchdog removes sandboxes",
        fix=f"look with: {check}",
    )


def _ending(progress: Progress, outcome: str, output: RunOutput) -> str:
    """Return the end in words, such as ``finished: 32 of 32 trials, 0 failed, in 0:58``."""
    reason = f"; {progress.cut_short}: raise it, or plan less" if progress.cut_short else ""
    safe = "; the recording keeps all measured trials" if outcome in INTERRUPTED else ""
    return f"{outcome}: {_counts(progress).replace('/', ' of ')}, in {output.clock}{reason}{safe}"


def _say_closed_loop(run: Run) -> None:
    """Say that trials waited for each other, unless by schedule."""
    from costmodel import breakdown
    from taxtui.report.numbers import CLOSED_LOOP

    if any(cell.concurrency > 1 and not breakdown.has_schedule(str(cell.arrival)) for cell in run.plan.cells):
        say_clean(f"taxtui: {CLOSED_LOOP}")


def _say_answer(run: Run) -> None:
    from costmodel import CostModelError
    from taxtui.report.answer.measured import summary

    with contextlib.suppress(CostModelError):  # `taxtui report` prints the error
        say(f"\n{summary(run.path)}\n")


def _counts(progress: Progress) -> str:
    from costmodel import events

    ended = progress.ended - progress.counts[events.INTERRUPTED]  # as `taxtui recordings info` counts
    return f"{ended}/{progress.planned} trials, {ended - progress.ok} failed"
