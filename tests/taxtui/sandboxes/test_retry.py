"""``Retry``: how long it waits, for how long it goes on, and how much of that was throttled."""

from __future__ import annotations

import random

import pytest

from taxtui.errors import CreateFailed, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit import retry
from taxtui.sandboxes.kit.retry import LookupThrottle, Retry, find
from taxtui.sandboxes.protocol import Marks


class Provider:
    """Refuses so often, and then answers; each request takes a second of its own clock."""

    def __init__(self, *refusals: Exception) -> None:
        self.refusals = list(refusals)
        self.asked = 0
        self.now_ns = 0

    def clock(self) -> int:
        return self.now_ns

    async def __call__(self) -> str:
        return self.blocking()

    def blocking(self) -> str:
        self.asked += 1
        self.now_ns += 10**9
        if self.refusals:
            raise self.refusals.pop(0)
        return "found"


def throttled(advice_s: float | None = None) -> Throttled:
    return Throttled("slow down", advice_s)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.0001)


async def test_throttling_is_waited_out() -> None:
    provider = Provider(*(throttled() for _ in range(7)), throttled(0.001))
    assert await find(provider) == "found"
    assert provider.asked == 9


async def test_finding_ends_where_the_next_request_would_come_too_late() -> None:
    provider = Provider(throttled(), throttled(retry.FIND_S + 1))
    with pytest.raises(SubstrateUnavailable, match=r"^slow down$") as raised:
        await find(provider)
    assert isinstance(raised.value.__cause__, Throttled)
    assert provider.asked == 2


@pytest.mark.parametrize("refusal", [SubstrateUnavailable("no such right"), CreateFailed("a bug")])
async def test_what_is_final_is_asked_once(refusal: Exception) -> None:
    provider = Provider(refusal)
    with pytest.raises(SubstrateUnavailable, match=str(refusal)):
        await find(provider)
    assert provider.asked == 1


@pytest.mark.parametrize("within_s", [2.5, 4.5])
async def test_no_request_begins_after_the_time_limit(within_s: float) -> None:
    provider = Provider(*(throttled(0.0) for _ in range(9)))
    with pytest.raises(Throttled):
        await Retry(within_s=within_s, clock=provider.clock)(provider)
    assert provider.asked == int(within_s) + 1


async def test_no_more_requests_than_tries() -> None:
    provider = Provider(*(throttled(0.0) for _ in range(9)))
    with pytest.raises(Throttled):
        await Retry(tries=4)(provider)
    assert provider.asked == 4


async def test_refused_requests_count_as_throttled_time_and_the_answered_one_does_not() -> None:
    provider = Provider(throttled(0.0), throttled(0.0))
    patient = Retry(clock=provider.clock)
    await patient(provider)
    assert patient.queued_ns == 2 * 10**9


async def test_where_a_request_resumes_only_the_pauses_count() -> None:
    provider = Provider(throttled(0.0), throttled(0.0))
    patient = Retry(clock=provider.clock)
    await patient(provider, resumes=True)
    assert patient.queued_ns == 0


def test_a_blocking_request_is_repeated_in_the_same_way() -> None:
    provider = Provider(throttled(0.0), throttled(0.0))
    waits: list[float] = []
    patient = Retry(clock=provider.clock, announce=waits.append)
    assert patient.blocking(provider.blocking) == "found"
    assert (provider.asked, waits, patient.queued_ns) == (3, [0.0, 0.0], 2 * 10**9)


def test_pauses_double_up_to_the_longest_and_begin_again() -> None:
    patient = Retry(first_s=1.0, longest_s=5.0, source=Most())
    assert [patient.pause_s() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    patient.reset()
    assert patient.pause_s() == 1.0
    assert patient.pause_s(advice_s=30.0) == pytest.approx(33.0)


class Most(random.Random):
    """Always the upper limit."""

    def uniform(self, a: float, b: float) -> float:
        return b


def test_the_throttling_of_shared_lookups_is_reported_once() -> None:
    lookups, first, second = LookupThrottle(), Marks(), Marks()
    lookups.add(2 * 10**9)
    lookups.report(first)
    lookups.report(second)
    assert (len(first.notices), second.notices) == (1, [])
    assert "2.0 s" in first.notices[0]
