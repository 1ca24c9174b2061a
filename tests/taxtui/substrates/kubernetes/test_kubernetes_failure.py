"""What Kubernetes' own words, a pod's states and silence amount to: each row is what a cluster says, with why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import aiohttp
import msgspec
import pytest

from taxtui.errors import CreateFailed, ExecFailed, QuotaExceeded, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit import retry
from taxtui.substrates.kubernetes import access as kubernetes_access
from taxtui.substrates.kubernetes import api as kubernetes_api
from taxtui.substrates.kubernetes import watch as kubernetes_watch
from taxtui.substrates.kubernetes.access import Access
from taxtui.substrates.kubernetes.api import PODS, ClusterApi
from taxtui.substrates.kubernetes.failure import (
    ApiRefused,
    ApiStatus,
    blocked,
    lost,
    refused,
    unanswered,
    unschedulable,
)
from taxtui.substrates.kubernetes.pod import Event, Metadata, Pod, Pull, pull
from taxtui.substrates.kubernetes.watch import ObjectWatch

ADVISED = {"Retry-After": "3"}
ROLE = "grant docs/substrates/kubernetes.md's role"
RENEW = "renew the credentials of this kubeconfig context"
NO_RIGHT = 'pods is forbidden: User "system:serviceaccount:ci:x" cannot create resource "pods" in API group ""'
NO_RIGHT_TOLD = 'pods is forbidden: this user cannot create resource "pods" in API group ""'
QUOTA = 'pods "x" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=9, limited: pods=9'
SECURITY = 'pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'
WEBHOOK = 'admission webhook "validation.example" denied the request: no sandboxes here'
UNREAD = f'{NO_RIGHT}: RBAC: role.rbac.authorization.k8s.io "taxtui" not found'
UNREAD_TOLD = f'{NO_RIGHT_TOLD}: RBAC: role.rbac.authorization.k8s.io "taxtui" not found'
NODE = "error dialing backend: dial tcp 10.0.0.7:10250: connect: connection refused"


def status(message: str) -> bytes:
    return msgspec.json.encode({"kind": "Status", "reason": "Because", "message": message, "code": 1})


REFUSALS: list[tuple[int, dict[str, str], bytes, type[SubstrateError], type[SubstrateError], str]] = [
    # Credentials that have run out are the set-up's fault while nothing has been made …
    (401, {}, status("Unauthorized"), CreateFailed, SubstrateUnavailable, f"doing: Unauthorized (401); {RENEW}"),
    # … and later just what has befallen this command: the pod may be well.
    (401, {}, status("Unauthorized"), ExecFailed, ExecFailed, "doing: Unauthorized (401)"),
    # A missing role; who was refused is left out, because a message may end up in a recording.
    (403, {}, status(NO_RIGHT), CreateFailed, SubstrateUnavailable, f"doing: {NO_RIGHT_TOLD} (403); {ROLE}"),
    (403, {}, status(NO_RIGHT), ExecFailed, ExecFailed, f"doing: {NO_RIGHT_TOLD} (403)"),
    # A used-up quota is a 403 as well: waiting would not help, and no role would either.
    (403, {}, status(QUOTA), CreateFailed, QuotaExceeded, f"doing: {QUOTA} (403)"),
    # An admission policy refuses this pod: its words name the option to change, and no role would help.
    (403, {}, status(SECURITY), CreateFailed, CreateFailed, f"doing: {SECURITY} (403)"),
    (403, {}, status(WEBHOOK), CreateFailed, CreateFailed, f"doing: {WEBHOOK} (403)"),
    # A server that has not read its roles yet: a missing right, unless an earlier success puts it in doubt.
    (403, {}, status(UNREAD), CreateFailed, SubstrateUnavailable, f"doing: {UNREAD_TOLD} (403); {ROLE}"),
    (409, {}, status('pods "x" already exists'), CreateFailed, CreateFailed, 'doing: pods "x" already exists (409)'),
    # Priority and fairness says 429 with or without an advice.
    (429, ADVISED, status("too many requests"), CreateFailed, Throttled, "doing: too many requests (429)"),
    (429, {}, status("too many requests"), ExecFailed, Throttled, "doing: too many requests (429)"),
    # A server's fault is a throttle only where it says when to come back.
    (503, ADVISED, status("shutting down"), ExecFailed, Throttled, "doing: shutting down (503)"),
    (500, {}, status(NODE), ExecFailed, ExecFailed, f"doing: {NODE} (500)"),
    # A proxy before the API server speaks HTML, over several lines.
    (502, {}, b"<html>bad\n gateway</html>", CreateFailed, CreateFailed, "doing: HTTP 502 (502)"),
]


@pytest.mark.parametrize(("code", "headers", "body", "otherwise", "kind", "text"), REFUSALS)
def test_a_refusal_becomes_one_of_our_errors(
    code: int, headers: Any, body: bytes, otherwise: type[SubstrateError], kind: type[SubstrateError], text: str
) -> None:
    error = refused(code, headers, body).as_error(otherwise, "doing")
    assert (type(error), str(error)) == (kind, text)
    if isinstance(error, Throttled):
        assert error.retry_after_s == (3.0 if headers else None)


UNSENT = aiohttp.ClientConnectorError(None, OSError("refused"))  # type: ignore[arg-type]
CUT = aiohttp.ServerDisconnectedError("10.0.0.1")


@pytest.mark.parametrize(
    ("silence", "unsent"),
    [
        (UNSENT, True),  # nobody to connect to: whatever was asked for, nothing has come of it
        (CUT, False),  # in between: it may have come to something; the text of such an error can name hosts
        (TimeoutError(), False),
    ],
)
def test_silence_is_told_by_its_kind(silence: Exception, unsent: bool) -> None:
    said = unanswered(silence)
    assert (said.unsent, str(said)) == (unsent, f"the API server did not answer ({type(silence).__name__})")
    assert type(said.as_error(CreateFailed, "doing")) is (Throttled if unsent else CreateFailed)


async def test_a_list_that_breaks_off_is_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    read = AsyncMock(side_effect=aiohttp.ClientPayloadError)
    monkeypatch.setattr(ClusterApi, "_send", AsyncMock(return_value=SimpleNamespace(read=read)))
    with pytest.raises(ApiRefused, match="did not answer"):
        await ClusterApi(None, "n").list(PODS, "l")  # type: ignore[arg-type]


def pod(deleted: str = "", **state: Any) -> Pod:
    about = {"name": "p", **({"deletionTimestamp": deleted} if deleted else {})}
    return msgspec.convert({"metadata": about, "status": state}, Pod)


def condition(kind: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, **more}


def waits(reason: str, **more: str) -> dict[str, Any]:
    return {"containerStatuses": [{"state": {"waiting": {"reason": reason, **more}}}]}


WHEN = "2026-01-01T00:00:00Z"
KILLED = [{"state": {"terminated": {"reason": "OOMKilled"}}}]
EVICTION = [condition("DisruptionTarget", reason="EvictionByEvictionAPI")]


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        # The kubelet needed the memory: the pod is over, not the command at fault.
        (pod(phase="Failed", reason="Evicted", message="low on memory"), "ended: Evicted, low on memory"),
        # The container was killed; the pod's own phase follows later.
        (pod(phase="Running", containerStatuses=KILLED), "ended: OOMKilled"),
        (pod(phase="Failed", reason="DeadlineExceeded"), "ended: DeadlineExceeded"),  # our own time to live
        (pod(phase="Succeeded"), "ended: for no given reason"),
        (pod(phase="Running"), None),
        (pod(phase="Pending"), None),
        # A drain or a preemption says so in a condition of its own.
        (pod(WHEN, phase="Running"), "is being deleted by another client"),
        (pod(WHEN, phase="Running", conditions=EVICTION), "is being deleted (EvictionByEvictionAPI)"),
    ],
)
def test_why_a_pod_is_lost(pod: Pod, reason: str | None) -> None:
    assert lost(pod) == reason


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (waits("ImagePullBackOff", message="Back-off pulling x"), "ImagePullBackOff: Back-off pulling x"),
        (waits("InvalidImageName"), "InvalidImageName: no further reason given"),
        (waits("CreateContainerConfigError", message="as root"), "CreateContainerConfigError: as root"),
        (waits("RunContainerError", message="no such runtime"), "RunContainerError: no such runtime"),
        (waits("ErrImagePull"), None),  # may be a hiccup: the next one is a back-off
        (waits("ContainerCreating"), None),
        ({}, None),
    ],
)
def test_only_what_waiting_cannot_help_blocks(state: dict[str, Any], reason: str | None) -> None:
    assert blocked(pod(**state)) == reason


def test_what_the_scheduler_says_while_no_node_takes_a_pod() -> None:
    words = "0/3 nodes are available: 3 Insufficient cpu."
    assert unschedulable(pod(conditions=[condition("PodScheduled", "False", message=words)])) == words
    assert unschedulable(pod(conditions=[condition("PodScheduled")])) is None


def test_a_commands_end_is_its_own_only_with_an_exit_code() -> None:
    code = {"causes": [{"reason": "ExitCode", "message": "137"}]}
    failed = {"status": "Failure", "reason": "NonZeroExitCode", "details": code}
    assert msgspec.convert({"status": "Success"}, ApiStatus).exit_code() == 0
    assert msgspec.convert(failed, ApiStatus).exit_code() == 137
    # The runtime failed before there was a command, or lost it.
    broken = {"status": "Failure", "reason": "InternalError", "message": "exec: no such\n file"}
    with pytest.raises(ExecFailed) as caught:
        msgspec.convert(broken, ApiStatus).exit_code()
    assert str(caught.value) == "the container runtime could not run the command: exec: no such file"


MS = 1_000_000


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (["MissingClusterDNS"], "MissingClusterDNS: text"),
        (["Failed", "MissingClusterDNS"], "Failed: text"),
        (["FailedMount", "Failed", "MissingClusterDNS"], "Failed: text"),
        (["FailedScheduling", "MissingClusterDNS"], "MissingClusterDNS: text"),
        ([], ""),
    ],
)
async def test_a_failure_is_preferred_to_a_warning_that_every_pod_has(reasons: list[str], expected: str) -> None:
    class Api(ClusterApi):
        async def events(self, pod: Metadata, selector: str) -> list[Event]:
            assert selector == "type=Warning"
            return [Event(reason=r, message="text", last_timestamp=f"{at}") for at, r in enumerate(reasons)]

    unused: Any = None
    assert await Api(unused, "n").last_warning(Metadata()) == expected


@pytest.mark.parametrize(
    ("took", "took_ms"),
    [("0s", 0), ("345ms", 345), ("2.345s", 2345), ("1m2.3s", 62_300), ("2m0s", 120_000), ("1h0m0.5s", 3_600_500)],
)
def test_a_pull_tells_how_long_it_took_without_waiting_and_the_images_size(took: str, took_ms: int) -> None:
    text = f'Successfully pulled image "docker.io/library/python:3.12" in {took}'
    assert pull(text) == Pull(took_ms * MS, None)  # as older kubelets say it
    assert pull(f"{text} (9m9.9s including waiting)") == Pull(took_ms * MS, None)
    assert pull(f"{text} (9m9.9s including waiting). Image size: 129338587 bytes.") == Pull(took_ms * MS, 129_338_587)


@pytest.mark.parametrize(
    "text",
    [
        "",
        'Container image "python:3.12" already present on machine',
        'Successfully pulled image "x"',
        'Successfully pulled image "x" in soon',
        'Successfully pulled image "x" in -2s',
        'Successfully pulled image "x" in 99999999h0m0s',
        'Successfully pulled image "x" in 2s (2s including waiting). Image size: -1 bytes.',
        f'Successfully pulled image "x" in 2s (2s including waiting). Image size: {10**30} bytes.',
        'Successfully pulled image "x" in 2s\nand more',
    ],
)
def test_what_is_no_pull_or_not_understood_is_nothing(text: str) -> None:
    assert pull(text) is None


CANNOT = refused(403, {}, status('pods is forbidden: User "u" cannot create resource "pods"'))


@pytest.mark.parametrize(
    ("error", "in_doubt"),
    [
        (refused(401, {}, status("Unauthorized")), True),
        (CANNOT, True),
        (refused(403, {}, status('pods "x" is forbidden: not yet ready to handle request')), True),
        (refused(403, {}, status(SECURITY)), False),
        (refused(403, {}, status(QUOTA)), False),
        (refused(403, {}, status(WEBHOOK)), False),
        (refused(500, {}, status("no")), False),
        (unanswered(CUT), False),
    ],
)
def test_only_what_was_allowed_can_be_in_doubt(error: ApiRefused, in_doubt: bool) -> None:
    access = Access()
    assert not access.judge("create", error).in_doubt, "it never was"
    access.granted("list")
    assert not access.judge("create", error).in_doubt, "another right was"
    assert access.judge("delete", error).in_doubt is in_doubt, "what is done to a pod comes after a success"
    access.granted("create")
    assert access.judge("create", error).in_doubt is in_doubt
    assert (type(error.as_error(CreateFailed, "create")) is Throttled) is in_doubt


@pytest.mark.parametrize(
    ("history", "in_doubt"),
    [
        # Doubt ends after a while, and begins anew after a success.
        ("100 delete no, 144 delete no", True),
        ("100 delete no, 146 delete no", False),
        ("100 delete no, 146 delete no, 1000 delete yes, 1000 delete no", True),
        # An outage is no refusal: the server reads its roles when it is back, however long that took.
        ("0 delete silence, 50 delete no", True),
        ("0 delete silence, 30 delete silence, 62 delete no, 100 delete no", True),
        ("0 delete silence, 62 delete no, 108 delete no", False),
        # Two restarts: between them nobody could connect, or other rights were granted.
        ("0 delete no, 30 delete silence, 60 delete no", True),
        ("0 delete no, 30 list silence, 60 delete no", True),
        ("0 delete no, 30 list cut, 60 delete no", True),
        ("0 delete no, 3 list yes, 60 delete no", True),
        # One right that was revoked is missed while the others are granted.
        ("0 delete no, 1 list yes, 30 delete no, 50 delete no", False),
    ],
)
def test_the_time_of_doubt_begins_with_the_first_answer_after_an_outage(
    history: str, in_doubt: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(kubernetes_access, "time", SimpleNamespace(monotonic=lambda: now_s))
    access = Access()
    access.granted("delete")
    errors = {"no": CANNOT, "silence": unanswered(UNSENT), "cut": unanswered(CUT)}
    for at_s, right, what in (each.split() for each in history.split(", ")):
        now_s = float(at_s)
        if what == "yes":
            access.granted(right)
        else:
            access.judge(right, errors[what])
    assert (CANNOT.in_doubt, CANNOT.final) == (in_doubt, not in_doubt)


def test_an_outage_is_reported_once_and_a_broken_connection_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(kubernetes_access, "time", SimpleNamespace(monotonic=lambda: now_s))
    access = Access()
    for silences, expected_s in (([], 0.0), ([10.0], 0.0), ([20.0, 21.0], 0.0), ([30.0, 60.0, 92.0], 62.0)):
        for now_s in silences:  # noqa: B007
            access.judge("watch", unanswered(CUT))
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


def test_marks_follow_from_conditions_and_container_states() -> None:
    assert pod().reached() == []
    assert pod(conditions=[condition("PodScheduled")]).reached() == ["scheduled"]
    running = pod(
        conditions=[condition("PodScheduled"), condition("Initialized"), condition("Ready", "False")],
        containerStatuses=[{"state": {"running": {"startedAt": "x"}}}],
    )
    assert running.reached() == ["scheduled", "initialized", "running"]


REAL_SLEEP = asyncio.sleep
TIMES = 8


class Forgetful:
    """An API that has always forgotten the version that it just gave; time passes in ``sleep`` alone."""

    def __init__(self, event: str) -> None:
        self.event = event
        self.now_s, self.pauses_s = 0.0, list[float]()
        self.lists = 0
        self.settled = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        self.now_s += seconds
        await REAL_SLEEP(0)

    async def list(self, *about: Any) -> tuple[list[Pod], str]:
        self.lists += 1
        return [], str(self.lists)

    async def watch(self, *about: Any) -> AsyncIterator[tuple[str, Pod]]:
        if self.lists > TIMES:
            self.settled.set()
            await asyncio.Event().wait()
        if self.event:
            yield self.event, Pod(Metadata(name="p"))
        raise ApiRefused(410, "Expired", "too old resource version")


@pytest.mark.parametrize(
    ("event", "pauses_s"), [("", [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]), ("BOOKMARK", [0.1] * TIMES)]
)
async def test_a_server_that_answers_410_again_and_again_is_listed_after_a_pause(
    event: str, pauses_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    api: Any = Forgetful(event)
    clock = SimpleNamespace(monotonic=lambda: api.now_s, monotonic_ns=lambda: int(api.now_s * 1e9))
    monkeypatch.setattr(kubernetes_watch, "time", clock)
    monkeypatch.setattr(retry._JITTER, "uniform", lambda low, high: high)
    monkeypatch.setattr(asyncio, "sleep", api.sleep)
    watching = ObjectWatch(api, PODS, "l")
    await api.settled.wait()
    await watching.close()
    assert api.pauses_s == pauses_s
