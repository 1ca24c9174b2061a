"""What is sent to Daytona for a command, and how its answer is read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.text_sandbox import read, wrap
from taxtui.substrates.daytona.client import minutes


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
        read(forged, "".join(HALVES))


def test_what_is_not_kept_is_counted() -> None:
    result = read(answer("3", "b1000.YWJj", "b2.YWI="), "".join(HALVES))
    assert result is not None
    assert (result.exit_code, result.stdout, result.stdout_dropped) == (3, b"abc", 997)
    assert (result.stderr, result.stderr_dropped) == (b"ab", 0)
