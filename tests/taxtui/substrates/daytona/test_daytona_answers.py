"""What is sent to Daytona for a command, how its answer is read, and what its own words amount to."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import aiohttp
import pytest

from taxtui.errors import CreateFailed, ExecFailed, QuotaExceeded, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.text_sandbox import read, wrap
from taxtui.substrates.daytona.client import minutes
from taxtui.substrates.daytona.failure import SandboxState, lost, refused, unanswered


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
    ran = subprocess.run(["sh"], input=wrapped.script, capture_output=True, text=True, check=False)
    assert read(ran.stdout, wrapped.nonce) is not None
    lengths = range(len(ran.stdout))
    assert [read(ran.stdout[:length], wrapped.nonce) for length in lengths] == [None] * len(lengths)


HALVES = "0123456789abcdef" * 2, "fedcba9876543210" * 2


def answer(code: str, out: str, err: str = "t") -> str:
    return f"{HALVES[0]}{{{out}=.{err}=.{HALVES[1]}}}{code}:1.000002\n"


@pytest.mark.parametrize(
    "forged",
    [
        *(answer(code, "t") for code in ("x", "-5", "9" * 5000, "\u0663")),
        *(
            answer("0", out)
            for out in ("b5.YQ", "b5.Y!Q=", "b1.YWFhYQ==", "b-1.YQ==", f"b{'9' * 30}.YQ==", "b", "z", "t=x")
        ),
    ],
)
def test_what_the_program_does_not_print_is_the_commands_failure(forged: str) -> None:
    with pytest.raises(ExecFailed, match="garbled"):
        read(forged, HALVES)


def test_what_is_not_kept_is_counted() -> None:
    result = read(answer("3", "b1000.YWJj", "b2.YWI="), HALVES)
    assert result is not None
    assert (result.exit_code, result.stdout, result.stdout_dropped) == (3, b"abc", 997)
    assert (result.stderr, result.stderr_dropped) == (b"ab", 0)


KEY = "check DAYTONA_API_KEY and its permissions"
CPU = "Total CPU limit exceeded. Maximum allowed: 10."
TAKEN = "Sandbox with name x already exists"


@pytest.mark.parametrize(
    ("status", "message", "otherwise", "kind", "text"),
    [
        # A bad key, or one that may not make sandboxes: the set-up's fault while nothing has been made …
        (401, "Unauthorized", CreateFailed, SubstrateUnavailable, f"doing: Unauthorized (401); {KEY}"),
        (403, "Forbidden resource", CreateFailed, SubstrateUnavailable, f"doing: Forbidden resource (403); {KEY}"),
        # … and later only this request's.
        (401, "Unauthorized", ExecFailed, ExecFailed, "doing: Unauthorized (401)"),
        (403, "Forbidden resource", ExecFailed, ExecFailed, "doing: Forbidden resource (403)"),
        # What an organization may have comes under three codes; only the words tell it from a key that may not.
        (403, CPU, CreateFailed, QuotaExceeded, f"doing: {CPU} (403)"),
        (400, "Disk quota exceeded", CreateFailed, QuotaExceeded, "doing: Disk quota exceeded (400)"),
        (402, "Credit limit exceeded", CreateFailed, QuotaExceeded, "doing: Credit limit exceeded (402)"),
        # The same words in use are no quota's: there is a sandbox.
        (403, CPU, ExecFailed, ExecFailed, f"doing: {CPU} (403)"),
        # Too many requests in a minute, which passes; "limit exceeded" does not make a quota of it.
        (429, "Rate limit exceeded", CreateFailed, Throttled, "doing: Rate limit exceeded (429)"),
        (429, "Rate limit exceeded", ExecFailed, Throttled, "doing: Rate limit exceeded (429)"),
        (409, TAKEN, CreateFailed, CreateFailed, f"doing: {TAKEN} (409)"),
        (500, "oops\n twice", ExecFailed, ExecFailed, "doing: oops twice (500)"),
    ],
)
def test_a_refusal_becomes_one_of_our_errors(
    status: int, message: str, otherwise: type[SubstrateError], kind: type[SubstrateError], text: str
) -> None:
    error = refused(status, {}, json.dumps({"message": message})).as_error(otherwise, "doing")
    assert (type(error), str(error)) == (kind, text)


@pytest.mark.parametrize(
    ("headers", "after_s"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        # Named after what is limited; of several the longest counts.
        ({"Retry-After-sandbox-create": "3", "retry-after-authenticated": "5"}, 5.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
    ],
)
def test_the_advice_is_found_under_any_of_its_names(headers: dict[str, str], after_s: float | None) -> None:
    error = refused(429, headers, "{}").as_error(CreateFailed, "create")
    assert isinstance(error, Throttled)
    assert error.retry_after_s == after_s


def test_silence_and_a_page_of_a_proxy_are_told_by_their_kind_and_final_for_nobody() -> None:
    for body in ("<html>", "[]"):
        assert str(refused(502, {}, body)) == "HTTP 502 (502)"
    said = unanswered(aiohttp.ServerDisconnectedError("10.0.0.1"))  # the text can name hosts
    assert (str(said), said.final) == ("Daytona did not answer (ServerDisconnectedError)", False)
    assert type(said.as_error(CreateFailed, "create")) is CreateFailed


@pytest.mark.parametrize(
    ("state", "reason", "why"),
    [
        ("", "", ""),
        ("creating", "", ""),
        ("started", "", ""),
        ("building_snapshot", "", ""),
        # Stopped or archived by its own time to live, by Daytona or by somebody at the dashboard.
        ("stopped", "", "the sandbox is stopped"),
        ("archived", "idle", "the sandbox is archived: idle"),
        ("destroyed", "", "the sandbox is destroyed"),
        # Daytona's fault, or the image's: it may never have started.
        ("error", "no runner available", "the sandbox went to error: no runner available"),
        ("build_failed", "", "the sandbox went to build_failed: no reason given"),
    ],
)
def test_why_a_sandbox_is_lost(state: str, reason: str, why: str) -> None:
    assert lost(SandboxState(state, reason)) == why
