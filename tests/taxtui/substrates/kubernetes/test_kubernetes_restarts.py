"""An API server that refuses for a while what it had allowed, as each one does after a restart, or for good."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from taxtui.errors import SubstrateUnavailable
from taxtui.sandboxes.kit import retry
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes import access as kubernetes_access
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.recorded import Recorded, record
from tests.support.sandboxes import spec
from tests.support.standins.kubernetes_standin import KubernetesStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes

OURS = {"create pods", "get pods", "list pods", "watch pods", "delete pods", "get pods/exec"}


async def measure(
    standin: KubernetesStandin,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    strike: Coroutine[Any, Any, None],
    *commands: str,
    **how: Any,
) -> Recorded:
    """A whole run, with ``strike`` beside it."""
    options = KubernetesOptions(kubeconfig=str(standin.kubeconfig))
    striking = asyncio.ensure_future(strike)
    got = await record(lambda: KubernetesSubstrate(options), folder, monkeypatch, *commands, **how)
    striking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await striking
    return got


def lost(got: Recorded) -> list[tuple[str, str, str]]:
    return [(end.phase, end.error, end.message) for end in got.ends if end.outcome != "ok"]


async def test_an_outage_is_said_in_a_notice(
    standin: KubernetesStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_access, "OUTAGE_S", 0.05)

    async def strike() -> None:
        await until(lambda: standin.pods.made >= 3, "three pods")
        await standin.restart(refuses_s=0.0, down_s=3.0, hang_up=True)

    got = await measure(standin, tmp_path, monkeypatch, strike(), trials=12, concurrency=2)
    assert [text for text in got.notices if "the API server did not answer for at least" in text]
    await standin.leaves(0, 0)


@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_four_restarts_during_a_run_cost_no_trial(
    standin: KubernetesStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    async def strike() -> None:
        for made in (5, 10, 15, 20):
            await until(lambda made=made: standin.pods.made >= made, f"{made} pods")  # type: ignore[misc]
            await standin.restart(refuses_s=0.5)

    got = await measure(standin, tmp_path, monkeypatch, strike(), trials=25, concurrency=4, mode=mode)
    assert (len(got.ends), lost(got), got.cleanup_failed) == (25, [], False)
    await standin.leaves(0, 0)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_removal_outlasts_an_outage_that_is_longer_than_the_doubt(
    standin: KubernetesStandin, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """A server that is back has not read its roles yet, however long it was away."""
    monkeypatch.setattr(kubernetes_access, "DOUBT_S", 0.5)
    async with KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig))) as substrate:
        sandbox = await substrate.create(spec(), Marks())
        await sandbox.wait_ready(Marks())
        restarting = asyncio.create_task(standin.restart(refuses_s=0, down_s=1.5, hang_up=True))
        await asyncio.sleep(0.05)
        standin.fail("delete", status=status)
        await sandbox.destroy()
        await restarting
    assert standin.faults.struck == 1
    await standin.leaves(0, 0)


@pytest.mark.parametrize(
    ("on", "status"), [("list", 401), ("watch", 403), ("create", 401), ("exec", 403), ("exec", 401), ("delete", 403)]
)
async def test_what_was_allowed_before_is_asked_for_again(
    standin: KubernetesStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str, status: int
) -> None:
    async def strike() -> None:
        await until(lambda: standin.requests.count("delete"), "a delete")  # by now each right has been used
        for _ in range(2):
            await until(lambda: standin.watches, "a watch")
            standin.fail(on, status=status, skip=int(on == "exec"))  # until it is ready every failure is asked again
            standin.cut_watches()

    got = await measure(standin, tmp_path, monkeypatch, strike(), trials=6)
    assert (lost(got), got.cleanup_failed) == ([], False)
    await standin.leaves(0, 0)


async def test_rights_that_are_revoked_end_the_run_with_the_reason_and_what_may_be_left(
    standin: KubernetesStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_access, "DOUBT_S", 0.3)

    async def strike() -> None:
        await until(lambda: standin.pods.made == 2, "two pods")
        standin.denied |= OURS
        standin.cut_watches()

    got = await measure(standin, tmp_path, monkeypatch, strike(), "sleep 0.2", trials=4)
    assert [end.outcome for end in got.ends] == ["ok", "failed", "failed", "failed"]
    assert (got.end.phase, got.end.error) == ("create", "SubstrateUnavailable")
    assert "grant docs/substrates/kubernetes.md's role" in got.end.message
    assert got.cleanup_failed
    assert any("may still exist" in text and "this user cannot delete" in text for text in got.notices)
    assert any("the last sweep failed" in text and "taxtui clean --run" in text for text in got.notices)
    assert standin.left() == (1, 1)


async def test_a_watch_that_ended_is_made_anew_by_the_next_trial(
    standin: KubernetesStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing() -> None:
        await asyncio.sleep(0)

    standin.fail("watch", status=403)  # the first ever: no reason to think that we had the right
    got = await measure(standin, tmp_path, monkeypatch, nothing(), trials=3)
    assert [(end.outcome, end.phase) for end in got.ends] == [("failed", "ready"), ("ok", ""), ("ok", "")]


async def test_finding_outlasts_a_restart_but_not_a_missing_right(
    standin: KubernetesStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.01)
    async with KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig))) as substrate:
        assert await substrate.find() == []
        standin.fail("list", status=403, times=7)  # more than the tries that a hiccup is worth
        assert await substrate.find() == []
        standin.denied.add("list pods")
        monkeypatch.setattr(kubernetes_access, "DOUBT_S", 0.0)
        with pytest.raises(SubstrateUnavailable, match="cannot list pods"):
            await substrate.find()
