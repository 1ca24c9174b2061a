"""One trial: a trajectory and its clean-up.

The trajectory runs in a separate task, so that a cancellation never reaches the clean-up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, NamedTuple

from costmodel import events
from taxtui.plan.spec import SandboxSpec
from taxtui.runner.redaction import redact
from taxtui.runner.trial.cell import CellRun
from taxtui.runner.trial.removal import plant, remove, remove_copies
from taxtui.runner.trial.trajectory import TIMEOUT_GRACE_S, TrialTrajectory, WrongResult
from taxtui.sandboxes.protocol import Sandbox

CLEANUP_TIMEOUT_S: Final = 120.0
ABANDONED_CREATE_S: Final = 60.0
"""Time for an abandoned create to answer; afterwards the sandbox is found by labels."""


class EarlyEnd(NamedTuple):
    """The end of a trajectory before the last action."""

    phase: str
    error: BaseException


class Trial:
    """One trial of a cell. An error of a provider or a command becomes the trial's outcome; ``run`` does not raise."""

    def __init__(
        self,
        cell: CellRun,
        number: int,
        spec: SandboxSpec,
        *,
        warm_up: bool,
        block: int,
        reuse: Sandbox | None = None,
        attempt: int = 0,
        lacking: EarlyEnd | None = None,
    ) -> None:
        """Send nothing yet.

        Args:
            reuse: a sandbox to reset instead of creating one.
            attempt: 1 for the second try, after the loss of a worker.
            lacking: the end of the trial that should have left a sandbox to reset; this trial fails alike.
        """
        self.cell, self.number, self.spec = cell, number, spec
        self.warm_up, self.block, self.attempt = warm_up, block, attempt
        self.outcome = events.OK
        self.reusable: Sandbox | None = None  # with acquire=reset: left standing for the next trial
        self.failure: EarlyEnd | None = None
        self._lacking = lacking
        self._trajectory = TrialTrajectory(cell, number, spec, reuse)
        self._body: asyncio.Task[None] | None = None
        self._abandoned = ""

    def abandon(self, outcome: str) -> None:
        """Cancel the trajectory. The clean-up still runs, and the trial ends with ``outcome``."""
        self._abandoned = self._abandoned or outcome
        if self._body is not None:
            self._body.cancel()

    async def run(self, scheduled_ns: int) -> None:
        """Run the whole trial, from TrialStarted to TrialEnded."""
        trajectory, start_ns = self._trajectory, self.cell.now()
        trajectory.last_ns = start_ns
        self.cell.emit(
            events.TrialStarted(
                trial=self.number,
                cell=self.cell.cell,
                sandbox=self.spec.name,
                scheduled_ns=scheduled_ns,
                start_ns=start_ns,
                attempt=self.attempt,
                warm_up=self.warm_up,
                block=self.block,
                repetition=self.cell.repetition,
                image_bytes=self.cell.image_bytes,
            )
        )
        error: BaseException | None = None
        self._body = asyncio.ensure_future(self._run_trajectory())
        if self._abandoned:
            self._body.cancel()
        try:
            await self._body
        except asyncio.CancelledError as cancelled:
            error = cancelled
            self.outcome = self._abandoned or events.CANCELLED
        except TimeoutError as timeout:  # ReadyTimeout and ExecTimeout are TimeoutErrors too
            error = timeout
            self.outcome = events.TIMEOUT
        except Exception as failure:  # any error of an adapter is the outcome of this trial
            error = failure
            self.outcome = events.FAILED
        end_ns = trajectory.last_ns if error is None else self.cell.now()
        failed_in = "" if error is None else trajectory.phase
        self.failure = None if error is None else EarlyEnd(failed_in, error)
        try:
            self.flush_columns()
            trajectory.flush_marks()
        finally:  # the clean-up follows even after a bug up to here
            await self._clean_up()
        name, message = ("", "") if error is None else _describe(error)
        self.cell.emit(
            events.TrialEnded(
                trial=self.number,
                outcome=self.outcome,
                phase=failed_in,
                error=name,
                message=message,
                end_ns=end_ns,
                queued_ns=trajectory.queued_ns - trajectory.copies_queued_ns,
                connection=trajectory.marks.connection,
                node=trajectory.marks.node,
            )
        )
        del trajectory.retry  # a reference back to the trajectory: garbage is collected rarely

    async def _run_trajectory(self) -> None:
        if self._lacking is None:
            return await self._trajectory.run()
        self._trajectory.phase = self._lacking.phase
        raise self._lacking.error

    def flush_columns(self) -> None:
        """Record the commands ended since the last call."""
        self._trajectory.flush_columns()

    async def _clean_up(self) -> None:
        """Remove the sandbox, or keep it for the next trial where sandboxes are reset."""
        trajectory, cell = self._trajectory, self.cell
        session, trajectory.session = trajectory.session, None
        if session is not None and not trajectory.suspended:  # in a suspended sandbox no process can be killed
            await self._succeeds(session.close(), TIMEOUT_GRACE_S, "warning", "closing a session")
        if trajectory.copied:
            copies = remove_copies(cell.substrate, self.spec)
            text = f"{cell.substrate.name}: copies of {self.spec.name} may exist"
            await self._succeeds(copies, CLEANUP_TIMEOUT_S, "error", text)
        sandbox = trajectory.sandbox
        resets = self.outcome == events.OK and cell.plan.acquire == events.RESET
        if resets and sandbox is not None:
            text = f"{cell.substrate.name}: no check of a reset, so {self.spec.name} is removed"
            limit_s = cell.timeout_s + TIMEOUT_GRACE_S
            if await self._succeeds(plant(sandbox, cell.timeout_s), limit_s, "warning", text):
                self.reusable = sandbox
                return
        began = cell.now()
        answer_within_s = ABANDONED_CREATE_S if self._abandoned else 0
        removal = remove(cell.substrate, self.spec, sandbox, trajectory.creating, answer_within_s)
        text = f"{cell.substrate.name}: {self.spec.name} may still exist"
        if await self._succeeds(removal, CLEANUP_TIMEOUT_S, "error", text):
            trajectory.phase_ended(events.CLEANUP, began, cell.now() - began)

    async def _succeeds(self, call: Awaitable[None], limit_s: float, level: str, text: str) -> bool:
        """Whether a call of the clean-up succeeds. A failure, also a bug of an adapter, is a notice that begins with
        ``text``: the sandbox is removed next, or the final sweep tries again."""
        try:
            async with asyncio.timeout(limit_s):
                await call
        except Exception as error:
            self.cell.emit(events.Notice(self.cell.now(), level, f"{text}: {' '.join(redact(error))}"))
            return False
        return True


def _describe(error: BaseException) -> tuple[str, str]:
    if isinstance(error, WrongResult):  # the message has only names of steps and exit codes
        return "WrongResult", str(error)
    return ("", "") if isinstance(error, asyncio.CancelledError) else redact(error)
