"""What watches the tests would notice: a blocked event loop, and what chaos calls a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from taxtui import cli
from tests.support.chaos import processes
from tests.support.chaos.cases import UNREADABLE, judged
from tests.support.chaos.strikes import Victim
from tests.support.command_line import Home
from tests.support.fuzz import hostile
from tests.support.loop_guard import THREADS, TICK_S, LoopGuard


async def computing(guard: LoopGuard) -> None:
    while not guard.blocked_at:
        sum(range(1000))


async def waiting(guard: LoopGuard) -> None:
    for _ in range(14):
        await asyncio.sleep(TICK_S)


def watched(body: Callable[[LoopGuard], Awaitable[None]]) -> str:
    async def watch() -> str:
        guard = LoopGuard(THREADS)
        await body(guard)
        guard.close()
        return guard.blocked_at

    return asyncio.run(watch())


def test_only_what_blocks_the_loop_is_reported_and_where() -> None:
    assert "in computing" in watched(computing)
    assert watched(waiting) == ""


async def test_every_coroutine_here_is_watched(request: pytest.FixtureRequest) -> None:
    assert "unblocked_loop" in request.fixturenames


def test_a_recording_that_cannot_be_read_is_a_failure_unless_somebody_else_wrote_to_it(tmp_path: Path) -> None:
    path = tmp_path / "r.msgpack"
    assert judged(path) == ([], [])
    data = hostile.GOLDEN.read_bytes()
    path.write_bytes(data)
    problems, events = judged(path)
    assert problems == []
    assert events
    path.write_bytes(data[:40] + b"?" + data[41:])
    assert [problem for problem, _ in judged(path)[0]] == [UNREADABLE]
    assert judged(path, tampered=True)[0] == []


def test_codes_that_are_not_promised_and_tracebacks_of_ours_are_failures(tmp_path: Path) -> None:
    victim = Victim(Home(tmp_path / "home"), tmp_path / "r.msgpack", Random(1), signals={9})
    traceback = 'Traceback (most recent call last):\n  File "{}", line 1, in main\nKeyError: 1\n'
    for code, where, problems in (
        (0, "", 0),
        (-9, "", 0),
        (-11, "", 1),
        (120, "", 1),
        (1, cli.__file__, 1),
        (1, "<frozen runpy>", 0),  # struck before a line of ours ran
        (1, "/x/taxtui/.venv/site.py", 0),
    ):
        said = traceback.format(where) if where else ""
        assert len(processes.exit_problems(code, said, victim)) == problems
