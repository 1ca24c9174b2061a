"""What the API server's answers and a pod's states amount to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import aiohttp
import msgspec
import pytest

from taxtui.errors import CreateFailed, ExecFailed, QuotaExceeded, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit.captured_command import Captured
from taxtui.substrates.kubernetes import refusal as kubernetes_refusal
from taxtui.substrates.kubernetes.exec import _ExitStatus
from taxtui.substrates.kubernetes.pod import Pod
from taxtui.substrates.kubernetes.refusal import Access, ApiRefused, refused, unanswered


def answer(message: str) -> bytes:
    return msgspec.json.encode({"kind": "Status", "reason": "Because", "message": message, "code": 1})


@pytest.mark.parametrize(
    ("status", "headers", "otherwise", "kind"),
    [
        (401, {}, CreateFailed, SubstrateUnavailable),
        (403, {}, CreateFailed, SubstrateUnavailable),
        (401, {}, ExecFailed, ExecFailed),
        (403, {}, ExecFailed, ExecFailed),
        (409, {}, CreateFailed, CreateFailed),
        (429, {"Retry-After": "3"}, CreateFailed, Throttled),
        (429, {}, ExecFailed, Throttled),
        (500, {}, CreateFailed, CreateFailed),
        (503, {"Retry-After": "1"}, ExecFailed, Throttled),
    ],
)
def test_a_refusal_becomes_one_of_our_errors(
    status: int, headers: dict[str, str], otherwise: type[SubstrateError], kind: type[SubstrateError]
) -> None:
    error = refused(status, headers, answer("no")).as_error(otherwise, "doing it")
    assert type(error) is kind
    assert str(error).startswith("doing it: no")
    if isinstance(error, Throttled):
        assert error.retry_after_s == (float(headers["Retry-After"]) if headers else None)


def test_a_quota_is_final_and_named() -> None:
    text = 'pods "x" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=9, limited: pods=9'
    error = refused(403, {}, answer(text)).as_error(CreateFailed, "create")
    assert type(error) is QuotaExceeded
    assert "limited: pods=9" in str(error)


def test_the_name_of_a_user_is_kept_out_of_messages() -> None:
    error = refused(403, {}, answer('pods is forbidden: User "jane@corp" cannot create'))
    assert "jane" not in str(error)


def test_a_page_of_a_proxy_is_not_taken_for_a_status() -> None:
    assert str(refused(502, {}, b"<html>bad\n gateway</html>")) == "HTTP 502 (502)"


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
        (unanswered(aiohttp.ClientConnectorError(None, OSError("refused"))), True),  # type: ignore[arg-type]
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
    monkeypatch.setattr(kubernetes_refusal, "time", SimpleNamespace(monotonic=lambda: now_s))
    access = Access()
    access.granted("watch")
    no = refused(403, {}, answer(CANNOT))
    for now_s, in_doubt in ((100.0, True), (144.0, True), (146.0, False), (1000.0, False)):  # noqa: B007
        assert (access.judge("watch", no).in_doubt, no.final) == (in_doubt, not in_doubt)
    access.granted("watch")
    assert access.judge("watch", no).in_doubt


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


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "ended: Evicted, low on memory"),
        (
            {"phase": "Running", "containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled"}}}]},
            "ended: OOMKilled",
        ),
        ({"phase": "Failed", "reason": "DeadlineExceeded"}, "ended: DeadlineExceeded"),
        ({"phase": "Succeeded"}, "ended: for no given reason"),
        ({"phase": "Running"}, None),
        ({"phase": "Pending"}, None),
    ],
)
def test_why_a_pod_is_lost(status: dict[str, Any], reason: str | None) -> None:
    assert pod(**status).lost() == reason


def test_a_pod_that_somebody_deletes_is_lost_with_the_cause() -> None:
    about = {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    plain = msgspec.convert({"metadata": about, "status": {"phase": "Running"}}, Pod)
    assert plain.lost() == "is being deleted by someone else"
    drained = [condition("DisruptionTarget", reason="EvictionByEvictionAPI")]
    status = {"phase": "Running", "conditions": drained}
    assert msgspec.convert({"metadata": about, "status": status}, Pod).lost() == (
        "is being deleted (EvictionByEvictionAPI)"
    )


@pytest.mark.parametrize("reason", ["ErrImagePull", "ContainerCreating"])
def test_what_may_pass_is_waited_for(reason: str) -> None:
    assert pod(containerStatuses=[{"state": {"waiting": {"reason": reason}}}]).blocked() is None


def test_the_exit_code_is_read_from_the_status() -> None:
    causes = {"causes": [{"reason": "ExitCode", "message": "137"}]}
    failed = {"status": "Failure", "reason": "NonZeroExitCode", "details": causes}
    assert msgspec.convert(failed, _ExitStatus).exit_code() == 137
    assert _ExitStatus(status="Success").exit_code() == 0
    with pytest.raises(ExecFailed, match="no such file"):
        _ExitStatus(status="Failure", message="exec: no such\n file").exit_code()


@pytest.mark.parametrize(
    ("chunks", "code", "data"),
    [
        ([b"out\n", b"\x01NONCE 7\n"], 7, b"out\n"),
        ([b"out\x01NO", b"NCE 1", b"37\nlate chatter"], 137, b"out"),
        ([b"\x01NONCE 0\n", b"chatter"], 0, b""),
        ([b"NONCE 0\n\x01NONC"], None, b"NONCE 0\n\x01NONC"),
    ],
)
def test_a_stream_ends_at_its_marker(chunks: list[bytes], code: int | None, data: bytes) -> None:
    stream = Captured(b"\x01NONCE ")
    for chunk in chunks:
        stream.feed(chunk)
    assert (stream.exit_code, bytes(stream.data)) == (code, data)
