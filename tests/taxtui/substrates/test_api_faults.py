"""Each way in which any provider's API fails: what the runner records of it, and that nothing is left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from taxtui.sandboxes.kit import removal
from tests.support.standins.api_faults import DAYTONA, KUBERNETES, NO_OPS, Measure, Provider, measuring, told
from tests.support.standins.daytona_standin import KEY
from tests.support.waiting import until

pytestmark = pytest.mark.processes


@pytest.fixture(params=[KUBERNETES, DAYTONA], ids=lambda provider: provider.name)
def provider(request: pytest.FixtureRequest) -> Provider:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
async def standin(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    monkeypatch.setenv("DAYTONA_API_KEY", KEY)
    async with provider.standin() as server:
        yield server


@pytest.fixture
def measure(provider: Provider, standin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    return measuring(provider, standin, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"status": 401}, "SubstrateUnavailable"),
        ({"status": 403}, "SubstrateUnavailable"),
        ({"status": 409}, "CreateFailed"),
        ({"status": 500}, "CreateFailed"),
        ({"reset": "before"}, "CreateFailed"),
        ({"reset": "after"}, "CreateFailed"),
    ],
)
async def test_a_refused_create(
    provider: Provider, standin: Any, measure: Measure, fault: dict[str, Any], error: str
) -> None:
    standin.fail("create", **fault)
    got = await measure()
    assert told(got.end) == ("failed", "create", error)
    assert not got.cleanup_failed
    assert provider.held(standin).made == (1 if fault.get("reset") == "after" else 0)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_create_that_is_never_answered(provider: Provider, standin: Any, measure: Measure, when: str) -> None:
    standin.fail("create", hang=when)
    got = await measure(create_timeout_s=2.0)
    assert (got.end.outcome, got.end.phase) == ("timeout", "create")
    assert provider.held(standin).made == (1 if when == "after" else 0)


async def test_a_used_up_quota_is_final_and_named(provider: Provider, standin: Any, measure: Measure) -> None:
    standin.quota = 0
    got = await measure()
    assert told(got.end) == ("failed", "create", "QuotaExceeded")
    assert provider.quota in got.end.message
    assert standin.requests.count("create") == 1


async def test_a_throttle_is_queued_and_not_latency(standin: Any, measure: Measure) -> None:
    standin.fail("create", status=429, retry_after_s=1)
    got = await measure()
    assert got.end.outcome == "ok"
    assert got.end.queued_ns >= 1_000_000_000
    assert any("throttled" in text for text in got.notices)


async def test_a_throttled_exec_is_queued(standin: Any, measure: Measure) -> None:
    standin.fail("exec", skip=NO_OPS, status=429, retry_after_s=1)
    got = await measure("echo x")
    assert got.end.outcome == "ok"
    assert got.end.queued_ns >= 1_000_000_000


async def test_an_exec_that_is_never_answered(
    provider: Provider, standin: Any, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*provider.kill_s)
    standin.fail("exec", skip=NO_OPS, hang="before")
    got = await measure("true", timeout_s=0.3)
    assert told(got.end) == ("failed", "action", "ExecFailed")
    assert "may still run" in got.end.message


NOT_YET: list[dict[str, Any]] = [{"status": 500, "times": 2}, {"status": 429, "retry_after_s": 1}, {"reset": "after"}]


@pytest.mark.parametrize(
    ("provider", "fault"),
    [
        *((KUBERNETES, fault) for fault in [*NOT_YET, {"reset": "before"}]),
        *((DAYTONA, fault) for fault in [*NOT_YET, {"status": 409}]),
    ],
)
async def test_a_delete_is_asked_for_again(standin: Any, measure: Measure, fault: dict[str, Any]) -> None:
    standin.fail("delete", **fault)
    got = await measure()
    assert (got.end.outcome, got.cleanup_failed) == ("ok", False)


async def test_a_forbidden_delete_is_a_notice(
    provider: Provider, standin: Any, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    if provider.doubt_s:
        monkeypatch.setattr(*provider.doubt_s)
    standin.fail("delete", status=403, times=1000)
    got = await measure(left=provider.one)
    assert got.cleanup_failed
    assert any("may still exist" in text for text in got.notices)


async def test_a_stuck_deletion_is_a_notice(
    provider: Provider, standin: Any, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "REMOVE_S", provider.remove_s)
    provider.held(standin).stuck = True
    got = await measure(left=provider.one)
    assert (got.end.outcome, got.cleanup_failed) == ("ok", True)
    assert any(provider.stuck in text for text in got.notices)
    provider.held(standin).release()
    await until(lambda: standin.left() == (0, 0), "what was stuck goes")


async def test_a_list_that_fails_once_does_not_stop_the_cleanup(
    provider: Provider, standin: Any, measure: Measure
) -> None:
    standin.fail("create", reset="after")
    standin.fail("list", skip=provider.lists_before, status=500)
    got = await measure()
    assert told(got.end) == ("failed", "create", "CreateFailed")
    assert not got.cleanup_failed


@pytest.mark.slow
async def test_a_hundred_trials_at_once_all_succeed_and_leave_nothing(measure: Measure) -> None:
    got = await measure("true", trials=100, concurrency=100, create_timeout_s=120.0, timeout_s=120.0)
    assert [end.outcome for end in got.ends] == ["ok"] * 100
