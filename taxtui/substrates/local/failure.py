"""What this machine's refusals and a program's end amount to. Plain data in, nothing is called.

Where the words come from: the operating system's errors, and what bubblewrap and setpriv print before they give up.
"""

from __future__ import annotations

from typing import Final

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError
from taxtui.sandboxes.kit.refusal import last_line

_LAUNCHERS: Final = (b"bwrap: ", b"setpriv: ")
_LAUNCHER_FAILED: Final = 1
"""What both of them end with; a command may end so too, which only the first words on stderr tell apart."""


def not_emptied(name: str, error: OSError) -> ExecFailed:
    """A reset could not take away what the sandbox has written."""
    return ExecFailed(f"{name}: cannot empty its folders: {error.strerror}")


def no_working_folder(name: str, *, removed: bool) -> SubstrateError:
    """Where a command was to run is not there: with the whole sandbox, or because a command before it did that."""
    if removed:
        return SandboxLost(f"{name} has been removed")
    return ExecFailed(f"{name}: a command has removed its working folder")


def not_started(exit_code: int, stderr: bytes) -> ExecFailed | None:
    """Why a program with this end never ran, or None where it did: a launcher failed before it became the program."""
    if exit_code != _LAUNCHER_FAILED or not stderr.startswith(_LAUNCHERS):
        return None
    return ExecFailed(stderr.decode(errors="replace").strip())


def no_bubblewrap(exit_code: int, stderr: bytes) -> str:
    """Why a probe of bubblewrap failed, by its last line; "" where it did not."""
    return f"bubblewrap does not work: {last_line(stderr) or exit_code}" if exit_code else ""


def no_file_system(error: OSError) -> str:
    """Why a sandbox cannot have a file system of its own."""
    return f"disk_mib needs root, who may mount a file system: {error.strerror}"
