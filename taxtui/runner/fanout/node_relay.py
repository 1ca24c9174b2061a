"""What stands beside a worker on a node of a cluster: it starts the worker there, and passes on bytes.

An engine runs it as an actor and calls its methods from afar. A call that seems to be lost may be repeated: each turn
has a number, and asking for a turn acknowledges all before it. Measuring is a process of its own, so that whatever the
engine does in this one is in no latency.
"""

from __future__ import annotations

import asyncio
import platform
from pathlib import Path
from typing import Final

import msgspec

from taxtui.errors import TaxtuiError, UsageError
from taxtui.runner.fanout.declined import Declined
from taxtui.runner.fanout.orders import WorkerTask
from taxtui.runner.fanout.placing import Heard, WorkerProcess
from taxtui.workloads import fixtures

GATHERED_S: Final = 0.1
"""What is written within it travels together: a turn costs an engine some milliseconds of a core that measures."""
MOST_BYTES: Final = 90 << 10
"""Of a turn: Ray sends up to 100 KiB with the answer itself, and puts what is larger into a store first."""

decode_heard = msgspec.msgpack.Decoder(Heard).decode
encode = msgspec.msgpack.encode


class Errand(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be started on a node."""

    task: WorkerTask
    paths: list[str]  # that the plan names, and that the node has to have


class Letters:
    """Orders in the order in which they were sent, whichever of them arrives first; each is passed on once."""

    def __init__(self) -> None:
        """None has come."""
        self._next = 0
        self._early: dict[int, bytes] = {}

    def took(self, number: int, lines: bytes) -> bytes:
        """What may be passed on now that this one has come. Numbers count from 0."""
        if number >= self._next:
            self._early[number] = lines
        ready = []
        while self._next in self._early:
            ready.append(self._early.pop(self._next))
            self._next += 1
        return b"".join(ready)


class NodeRelay:
    """One worker's relay. All methods are awaited from afar, ``turn`` while others are."""

    def __init__(self) -> None:
        """Nothing is started."""
        self._worker: WorkerProcess | None = None
        self._letters = Letters()
        self._one_turn = asyncio.Lock()
        self._number = -1
        self._reply = b""

    async def begin(self, errand: bytes) -> bytes:
        """Start the worker of an ``Errand``. b"", or a ``Declined`` as JSON: it cannot be."""
        if self._worker is None:
            try:
                wanted = msgspec.msgpack.decode(errand, type=Errand)
                _require(wanted.paths)
                if fixtures.wanted_here(wanted.task.plan):
                    await asyncio.to_thread(fixtures.ensure)
                self._worker = await WorkerProcess.started(wanted.task, gathered_s=GATHERED_S, most_bytes=MOST_BYTES)
            except (TaxtuiError, OSError, msgspec.DecodeError) as error:
                return msgspec.json.encode(Declined.of(error))
        return b""

    async def order(self, number: int, lines: bytes) -> None:
        """Pass on one letter of orders."""
        assert self._worker is not None
        if ready := self._letters.took(number, lines):
            self._worker.order(ready)

    async def turn(self, turn: int, number: int, lines: bytes) -> bytes:
        """Pass on one letter, and return the next ``Heard`` as msgpack; the same once more if asked for the same."""
        await self.order(number, lines)
        assert self._worker is not None
        async with self._one_turn:
            if turn != self._number:
                self._reply = encode(await self._worker.heard())
                self._number = turn
            return self._reply

    async def close(self, patience_s: float) -> None:
        """As ``WorkerPlace.close``."""
        if self._worker is not None:
            await self._worker.close(patience_s)


def _require(paths: list[str]) -> None:
    for path in paths:
        if not Path(path).exists():
            raise UsageError(
                f"{platform.node()} has no {path}, which a substrate's option names",
                fix="have it under that path on every node, in the image say",
            )
