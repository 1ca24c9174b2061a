"""Opens whatever can be projected: a recording, or a TOML file of published latencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Final, TypeVar

from costmodel.recording.parallel.scratch import Scratch
from costmodel.recording.published import Published, read_published
from costmodel.recording.reader import Recording, read_recording
from costmodel.recording.trial import PackedTrials

_T = TypeVar("_T")
MANY: Final = 5_000
"""Trials of one of several files, from which on they are kept as columns and bytes."""


def read(path: str | PathLike[str]) -> Recording | Published:
    """Read a recording, or published latencies where the name ends in ``.toml``.

    Raises:
        SourceError: it cannot be read, or is damaged, with the offset in bytes.
    """
    path = Path(path)
    return read_published(path) if path.suffix == ".toml" else read_recording(path)


def read_all(paths: Sequence[str | PathLike[str]], processes: int | None = None) -> list[Recording | Published]:
    """Read several, in their order, by a process for each core where there is enough to read.

    A script that reads more than 8 MB in this way guards what it does by ``if __name__ == "__main__"``.

    Args:
        paths: as ``read`` takes them.
        processes: so many instead; 1 starts none.

    Raises:
        SourceError: as ``read``, of the first that cannot be read.
    """
    return _each(read, [Path(path) for path in paths], processes)


def read_recordings(paths: Sequence[Path], processes: int | None = None) -> list[Recording]:
    """As ``read_all``, of recordings alone."""
    return _each(read_recording, paths, processes)


def _kept(found: _T, scratch: Scratch) -> _T:
    """In little memory where there is so much that it counts, whoever has read it."""
    if isinstance(found, Recording) and found.trials >= MANY:
        for cell in found.cells:
            cell.trials = PackedTrials.of(cell.trials).put(scratch)
    return found


def _each(one: Callable[[Path], _T], paths: Sequence[Path], processes: int | None) -> list[_T]:
    from costmodel.recording.parallel.collecting import paused
    from costmodel.recording.parallel.processes import pool, worth  # most never need them

    count, scratch = worth(paths) if processes is None else processes, Scratch()
    if count < 2:
        with paused():
            return [one(path) for path in paths] if len(paths) < 2 else [_kept(one(path), scratch) for path in paths]
    with pool(count) as workers, paused():
        return [_kept(found, scratch) for found in workers.map(one, paths)]
