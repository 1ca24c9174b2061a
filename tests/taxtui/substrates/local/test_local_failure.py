"""What this machine's own words amount to: each row is what a system call or a launcher says, with why it means it."""

from __future__ import annotations

import pytest

from taxtui.substrates.local.bubblewrap import no_bubblewrap, not_started

USERNS = b"bwrap: setting up uid map: Permission denied\n"
SETPRIV = b"setpriv: setgroups failed: Operation not permitted\n"


@pytest.mark.parametrize(
    ("exit_code", "stderr", "text"),
    [
        # The launcher gave up before it became the command.
        (1, USERNS, "bwrap: setting up uid map: Permission denied"),
        (1, SETPRIV, "setpriv: setgroups failed: Operation not permitted"),
        # A command that fails, with the words of others or after words of its own.
        (1, b"", None),
        (1, b"grep: bwrap: No such file or directory\n", None),
        (2, USERNS, None),
        (0, USERNS, None),
    ],
)
def test_a_launcher_that_failed_is_told_from_a_command_that_did(
    exit_code: int, stderr: bytes, text: str | None
) -> None:
    error = not_started(exit_code, stderr)
    assert (str(error) if error else None) == text


@pytest.mark.parametrize(
    ("exit_code", "stderr", "text"),
    [
        (0, b"", ""),
        (0, b"a warning\n", ""),
        # A distribution that forbids user namespaces: the last line says so.
        (1, b"a warning\n" + USERNS, "bubblewrap does not work: bwrap: setting up uid map: Permission denied"),
        (139, b"", "bubblewrap does not work: 139"),
    ],
)
def test_why_a_probe_of_bubblewrap_failed(exit_code: int, stderr: bytes, text: str) -> None:
    assert no_bubblewrap(exit_code, stderr) == text
