"""Output of ``taxtui run``: progress, end, answer, and the path of the recording."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from taxtui.errors import RunCrashed, located
from taxtui.report.numbers import stopwatch
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from taxtui.plan.spec import CellPlan
    from taxtui.runner.progress import Progress
    from taxtui.runner.run import Run

PLAIN_EVERY: Final = 10  # plain progress prints every tenth of these
CUT: Final = ("interrupted", "cancelled")
GONE: Final = (errno.EPIPE, errno.EIO)
"""Errors of writing to a closed reader or terminal."""


def say(text: str, *, nl: bool = True) -> None:
    """Talk, on stderr; whoever listened may have gone away, and the run goes on without."""
    with contextlib.suppress(OSError):
        click.echo(text, nl=nl, err=True)


def tell(text: str) -> None:
    """A line on stderr that names what others have named."""
    say(clean(text))


class Shown:
    """Progress on stderr: a line that is rewritten, lines, JSON lines, or nothing."""

    def __init__(
        self, kind: str, budget_s: float | None, *, controlled: bool = False, load: str = "", plan: str = ""
    ) -> None:
        """``kind`` as ``--progress`` has it; a run is never said to last longer than its budget.

        ``controlled`` by another program, which shows the answer itself. ``load`` is what people should know of the
        machine's load, ``plan`` the lines about a plan that taxtui chose; all are printed once the run has begun, since
        a refusal is one line.
        """
        self.kind = ("line" if sys.stderr.isatty() else "plain") if kind == "auto" else kind
        self.for_people = self.kind != "json" and not controlled
        """Somebody reads what is said at the end."""
        self._first = [text for text in (*plan.splitlines(), load) if text and self.for_people]
        self._budget_s = budget_s
        self._began = self._told = time.monotonic()
        self._left_s: float | None = None
        self._tenth = -1

    @property
    def clock(self) -> str:
        return stopwatch(time.monotonic() - self._began)

    def show(self, progress: Progress) -> None:
        """Say how far it is, where that is news."""
        self._tell_load()
        if self.kind == "json":
            self._json(progress, {"last": False})
        elif self.kind == "line":
            say(f"\r\x1b[K{self._line(progress)}", nl=False)
        elif self.kind == "plain":
            tenth = progress.ended * PLAIN_EVERY // max(1, progress.planned)
            if tenth != self._tenth:
                self._tenth = tenth
                say(self._line(progress))

    def end(self, progress: Progress, outcome: str) -> None:
        """The last time; people are told by ``conclude``."""
        self._tell_load()
        if self.kind == "json":
            stopped = {"stopped": progress.cut_short} if progress.cut_short else {}
            self._json(progress, {"last": True, "outcome": outcome} | stopped)
        elif self.kind == "line":
            say("\r\x1b[K", nl=False)

    def _tell_load(self) -> None:
        lines, self._first = self._first, []
        for text in lines:
            tell(f"taxtui: {text}")

    def _json(self, progress: Progress, more: dict[str, object]) -> None:
        facts: dict[str, object] = {"planned": progress.planned, "ended": progress.ended, "ok": progress.ok}
        if progress.repetitions > 1:
            facts |= {"repetition": progress.repetition, "repetitions": progress.repetitions}
        say(json.dumps(facts | {"in_flight": progress.in_flight} | more))

    def _line(self, progress: Progress) -> str:
        left_s = self._remaining_s(progress)
        left = "" if left_s is None or progress.ended >= progress.planned else f", about {stopwatch(left_s)} left"
        which = f"run {progress.repetition}/{progress.repetitions}, " if progress.repetitions > 1 else ""
        return f"{which}{_counts(progress)}, {self.clock}{left}"

    def _remaining_s(self, progress: Progress) -> float | None:
        now = time.monotonic()
        if progress.left_s != self._left_s:
            self._left_s, self._told = progress.left_s, now
        if self._left_s is None:
            return None
        left_s = max(0.0, self._left_s - (now - self._told))
        return left_s if self._budget_s is None else min(left_s, max(0.0, self._budget_s - (now - self._began)))


def conclude(run: Run, shown: Shown) -> None:
    """How it ended and the answer on stderr, the path on stdout, and the exit code that the contract promises."""
    progress, outcome = run.progress, run.outcome
    whole = run.control.write_error is None and run.control.crash is None
    if whole and shown.for_people and outcome not in CUT and progress.ok:
        _answer(run)
    if whole and (shown.for_people or progress.cut_short):
        tell(_ending(progress, outcome, shown))
    if whole and shown.for_people and any(cell.concurrency > 1 and _closed(cell) for cell in run.plan.cells):
        from taxtui.report.numbers import CLOSED_LOOP

        tell(f"taxtui: {CLOSED_LOOP}")
    _hand_over(str(run.path))
    if run.control.write_error is not None:
        raise run.control.write_error
    check = f"taxtui clean --run {run.run_id} --force --dry-run"
    if run.cleanup_failed:
        say(f"taxtui: a clean-up failed; check with: {check}")
    if run.control.crash is not None:
        from taxtui.runner.redaction import scrub

        known = isinstance(run.control.crash, RunCrashed)  # of a repetition, which has said where
        cause = (
            scrub(str(run.control.crash))
            if known
            else f"{located(run.control.crash)} {scrub(str(run.control.crash))}".rstrip()
        )
        raise RunCrashed(
            f"the run crashed: {cause}; what it has measured is kept, its watchdog removes what may be left",
            fix=f"look with: {check}",
        )
    if outcome in CUT:
        sys.exit(130)
    for cell in run.unmeasured:
        tell(f"taxtui: {cell}: no trial succeeded{'' if progress.cut_short else '; taxtui recordings info says why'}")
    if (settled := run.settled) is not None:
        tell(f"taxtui: after {progress.repetition} runs the widest interval is ±{settled:.1%} of its cell's mean")
    if left := run.left_behind:
        tell(f"taxtui: earlier runs left sandboxes: {', '.join(left)}; see what: taxtui clean --dry-run")
    if run.cleanup_failed or run.unmeasured:
        sys.exit(1)
    tell(f"next: taxtui project {run.path}; the answer again: taxtui report {run.path}")


def _hand_over(path: str) -> None:
    """The path on stdout. With a closed reader the exit code still reports how the run ended."""
    try:
        click.echo(path)
    except OSError as error:
        if error.errno not in GONE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python will flush it once more


def _ending(progress: Progress, outcome: str, shown: Shown) -> str:
    """``finished: 32 of 32 trials, 0 failed, in 0:58``; what cut it short, and what that means."""
    why = f"; {progress.cut_short}: raise it, or plan less" if progress.cut_short else ""
    kept = "; what was measured is kept" if outcome in CUT else ""
    return f"{outcome}: {_counts(progress).replace('/', ' of ')}, in {shown.clock}{why}{kept}"


def _closed(cell: CellPlan) -> bool:
    """Whether its trials wait for each other instead of for an instant."""
    from costmodel import breakdown

    return not breakdown.has_schedule(str(cell.arrival))


def _answer(run: Run) -> None:
    from costmodel import CostModelError
    from taxtui.report.answer.summary import summary

    with contextlib.suppress(
        CostModelError
    ):  # what was measured is on the disk, and `taxtui report` says what it lacks
        say(f"\n{summary(run.path)}\n")


def _counts(progress: Progress) -> str:
    return f"{progress.ended}/{progress.planned} trials, {progress.ended - progress.ok} failed"
