"""Errors for a failed login and for the output of a host's shell. Plain data in, nothing is called.

Source of the words: asyncssh's exceptions, by name, and the exit codes of ``scripts.py``. No message has the host's
name or address: the recording must not.
"""

from __future__ import annotations

from typing import Final

from taxtui.errors import CreateFailed, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit.refusal import is_named, last_line

NOT_PRIVATE: Final = 3
EXISTS: Final = 4
"""Exit codes of taxtui's programs, besides 0 and codes of failed programs inside."""

_DROPPED: Final = ("ConnectionLost", "ConnectionResetError", "BrokenPipeError")
_NO_LOGIN: Final = (
    (("HostKeyNotVerifiable",), "the host's key is not the one in known_hosts", "ssh there once and compare the key"),
    (("PermissionDenied",), "the host refuses the login", "name user=NAME and key=FILE; ssh -v says more"),
    (("KeyImportError", "KeyEncryptionError"), "the key cannot be used", "run ssh-add if the key has a passphrase"),
    (("ConfigParseError",), "~/.ssh/config cannot be read", "correct the line"),
    (("gaierror",), "host name not found", "correct host=NAME, or set an address"),
    (
        ("ConnectionRefusedError",),
        "the host refuses the connection: no SSH server on that port",
        "start sshd there, or set port=NUMBER",
    ),
    (_DROPPED, "the host drops the connection", "check the port; ssh -v says more"),
    (("TimeoutError",), "the host does not answer", "check that the host is up and reachable"),
    (("OSError",), "the host cannot be reached", "check that the host is up, and the route"),
)
"""Names of an exception's class or base class, the problem, and the fix; the first row decides."""


def no_login(error: Exception, *, before: bool) -> SubstrateError:
    """The error for a failed login. ``before``: a login has worked, so sshd has dropped one of many at once."""
    if before and is_named(error, *_DROPPED):
        return Throttled("ssh: the host dropped a connection before the login", None)
    for names, problem, fix in _NO_LOGIN:
        if is_named(error, *names):
            return SubstrateUnavailable(f"ssh: {problem}", fix=fix)
    return SubstrateUnavailable(f"ssh: no login: {error}", fix="ssh -v says more")


def not_looked(exit_code: int, output: bytes) -> SubstrateUnavailable:
    """The error for an unreadable description of a host."""
    output_text = " ".join(output.decode(errors="replace").split())[:80]
    problem = (
        f"its login shell says {output_text!r}" if output_text else f"its login shell ended with exit code {exit_code}"
    )
    fix = "use a POSIX login shell with silent start-up files"
    return SubstrateUnavailable(f"ssh: commands cannot be run there: {problem}", fix=fix)


def not_made(name: str, run_id: str, exit_code: int, words: bytes) -> CreateFailed:
    """Why a sandbox has no folder."""
    if exit_code == EXISTS:
        return CreateFailed(f"{name} exists already", fix=f"taxtui clean --run {run_id} --force removes it")
    if exit_code == NOT_PRIVATE:
        return CreateFailed(
            "the folder of the sandboxes is not yours alone", fix="remove the folder, or set folder=PATH"
        )
    return CreateFailed(f"cannot make a folder for {name}: {last_words(exit_code, words)}")


def last_words(exit_code: int, words: bytes) -> str:
    """The last line of a program's output, or its exit code."""
    return last_line(words) or f"exit {exit_code}"
