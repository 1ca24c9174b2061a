"""Which line of a program's errors is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from taxtui.errors import TaxtuiError
from taxtui.workloads.programs import run_program

LINES = "error: subprocess-exited-with-error\nfatal: https://user:p@ss@host/x is gone\nERROR: no such wheel"


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("git", "error: subprocess-exited-with-error"),
        ("pip", "no such wheel"),
    ],
)
def test_the_reason_is_the_first_error_of_git_and_the_last_line_of_others(
    program: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / program
    script.write_text(f"#!/bin/sh\nprintf '%s' '{LINES}' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(TaxtuiError) as raised:
        run_program([program], "cannot", fix="do so")
    assert str(raised.value) == f"cannot: {line.removeprefix('error: ')}; do so"


def test_user_and_password_of_a_url_are_left_out() -> None:
    with pytest.raises(TaxtuiError, match=r"^cannot clone https://\*\*\*@host/a: at https://\*\*\*@host/b it ended$"):
        run_program(["sh", "-c", "echo at https://u:p@ss@host/b it ended >&2; exit 1"], "cannot clone https://u@host/a")
