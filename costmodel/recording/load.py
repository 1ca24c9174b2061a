"""Opens files to project: recordings, and TOML files of published latencies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

from costmodel.recording.published import Published, read_published
from costmodel.recording.reader import Recording, read_recording

Data = Recording | Published | Sequence[Recording | Published]
"""One file, or several."""


def files_of(data: Data) -> list[Recording | Published]:
    """Return one file or several as a list."""
    return [data] if isinstance(data, Recording | Published) else list(data)


def load(path: str | PathLike[str]) -> Recording | Published:
    """Read a recording, or published latencies where the name ends in ``.toml``.

    Raises:
        SourceError: the file is unreadable or damaged, with the offset in bytes.
    """
    path = Path(path)
    return read_published(path) if path.suffix == ".toml" else read_recording(path)


def load_all(paths: Iterable[str | PathLike[str]]) -> list[Recording | Published]:
    """Read several files in their order. Raises ``SourceError`` as ``load``, for the first unreadable file."""
    return [load(path) for path in paths]


def read_recordings(paths: Iterable[Path]) -> list[Recording]:
    """Read several recordings in their order. Raises ``SourceError`` for the first unreadable file."""
    return [read_recording(path) for path in paths]
