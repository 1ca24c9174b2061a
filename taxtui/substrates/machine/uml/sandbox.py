"""One machine: how it is started, used and ended."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from collections import deque
from typing import Final

import msgspec

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit.framed_shell import ENDED, OPEN_TIMEOUT_S, FramedShell
from taxtui.sandboxes.kit.frames import STDERR, STDOUT
from taxtui.sandboxes.kit.kill import kill_marked, kill_script, new_mark
from taxtui.sandboxes.kit.limits import SANDBOX_ENV, CgroupLimiter
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.kit.session import ExplainedSession, OwnedStream
from taxtui.sandboxes.protocol import ExecResult, Session
from taxtui.substrates.machine.contained import ContainedSandbox
from taxtui.substrates.machine.host import Host
from taxtui.substrates.machine.uml.boot import (
    NARROW_ENV,
    PAIRS,
    agent_script,
    boot_script,
    kernel_argv,
    overlay_module,
    without_wide_registers,
)
from taxtui.substrates.machine.uml.failure import no_network, not_started, silent
from taxtui.substrates.machine.uml.lines import LinePair, OrderLine
from taxtui.substrates.machine.uml.sharing import FOLDER, SharingSession, shared

_SPEAKS_WITHIN_S: Final = 120.0
_KILL_TIMEOUT_S: Final = 30.0
_KILL_AGAIN_S: Final = 0.25
_LEAST_S: Final = 0.1
_AT_ONCE: Final = 2
"""Pairs that the machine begins with."""
_KERNEL_MIB: Final = 64
"""What the kernel takes of this machine's memory besides the guest's."""
_OWN_PROCESSES: Final = 6 * PAIRS + 16
"""The shells that wait on lines, what carries their bytes, the first process, the kernel's helpers and its starters."""


