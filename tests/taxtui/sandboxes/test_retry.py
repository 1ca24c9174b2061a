"""``Retry``: the pauses, the limits, and the throttled time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from taxtui.errors import CreateFailed, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit import retry
from taxtui.sandboxes.kit.retry import Retry, find


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


async def test_a_search_waits_out_a_throttle() -> None:
    provider = Provider(*(throttled() for _ in range(7)), throttled(0.001))
    assert await find(provider) == "answer"
    assert provider.requests == 9


async def test_a_search_ends_before_a_request_beyond_its_time_limit() -> None:
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


class Most(random.Random):
    """Always the upper limit."""

    def uniform(self, a: float, b: float) -> float:
        return b


def test_pauses_double_up_to_the_longest_and_begin_again() -> None:
    patient = Retry(first_s=1.0, longest_s=5.0, source=Most())
    assert [patient.pause_s() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    patient.reset()
    assert patient.pause_s() == 1.0
    assert patient.pause_s(advice_s=30.0) == pytest.approx(33.0)
