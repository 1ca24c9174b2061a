"""``Retry``: pauses, limits and throttled time; ``StatePoller``: one look and one back-off for all that wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any
from unittest.mock import AsyncMock

import pytest

from taxtui.errors import CreateFailed, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit import retry
from taxtui.sandboxes.kit.retry import Lookup, Retry, StatePoller, find
from taxtui.sandboxes.protocol import Marks


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
