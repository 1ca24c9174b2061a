"""What Docker's own words amount to: each row is what a daemon, a socket or a runtime says, with why it means it."""

from __future__ import annotations

import pytest

from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.substrates.docker.failure import (
    NoSuchProgram,
    create_refused,
    cut,
    exec_refused,
    no_client,
    not_started,
    unanswered,
    unreached,
    unusable,
)

GONE = "No such container: 4f2a"
REMOVING = "Container 4f2a is not running"
NO_USER = "unable to find user nobody2: no matching entries in passwd file"


@pytest.mark.parametrize(
    ("status", "message", "kind", "text"),
    [
        # The container was removed, by its deadline or by somebody.
        (404, GONE, SandboxLost, f"the container is gone: {GONE}"),
        # It has ended, and is about to be removed.
        (
            409,
            f"container 4f2a is not running: {GONE}",
            SandboxLost,
            f"the container is gone: container 4f2a is not running: {GONE}",
        ),
        # While it is being removed the daemon calls the same thing a fault of its own.
        (500, REMOVING, SandboxLost, f"the container is gone: {REMOVING}"),
        (429, "too many requests", Throttled, "the docker daemon is busy: too many requests"),
        (503, "HTTP 503", Throttled, "the docker daemon is busy: HTTP 503"),
        # The request itself was wrong, or the daemon is: nothing is known of the command.
        (400, NO_USER, ExecFailed, f"the docker daemon refused: {NO_USER}"),
        (500, "HTTP 500", ExecFailed, "the docker daemon refused: HTTP 500"),
    ],
)
def test_a_refused_exec_becomes_one_of_our_errors(
    status: int, message: str, kind: type[SubstrateError], text: str
) -> None:
    error = exec_refused(status, message)
    assert (type(error), str(error)) == (kind, text)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (
            unanswered(ConnectionResetError(104, "Connection reset by peer")),
            ExecFailed,
            "the docker daemon does not answer: Connection reset by peer",
        ),
        (unanswered(TimeoutError()), ExecFailed, "the docker daemon does not answer: timed out"),
        (
            unreached(FileNotFoundError(2, "No such file or directory")),
            ExecFailed,
            "the docker daemon cannot be reached: No such file or directory",
        ),
        # An error without words is told by its kind.
        (unreached(OSError()), ExecFailed, "the docker daemon cannot be reached: OSError"),
        # The stream of a running exec: that it breaks is how a container's end is first seen.
        (cut(BrokenPipeError(32, "Broken pipe")), SandboxLost, "the connection to the container is gone: Broken pipe"),
    ],
)
def test_silence_before_an_exec_is_the_paths_and_in_it_the_containers(
    error: SubstrateError, kind: type[SubstrateError], text: str
) -> None:
    assert (type(error), str(error)) == (kind, text)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        # A socket of root's and the group docker's.
        (
            PermissionError(13, "Permission denied"),
            "no permission on the daemon's socket; join the group docker, or set DOCKER_HOST to a daemon of yours",
        ),
        # No socket, or one whose daemon has gone.
        (
            FileNotFoundError(2, "No such file or directory"),
            "no docker daemon is running there; start it, or set DOCKER_HOST",
        ),
        (ConnectionRefusedError(111, "Connection refused"), "no docker daemon is running there"),
        # No route, or no answer.
        (
            OSError(113, "No route to host"),
            "the daemon cannot be reached: No route to host; check DOCKER_HOST and the daemon",
        ),
    ],
)
def test_why_no_client_could_be_made(error: Exception, text: str) -> None:
    failure = unreached(error)
    failure.__cause__ = error
    assert str(no_client(failure)).startswith(f"docker: {text}")


NO_NETWORK = "network no-such-network not found"


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        # To be built or pulled, not to be tried again.
        (
            create_refused(404, "No such image: x:1", "x:1", "docker pull x:1"),
            SubstrateUnavailable,
            "docker: there is no image x:1 here; docker pull x:1",
        ),
        # Refused: a name that is taken, a network or a runtime that is not there.
        (
            create_refused(404, NO_NETWORK, "x:1", "docker pull x:1"),
            CreateFailed,
            f"docker cannot make a container: {NO_NETWORK}",
        ),
        (
            create_refused(500, "no space left", "x:1", "docker pull x:1"),
            CreateFailed,
            "docker cannot make a container: no space left",
        ),
        # Overloaded, or only starting: tried again.
        (create_refused(503, "HTTP 503", "x:1", ""), Throttled, "the docker daemon is busy: HTTP 503"),
        # No answer at all.
        (
            unusable(unanswered(TimeoutError())),
            SubstrateUnavailable,
            "docker: the daemon does not answer: timed out",
        ),
        (
            unusable(unreached(FileNotFoundError(2, "No such file or directory"))),
            SubstrateUnavailable,
            "docker: the daemon cannot be reached: No such file or directory",
        ),
    ],
)
def test_why_there_is_no_container(error: SubstrateError, kind: type[SubstrateError], text: str) -> None:
    assert (type(error), str(error)) == (kind, text)


RUNC = b'OCI runtime exec failed: exec failed: unable to start container process: exec: "bash": '


@pytest.mark.parametrize(
    ("exit_code", "stdout", "kind"),
    [
        # The image has no such program: another shell is tried.
        (127, RUNC + b"executable file not found in $PATH: unknown\r\n", NoSuchProgram),
        (126, RUNC + b"executable file not found in $PATH: unknown\r\n", NoSuchProgram),
        # The runtime failed otherwise.
        (126, RUNC + b"permission denied: unknown\r\n", ExecFailed),
        # The container has ended before the program could begin.
        (126, b"OCI runtime exec failed: exec failed: cannot exec in a stopped container: unknown\r\n", SandboxLost),
        # A command that prints the same words and ends well, or with another code, was started.
        (0, RUNC, None),
        (1, RUNC, None),
        # A shell ends like this too, where the command that it was given is not there.
        (127, b"", None),
        (127, b"hello\nOCI runtime exec failed", None),
    ],
)
def test_a_program_that_never_ran_is_told_from_one_that_failed(
    exit_code: int, stdout: bytes, kind: type[ExecFailed] | None
) -> None:
    error = not_started(exit_code, stdout)
    assert (type(error) if error else None) is kind
    if error:
        assert str(error).removeprefix("the container is gone: ") == " ".join(stdout.decode().split())
