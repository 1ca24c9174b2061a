"""Errors for a docker daemon's answers, its silence and a program's end. Plain data in, nothing is called.

Source of the words: the ``message`` of the Engine API's errors, the operating system's errors on its socket,
and an OCI runtime's output if a program cannot start.
"""

from __future__ import annotations

from typing import Final

from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.workloads.image import DEFAULT_IMAGE

_BUSY: Final = (429, 503)
"""The daemon, or a proxy, is overloaded or starting: a passing state."""
_NOT_STARTED: Final = (126, 127)
_RUNTIME_SAYS: Final = b"OCI runtime exec failed"
_STOPPED: Final = ("in a stopped container", "that has stopped", "is not running")
"""runc's words, an older runc's, and crun's."""


def exec_refused(status: int, message: str) -> SubstrateError:
    """The error for a refused request about an exec.

    404 without the container, 409 after the stop, and during the removal a 500 with only the words.
    """
    if (status in (404, 409) and "is paused" not in message) or "is not running" in message:
        return SandboxLost(f"the container is gone: {message}")
    if status in _BUSY:
        return Throttled(f"the docker daemon is busy: {message}")
    return ExecFailed(f"the docker daemon refused: {message}")


def unanswered(error: BaseException) -> ExecFailed:
    """The error for a request without an answer."""
    return ExecFailed(f"the docker daemon does not answer: {reason(error)}")


def unreached(error: BaseException) -> ExecFailed:
    """The error for a failed connection."""
    return ExecFailed(f"the docker daemon cannot be reached: {reason(error)}")


def garbled(problem: str) -> ExecFailed:
    """The error for an answer outside the Engine API."""
    return ExecFailed(f"the docker daemon's answer does not follow the Engine API: {problem}")


def reason(error: BaseException) -> str:
    """An error of the operating system in few words."""
    if isinstance(error, TimeoutError):
        return "timed out"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def no_client(error: ExecFailed) -> SubstrateUnavailable:
    """The error for a daemon without an answer to the first request, by the operating system's error."""
    cause = error.__cause__
    if isinstance(cause, PermissionError):
        problem = "no permission on the daemon's socket"
        fix = "join the group docker, or set DOCKER_HOST to a daemon of yours"
    elif isinstance(cause, FileNotFoundError | ConnectionRefusedError):
        problem, fix = "no docker daemon is running there", "start it, or set DOCKER_HOST"
    else:
        problem, fix = unusable(error).problem.removeprefix("docker: "), "check DOCKER_HOST and the daemon"
    return SubstrateUnavailable(f"docker: {problem}", fix=fix)


def unusable(error: ExecFailed) -> SubstrateUnavailable:
    """The error for no answer, or for an answer outside the Engine API."""
    return SubstrateUnavailable(f"docker: {error.problem.replace('the docker daemon', 'the daemon', 1)}")


def no_image(image: str) -> SubstrateUnavailable:
    """The error for a missing image, with the command to pull or make the image."""
    fix = "taxtui setup" if image == DEFAULT_IMAGE else f"docker pull {image}"
    return SubstrateUnavailable(f"docker: there is no image {image} here", fix=fix)


def create_refused(status: int, message: str, image: str) -> SubstrateError:
    """The error for a failed create: image missing, daemon busy, or refused."""
    if status == 404 and message.startswith("No such image"):
        return no_image(image)
    return refused(status, message, "make a container")


def refused(status: int, message: str, doing: str) -> SubstrateError:
    """The error for a refused request: daemon busy, or impossible."""
    if status in _BUSY:
        return Throttled(f"the docker daemon is busy: {message}")
    return CreateFailed(f"docker cannot {doing}: {message}")


class NoSuchProgram(ExecFailed):
    """The program is not in the image."""


def not_started(exit_code: int, stdout: bytes) -> SubstrateError | None:
    """The reason why a program never ran; None if the program ran.

    A runtime prints the reason of a failed start on the program's standard output, with an exit code of shells.
    """
    if exit_code not in _NOT_STARTED or not stdout.startswith(_RUNTIME_SAYS):
        return None
    words = " ".join(stdout.decode(errors="replace").split())
    if any(phrase in words for phrase in _STOPPED):
        return SandboxLost(f"the container is gone: {words}")
    return (NoSuchProgram if "executable file not found" in words else ExecFailed)(words)
