"""What runsc's words amount to. Plain data in, nothing is called."""

from __future__ import annotations

from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed


def not_started(exit_code: int, output: bytes) -> CreateFailed:
    """Why a container did not start: the last that runsc said."""
    return CreateFailed(f"runsc did not start it: {_last(exit_code, output)}")


def not_killed(exit_code: int, output: bytes) -> ExecFailed:
    """Why what a command has started may still run."""
    return ExecFailed(f"a command's processes may still run in the sandbox: {_last(exit_code, output)}")


def not_removed(name: str, exit_code: int, output: bytes) -> CleanupFailed:
    """Why it may still be there."""
    return CleanupFailed(f"{name}: runsc cannot delete it: {_last(exit_code, output)}")


def _last(exit_code: int, output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else f"exit {exit_code}"
