"""A run's connection to each worker: direct, or by bytes to another process, where each message is a line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from taxtui.runner.fanout.messages import FromWorker, ToWorker, decode_from_worker, line
from taxtui.runner.journal import Journal


class WorkerConnection(ABC):
    """The run's end of a worker."""

    def begin(self, journal: Journal, crashed: Callable[[Exception], None]) -> None:  # noqa: B027
        """The recording exists. A worker of this process begins to write events there."""

    @abstractmethod
    def send(self, message: ToWorker) -> None:
        """Send a message. After the worker's end messages are lost."""

    @abstractmethod
    async def receive(self) -> list[FromWorker]:
        """Return the next messages, in order and once; none after the worker's end.

        Raises:
            TaxtuiError: the worker could not start.
        """

    @abstractmethod
    async def close(self, patience_s: float) -> None:
        """Cancel a running worker, with ``patience_s`` to clean up. Idempotent."""


class ByteConnection(WorkerConnection):
    """A ``WorkerConnection`` by bytes to another process."""

    def __init__(self) -> None:
        self._rest = b""  # the beginning of a line

    @abstractmethod
    def write(self, lines: bytes) -> None:
        """Send lines to the worker. After the worker's end lines are lost."""

    @abstractmethod
    async def read(self) -> bytes:
        """Return the next bytes, in order and once; none after the worker's end."""

    def send(self, message: ToWorker) -> None:
        self.write(line(message))

    async def receive(self) -> list[FromWorker]:
        while data := await self.read():
            *lines, self._rest = (self._rest + data).split(b"\n")
            if lines:
                return [decode_from_worker(text) for text in lines]
        return []
