"""Opens whatever can be projected: a recording, or a TOML file of published latencies."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from costmodel.published import Published, read_published
from costmodel.recording import Recording, read_recording


def read(path: str | PathLike[str]) -> Recording | Published:
    """Read a recording, or published latencies where the name ends in ``.toml``.

    Raises:
        SourceError: it cannot be read, or is damaged, with the offset in bytes.
    """
    path = Path(path)
    return read_published(path) if path.suffix == ".toml" else read_recording(path)
