"""What the API server's answers and a pod's states amount to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from taxtui.errors import (
    CreateFailed,
    ExecFailed,
    QuotaExceeded,
    SubstrateError,
    SubstrateUnavailable,
    Throttled,
)
from taxtui.substrates.kubernetes_api import refused
from taxtui.substrates.kubernetes_exec import RemoteProcess, _ExitStatus
from taxtui.substrates.kubernetes_pod import Pod


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
    ("chunks", "pid", "rest"),
    [
        ([b"\x0112\n"], 12, b""),
        ([b"\x01", b"12", b"\nerr", b"or"], 12, b"error"),
        ([b"plain\n"], None, b"plain\n"),
        ([b"\x01strange\n"], None, b"\x01strange\n"),
    ],
)
async def test_the_pid_is_taken_off_standard_error(chunks: list[bytes], pid: int | None, rest: bytes) -> None:
    process = RemoteProcess(None, None)  # type: ignore[arg-type]
    got = b"".join(chunk if process.pid.done() else process._without_pid(chunk) for chunk in chunks)
    assert (process.pid.result(), got) == (pid, rest)
