"""Runs one trial: a sandbox, a trajectory, a clean-up. Every duration that taxtui records is taken in this file.

The trajectory runs in a task of its own, so that a cancellation never reaches the clean-up after it.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, Final

from costmodel import Mark, Notice, PhaseEnded, TrialEnded, TrialStarted, breakdown, events
from taxtui.errors import ExecFailed, ExecTimeout, ReadyTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command, SandboxSpec, Step, ThinkTime
from taxtui.runner.redaction import redact, scrub
from taxtui.runner.trial import bracket
from taxtui.runner.trial.action_buffer import ActionBuffer
from taxtui.runner.trial.cell import CellRun
from taxtui.runner.trial.removal import CHECK, plant, remove
from taxtui.sandboxes.kit.retry import Retry
from taxtui.sandboxes.protocol import EXIT_CODES, ExecResult, Marks, Sandbox, Session

NO_OP: Final = "true"
READY_POLL_S: Final = 0.05
CLEANUP_TIMEOUT_S: Final = 120.0
ABANDONED_CREATE_S: Final = 60.0
"""Time for an abandoned create to answer; after that its sandbox is found by its labels."""
MAX_TRIES: Final = 12
"""Requests for a call that the provider throttles. The waits in between are *throttled*, apart from every latency."""
TIMEOUT_GRACE_S: Final = 15.0
"""An adapter enforces the timeout of a command; the runner gives up this much later."""


class WrongResult(Exception):
    """A step did not prove its work. The message names the step and the expected result, never the output."""


class Trial:
    """One trial of a cell. An error of a provider or a command is the outcome of ``run``, which does not raise it."""

    def __init__(
        self,
        context: CellRun,
        number: int,
        spec: SandboxSpec,
        *,
        warm_up: bool,
        block: int,
        reuse: Sandbox | None = None,
        attempt: int = 0,
    ) -> None:
        """Send nothing yet.

        Args:
            reuse: a sandbox to reset instead of creating one.
            attempt: 1 for the second try at a trial whose worker was lost.
        """
        self.context = context
        self.number = number
        self.spec = spec
        self.warm_up = warm_up
        self.block = block
        self.attempt = attempt
        self.sandbox = reuse
        self.outcome = events.OK
        self.cleanup_failed = False
        self.start_delay_ns = 0
        self.reusable = False  # with acquire=reset: the sandbox was left standing for the next trial
        self._reuse = reuse is not None
        self._nonce = secrets.token_hex(8)
        self._random = random.Random(f"{context.seed}:{number}")
        self._marks, self._marks_written = Marks(), 0
        self._patience = Retry(
            first_s=0.25, longest_s=30.0, tries=MAX_TRIES, announce=self._announce_wait, source=self._random
        )
        self._phase = events.CREATE
        self._ready_by_s = 0.0  # by the loop's clock; waits for a throttle move it
        self._deadline: asyncio.Timeout | None = None  # of the call that has to end by then
        self._last_ns = 0  # end of the last measurement: the next gap begins here
        self._columns = ActionBuffer(number, events.SETUP)
        self._creating: asyncio.Future[Sandbox] | None = None
        self._session: Session | None = None
        self._body: asyncio.Task[None] | None = None
        self._abandoned = ""

    def abandon(self, outcome: str) -> None:
        """Cancel the trajectory. The clean-up still runs, and the trial ends with ``outcome``."""
        self._abandoned = self._abandoned or outcome
        if self._body is not None:
            self._body.cancel()

    async def run(self, scheduled_ns: int) -> None:
        """Run the whole trial, from TrialStarted to TrialEnded."""
        start_ns = self.context.now()
        self.start_delay_ns = breakdown.start_delay_ns(scheduled_ns, start_ns)
        self._last_ns = start_ns
        self.context.emit(
            TrialStarted(
                trial=self.number,
                cell=self.context.cell,
                sandbox=self.spec.name,
                scheduled_ns=scheduled_ns,
                start_ns=start_ns,
                attempt=self.attempt,
                warm_up=self.warm_up,
                block=self.block,
                repetition=self.context.repetition,
                image_bytes=self.context.image_bytes,
            )
        )
        error: BaseException | None = None
        self._body = asyncio.ensure_future(self._trajectory())
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
        end_ns = self._last_ns if error is None else self.context.now()
        failed_in = "" if error is None else self._phase
        try:
            self.flush_columns()
            self._flush_marks()
        finally:  # a bug up to here must not cost the sandbox its clean-up
            await self._clean_up()
        name, message = ("", "") if error is None else _describe(error)
        self.context.emit(
            TrialEnded(
                trial=self.number,
                outcome=self.outcome,
                phase=failed_in,
                error=name,
                message=message,
                end_ns=end_ns,
                queued_ns=self._queued_ns,
                connection=self._marks.connection,
                node=self._marks.node,
            )
        )
        del self._patience  # it refers to this trial: garbage is collected rarely

    def flush_columns(self) -> None:
        """Record the commands that have ended since the last call."""
        if (actions := self._columns.drain()) is not None:
            self.context.emit(actions)

    # ---------------------------------------------------------------------------------------------- the trajectory

    async def _trajectory(self) -> None:
        plan, tier = self.context.plan, self.context.plan.tier
        self._ready_by_s = asyncio.get_running_loop().time() + self.context.create_timeout_s
        if self._reuse:
            await self._timed(events.RESET, self._reset())
        else:
            await self._create()
        await self._timed(events.READY, self._ready())
        await self._timed(events.READY_AGAIN, self._no_op(CHECK if self._reuse else NO_OP))
        if self.context.preload:
            await self._timed(events.PRELOAD, self._step(Step(name=events.PRELOAD, run=tier.preload)))
        if tier.setup:
            await self._timed(events.SETUP, self._steps(events.SETUP, tier.setup))
        self._phase = events.ACTION
        self.flush_columns()
        self._columns = ActionBuffer(self.number, events.ACTION)
        await self._steps(
            events.ACTION, [tier.cycle[i % len(tier.cycle)] for i in range(plan.actions)], think=plan.think
        )

    async def _timed(self, phase: str, work: Coroutine[Any, Any, None]) -> None:
        """Run and record one phase; a failed one is in TrialEnded instead."""
        self._phase = phase
        began = self.context.now()
        queued_before = self._queued_ns
        await work
        ended = self.context.now()
        self._phase_ended(phase, began, ended - began - (self._queued_ns - queued_before))
        self._last_ns = ended

    @property
    def _queued_ns(self) -> int:
        """Throttled time: waits of the runner, and waits of the adapter itself."""
        return self._patience.queued_ns + self._marks.queued_ns

    def _announce_wait(self, wait_s: float) -> None:
        self._ready_by_s += wait_s
        if self._deadline is not None:
            self._deadline.reschedule(self._ready_by_s)
        name = self.context.substrate.name
        self.context.emit(Notice(self.context.now(), "warning", f"{name}: throttled, waits {wait_s:.1f} s"))

    def _phase_ended(self, phase: str, began_ns: int, duration_ns: int) -> None:
        self._flush_marks()
        self.context.emit(PhaseEnded(self.number, phase, began_ns, max(0, duration_ns)))

    async def _create(self) -> None:
        """Create the sandbox. Only the request that was answered counts; throttled ones before it do not."""
        self._phase = events.CREATE
        began = queued_before = 0

        async def attempt() -> Sandbox:
            nonlocal began, queued_before
            began, queued_before = self.context.now(), self._marks.queued_ns
            self._creating = asyncio.ensure_future(self.context.substrate.create(self.spec, self._marks))
            # Shielded: the clean-up awaits an abandoned create, because only its answer has the handle.
            async with asyncio.timeout_at(self._ready_by_s):
                return await asyncio.shield(self._creating)

        self.sandbox = await self._patience(attempt)
        ended = self.context.now()
        self._phase_ended(events.CREATE, began, ended - began - (self._marks.queued_ns - queued_before))
        self._last_ns = ended

    async def _ready(self) -> None:
        """Return once the first no-op has returned 0, on the command path that the actions will take."""
        sandbox = self.sandbox
        assert sandbox is not None
        refusal = ""
        try:
            async with asyncio.timeout_at(self._ready_by_s) as self._deadline:
                await self._patience(lambda: sandbox.wait_ready(self._marks), resumes=True)
                while True:
                    try:
                        if self.context.plan.mode == "session" and self._session is None:
                            self._session = await self._patience(sandbox.open_session)
                        if (await self._exec(NO_OP, self.context.create_timeout_s)).exit_code == 0:
                            return
                    except (ReadyTimeout, SandboxLost):
                        raise
                    except ExecFailed as error:  # "running" in an API is not ready: try again until the time limit
                        refusal = f"; at last: {error}"
                    await asyncio.sleep(READY_POLL_S)
        except TimeoutError as error:
            if isinstance(error, SubstrateError):
                raise
            limit = f"{self.context.create_timeout_s:g} s"
            refusal = refusal or (f"; {self._marks.obstacle}" if self._marks.obstacle else "")
            raise ReadyTimeout(f"no command answered within {limit} of create{refusal}") from error
        finally:
            self._deadline = None

    async def _reset(self) -> None:
        sandbox = self.sandbox
        assert sandbox is not None
        async with asyncio.timeout_at(self._ready_by_s):
            await self._patience(lambda: sandbox.reset(self._marks))

    async def _no_op(self, script: str) -> None:
        result = await self._exec(script, self.context.timeout_s)
        if result.exit_code != 0:
            problem = "the reset left something behind" if self._reuse else "the second no-op failed"
            raise WrongResult(f"{problem} (exit {result.exit_code})")

    async def _steps(self, kind: str, steps: Sequence[Step], think: ThinkTime | None = None) -> None:
        for index, step in enumerate(steps):
            think_ns = await self._think(think) if think is not None and index else 0
            await self._step(step, think_ns, index, kind)

    async def _think(self, think: ThinkTime) -> int:
        """Idle like an agent that waits for its model; return the nanoseconds that this took."""
        if not think.median_ns:
            return 0
        wanted_ns = think.median_ns * (self._random.lognormvariate(0, think.sigma) if think.sigma else 1.0)
        began = time.monotonic_ns()
        await asyncio.sleep(wanted_ns / 1e9)
        return time.monotonic_ns() - began

    async def _step(self, step: Step, think_ns: int = 0, index: int = 0, kind: str = events.PRELOAD) -> None:
        """Run one command: time it, record it, then check its result."""
        method = self.context.method
        timeout_s = step.timeout_s if step.timeout_s is not None else self.context.timeout_s
        script = bracket.wrap(step.run, self._nonce, method)
        queued_before = self._queued_ns
        began = self.context.now()
        result = await self._exec(script, timeout_s)
        ended = self.context.now()
        queued = self._queued_ns - queued_before
        if result.ended_ns:  # taken in the thread that made the blocking call, of the request that was answered
            began, ended = result.started_ns - self.context.anchor_ns, result.ended_ns - self.context.anchor_ns
            queued = 0
        duration_ns = ended - began - queued
        stderr, run_ns, cpu_ns, wrapper_ns = bracket.unwrap(
            result.stderr, self._nonce, method, duration_ns, result.wrapper_ended_ns
        )
        if kind in (events.SETUP, events.ACTION):
            self._columns.append(
                gap_ns=max(0, began - self._last_ns - think_ns),
                think_ns=think_ns,
                duration_ns=duration_ns,
                run_ns=run_ns,
                cpu_ns=cpu_ns,
                wrapper_ns=wrapper_ns,
                exit_code=result.exit_code,
                stdout_bytes=len(result.stdout) + result.stdout_dropped,
                stderr_bytes=len(stderr) + result.stderr_dropped,
            )
        self._last_ns = ended
        self._judge(step, index, kind, result)

    def _judge(self, step: Step, index: int, kind: str, result: ExecResult) -> None:
        where = f"{kind} {index} ({step.name})" if kind != events.PRELOAD else kind
        if result.exit_code != step.expect_exit:
            raise WrongResult(f"{where}: exit {result.exit_code}, expected {step.expect_exit}")
        if step.expect_stdout.replace("{nonce}", self._nonce).encode() not in result.stdout:
            raise WrongResult(f"{where}: the expected output is missing")

    async def _exec(self, script: str, timeout_s: float) -> ExecResult:
        runner = self._session or self.sandbox
        assert runner is not None
        command = Command(script=script, timeout_s=timeout_s)
        try:
            async with asyncio.timeout(timeout_s + TIMEOUT_GRACE_S):
                result = await self._patience(lambda: runner.exec(command))
        except TimeoutError as error:
            if isinstance(error, SubstrateError):
                raise
            late = f"no answer {TIMEOUT_GRACE_S:g} s after the command's timeout of {timeout_s:g} s"
            raise ExecTimeout(late) from error
        if result.exit_code not in EXIT_CODES:
            raise ExecFailed("the answer to a command has no exit code from 0 to 255")
        return result

    # ------------------------------------------------------------------------------------------------- the clean-up

    async def _clean_up(self) -> None:
        """Remove the sandbox, or keep it for the next trial where sandboxes are reset."""
        session, self._session = self._session, None
        if session is not None:
            await self._quietly(session.close())
        if self.outcome == events.OK and self.context.plan.acquire == events.RESET and self.sandbox is not None:
            self.reusable = await plant(self.sandbox, self.context.timeout_s)
            if self.reusable:
                return
        began = self.context.now()
        try:
            async with asyncio.timeout(CLEANUP_TIMEOUT_S):
                answer_within_s = ABANDONED_CREATE_S if self._abandoned else 0
                await remove(self.context.substrate, self.spec, self.sandbox, self._creating, answer_within_s)
        except Exception as error:  # also a bug of an adapter: report it, and let the final sweep try again
            self.cleanup_failed = True
            text = f"{self.context.substrate.name}: {self.spec.name} may still exist: {' '.join(redact(error))}"
            self.context.emit(Notice(self.context.now(), "error", text))
            return
        self._phase_ended(events.CLEANUP, began, self.context.now() - began)

    async def _quietly(self, closing: Awaitable[None]) -> None:
        """Close a session. The sandbox is removed next, so a failure is only a notice."""
        try:
            async with asyncio.timeout(TIMEOUT_GRACE_S):
                await closing
        except Exception as error:
            self.context.emit(Notice(self.context.now(), "warning", f"closing a session: {' '.join(redact(error))}"))

    def _flush_marks(self) -> None:
        seen, moved, anchor_ns = self._marks.seen, self._marks.moved, self.context.anchor_ns
        for name, at_ns, resolution_ns in seen[self._marks_written :]:
            self.context.emit(Mark(self.number, name, max(0, at_ns - anchor_ns), resolution_ns, moved(name)))
        self._marks_written = len(seen)
        notices, self._marks.notices = self._marks.notices, []
        for text in notices:
            self.context.emit(Notice(self.context.now(), "warning", f"{self.context.substrate.name}: {scrub(text)}"))


def _describe(error: BaseException) -> tuple[str, str]:
    if isinstance(error, WrongResult):  # written in this file, of step names and exit codes only
        return "WrongResult", str(error)
    return ("", "") if isinstance(error, asyncio.CancelledError) else redact(error)
