"""What is heard of a worker on this machine, and when: together as far as nobody waits for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from taxtui.runner.fanout import placing
from taxtui.runner.fanout.orders import Telling, Unstarted, Wrote, line
from taxtui.runner.fanout.placing import WorkerProcess

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


@pytest.mark.parametrize("waits", [Unstarted(3), Wrote(idle=True)], ids=["work is handed back", "a lane has no work"])
async def test_what_waits_for_something_is_heard_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: Telling
) -> None:
    monkeypatch.setattr(placing, "HEARD_WITHIN_S", 2 * LONG_S)
    process = Silent()
    worker = WorkerProcess(cast(Any, process), tmp_path / "none", gathered_s=LONG_S)
    process.stdout.feed_data(line(Wrote()))
    hearing = asyncio.ensure_future(worker.heard())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not hearing.done(), "that alone is gathered"
    process.stdout.feed_data(line(waits))
    assert (await hearing).lines == [line(Wrote()), line(waits)]
    await worker.close(1.0)


async def test_what_was_too_much_for_one_time_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "HEARD_WITHIN_S", 2 * LONG_S)
    (tmp_path / "file").write_bytes(b"12345")
    process = Silent()
    worker = WorkerProcess(cast(Any, process), tmp_path / "file", gathered_s=LONG_S, most_bytes=2)
    process.stdout.feed_data(line(Wrote(idle=True)))
    heard = [await worker.heard() for _ in range(3)]
    assert [(each.data, len(each.lines)) for each in heard] == [(b"12", 0), (b"34", 0), (b"5", 1)]
    await worker.close(1.0)
