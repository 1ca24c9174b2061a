"""The session agent at its end of a Session Manager data channel: without I/O, and with a terminal behind a websocket.

It does what the real agent was seen to do, also where that is awkward: it withholds acknowledgements until its terminal
exists, acknowledges and discards input during a handshake, repeats acknowledgements of duplicates, resends only its
oldest frame, and passes output through a loop over UTF-8 characters that damages U+FFFD and holds back a torn tail.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import random
import shlex
import signal
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import WSMsgType, web

from taxtui.sandboxes.kit.kill import marked
from taxtui.substrates.aws.ecs import protocol
from taxtui.substrates.aws.ecs.protocol import Frame
from tests.support.standins.standin_place import Pty

TICK_S = 0.05
RTO_NS = 200_000_000
HANDSHAKE_ACTIONS = {
    "plain": [{"ActionType": "SessionType", "ActionParameters": {"SessionType": "InteractiveCommands"}}],
    "kms": [
        {"ActionType": "SessionType", "ActionParameters": {"SessionType": "InteractiveCommands"}},
        {"ActionType": "KMSEncryption", "ActionParameters": {"KMSKeyId": "alias/x", "Challenge": "eA=="}},
    ],
}


class AgentEnd:
    """The agent's state. ``discarded`` is the input that it acknowledged and threw away."""

    def __init__(self, *, handshake: Literal["none", "plain", "kms"] = "none", terminal: bool = True) -> None:
        self.terminal = terminal
        self.terminated = False
        self.discarded = b""
        self._shaking = handshake != "none"
        self._outbox: list[bytes] = []
        self._unacked: dict[int, tuple[bytes, int]] = {}
        self._next = 0
        self._expected = 0
        self._early: dict[int, Frame] = {}
        self._tail = b""
        if self._shaking:
            request = {"AgentVersion": "3.3.0.0", "RequestedClientActions": HANDSHAKE_ACTIONS[handshake]}
            self._send(protocol.HANDSHAKE_REQUEST, json.dumps(request).encode(), 0)

    def write(self, data: bytes, now_ns: int) -> None:
        passed, self._tail = rune_loop(self._tail + data)
        for at in range(0, len(passed), 1024):
            self._send(protocol.OUTPUT, passed[at : at + 1024], now_ns)

    def take(self) -> list[bytes]:
        frames, self._outbox = self._outbox, []
        return frames

    def tick(self, now_ns: int) -> None:
        """Send the oldest unacknowledged frame again when it is due."""
        for sequence, (data, at_ns) in list(self._unacked.items())[:1]:
            if now_ns >= at_ns + RTO_NS:
                self._unacked[sequence] = (data, now_ns)
                self._outbox.append(data)

    def receive(self, data: bytes, now_ns: int) -> bytes:
        frame = Frame.decode(data)
        if frame.kind == protocol.ACKNOWLEDGE:
            self._unacked.pop(json.loads(frame.payload)["AcknowledgedMessageSequenceNumber"], None)
            return b""
        assert frame.kind == protocol.INPUT_DATA, frame.kind
        assert len(frame.payload) <= 1024
        if frame.payload_type == protocol.OUTPUT and not self.terminal and not self._shaking:
            return b""  # no acknowledgement: the client must send it again
        self._acknowledge(frame)
        if frame.sequence < self._expected:
            return b""
        self._early[frame.sequence] = frame
        taken = b""
        while self._expected in self._early:
            taken += self._accept(self._early.pop(self._expected), now_ns)
            self._expected += 1
        return taken

    @property
    def idle(self) -> bool:
        return not self._unacked

    def _accept(self, frame: Frame, now_ns: int) -> bytes:
        if frame.payload_type == protocol.FLAG:
            self.terminated = self.terminated or frame.payload == struct.pack(">I", 2)
        elif frame.payload_type == protocol.HANDSHAKE_RESPONSE:
            answers = json.loads(frame.payload)["ProcessedClientActions"]
            if any(answer["ActionStatus"] != 1 for answer in answers):
                self.terminated = True
            else:
                self._send(protocol.HANDSHAKE_COMPLETE, b'{"HandshakeTimeToComplete":1,"CustomerMessage":""}', now_ns)
            self._shaking = False
        elif frame.payload_type == protocol.OUTPUT:
            if not self._shaking:
                return frame.payload
            self.discarded += frame.payload
        return b""

    def _acknowledge(self, frame: Frame) -> None:
        body = {
            "AcknowledgedMessageType": frame.kind,
            "AcknowledgedMessageId": str(frame.id),
            "AcknowledgedMessageSequenceNumber": frame.sequence,
            "IsSequentialMessage": True,
        }
        self._outbox.append(message(protocol.ACKNOWLEDGE, json.dumps(body).encode(), flags=3))

    def _send(self, payload_type: int, payload: bytes, now_ns: int) -> None:
        data = message(protocol.OUTPUT_DATA, payload, sequence=self._next, payload_type=payload_type)
        self._unacked[self._next] = (data, now_ns)
        self._outbox.append(data)
        self._next += 1


