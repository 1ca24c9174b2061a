"""What the API server's answers and a pod's states amount to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import aiohttp
import msgspec
import pytest

from taxtui.errors import CreateFailed, Throttled
from taxtui.substrates.kubernetes import access as kubernetes_access
from taxtui.substrates.kubernetes import api as kubernetes_api
from taxtui.substrates.kubernetes.access import Access
from taxtui.substrates.kubernetes.failure import ApiRefused, refused, unanswered
from taxtui.substrates.kubernetes.pod import Pod


def answer(message: str) -> bytes:
    return msgspec.json.encode({"kind": "Status", "reason": "Because", "message": message, "code": 1})


CANNOT = 'pods is forbidden: User "u" cannot create resource "pods"'


@pytest.mark.parametrize(
    ("error", "in_doubt"),
    [
        (refused(401, {}, answer("Unauthorized")), True),
        (refused(403, {}, answer(CANNOT)), True),
        (refused(403, {}, answer('pods "x" is forbidden: not yet ready to handle request')), True),
        (refused(403, {}, answer('pods "x" is forbidden: violates PodSecurity "restricted"')), False),
        (refused(403, {}, answer('pods "x" is forbidden: exceeded quota: compute')), False),
        (refused(403, {}, answer('admission webhook "x" denied the request: no')), False),
        (refused(500, {}, answer("no")), False),
        (unanswered(aiohttp.ServerDisconnectedError()), False),
    ],
)
def test_only_what_was_allowed_can_be_in_doubt(error: ApiRefused, in_doubt: bool) -> None:
    access = Access()
    assert not access.judge("create", error).in_doubt, "it never was"
    access.granted("list")
    assert not access.judge("create", error).in_doubt, "another right was"
    access.granted("create")
    assert access.judge("create", error).in_doubt is in_doubt
    assert (type(error.as_error(CreateFailed, "create")) is Throttled) is in_doubt


def test_doubt_ends_after_a_while_and_begins_anew_after_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(kubernetes_access, "time", SimpleNamespace(monotonic=lambda: now_s))
    access = Access()
    access.granted("watch")
    no = refused(403, {}, answer(CANNOT))
    for now_s, in_doubt in ((100.0, True), (144.0, True), (146.0, False), (1000.0, False)):  # noqa: B007
        assert (access.judge("watch", no).in_doubt, no.final) == (in_doubt, not in_doubt)
    access.granted("watch")
    assert access.judge("watch", no).in_doubt


@pytest.mark.parametrize(
    ("history", "in_doubt"),
    [
        # An outage is no refusal: the server reads its roles when it is back, however long that took.
        ([(0.0, "delete", "silence"), (50.0, "delete", "no")], True),
        (
            [(0.0, "delete", "silence"), (30.0, "delete", "silence"), (62.0, "delete", "no"), (100.0, "delete", "no")],
            True,
        ),
        ([(0.0, "delete", "silence"), (62.0, "delete", "no"), (108.0, "delete", "no")], False),
        # Two restarts: between them nobody could connect, or other rights were granted.
        ([(0.0, "delete", "no"), (30.0, "delete", "silence"), (60.0, "delete", "no")], True),
        ([(0.0, "delete", "no"), (30.0, "list", "silence"), (60.0, "delete", "no")], True),
        ([(0.0, "delete", "no"), (30.0, "list", "cut"), (60.0, "delete", "no")], True),
        ([(0.0, "delete", "no"), (3.0, "list", "yes"), (60.0, "delete", "no")], True),
        # One right that was revoked is missed while the others are granted.
        ([(0.0, "delete", "no"), (1.0, "list", "yes"), (30.0, "delete", "no"), (50.0, "delete", "no")], False),
        # Nothing else has happened.
        ([(0.0, "delete", "no"), (60.0, "delete", "no")], False),
    ],
)
def test_the_time_of_doubt_begins_with_the_first_answer_after_an_outage(
    history: list[tuple[float, str, str]], in_doubt: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(kubernetes_access, "time", SimpleNamespace(monotonic=lambda: now_s))
    access = Access()
    access.granted("delete")
    for now_s, right, what in history:  # noqa: B007
        if what == "yes":
            access.granted(right)
            continue
        error = {
            "no": refused(403, {}, answer(CANNOT)),
            "silence": unanswered(aiohttp.ClientConnectorError(None, OSError("refused"))),  # type: ignore[arg-type]
            "cut": unanswered(aiohttp.ServerDisconnectedError()),
        }[what]
        access.judge(right, error)
    assert error.in_doubt is in_doubt


def test_an_outage_is_reported_once_and_a_broken_connection_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(kubernetes_access, "time", SimpleNamespace(monotonic=lambda: now_s))
    access = Access()
    for silences, expected_s in (([], 0.0), ([10.0], 0.0), ([20.0, 21.0], 0.0), ([30.0, 60.0, 92.0], 62.0)):
        for now_s in silences:  # noqa: B007
            access.judge("watch", unanswered(aiohttp.ServerDisconnectedError()))
        assert access.take_outage_s() == 0.0, "not over yet"
        access.granted("watch")
        assert (access.take_outage_s(), access.take_outage_s()) == (expected_s, 0.0)


@pytest.mark.parametrize(
    ("policy", "denied"),
    [
        ({"podSelector": {"matchLabels": {"taxtui.network": "none"}}, "policyTypes": ["Egress"]}, True),
        ({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress": []}, True),
        ({"podSelector": {}, "policyTypes": ["Ingress"]}, False),
        ({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": []}]}, False),
        ({"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Egress"]}, False),
        ({"podSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}, "policyTypes": ["Egress"]}, False),
    ],
)
def test_only_a_policy_that_selects_the_pods_and_allows_no_egress_denies_the_network(
    policy: dict[str, Any], denied: bool
) -> None:
    assert kubernetes_api._denies(policy, {"taxtui.network": "none"}) is denied


def test_what_is_done_to_a_pod_comes_after_a_success() -> None:
    access = Access()
    access.granted("create")
    assert access.judge("delete", refused(403, {}, answer(CANNOT))).in_doubt


def pod(**status: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": "p"}, "status": status}, Pod)


def condition(kind: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, **more}


def test_marks_follow_from_conditions_and_container_states() -> None:
    assert pod().reached() == []
    assert pod(conditions=[condition("PodScheduled")]).reached() == ["scheduled"]
    running = pod(
        conditions=[condition("PodScheduled"), condition("Initialized"), condition("Ready", "False")],
        containerStatuses=[{"state": {"running": {"startedAt": "x"}}}],
    )
    assert running.reached() == ["scheduled", "initialized", "running"]
