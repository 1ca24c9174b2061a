"""The trajectory of a trial: create a sandbox, wait until ready, run the commands. All are timed here."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

from msgspec.structs import replace

from costmodel import events
from taxtui.errors import ExecFailed, ExecTimeout, ReadyTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command, SandboxSpec, Step, ThinkTime
from taxtui.runner.redaction import scrub
from taxtui.runner.trial import bracket
from taxtui.runner.trial.cell import CellRun
from taxtui.runner.trial.removal import CHECK
from taxtui.sandboxes.kit.retry import Retry
from taxtui.sandboxes.lifecycle import SNAPSHOT, Builds, Resets, Snapshots, Suspends, Usage
from taxtui.sandboxes.protocol import EXIT_CODES, ExecResult, Marks, Sandbox, Session

NO_OP: Final = "true"
READY_POLL_S: Final = 0.05
MAX_TRIES: Final = 12
"""Requests for a throttled call. The waits in between are *throttled*, apart from every latency."""
_OFTEN_UNKNOWN: Final = ("cpu_ns", "wrapper_ns")
TIMEOUT_GRACE_S: Final = 15.0
"""An adapter enforces the timeout of a command; the runner gives up this much later."""


class WrongResult(Exception):
    """A step did not prove its work. The message names the step and the expected result, never the output."""


class TrialTrajectory:
    """The part of a trial before the clean-up. ``run`` is called once."""

    def __init__(self, cell: CellRun, number: int, spec: SandboxSpec, reuse: Sandbox | None) -> None:
        """``reuse``: a sandbox to reset instead of creating one."""
        self.sandbox = reuse
        self.session: Session | None = None
        self.creating: asyncio.Future[Sandbox] | None = None
        self.suspended = False  # or about to be
        self.copied = False  # there may be copies of the sandbox
        self.copies_queued_ns = 0  # throttled time of finished copies, after the occupied time
        self.phase = events.CREATE
        self.last_ns = 0  # end of the last measurement: the next gap begins here
        self._last_queued_ns = 0  # throttled time until then
        self.marks, self._marks_written = Marks(), 0
        self._cell, self._number, self._spec = cell, number, spec
        self._reuse = reuse is not None
        self._nonce = secrets.token_hex(8)
        self._random = random.Random(f"{cell.seed}:{number}")
        self.retry = Retry(
            first_s=0.25, longest_s=30.0, tries=MAX_TRIES, announce=self._announce_wait, source=self._random
        )
        self._ready_by_s = 0.0  # by the loop's clock; waits for a throttle move it
        self._deadline: asyncio.Timeout | None = None  # of the call with this deadline
        self._rows: list[dict[str, int]] = []  # commands to record: a value for each column of ``events.Actions``
        self._recorded_rows = 0  # commands recorded before, of the same kind
        self._kind = events.SETUP  # of the commands

    def flush_columns(self) -> None:
        """Record the commands ended since the last call."""
        if not self._rows:
            return
        columns: dict[str, Any] = {name: [row[name] for row in self._rows] for name in self._rows[0]}
        for name in columns.keys() - {"duration_ns"}:
            columns[name] = events.sparse(columns[name], events.UNKNOWN if name in _OFTEN_UNKNOWN else 0)
        first, self._recorded_rows = self._recorded_rows, self._recorded_rows + len(self._rows)
        self._rows = []
        self._cell.emit(events.Actions(trial=self._number, step=self._kind, first=first, **columns))

    def flush_marks(self) -> None:
        seen, moved, anchor_ns = self.marks.seen, self.marks.moved_bytes.get, self._cell.anchor_ns
        for name, at_ns, resolution_ns in seen[self._marks_written :]:
            self._cell.emit(events.Mark(self._number, name, max(0, at_ns - anchor_ns), resolution_ns, moved(name, -1)))
        self._marks_written = len(seen)
        notices, self.marks.notices = self.marks.notices, []
        for text in notices:
            self._cell.emit(events.Notice(self._cell.now(), "warning", f"{self._cell.substrate.name}: {scrub(text)}"))

    async def run(self) -> None:
        """Run everything up to the last action. Raises any error; ``phase`` says where."""
        plan, tier = self._cell.plan, self._cell.plan.tier
        self._ready_by_s = asyncio.get_running_loop().time() + self._cell.create_timeout_s
        if self._reuse:
            await self._timed(events.RESET, self._reset())
        else:
            await self._create()
        await self._timed(events.READY, self._ready())
        await self._timed(events.READY_AGAIN, self._no_op(CHECK if self._reuse else NO_OP))
        if self._cell.preload:
            await self._timed(events.PRELOAD, self._step(Step(name=events.PRELOAD, run=tier.preload)))
        if tier.setup:
            await self._timed(events.SETUP, self._steps(events.SETUP, tier.setup))
        self.phase = events.ACTION
        self.flush_columns()
        self._kind, self._recorded_rows = events.ACTION, 0
        await self._steps(events.ACTION, plan.action_steps, think=plan.think)
        await self._copies()

    async def _timed(self, phase: str, work: Coroutine[Any, Any, None]) -> None:
        """Run and record one phase; the next gap begins at the end."""
        self._ended(await self._recorded(phase, work))

    def _ended(self, at_ns: int) -> None:
        self.last_ns, self._last_queued_ns = at_ns, self.queued_ns

    async def _recorded(self, phase: str, work: Coroutine[Any, Any, None]) -> int:
        """Run and record one phase, and return the end. A failed phase is in TrialEnded instead."""
        self.phase = phase
        began = self._cell.now()
        queued_before = self.queued_ns
        await work
        ended = self._cell.now()
        self.phase_ended(phase, began, ended - began - (self.queued_ns - queued_before))
        return ended

    @property
    def queued_ns(self) -> int:
        """Throttled time: waits of the runner, and waits of the adapter itself."""
        return self.retry.queued_ns + self.marks.queued_ns

    def _announce_wait(self, wait_s: float) -> None:
        self._ready_by_s += wait_s
        if self._deadline is not None:
            self._deadline.reschedule(self._ready_by_s)
        name = self._cell.substrate.name
        self._cell.emit(events.Notice(self._cell.now(), "warning", f"{name}: throttled, waits {wait_s:.1f} s"))

    def phase_ended(self, phase: str, began_ns: int, duration_ns: int) -> None:
        self.flush_marks()
        self._cell.emit(events.PhaseEnded(self._number, phase, began_ns, max(0, duration_ns)))

    async def _create(self) -> None:
        """Create the sandbox. Only the answered request counts, without throttled requests before."""
        self.phase = events.CREATE
        began = queued_before = 0

        async def attempt() -> Sandbox:
            nonlocal began, queued_before
            began, queued_before = self._cell.now(), self.marks.queued_ns
            self.creating = asyncio.ensure_future(self._cell.substrate.create(self._spec, self.marks))
            # Shielded: the clean-up awaits an abandoned create, because only the answer has the handle.
            async with asyncio.timeout_at(self._ready_by_s):
                return await asyncio.shield(self.creating)

        self.sandbox = await self.retry(attempt)
        ended = self._cell.now()
        self.phase_ended(events.CREATE, began, ended - began - (self.marks.queued_ns - queued_before))
        self._ended(ended)

    async def _ready(self) -> None:
        """Return once the first no-op has returned 0, on the command path of the actions."""
        sandbox = self.sandbox
        assert sandbox is not None
        refusal = ""
        try:
            async with asyncio.timeout_at(self._ready_by_s) as self._deadline:
                await self.retry(lambda: sandbox.wait_ready(self.marks), resumes=True)
                while True:
                    try:
                        if self._cell.plan.mode == "session" and self.session is None:
                            self.session = await self.retry(sandbox.open_session)
                        if (await self._exec(NO_OP, self._cell.create_timeout_s)).exit_code == 0:
                            return
                    except (ReadyTimeout, SandboxLost):
                        raise
                    except ExecFailed as error:  # "running" in an API is not ready: try again until the time limit
                        refusal = f"; at last: {error}"
                        if self.session is not None:  # broken
                            await self._drop_session()
                    await asyncio.sleep(READY_POLL_S)
        except TimeoutError as error:
            if isinstance(error, SubstrateError):
                raise
            limit = f"{self._cell.create_timeout_s:g} s"
            refusal = refusal or (f"; {self.marks.obstacle}" if self.marks.obstacle else "")
            raise ReadyTimeout(f"no command answered within {limit} of create{refusal}") from error
        finally:
            self._deadline = None

    async def _reset(self) -> None:
        sandbox = self.sandbox
        assert isinstance(sandbox, Resets)
        async with asyncio.timeout_at(self._ready_by_s):
            await self.retry(lambda: sandbox.reset(self.marks))

    async def _no_op(self, script: str) -> None:
        result = await self._exec(script, self._cell.timeout_s)
        if result.exit_code != 0:
            problem = "the reset left something behind" if self._reuse else "the second no-op failed"
            raise WrongResult(f"{problem} (exit {result.exit_code})")

    async def _steps(self, kind: str, steps: Sequence[Step], think: ThinkTime | None = None) -> None:
        for index, step in enumerate(steps):
            think_ns = await self._think(think) if think is not None and index else 0
            await self._step(step, think_ns, index, kind)

    async def _think(self, think: ThinkTime) -> int:
        """Idle like an agent waiting for a model; return the duration in ns, without throttled time."""
        if not think.median_ns:
            return 0
        wanted_ns = think.median_ns * (self._random.lognormvariate(0, think.sigma) if think.sigma else 1.0)
        began, queued_before = time.monotonic_ns(), self.queued_ns
        after_ns = think.suspend_after_ns
        if after_ns is None or wanted_ns <= after_ns:
            await asyncio.sleep(wanted_ns / 1e9)
            return time.monotonic_ns() - began
        sandbox = self.sandbox
        assert isinstance(sandbox, Suspends)
        await self._idle(began + after_ns, sandbox, "suspending")
        self.suspended = True
        await self._call(events.SUSPEND, lambda: sandbox.suspend(self.marks))
        suspended = time.monotonic_ns()
        reopens = self.session is not None and "sessions" in self._cell.substrate.capabilities.suspend_loses
        if reopens:
            await self._drop_session()
        answer = began + wanted_ns  # of the model
        await self._idle((suspended + answer) // 2, sandbox, "suspended")
        await self._idle(answer, sandbox, "held")
        think_ns = max(wanted_ns, time.monotonic_ns() - began) if suspended < answer else wanted_ns
        think_ns = max(0, think_ns - (self.queued_ns - queued_before))
        await self._call(events.RESUME, lambda: self._resume(sandbox, reopens))
        self.suspended = False
        self.phase = events.ACTION
        return int(think_ns)

    async def _idle(self, until_ns: float, sandbox: Suspends, mark: str) -> None:
        """Sleep until an instant; meanwhile record the sandbox's usage, if the host reports it by then."""

        async def look() -> None:
            with contextlib.suppress(SubstrateError):
                usage = await sandbox.usage()
                if usage != Usage():
                    self._cell.emit(
                        events.Mark(self._number, mark, self._cell.now(), 0, usage.memory_bytes, usage.cpu_ns)
                    )

        looking = asyncio.ensure_future(look())
        try:
            await asyncio.sleep((until_ns - time.monotonic_ns()) / 1e9)
        finally:
            looking.cancel()
            await asyncio.wait({looking})

    async def _drop_session(self) -> None:
        """Close a lost session, and ignore errors."""
        session, self.session = self.session, None
        assert session is not None
        with contextlib.suppress(SubstrateError, TimeoutError):
            async with asyncio.timeout(TIMEOUT_GRACE_S):
                await session.close()

    async def _resume(self, sandbox: Suspends, reopens: bool) -> None:
        await sandbox.resume(self.marks)
        if reopens and self.session is None:
            assert self.sandbox is not None
            self.session = await self.sandbox.open_session()

    async def _call(self, phase: str, call: Callable[[], Awaitable[None]], *, resumes: bool = False) -> None:
        """Run and record a call of the life cycle, within the time limit of a create. ``resumes``: as ``Retry``."""

        async def in_time() -> None:
            async with asyncio.timeout(self._cell.create_timeout_s):
                await call()

        await self._recorded(phase, self.retry(in_time, resumes=resumes))

    async def _copies(self) -> None:
        """Measure the plan's snapshot, fork and build, outside the occupied time.

        The copies have the trial's name with a suffix, and the trial's labels.
        """
        substrate, sandbox, spec, marks = self._cell.substrate, self.sandbox, self._spec, self.marks
        reference = ""
        copy: Sandbox | None = None
        ready = False

        async def snapshot() -> None:
            nonlocal reference
            assert isinstance(sandbox, Snapshots)
            reference = await sandbox.snapshot(f"{spec.name}.snapshot", spec.labels, marks)

        async def fork() -> None:  # after a throttle the next call continues
            nonlocal copy, ready
            if copy is None:
                acquire = f"{SNAPSHOT}:{reference}"
                copy = await substrate.create(replace(spec, name=f"{spec.name}.fork", acquire=acquire), marks)
            if not ready:
                await copy.wait_ready(marks)
                ready = True
            if (await copy.exec(Command(script="true"))).exit_code:
                raise ExecFailed("the first no-op in a fork failed")

        async def build() -> None:
            assert isinstance(substrate, Builds)
            await substrate.build(f"{spec.name}.image", substrate.dockerfile(), spec.labels, marks)

        operations, queued_before = self._cell.lifecycle, self.queued_ns
        self.copied = bool({"snapshot", "build"} & set(operations))
        if "snapshot" in operations:
            await self._call(events.SNAPSHOT, snapshot)
            await self._call(events.FORK, fork, resumes=True)
        if "build" in operations:
            await self._call(events.BUILD, build)
        self.copies_queued_ns = self.queued_ns - queued_before

    async def _step(self, step: Step, think_ns: int = 0, index: int = 0, kind: str = events.PRELOAD) -> None:
        """Run, time and record one command, then check the result."""
        method = self._cell.method
        timeout_s = step.timeout_s if step.timeout_s is not None else self._cell.timeout_s
        script = bracket.wrap(step.run, self._nonce, method)
        queued_before = self.queued_ns
        began = self._cell.now()
        result = await self._exec(script, timeout_s)
        ended = self._cell.now()
        queued = self.queued_ns - queued_before
        if result.ended_ns:  # taken in the thread of the blocking call, for the answered request
            began, ended = result.started_ns - self._cell.anchor_ns, result.ended_ns - self._cell.anchor_ns
            queued = 0
        duration_ns = ended - began - queued
        stderr, run_ns, cpu_ns, wrapper_ns = bracket.unwrap(
            result.stderr, self._nonce, method, duration_ns, result.wrapper_ended_ns
        )
        if kind in (events.SETUP, events.ACTION):
            gap_ns = began - self.last_ns - think_ns - (self.queued_ns - self._last_queued_ns - queued)
            self._rows.append(
                {
                    "gap_ns": max(0, gap_ns),
                    "think_ns": think_ns,
                    "duration_ns": duration_ns,
                    "run_ns": run_ns,
                    "cpu_ns": cpu_ns,
                    "wrapper_ns": wrapper_ns,
                    "exit_code": result.exit_code,
                    "stdout_bytes": len(result.stdout) + result.stdout_dropped,
                    "stderr_bytes": len(stderr) + result.stderr_dropped,
                }
            )
        self._ended(ended)
        self._judge(step, index, kind, result)

    def _judge(self, step: Step, index: int, kind: str, result: ExecResult) -> None:
        where = f"{kind} {index} ({step.name})" if kind != events.PRELOAD else kind
        if result.exit_code != step.expect_exit:
            raise WrongResult(f"{where}: exit {result.exit_code}, expected {step.expect_exit}")
        if step.expect_stdout.replace("{nonce}", self._nonce).encode() not in result.stdout:
            raise WrongResult(f"{where}: the expected output is missing")

    async def _exec(self, script: str, timeout_s: float) -> ExecResult:
        runner = self.session or self.sandbox
        assert runner is not None
        command = Command(script=script, timeout_s=timeout_s)

        async def answer() -> ExecResult:
            async with asyncio.timeout(timeout_s + TIMEOUT_GRACE_S):  # of one request, without waits for a throttle
                return await runner.exec(command)

        try:
            result = await self.retry(answer)
        except TimeoutError as error:
            if isinstance(error, SubstrateError):
                raise
            late = f"no answer {TIMEOUT_GRACE_S:g} s after the command's timeout of {timeout_s:g} s"
            raise ExecTimeout(late) from error
        if result.exit_code not in EXIT_CODES:
            raise ExecFailed("the answer to a command has no exit code from 0 to 255")
        return result
