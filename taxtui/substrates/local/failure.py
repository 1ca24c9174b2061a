"""Errors for this machine's refusals and for a program's end. Plain data in, nothing is called.

Source of the words: the operating system's errors, and what bubblewrap and setpriv print before they give up.
"""

from __future__ import annotations

from typing import Final

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError
from taxtui.sandboxes.kit.refusal import last_line

_LAUNCHERS: Final = (b"bwrap: ", b"setpriv: ")
_LAUNCHER_FAILED: Final = 1
"""The exit code of both. A command may end with it too; the first words on stderr decide."""


def not_emptied(name: str, error: OSError) -> ExecFailed:
    """The error for a reset that cannot delete files."""
    return ExecFailed(f"{name}: cannot empty its folders: {error.strerror}")


def no_working_folder(name: str, *, removed: bool) -> SubstrateError:
    """The error for a missing working folder: the sandbox is gone, or an earlier command removed the folder."""
    if removed:
        return SandboxLost(f"{name} has been removed")
    return ExecFailed(f"{name}: a command has removed its working folder")


def not_started(exit_code: int, stderr: bytes) -> ExecFailed | None:
    """The error for a program whose launcher failed, or None."""
    if exit_code != _LAUNCHER_FAILED or not stderr.startswith(_LAUNCHERS):
        return None
    return ExecFailed(stderr.decode(errors="replace").strip())


def no_bubblewrap(exit_code: int, stderr: bytes) -> str:
    """The reason why a probe of bubblewrap failed, by its last line; "" without one."""
    return f"bubblewrap does not work: {last_line(stderr) or exit_code}" if exit_code else ""


def no_file_system(error: OSError) -> str:
    """The reason why a sandbox cannot have its own file system."""
    return f"disk_mib needs root, who may mount a file system: {error.strerror}"
