"""What stand-ins share: what goes wrong on request, and where sandboxes really run their commands."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from aiohttp import web

from taxtui.sandboxes.kit.cancellation import undo_if_cancelled
from tests.support.waiting import until


class Place:
    """One sandbox's folder and whatever runs in it. A process goes on until it ends or somebody kills it."""

    def __init__(self, prefix: str, volume: Path | None = None) -> None:
        """``volume`` is a folder that outlives the place; temporary files do not."""
        self._volume = volume
        self.folder = volume or Path(tempfile.mkdtemp(prefix=prefix))
        self.temporary = self.folder / ".tmp"
        self.temporary.mkdir(exist_ok=True)
        self.processes: list[Process] = []
        self._removed = False
        self.path = os.environ["PATH"]

    def begun(self) -> bool:
        """Whether a command has made the file of this name, as one does that a test waits for."""
        return (self.folder / "begun").exists()

    async def start(
        self, argv: Sequence[str], env: Mapping[str, str], *, stdin: bool, merged: bool = False, quiet: bool = False
    ) -> Process:
        """Start a program as the leader of a session and process group of its own. Raises ``OSError``."""
        self._must_exist()
        out = DEVNULL if quiet else PIPE
        starting = asyncio.create_subprocess_exec(
            *argv,
            stdin=PIPE if stdin else DEVNULL,
            stdout=out,
            stderr=STDOUT if merged else out,
            cwd=self.folder,
            env={"PATH": self.path, "HOME": str(self.folder), "TMPDIR": str(self.temporary), "LANG": "C.UTF-8", **env},
            start_new_session=True,
        )
        process = await undo_if_cancelled(starting, self._add)
        await self._add(process)
        self._must_exist()
        return process

    async def _add(self, process: Process) -> None:
        self.processes.append(process)
        if self._removed:  # while it began, so that nobody has killed it
            await self.remove()

    def _must_exist(self) -> None:
        if self._removed:
            raise ProcessLookupError("its place is gone")

    def kill(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def alive(self) -> int:
        """How many process groups that were started here still have a member that is not a zombie."""
        return len({group for _, _, group in living()}.intersection(process.pid for process in self.processes))

    async def remove(self) -> None:
        """Kill everything and delete the folder; what is just beginning is killed too."""
        self._removed = True
        self.kill()
        for process in self.processes:
            await process.wait()
        self.processes.clear()
        shutil.rmtree(self.temporary if self._volume else self.folder, ignore_errors=True)


SETSID = shutil.which("setsid") or "setsid"  # of this machine, not of an image


class Pty:
    """A program on a pseudo-terminal of its own."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], folder: str | Path) -> None:
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [SETSID, "--ctty", *argv], stdin=slave, stdout=slave, stderr=slave, env=env, cwd=folder
        )
        os.close(slave)
        os.set_blocking(self._master, False)
        self._loop = asyncio.get_running_loop()
        self._waiting: set[asyncio.Event] = set()

    def over(self) -> bool:
        return self.process.poll() is not None

    async def read(self) -> bytes:
        """Some output; empty when the last user of the terminal has gone."""
        while True:
            try:
                return os.read(self._master, 1024)
            except BlockingIOError:
                await self._ready(self._loop.add_reader, self._loop.remove_reader)
            except OSError:
                return b""

    async def write(self, data: bytes) -> None:
        """Type; the terminal's buffer may be full until somebody reads."""
        while data:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                await self._ready(self._loop.add_writer, self._loop.remove_writer)

    async def _ready(self, add: Callable[..., object], remove: Callable[[int], object]) -> None:
        ready = asyncio.Event()
        self._waiting.add(ready)
        add(self._master, ready.set)
        try:
            await ready.wait()
        finally:
            self._waiting.discard(ready)
            if self._master >= 0:
                remove(self._master)

    def hang_up(self) -> None:
        """Kill the program and close the terminal."""
        if self._master >= 0:
            # Else whoever gets its number next is taken for watched, and hears nothing for ever.
            self._loop.remove_reader(self._master)
            self._loop.remove_writer(self._master)
            os.close(self._master)
            self._master = -1
        for ready in self._waiting:
            self._loop.call_soon_threadsafe(ready.set)
        if not self.over():
            self.process.kill()
            self.process.wait()


class Leaves:
    """A stand-in that counts what exists and what runs."""

    def left(self) -> tuple[int, int]:
        """Sandboxes that exist, and process groups that are alive in them."""
        raise NotImplementedError

    async def leaves(self, *expected: int) -> None:
        """That this is what is left: what has been killed takes a moment to be gone."""
        await until(lambda: self.left() == expected, f"{expected} sandboxes and process groups are left")


def living() -> Iterator[tuple[int, int, int]]:
    """Processes of this machine that are no zombies, with their parents and their process groups."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if state != "Z":
                    yield int(entry.name), int(parent), int(group)


def descendants(pid: int) -> list[int]:
    """Processes below one, parents before their children."""
    processes, found = list(living()), [pid]
    for above in found:
        found.extend(child for child, parent, _ in processes if parent == above)
    return found[1:]


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOOK_S = 0.05  # whether whoever waits for an answer is still there
CUT = web.RequestKey("cut", bool)
"""In a request: the handler has to break the connection in the middle of its answer."""


@dataclass
class Fault:
    """What goes wrong with the next ``times`` requests of one kind, after ``skip`` that are answered."""

    on: str
    status: int = 0
    code: str = ""  # AWS's name for the refusal
    retry_after_s: float | None = None
    message: str = "injected"
    hang: Literal["", "before", "after"] = ""  # never answer, before or after the side effect
    reset: Literal["", "before", "after", "mid"] = ""  # break the connection; mid: within a command's output
    times: float = 1  # math.inf: for ever
    skip: int = 0

    async def strike(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Hang or break the connection; the handler sees ``request[CUT]`` where it has to do that itself."""
        request[CUT] = self.reset == "mid"
        if "before" not in (self.hang, self.reset):
            answer = await handler(request)
            if self.reset == "mid":
                return answer
        if self.hang:
            while request.transport is not None and not request.transport.is_closing():
                await asyncio.sleep(LOOK_S)
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


class Faults:
    """Those that are still to come."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []
        self.struck = 0
        """How many requests so far."""

    def add(self, on: str, **how: Any) -> None:
        self._waiting.append(Fault(on, **how))

    def clear(self) -> None:
        self._waiting.clear()

    def next(self, kind: str) -> Fault | None:
        for fault in self._waiting:
            if fault.on == kind and fault.times > 0:
                if fault.skip:
                    fault.skip -= 1
                    return None
                fault.times -= 1
                self.struck += 1
                return fault
        return None
