"""``Retry``: pauses, limits and throttled time; ``StatePoller``: one look and one back-off for all that wait.

A removal ends: with what it was told to remove gone, or with a deadline and a word about what is left.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import AsyncMock

import pytest

from taxtui.errors import CleanupFailed, CreateFailed, SubstrateUnavailable, Throttled
from taxtui.sandboxes.fake import FakeSubstrate
from taxtui.sandboxes.kit import removal, retry
from taxtui.sandboxes.kit.removal import find_together, remove
from taxtui.sandboxes.kit.retry import Lookup, Retry, StatePoller, find
from taxtui.sandboxes.protocol import Found, Marks


class Provider:
    """Raises each refusal, then answers; each request takes a second of the clock."""

    def __init__(self, *refusals: Exception) -> None:
        self.refusals = list(refusals)
        self.requests = 0
        self.now_ns = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    async def __call__(self) -> str:
        self.requests += 1
        self.now_ns += 10**9
        if self.refusals:
            raise self.refusals.pop(0)
        return "answer"


def throttled(advice_s: float | None = None) -> Throttled:
    return Throttled("slow down", advice_s)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.0001)


async def test_a_search_waits_out_a_throttle_and_ends_before_a_request_beyond_its_time_limit() -> None:
    provider = Provider(*(throttled() for _ in range(7)), throttled(0.001))
    assert await find(provider) == "answer"
    assert provider.requests == 9
    provider = Provider(throttled(), throttled(retry.FIND_S + 1))
    with pytest.raises(SubstrateUnavailable, match=r"^slow down$") as raised:
        await find(provider)
    assert isinstance(raised.value.__cause__, Throttled)
    assert provider.requests == 2


@pytest.mark.parametrize("refusal", [SubstrateUnavailable("no such right"), CreateFailed("a bug")])
async def test_a_final_error_ends_a_search_at_once(refusal: Exception) -> None:
    provider = Provider(refusal)
    with pytest.raises(SubstrateUnavailable, match=str(refusal)):
        await find(provider)
    assert provider.requests == 1


@pytest.mark.parametrize(("limit", "requests"), [({"within_s": 2.5}, 3), ({"within_s": 4.5}, 5), ({"tries": 4}, 4)])
async def test_no_request_exceeds_the_limits(
    limit: dict[str, Any], requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider(*(throttled(0.0) for _ in range(9)))
    monkeypatch.setattr(retry, "time", provider)
    with pytest.raises(Throttled):
        await Retry(**limit)(provider)
    assert provider.requests == requests


@pytest.mark.parametrize(("resumes", "queued_ns"), [(False, 2 * 10**9), (True, 0)])
async def test_the_answered_request_is_not_throttled_time(
    resumes: bool, queued_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, waits = Provider(throttled(0.0), throttled(0.0)), list[float]()
    monkeypatch.setattr(retry, "time", provider)
    patient = Retry(announce=waits.append)
    await patient(provider, resumes=resumes)
    assert (provider.requests, waits, patient.queued_ns) == (3, [0.0, 0.0], queued_ns)


async def test_a_poller_asks_once_for_all_that_wait() -> None:
    asked: list[list[str]] = []

    async def describe(handles: list[str]) -> Mapping[str, str]:
        asked.append(handles)
        return {handle: handle.upper() for handle in handles if handle != "gone"}

    poller = StatePoller(describe, 0.01, batch=2)
    assert await asyncio.gather(*map(poller.next, ["a", "b", "a", "gone"])) == [
        Lookup("A", 0),
        Lookup("B", 0),
        Lookup("A", 0),
        Lookup(None, 0),
    ]
    assert asked == [["a", "b"], ["gone"]]
    assert await poller.next("c") == Lookup("C", 0)
    await poller.close()


async def test_a_failure_reaches_everyone_in_the_batch_and_a_cancelled_waiter_leaves_the_others() -> None:
    failing = True

    async def describe(handles: list[str]) -> Mapping[str, str]:
        if failing:
            raise SubstrateUnavailable("no")
        return dict.fromkeys(handles, "ok")

    poller = StatePoller(describe, 0.0)
    for outcome in await asyncio.gather(poller.next("a"), poller.next("b"), return_exceptions=True):
        assert isinstance(outcome, SubstrateUnavailable)
    failing = False
    one, other = asyncio.ensure_future(poller.next("a")), asyncio.ensure_future(poller.next("a"))
    await asyncio.sleep(0)
    one.cancel()
    assert await other == Lookup("ok", 0)
    waiting = asyncio.ensure_future(poller.next("a"))
    await poller.close()
    await asyncio.wait({waiting})
    assert waiting.cancelled() or waiting.result() == Lookup("ok", 0)


async def test_a_throttled_look_is_repeated_once_for_all_that_wait_and_says_how_late_it_was() -> None:
    asked_ns: list[int] = []

    async def describe(handles: list[str]) -> Mapping[str, str]:
        asked_ns.append(time.monotonic_ns())
        if len(asked_ns) in (2, 3):
            raise Throttled("slow down", 0.06)
        return dict.fromkeys(handles, "ok")

    poller = StatePoller(describe, 0.0)
    assert await poller.next("a") == Lookup("ok", 0)
    seen = await asyncio.gather(*(poller.next(str(number)) for number in range(20)))
    assert len(asked_ns) == 4  # not 20 refusals, each with a back-off of its own
    [late_ns] = {each.late_ns for each in seen}
    assert asked_ns[3] - asked_ns[2] < late_ns < time.monotonic_ns() - asked_ns[0]  # both refusals and their waits
    first, second = Marks(), Marks()
    poller.report_throttling(first)
    poller.report_throttling(second)
    [notice] = first.notices
    assert f"waited {late_ns / 1e9:.1f} s for all" in str(notice)
    assert second.notices == []
    assert await poller.next("a") == Lookup("ok", 0)
    await poller.close()


async def test_what_explains_a_failure_is_not_waited_for_while_aws_throttles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "SOON_S", 0.02)
    poller = StatePoller(AsyncMock(side_effect=Throttled("slow down", 0.001)), 0.0)
    assert await poller.soon("a") is None
    waiting = asyncio.ensure_future(poller.next("a"))
    await asyncio.sleep(0.01)
    await poller.close()
    await asyncio.wait({waiting})
    assert waiting.cancelled()


def answering(*answers: object) -> AsyncMock:
    """Answers the next requests with these; the last one for ever."""
    return AsyncMock(side_effect=itertools.chain(answers, itertools.repeat(answers[-1])))


async def gone(ask: AsyncMock, ended: AsyncMock | None = None, *, age_s: float = 0.0) -> None:
    await remove("task t1", ask, ended, look_s=0.0, first_s=0.001, launched_s=time.monotonic() - age_s)


@pytest.mark.parametrize(
    ("asks", "looks", "counts"),
    [
        ((throttled(0.001), throttled(0.001), True), (False, False, True), (3, 3)),
        ((False, False, False, True), (None, None, False, True), (4, 4)),  # not found right after a launch is not gone
        (
            (True,),
            (False, throttled(0.001), False, True),
            (2, 4),
        ),  # after a throttled look the removal is requested again
    ],
)
async def test_a_removal_is_requested_until_accepted_and_then_awaited(
    asks: tuple[object, ...], looks: tuple[object, ...], counts: tuple[int, int]
) -> None:
    ask, ended = answering(*asks), answering(*looks)
    await gone(ask, ended)
    assert (ask.await_count, ended.await_count) == counts


@pytest.mark.parametrize("age_s", [removal.SETTLING_S + 1, math.inf])
async def test_later_not_found_is_gone(age_s: float) -> None:
    ask = answering(False)
    await gone(ask, age_s=age_s)
    assert ask.await_count == 1
    await gone(answering(True), answering(None), age_s=age_s)


@pytest.mark.parametrize(
    ("ask", "ended", "words"),
    [
        (answering(throttled(0.001)), None, "the provider did not accept the removal: slow down"),
        (answering(False), None, "the provider does not know the sandbox yet"),
        (answering(True), answering(False), "the provider accepted the removal and did not complete it"),
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
    told, ended = asyncio.Event(), answering(False)

    async def ask() -> bool:
        asyncio.get_running_loop().call_soon(told.set)
        return True

    await remove("pod p", ask, ended, gone=told, look_s=60.0)
    assert ended.await_count == 0


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


@pytest.mark.parametrize(("trouble", "words"), [(None, "no answer"), (throttled(0.001), "slow down")])
async def test_a_list_without_an_answer_does_not_block_the_next(
    monkeypatch: pytest.MonkeyPatch, trouble: Exception | None, words: str
) -> None:
    monkeypatch.setattr(removal, "FIND_S", 0.01)
    substrate = FakeSubstrate()
    really, lists = substrate.find, list[int]()

    async def first_fails(run_id: str | None = None) -> Sequence[Found]:
        lists.append(1)
        if len(lists) == 1:
            if trouble is not None:
                raise trouble
            await asyncio.Event().wait()
        return await really(run_id)

    monkeypatch.setattr(substrate, "find", first_fails)
    substrate.alive["s"] = "r1"
    with pytest.raises(SubstrateUnavailable, match=f"^the list of sandboxes: {words}$"):
        await find_together(substrate, "r1")
    assert [entry.name for entry in await find_together(substrate, "r1")] == ["s"]