class UmlSandbox(ContainedSandbox):
    """One kernel, and its serial lines."""

    def __init__(self, host: Host, name: str, *, narrow: bool) -> None:
        """Nothing is started. ``narrow``: this machine's processes have more registers than the kernel can take."""
        super().__init__(host, name)
        self._narrow = narrow
        self._process: Process | None = None
        self._orders: OrderLine | None = None
        self._pairs: list[LinePair] = []
        self._kept = 0  # of them, how many have somebody waiting at the other end
        self._free: deque[LinePair] = deque()
        self._returned = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def held_to(self, limits: Limits) -> Limits:
        """As ``ContainedSandbox.held_to``: the guest's memory and processes are this machine's, and more."""
        return msgspec.structs.replace(
            limits, memory_mib=limits.memory_mib + _KERNEL_MIB, pids=limits.pids + _OWN_PROCESSES
        )

    async def start(self, spec: SandboxSpec, prologue: str) -> None:
        """As ``ContainedSandbox.start``."""
        if spec.network:
            raise no_network()
        root = self.host.root
        narrow = NARROW_ENV if self._narrow else {}
        given = self.folder / FOLDER
        given.mkdir()
        given.chmod(0o755)
        (self.folder / "boot").write_text(boot_script(overlay_module(), root.folder))
        (self.folder / "agent").write_text(agent_script(root, self.env | narrow))
        self._orders = orders = OrderLine()
        self._pairs = [LinePair() for _ in range(PAIRS)]
        wires = [orders.wire, *(pair.wires[channel] for pair in self._pairs for channel in (STDOUT, STDERR))]
        orders.wire.listen(orders)
        for pair in self._pairs:
            pair.listen()
        filter_ = _in_memory(without_wide_registers()) if self._narrow else -1
        try:
            lines = [wire.far.fileno() for wire in wires]
            argv = kernel_argv(
                folder=self.folder,
                root=root,
                memory_mib=spec.limits.memory_mib,
                ttl_s=math.ceil(spec.ttl_s),
                lines=lines,
                seccomp=filter_,
                env=narrow,
            )
            # An address space limit would be the kernel's own, which needs more than its guest.
            held = prologue if isinstance(self.host.limiter, CgroupLimiter) else ""
            self._process = Process(
                ["/bin/sh", "-c", f'{held}exec "$@"', "sh", *argv],
                {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin", SANDBOX_ENV: spec.name},
                stdin=False,
                inherited=[*lines, filter_] if filter_ >= 0 else lines,
            )
        finally:
            for wire in wires:
                wire.far.close()
            if filter_ >= 0:
                os.close(filter_)
        await self._awake(orders, self._process)
        for _ in range(_AT_ONCE):
            self._keep_one()

    async def _awake(self, orders: OrderLine, process: Process) -> None:
        """Raises ``CreateFailed``."""
        try:
            async with asyncio.timeout(_SPEAKS_WITHIN_S):
                if await asyncio.shield(orders.awake):
                    return
                said = b""
                while (item := await process.read())[0] != ENDED:
                    said += item[1]
        except TimeoutError:
            raise silent(_SPEAKS_WITHIN_S) from None
        raise not_started(said)

    # -- lines --------------------------------------------------------------------------------------------------

    def _keep_one(self) -> None:
        """Have somebody wait at the other end of one pair more."""
        if self._kept < len(self._pairs):
            pair = self._pairs[self._kept]
            self._in_background(self._kept_pair(self._kept, pair))
            self._kept += 1

    async def _kept_pair(self, number: int, pair: LinePair) -> None:
        assert self._orders is not None
        with contextlib.suppress(SubstrateError):  # whoever waits for the pair sees that it is lost
            await self._orders.order(f"keep {number} &")
        await self._back(pair)

    async def _back(self, pair: LinePair) -> None:
        """Once somebody waits there again."""
        await pair.ready.wait()
        async with self._returned:
            self._free.append(pair)
            self._returned.notify()

    def _in_background(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _taken(self, mark: str, within_s: float) -> LinePair:
        """A pair on which a shell with ``mark`` starts. Raises ``ExecTimeout``, ``SandboxLost``."""
        if self._process is None or await self.ended():
            raise SandboxLost("the machine ended")
        try:
            async with asyncio.timeout(within_s), self._returned:
                if not self._free:
                    self._keep_one()
                await self._returned.wait_for(lambda: self._free)
                pair = self._free.popleft()
        except TimeoutError:
            raise ExecTimeout(f"no serial line was free within {within_s:g} s") from None
        if pair.lost:
            self._free.append(pair)
            raise SandboxLost("the machine ended")
        pair.request(mark)
        return pair

    # -- commands -----------------------------------------------------------------------------------------------

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: a shell for this command alone."""
        mark, began_s = new_mark(), time.monotonic()
        pair = await self._taken(mark, command.timeout_s)
        left_s = max(_LEAST_S, command.timeout_s - (time.monotonic() - began_s))
        shell = FramedShell(OwnedStream(pair, lambda: self._end(pair, mark)))
        with shared(self.folder, command) as small:
            result = await ExplainedSession(shell, self._explained).only(
                msgspec.structs.replace(small, timeout_s=left_s)
            )
        pair.leave()
        self._in_background(self._back(pair))
        return result

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``."""
        mark = new_mark()
        pair = await self._taken(mark, OPEN_TIMEOUT_S)
        shell = await FramedShell.open(OwnedStream(pair, lambda: self._end(pair, mark)))
        return SharingSession(ExplainedSession(shell, self._explained), self.folder)

    async def _explained(self, error: SubstrateError) -> SubstrateError:
        return SandboxLost("the machine ended") if await self.ended() else error

    async def _end(self, pair: LinePair, mark: str) -> None:
        """Kill what has ``mark`` until its shell's place is taken by the next; it may only be about to begin."""
        assert self._orders is not None
        pair.leave()
        try:
            async with asyncio.timeout(_KILL_TIMEOUT_S):
                while True:
                    with contextlib.suppress(SandboxLost):
                        await self._orders.order(kill_script(mark))
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_KILL_AGAIN_S):
                            await pair.ready.wait()
                            return
        except TimeoutError as error:
            raise ExecFailed(f"{self.name}: a command's processes may still run in it: no answer") from error
        finally:
            self._in_background(self._back(pair))

    # -- ending -------------------------------------------------------------------------------------------------

    async def ended(self) -> bool:
        """As ``ContainedSandbox.ended``."""
        return self._process is None or self._process.returncode is not None or self._orders is None

    async def remove(self) -> None:
        """As ``ContainedSandbox.remove``: nothing of it is worth an orderly end."""
        if self._process is not None:
            await self._process.close()
        await kill_marked(f"{SANDBOX_ENV}={self.name}")
        if self._orders is not None:
            self._orders.close()
        for pair in self._pairs:
            pair.close()
        await self.host.forget(self.name)


def _in_memory(data: bytes) -> int:
    """A descriptor from which it can be read."""
    descriptor = os.memfd_create("taxtui")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
