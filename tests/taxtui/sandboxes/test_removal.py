"""A removal ends: with what it was told to remove gone, or with a deadline and a word about what is left."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Sequence
from unittest.mock import AsyncMock, Mock

import pytest

from taxtui.errors import CleanupFailed, SubstrateUnavailable, Throttled
from taxtui.sandboxes.fake import FakeSubstrate
from taxtui.sandboxes.kit import removal
from taxtui.sandboxes.kit.removal import find_together, insist, remove
from taxtui.sandboxes.protocol import Found


def throttled() -> Throttled:
    return Throttled("slow down", 0.001)


def provider(*answers: object) -> AsyncMock:
    """Answers the next requests with these; the last one for ever."""
    return AsyncMock(side_effect=itertools.chain(answers, itertools.repeat(answers[-1])))


async def gone(ask: AsyncMock, ended: AsyncMock | None = None, *, age_s: float = 0.0) -> None:
    await remove("task t1", ask, ended, look_s=0.0, first_s=0.001, launched_s=time.monotonic() - age_s)


@pytest.mark.parametrize(
    ("asks", "looks", "counts"),
    [
        ((throttled(), throttled(), True), (False, False, True), (3, 3)),
        ((False, False, False, True), (None, None, False, True), (4, 4)),  # not found right after a launch is not gone
        ((True,), (False, throttled(), False, True), (2, 4)),  # after a throttled look the removal is requested again
    ],
)
async def test_a_removal_is_requested_until_accepted_and_then_awaited(
    asks: tuple[object, ...], looks: tuple[object, ...], counts: tuple[int, int]
) -> None:
    ask, ended = provider(*asks), provider(*looks)
    await gone(ask, ended)
    assert (ask.await_count, ended.await_count) == counts


@pytest.mark.parametrize("age_s", [removal.SETTLING_S + 1, math.inf])
async def test_later_not_found_is_gone(age_s: float) -> None:
    ask = provider(False)
    await gone(ask, age_s=age_s)
    assert ask.await_count == 1
    await gone(provider(True), provider(None), age_s=age_s)


@pytest.mark.parametrize(
    ("ask", "ended", "words"),
    [
        (provider(throttled()), None, "the provider did not accept the removal: slow down"),
        (provider(False), None, "the provider does not know the sandbox yet"),
        (provider(True), provider(False), "the provider accepted the removal and did not complete it"),
    ],
)
async def test_a_removal_has_a_deadline_and_names_the_rest(
    monkeypatch: pytest.MonkeyPatch, ask: AsyncMock, ended: AsyncMock | None, words: str
) -> None:
    monkeypatch.setattr(removal, "REMOVE_S", 0.05)
    with pytest.raises(CleanupFailed, match=rf"^task t1 may still exist after 0\.05 s: {words}$"):
        await gone(ask, ended)
    with pytest.raises(CleanupFailed, match=r"after 0\.08 s: the provider did not accept the removal$"):
        await remove("pod p", asyncio.Event().wait, more_s=0.03)  # a silent one does not delay it


async def test_a_watched_end_needs_no_look() -> None:
    told, ended = asyncio.Event(), provider(False)

    async def ask() -> bool:
        asyncio.get_running_loop().call_soon(told.set)
        return True

    await remove("pod p", ask, ended, gone=told, look_s=60.0)
    assert ended.await_count == 0


def test_a_cancelled_create_s_sandbox_is_removed_after_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "INSIST_S", (0.0,) * 6)
    ask = Mock(side_effect=[KeyError("not found"), KeyError("not found"), None])
    insist(ask, (KeyError,))
    assert ask.call_count == 3


async def test_many_failed_creates_share_two_lists_and_each_sees_its_own_sandbox() -> None:
    lists: list[Sequence[Found]] = []

    class Listing(FakeSubstrate):
        async def find(self, run_id: str | None = None) -> Sequence[Found]:
            lists.append(await super().find(run_id))
            await asyncio.sleep(0)
            return lists[-1]

    substrate = Listing()

    async def failed_create(number: int) -> None:
        await asyncio.sleep(0)
        substrate.alive[f"s{number}"] = "r1"
        listed = await find_together(substrate, "r1")
        assert f"s{number}" in {entry.name for entry in listed}

    await asyncio.gather(*(failed_create(number) for number in range(50)))
    assert len(lists) <= 2
    assert removal._FINDERS[substrate].interval_ns == 0, "nobody waits for the next list"
    substrate.alive["late"] = "r1"
    assert "late" in {entry.name for entry in await find_together(substrate, "r1")}


@pytest.mark.parametrize(("trouble", "words"), [(None, "no answer"), (throttled(), "slow down")])
async def test_a_list_without_an_answer_does_not_block_the_next(
    monkeypatch: pytest.MonkeyPatch, trouble: Exception | None, words: str
) -> None:
    monkeypatch.setattr(removal, "FIND_S", 0.01)
    substrate = FakeSubstrate()
    find, lists = substrate.find, list[int]()

    async def first_fails(run_id: str | None = None) -> Sequence[Found]:
        lists.append(1)
        if len(lists) == 1:
            if trouble is not None:
                raise trouble
            await asyncio.Event().wait()
        return await find(run_id)

    monkeypatch.setattr(substrate, "find", first_fails)
    substrate.alive["s"] = "r1"
    with pytest.raises(SubstrateUnavailable, match=f"^the list of sandboxes: {words}$"):
        await find_together(substrate, "r1")
    assert [entry.name for entry in await find_together(substrate, "r1")] == ["s"]
