"""Reads from a worker process: output is gathered unless the worker waits for an answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from taxtui.runner.fanout import child_process
from taxtui.runner.fanout.child_process import WorkerProcess
from taxtui.runner.fanout.messages import Flushed, line

LONG_S = 3600.0


class Silent:
    """A process of which nothing is known but what it says, and that ends when told to."""

    def __init__(self) -> None:
        self.stdout = asyncio.StreamReader()
        self.stdin = self

    def close(self) -> None:
        self.stdout.feed_eof()

    async def wait(self) -> int:
        return 0


async def test_what_was_too_much_for_one_time_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "SILENCE_S", 2 * LONG_S)
    (tmp_path / "file").write_bytes(b"12345")
    process = Silent()
    worker = WorkerProcess(cast(Any, process), tmp_path / "file", gather_s=LONG_S, read_bytes=2)
    process.stdout.feed_data(line(Flushed(idle=True)))
    heard = [await worker.read() for _ in range(3)]
    assert [(each.data, len(each.lines)) for each in heard] == [(b"12", 0), (b"34", 0), (b"5", 1)]
    await worker.close(1.0)