def message(kind: str, payload: bytes, **fields: Any) -> bytes:
    return Frame(kind=kind, payload=payload, **fields).encode()


def closed(reason: str = "") -> bytes:
    """What the service sends when a session is over."""
    body = {"MessageType": "channel_closed", "SchemaVersion": 1, "SessionId": "s", "Output": reason}
    return message(protocol.CHANNEL_CLOSED, json.dumps(body).encode())


def rune_loop(data: bytes) -> tuple[bytes, bytes]:
    """``data`` as the agent passes it on, and the torn tail that it keeps for later."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    whole = decoder.decode(data)
    return whole.replace("\ufffd", "\udcef").encode("utf-8", "surrogateescape"), decoder.getstate()[0]


@dataclass
class Behaviour:
    """What the agent and the network between do."""

    terminal_after_s: float = 0.0  # input before that is not acknowledged
    handshake: Literal["none", "plain", "kms"] = "none"
    drop: float = 0.0  # share of frames that are lost, either way
    cut_after: int = 0  # frames from the client, then the connection is gone
    applets: str = ""  # a folder of BusyBox: its shell and its programs are the image's


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
        self._end = AgentEnd(handshake=behaviour.handshake, terminal=False)
        self._pty: Pty | None = None
        self._typed: asyncio.Queue[bytes] = asyncio.Queue()
        self._frames = 0
        self._random = random.Random(5)
        self._acknowledged = asyncio.Event()

    @property
    def over(self) -> bool:
        """Whether its agent has let go of it: not for want of a client."""
        return self._killed or (self._pty is not None and self._pty.over())

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
        if self._pty is not None:
            self._pty.hang_up()

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
        argv = shlex.split(self._command)
        if self._behaviour.applets:
            argv[0] = f"{self._behaviour.applets}/sh"
        self._pty = Pty(argv, self._env, self._cwd)
        self._end.terminal = True
        typing = asyncio.create_task(self._type(self._pty))
        try:
            while data := await self._pty.read():
                self._end.write(data, time.monotonic_ns())
                await self._flush()
        finally:
            typing.cancel()
        if self._killed:
            await asyncio.Event().wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(3):
                while not self._end.idle:
                    self._acknowledged.clear()
                    await self._acknowledged.wait()
        await self._socket.send_bytes(closed())

    async def _type(self, pty: Pty) -> None:
        while True:
            await pty.write(await self._typed.get())

    async def _flush(self) -> None:
        for frame in self._end.take():
            await self._through(frame, to_client=True)

    async def _through(self, frame: bytes, *, to_client: bool) -> None:
        if self._socket.closed or self._dead.is_set() or self._random.random() < self._behaviour.drop:
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
    while pids := marked(marker.encode()):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
