"""Limits of a command's output: the beginning, the end and the length are kept.

A command may print more than this machine has memory. The runner needs only the kept part: a tier's proof is at the
beginning, the output of taxtui's wrappers at the end.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from taxtui.sandboxes.protocol import ExecResult

HEAD_BYTES: Final = 16 * 2**20
"""Limit of the beginning of each stream."""
KEPT_BYTES: Final = ContextVar("KEPT_BYTES", default=HEAD_BYTES)
"""The same limit for a run: ``limits.output_mib`` of the plan."""
TAIL_BYTES: Final = 64 * 2**10
"""Limit of the end of each stream; the bytes between beginning and end are dropped."""


class KeptOutput:
    """A stream on arrival; ``length`` counts all bytes."""

    def __init__(self) -> None:
        self.length = 0
        self._head_bytes = min(HEAD_BYTES, KEPT_BYTES.get())
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes | bytearray | memoryview) -> None:
        self.length += len(data)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data[-TAIL_BYTES:]
            if len(self._tail) > 4 * TAIL_BYTES:
                del self._tail[:-TAIL_BYTES]

    def lack(self, length: int) -> None:
        """Count bytes that were dropped before the arrival. Raises ``ValueError``: more bytes than ``length`` came."""
        if length < self.length:
            raise ValueError("longer than announced")
        self.length = length

    @property
    def kept(self) -> bytes:
        """The beginning and the end; the whole stream unless ``dropped``."""
        return bytes(self._head + self._tail[-TAIL_BYTES:])

    @property
    def dropped(self) -> int:
        """Number of dropped bytes between beginning and end."""
        return self.length - len(self._head) - min(len(self._tail), TAIL_BYTES)


def exec_result(code: int, out: KeptOutput, err: KeptOutput, wrapper_ended_ns: int = -1) -> ExecResult:
    """The result of a command from exit code and streams."""
    return ExecResult(
        code,
        out.kept,
        err.kept,
        stdout_dropped=out.dropped,
        stderr_dropped=err.dropped,
        wrapper_ended_ns=wrapper_ended_ns,
    )
