"""The session agent with a real pseudo-terminal, behind a websocket, on a network that can misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import io
import json
import os
import random
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from aiohttp import WSMsgType, web

from tests.support.standins.ecs_peer import AgentEnd, closed, message

SETSID = shutil.which("setsid") or "setsid"  # of this machine, not of the image
TICK_S = 0.05


@dataclass
class Behaviour:
    """What the agent and the network between do."""

    terminal_after_s: float = 0.0  # input before that is not acknowledged
    handshake: Literal["none", "plain", "kms"] = "none"
    drop: float = 0.0
    cut_after: int = 0  # frames from the client, then the connection is gone
    applets: str = ""  # a folder of BusyBox: its shell and its programs are the image's
    seed: int = 0


class AgentSession:
    """One session: runs ``command`` on a terminal for whoever connects."""

    def __init__(
        self,
        token: str,
        command: str,
        env: Mapping[str, str],
        cwd: str,
        behaviour: Behaviour,
        granted: Callable[[AgentSession], bool],
    ) -> None:
        """``granted``: whether the agent has a slot for it by now; until then it does not answer."""
        self._granted = granted
        self.token = token
        self.begun = False  # it has one of its agent's few slots
        self._killed = False
        self._dead = asyncio.Event()
        self._command, self._env, self._cwd = command, dict(env), cwd
        self._behaviour = behaviour
        self._random = random.Random(behaviour.seed)
        self._end = AgentEnd(handshake=behaviour.handshake, terminal=False)
        self._master = -1
        self._process: subprocess.Popen[bytes] | None = None
        self._typed: asyncio.Queue[bytes] = asyncio.Queue()
        self._frames = 0
        self._acknowledged = asyncio.Event()

    @property
    def over(self) -> bool:
        """Whether its agent has let go of it: not for want of a client."""
        return self._killed or (self._process is not None and self._process.poll() is not None)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """The client's websocket, until either side is done. The session outlives it, unless it was ended."""
        socket = web.WebSocketResponse(max_msg_size=0, compress=False)
        await socket.prepare(request)
        first = await socket.receive()
        if first.type is not WSMsgType.TEXT:  # whoever connected is gone already
            return socket
        greeting = json.loads(first.data)
        if greeting["TokenValue"] != self.token or not greeting["ClientVersion"]:
            await socket.close(code=1008, message=b"token")
            return socket
        self._socket = socket
        tasks = [asyncio.create_task(work()) for work in (self._receive, self._tick, self._run)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._end.terminated or self.over:
                self.kill()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await socket.close()
        return socket

    def kill(self) -> None:
        """Hang the terminal up and kill its shell, as an agent does whose session is terminated."""
        self._killed = True
        if self._master >= 0:
            # Else whoever gets its number next is taken for watched, and hears nothing for ever.
            self._loop.remove_reader(self._master)
            self._loop.remove_writer(self._master)
            os.close(self._master)
            self._master = -1
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def die(self) -> None:
        """The agent is gone, with its container or alone: whoever is connected hears nothing of it."""
        self._dead.set()
        self.kill()

    async def _receive(self) -> None:
        async for received in self._socket:
            if received.type is not WSMsgType.BINARY:
                continue
            self._frames += 1
            if self._behaviour.cut_after and self._frames > self._behaviour.cut_after:
                assert self._socket._req is not None
                transport = self._socket._req.transport
                if transport is not None:
                    transport.abort()
                return
            await self._through(received.data, to_client=False)

    async def _tick(self) -> None:
        while not self._end.terminated:
            await asyncio.sleep(TICK_S)
            if self._dead.is_set():
                await self._socket.send_bytes(message("pause_publication", b""))  # the service's only sign
                continue
            self._end.tick(time.monotonic_ns())
            await self._flush()
        await asyncio.sleep(0.1)
        await self._socket.send_bytes(closed())

    async def _run(self) -> None:
        while not self._granted(self):
            await asyncio.sleep(TICK_S)
        self.begun = True
        await asyncio.sleep(self._behaviour.terminal_after_s)
        if self.over:  # its container has ended
            await asyncio.Event().wait()
        self._start()
        typing = asyncio.create_task(self._type())
        try:
            while data := await self._read():
                self._end.write(data, time.monotonic_ns())
                await self._flush()
        finally:
            typing.cancel()
        if self._dead.is_set():
            await asyncio.Event().wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(3):
                while not self._end.idle:
                    self._acknowledged.clear()
                    await self._acknowledged.wait()
        await self._socket.send_bytes(closed())

    def _start(self) -> None:
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._process = subprocess.Popen(
            [SETSID, "--ctty", *self._argv()],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=self._env,
            cwd=self._cwd,
            close_fds=True,
        )
        os.close(slave)
        os.set_blocking(master, False)
        self._master = master
        self._loop = asyncio.get_running_loop()
        self._end.terminal = True

    def _argv(self) -> list[str]:
        argv = shlex.split(self._command)
        return [f"{self._behaviour.applets}/sh", *argv[1:]] if self._behaviour.applets else argv

    async def _read(self) -> bytes:
        """Up to 1024 bytes of output; empty when the shell has ended."""
        while True:
            try:
                return os.read(self._master, 1024)
            except BlockingIOError:
                await self._ready(write=False)
            except OSError:  # EIO: nobody has the terminal open any more
                return b""

    async def _type(self) -> None:
        while True:
            data = await self._typed.get()
            while data:
                try:
                    data = data[os.write(self._master, data) :]
                except BlockingIOError:
                    await self._ready(write=True)

    async def _ready(self, *, write: bool) -> None:
        loop = self._loop
        ready = asyncio.Event()
        add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
        add(self._master, ready.set)
        try:
            await ready.wait()
        finally:
            if self._master >= 0:
                remove(self._master)

    async def _flush(self) -> None:
        for frame in self._end.take():
            await self._through(frame, to_client=True)

    async def _through(self, frame: bytes, *, to_client: bool) -> None:
        if self._behaviour.drop and self._random.random() < self._behaviour.drop:
            return
        if self._socket.closed or self._dead.is_set():
            return
        if to_client:
            with contextlib.suppress(ConnectionError):
                await self._socket.send_bytes(frame)
            return
        typed = self._end.receive(frame, time.monotonic_ns())
        self._acknowledged.set()
        if typed:
            self._typed.put_nowait(typed)
        await self._flush()


def kill_marked(marker: str) -> None:
    """Kill every process whose environment holds ``marker``, and wait until none is left: a container's end."""
    while pids := marked(marker):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def marked(marker: str) -> list[int]:
    """Processes whose environment holds ``marker``; one that is dead and not yet waited for has none."""
    found = []
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdecimal():
                with contextlib.suppress(OSError), io.FileIO(f"{entry.path}/environ") as environ:
                    if marker.encode() in environ.readall().split(b"\0"):
                        found.append(int(entry.name))
    return found
