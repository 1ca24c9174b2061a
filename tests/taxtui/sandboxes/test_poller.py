"""One look for all that wait, one back-off for all where AWS throttles, and no more than that counted as waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import pytest

from taxtui.errors import SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit import retry as state_poller
from taxtui.sandboxes.kit.retry import Lookup, StatePoller
from taxtui.sandboxes.protocol import Marks


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
            raise Throttled("slow down", 0.01)
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
    assert (len(first.notices), second.notices) == (1, [])
    assert await poller.next("a") == Lookup("ok", 0)
    await poller.close()


async def test_what_explains_a_failure_is_not_waited_for_while_aws_throttles(monkeypatch: pytest.MonkeyPatch) -> None:
    async def describe(handles: list[str]) -> Mapping[str, str]:
        raise Throttled("slow down", 0.001)

    monkeypatch.setattr(state_poller, "SOON_S", 0.02)
    poller = StatePoller(describe, 0.0)
    assert await poller.soon("a") is None
    waiting = asyncio.ensure_future(poller.next("a"))
    await asyncio.sleep(0.01)
    await poller.close()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
