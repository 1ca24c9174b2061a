"""An answer of Daytona's toolbox that a command has forged: it can find its nonce, and print what it likes."""

from __future__ import annotations

import pytest

from taxtui.errors import ExecFailed
from taxtui.sandboxes.kit.text_command import read

NONCE = "0123456789abcdef" * 2


def answer(code: str, out: str, err: str = "t") -> str:
    return f"{NONCE} {code}\n{out}\n{NONCE}\n{err}\n{NONCE}\n1.000002\n{NONCE}\n"


@pytest.mark.parametrize(
    "forged",
    [
        answer("x", "t"),
        answer("-5", "t"),
        answer("9" * 5000, "t"),
        answer("0", "b5\nYQ="),
        answer("0", "b5\nY!Q="),
        answer("0", "b1\nYWFhYQ=="),
        answer("0", "b-1\nYQ=="),
        answer("0", "b" + "9" * 30 + "\nYQ=="),
        answer("0", "b"),
        answer("0", "z"),
        answer("0", "tä"),
        answer("0", "t", "b1\nä"),
        answer("\u0663", "t"),
    ],
)
def test_what_the_program_does_not_print_is_the_commands_failure(forged: str) -> None:
    with pytest.raises(ExecFailed, match="garbled"):
        read(forged, NONCE)


def test_what_is_not_kept_is_counted() -> None:
    result = read(answer("3", "b1000\nYWJj", "b 2\nYWI="), NONCE)
    assert result is not None
    assert (result.exit_code, result.stdout, result.stdout_dropped) == (3, b"abc", 997)
    assert (result.stderr, result.stderr_dropped) == (b"ab", 0)
