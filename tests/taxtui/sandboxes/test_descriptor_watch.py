"""Descriptors that are watched for a moment: who is told, and that nothing of it outlives the event loop."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from taxtui.sandboxes.kit.process import watch_of
from tests.support.waiting import until

Pipe = tuple[int, int]


@pytest.fixture
def two_pipes() -> Iterator[tuple[Pipe, Pipe]]:
    pipes = os.pipe(), os.pipe()
    yield pipes
    for end in (end for pipe in pipes for end in pipe):
        os.close(end)


async def test_a_descriptor_removed_by_an_earlier_callback_gets_no_call(two_pipes: tuple[Pipe, Pipe]) -> None:
    watch = watch_of(asyncio.get_running_loop())
    told: list[int] = []

    def first(reader: int) -> None:
        told.append(reader)
        for each, _ in two_pipes:
            watch.remove_reader(each)

    for reader, writer in two_pipes:
        watch.add_reader(reader, lambda reader=reader: first(reader))  # type: ignore[misc]
        os.write(writer, b"x")
    await until(lambda: bool(told), "one to be told")
    await asyncio.sleep(0)
    assert len(told) == 1


def test_a_loop_has_a_single_watch_and_leaves_no_descriptor() -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("no list of descriptors here")

    async def asked_twice() -> bool:
        return watch_of(asyncio.get_running_loop()) is watch_of(asyncio.get_running_loop())

    gc.collect()
    before = len(list(descriptors.iterdir()))
    assert all(asyncio.run(asked_twice()) for _ in range(3))
    gc.collect()
    assert len(list(descriptors.iterdir())) == before
