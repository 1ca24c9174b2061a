"""What this machine's own words amount to: each row is what a system call or a launcher says, with why it means it."""

from __future__ import annotations

import pytest

from taxtui.errors import CreateFailed, SubstrateError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.private_folder import not_made
from taxtui.substrates.local.bubblewrap import no_bubblewrap, not_started

SPEC = SandboxSpec(name="taxtui-r-1", labels={LABEL_RUN: "r"}, limits=Limits(), ttl_s=60.0)
FULL = OSError(28, "No space left on device")
USERNS = b"bwrap: setting up uid map: Permission denied\n"
SETPRIV = b"setpriv: setgroups failed: Operation not permitted\n"


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        # A run of the same name that was killed: its sandboxes wait for a sweep.
        (
            not_made(SPEC, FileExistsError(17, "File exists")),
            CreateFailed,
            "taxtui-r-1 exists already; taxtui clean --run r --force removes it",
        ),
        (
            not_made(SPEC, FULL),
            CreateFailed,
            "cannot make a directory for taxtui-r-1: No space left on device",
        ),
    ],
)
def test_a_refusal_of_this_machine_becomes_one_of_our_errors(
    error: SubstrateError, kind: type[SubstrateError], text: str
) -> None:
    assert (type(error), str(error)) == (kind, text)


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
