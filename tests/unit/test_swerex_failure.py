"""What SWE-ReX's exceptions amount to."""

from __future__ import annotations

import pytest

from taxtui.substrates.harness.swerex import failure


@pytest.mark.parametrize(
    ("said", "problem", "fix"),
    [
        (
            "Container process terminated.\nstdout:\n\nstderr:\n/bin/sh: 1: swerex-remote: not found\n",
            "swe-rex did not start it: /bin/sh: 1: swerex-remote: not found",
            "install swe-rex in the image: docs/substrates/swerex.md",
        ),
        (
            "docker: Error response from daemon: Bind for 0.0.0.0:1 failed: port is already allocated",
            "swe-rex did not start it: docker: Error response from daemon: Bind for 0.0.0.0:1 failed: "
            "port is already allocated",
            "another program took the port first; try again",
        ),
        ("something else", "swe-rex did not start it: something else", ""),
        ("", "swe-rex did not start it: RuntimeError", ""),
    ],
)
def test_a_start_that_failed(said: str, problem: str, fix: str) -> None:
    told = failure.not_started(RuntimeError(said))
    assert (told.problem, told.fix) == (problem, fix)


def test_a_command_that_was_not_carried_out() -> None:
    assert str(failure.not_run(TimeoutError())) == "swe-rex: TimeoutError"
    assert str(failure.not_run(OSError("Server disconnected"))) == "swe-rex: Server disconnected"
