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
_KEY_FILE: Final = ("KeyImportError", "KeyEncryptionError")


def dropped(error: Exception) -> bool:
    """Whether the host has hung up without a word."""
    return is_named(error, *_DROPPED)


def no_login(error: Exception, *, has_key: bool, before: bool) -> SubstrateError:
    """The error for a failed login. ``has_key``: known_hosts has keys of this host; ``before``: a login has worked."""
    if is_named(error, "HostKeyNotVerifiable") or (has_key and "host key" in str(error)):
        if has_key:
            fix = "find the reason before you remove the old key by ssh-keygen -R"
            return SubstrateUnavailable("ssh: the host shows another key than known_hosts has", fix=fix)
        fix = "ssh there once and compare the key, or name a file with known_hosts=FILE"
        return SubstrateUnavailable("ssh: the host's key is not in known_hosts", fix=fix)
    if is_named(error, "PermissionDenied"):
        return SubstrateUnavailable(
            "ssh: the host refuses the login", fix="name user=NAME and key=FILE; ssh -v says more"
        )
    if is_named(error, *_KEY_FILE):
        return SubstrateUnavailable(
            f"ssh: the key cannot be used: {error}", fix="run ssh-add if the key has a passphrase"
        )
    if is_named(error, "ConfigParseError"):
        return SubstrateUnavailable(f"ssh: ~/.ssh/config cannot be read: {error}", fix="correct the line")
    if is_named(error, "gaierror"):
        return SubstrateUnavailable("ssh: host name not found", fix="correct host=NAME, or set an address")
    if is_named(error, "ConnectionRefusedError"):
        fix = "start sshd there, or set port=NUMBER"
        return SubstrateUnavailable("ssh: the host refuses the connection: no SSH server on that port", fix=fix)
    if dropped(error):
        if before:  # sshd does so to some of many at once
            return Throttled("ssh: the host dropped a connection before the login", None)
        return SubstrateUnavailable("ssh: the host drops the connection", fix="check the port; ssh -v says more")
    if is_named(error, "TimeoutError"):
        return SubstrateUnavailable("ssh: the host does not answer", fix="check that the host is up and reachable")
    if is_named(error, "OSError"):
        return SubstrateUnavailable("ssh: the host cannot be reached", fix="check that the host is up, and the route")
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
    return CreateFailed(f"cannot make a folder for {name}: {_last(exit_code, words)}")


def not_removed(exit_code: int, words: bytes) -> str:
    """The reason why a sandbox may still exist."""
    return f"its folder or processes are still there: {_last(exit_code, words)}"


def _last(exit_code: int, words: bytes) -> str:
    return last_line(words) or f"exit {exit_code}"


def not_listed(exit_code: int, words: bytes) -> SubstrateUnavailable:
    """The error for a failed list of sandboxes."""
    return SubstrateUnavailable(f"ssh: the sandboxes there cannot be listed: {_last(exit_code, words)}")
