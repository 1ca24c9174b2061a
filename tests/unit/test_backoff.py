"""Asking again: for as long as it may help, and not for ever."""

from __future__ import annotations

import pytest

from taxtui.errors import CreateFailed, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit import backoff
from taxtui.sandboxes.kit.backoff import find, until_heard


class Provider:
    """Refuses so often, and then answers."""

    def __init__(self, *refusals: Exception) -> None:
        self.refusals = list(refusals)
        self.asked = 0

    async def __call__(self) -> str:
        self.asked += 1
        if self.refusals:
            raise self.refusals.pop(0)
        return "found"


def throttled(advice_s: float | None = None) -> Throttled:
    return Throttled("slow down", advice_s)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_PAUSE_S", 0.0001)


async def test_throttling_is_waited_out() -> None:
    provider = Provider(*(throttled() for _ in range(7)), throttled(0.001))
    assert await find(provider) == "found"
    assert provider.asked == 9


async def test_finding_ends_where_the_next_request_would_come_too_late() -> None:
    provider = Provider(throttled(), throttled(backoff.FIND_S + 1))
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


async def test_without_a_deadline_there_is_no_end() -> None:
    provider = Provider(*(throttled() for _ in range(5)))
    assert await until_heard(provider, first_s=0.0) == "found"
