"""The recording's file format: events, frames, reader and writer; and the digest that stands in it for a name."""

from __future__ import annotations

import hashlib


def digest(*parts: str) -> str:
    """16 hex digits that tell equal from different, and nothing else."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
