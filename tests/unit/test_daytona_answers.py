"""What Daytona's answers amount to, and what is sent for a command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from taxtui.errors import CreateFailed, ExecFailed, QuotaExceeded, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.plan.spec import Command
from taxtui.substrates.daytona.client import minutes, refused
from taxtui.substrates.daytona.command import read, wrap


@pytest.mark.parametrize(
    ("status", "message", "otherwise", "kind"),
    [
        (401, "Unauthorized", CreateFailed, SubstrateUnavailable),
        (403, "Forbidden resource", CreateFailed, SubstrateUnavailable),
        (403, "Total CPU limit exceeded. Maximum allowed: 10.", CreateFailed, QuotaExceeded),
        (400, "Disk quota exceeded", CreateFailed, QuotaExceeded),
        (409, "Sandbox with name x already exists", CreateFailed, CreateFailed),
        (429, "Rate limit exceeded", CreateFailed, Throttled),
        (401, "Unauthorized", ExecFailed, ExecFailed),
        (500, "oops", ExecFailed, ExecFailed),
    ],
)
def test_a_refusal_becomes_one_of_our_errors(
    status: int, message: str, otherwise: type[SubstrateError], kind: type[SubstrateError]
) -> None:
    error = refused(status, {}, json.dumps({"message": message})).as_error(otherwise, "doing it")
    assert type(error) is kind
    assert message in str(error)


@pytest.mark.parametrize(
    ("headers", "after_s"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After-sandbox-create": "3", "retry-after-authenticated": "5"}, 5.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
    ],
)
def test_the_advice_is_found_under_any_of_its_names(headers: dict[str, str], after_s: float | None) -> None:
    error = refused(429, headers, "{}").as_error(CreateFailed, "create")
    assert isinstance(error, Throttled)
    assert error.retry_after_s == after_s


@pytest.mark.parametrize("body", ["", "<html>", "[]", '"text"', "null"])
def test_a_page_of_a_proxy_is_not_taken_for_an_answer(body: str) -> None:
    assert str(refused(502, {}, body)) == "HTTP 502 (502)"


def test_lifetimes_are_rounded_up_to_minutes() -> None:
    assert [minutes(seconds) for seconds in (1, 60, 61, 3600)] == [1, 1, 2, 60]


@pytest.fixture(autouse=True)
def _private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.mark.parametrize("toolbox", ["sh", "bash"])
@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("script", "stdin", "stdout"),
    [
        ('echo "it\'s $V"', b"", b"it's a 'b'\n"),
        ("cat", bytes(range(256)), bytes(range(256))),
        ("printf '\\377'", b"", b"\xff"),
        ("cat <<'END'\n$verbatim\nEND", b"", b"$verbatim\n"),
        ("# " + "ü" * 70_000 + "\ncat; echo long", b"in", b"inlong\n"),
    ],
    ids=["quotes", "every byte", "not UTF-8", "here-document", "long"],
)
def test_what_is_sent_runs_in_any_shell_and_comes_back_whole(
    toolbox: str, shell: str, script: str, stdin: bytes, stdout: bytes
) -> None:
    wrapped = wrap(Command(script=f"{script}\nexit 9", stdin=stdin), shell, {"V": "a 'b'"})
    ran = subprocess.run([toolbox], input=wrapped.script.encode(), capture_output=True, check=False)
    got = read(ran.stdout.decode(errors="replace"), wrapped.nonce)
    assert got is not None
    assert (got.exit_code, got.stdout, got.stderr) == (9, stdout, b"")


def test_output_that_is_cut_off_is_no_result() -> None:
    wrapped = wrap(Command(script="true"), "bash", {})
    ran = subprocess.run(["sh"], input=wrapped.script.encode(), capture_output=True, check=False)
    whole = ran.stdout.decode()
    assert read(whole, wrapped.nonce) is not None
    assert [read(whole[:length], wrapped.nonce) for length in range(len(whole))] == [None] * len(whole)


def test_a_command_that_lists_its_arguments_prints_no_marker() -> None:
    wrapped = wrap(Command(script='echo "$@"; tr "\\0" " " < /proc/$$/cmdline; set'), "bash", {})
    ran = subprocess.run(["sh"], input=wrapped.script.encode(), capture_output=True, check=False)
    got = read(ran.stdout.decode(errors="replace"), wrapped.nonce)
    assert got is not None
    assert wrapped.nonce.encode() not in got.stdout
    assert wrapped.nonce[:16].encode() in got.stdout
