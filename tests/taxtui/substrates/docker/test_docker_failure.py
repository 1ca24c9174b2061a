"""Errors for the words of a docker daemon, its socket and a runtime."""

from __future__ import annotations

import pytest

from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.substrates.docker.failure import (
    NoSuchProgram,
    create_refused,
    exec_refused,
    no_client,
    not_started,
    unanswered,
    unreached,
    unusable,
)

GONE = "No such container: 4f2a"
REMOVING = "Container 4f2a is not running"
NO_FILE = FileNotFoundError(2, "No such file or directory")
RESET = ConnectionResetError(104, "Connection reset by peer")
ERRORS = [
    (exec_refused(404, GONE), SandboxLost, f"the container is gone: {GONE}"),
    (exec_refused(409, REMOVING), SandboxLost, f"the container is gone: {REMOVING}"),
    # During the removal the daemon reports its own failure.
    (exec_refused(500, REMOVING), SandboxLost, f"the container is gone: {REMOVING}"),
    (exec_refused(409, "Container 4f2a is paused"), ExecFailed, "the docker daemon refused: Container 4f2a is paused"),
    (exec_refused(429, "slow down"), Throttled, "the docker daemon is busy: slow down"),
    (exec_refused(503, "HTTP 503"), Throttled, "the docker daemon is busy: HTTP 503"),
    (exec_refused(400, "no user"), ExecFailed, "the docker daemon refused: no user"),
    (exec_refused(500, "HTTP 500"), ExecFailed, "the docker daemon refused: HTTP 500"),
    (unanswered(RESET), ExecFailed, "the docker daemon does not answer: Connection reset by peer"),
    (unanswered(TimeoutError()), ExecFailed, "the docker daemon does not answer: timed out"),
    (unreached(NO_FILE), ExecFailed, "the docker daemon cannot be reached: No such file or directory"),
    (unreached(OSError()), ExecFailed, "the docker daemon cannot be reached: OSError"),
    (
        create_refused(404, "No such image: x:1", "x:1", "docker pull x:1"),
        SubstrateUnavailable,
        "docker: there is no image x:1 here; docker pull x:1",
    ),
    (create_refused(404, "no network", "x:1", ""), CreateFailed, "docker cannot make a container: no network"),
    (create_refused(500, "no space left", "x:1", ""), CreateFailed, "docker cannot make a container: no space left"),
    (create_refused(503, "HTTP 503", "x:1", ""), Throttled, "the docker daemon is busy: HTTP 503"),
    (
        unusable(unanswered(TimeoutError())),
        SubstrateUnavailable,
        "docker: the daemon does not answer: timed out",
    ),
]


@pytest.mark.parametrize(("error", "kind", "text"), ERRORS)
def test_each_answer_has_its_error(error: SubstrateError, kind: type[SubstrateError], text: str) -> None:
    assert (type(error), str(error)) == (kind, text)


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (PermissionError(13, "x"), "no permission on the daemon's socket; join the group docker, or set DOCKER_HOST"),
        (NO_FILE, "no docker daemon is running there; start it, or set DOCKER_HOST"),
        (ConnectionRefusedError(111, "x"), "no docker daemon is running there"),
        (OSError(113, "no route"), "the daemon cannot be reached: no route; check DOCKER_HOST and the daemon"),
    ],
)
def test_a_missing_daemon_is_explained_by_the_socket_s_error(cause: OSError, text: str) -> None:
    failure = unreached(cause)
    failure.__cause__ = cause
    assert str(no_client(failure)).startswith(f"docker: {text}")


RUNC = b'OCI runtime exec failed: exec failed: unable to start container process: exec: "bash": '
STOPPED = b"OCI runtime exec failed: exec failed: cannot exec in a stopped container: unknown\r\n"


@pytest.mark.parametrize(
    ("exit_code", "stdout", "kind"),
    [
        (127, RUNC + b"executable file not found in $PATH: unknown\r\n", NoSuchProgram),
        (126, RUNC + b"executable file not found in $PATH: unknown\r\n", NoSuchProgram),
        (126, RUNC + b"permission denied: unknown\r\n", ExecFailed),
        (126, STOPPED, SandboxLost),
        # Commands that were started, whatever they print.
        (0, RUNC, None),
        (1, RUNC, None),
        (127, b"", None),
        (127, b"hello\nOCI runtime exec failed", None),
    ],
)
def test_a_program_that_never_ran_is_no_failed_command(
    exit_code: int, stdout: bytes, kind: type[ExecFailed] | None
) -> None:
    error = not_started(exit_code, stdout)
    assert (type(error) if error else None) is kind
