"""What systemd-nspawn's words amount to. Plain data in, nothing is called."""

from __future__ import annotations

from taxtui.errors import CreateFailed


def not_started(output: bytes) -> CreateFailed:
    """Why it ended before what it was to run has begun."""
    lines = output.decode(errors="replace").strip().splitlines()
    return CreateFailed(f"systemd-nspawn did not start it: {lines[-1] if lines else 'it said nothing'}")
