"""Writing of recordings. ``costmodel.recording`` has the events and the reader."""

from __future__ import annotations

import hashlib


def digest(*parts: str) -> str:
    """Return 16 hex digits for a name: equal for equal parts, and not reversible."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
