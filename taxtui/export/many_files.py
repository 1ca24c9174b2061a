"""Many recordings at once: each is told by a process of its own, and what they tell is put together in their order.

A process holds one trial at a time, as it does for one file; what it has told waits in a file until its turn comes.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Final

from costmodel.recording.parallel import processes
from taxtui.export import BY_NAME

CHUNK: Final = 1 << 20


def pieces(name: str, paths: Sequence[Path], table: str, workers: int | None = None) -> Iterator[bytes]:
    """The whole of a format, by as many processes as there are cores (``workers``) where that is worth it.

    One file, little to tell, or a format that cannot be put together from parts: no process is started.

    Raises:
        TaxtuiError, CostModelError: what reading the first file that cannot be read raises.
    """
    one = BY_NAME[name]
    count = processes.worth(paths) if workers is None else workers
    if one.heading is None or count < 2 or len(paths) < 2:
        yield from one.pieces(paths, table)
        return
    scratch = Path(tempfile.mkdtemp(prefix="taxtui-export-"))
    with processes.pool(count, scratch) as pool:
        yield from _in_order(pool, name, paths, table, scratch, 2 * count)


def _in_order(
    pool: ProcessPoolExecutor, name: str, paths: Sequence[Path], table: str, scratch: Path, ahead: int
) -> Iterator[bytes]:
    """No more than ``ahead`` files are begun before their turn."""
    waiting: deque[tuple[Future[None], Path]] = deque()
    left = iter(enumerate(paths))
    while True:
        while len(waiting) < ahead and (following := next(left, None)) is not None:
            number, path = following
            out = scratch / str(number)
            waiting.append((pool.submit(_tell, name, path, table, out, first=not number), out))
        if not waiting:
            return
        done, out = waiting.popleft()
        done.result()
        with out.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
        out.unlink()


def _tell(name: str, path: Path, table: str, out: Path, *, first: bool) -> None:
    """One file; the lines of the heading are left out where it is not the ``first``."""
    one = BY_NAME[name]
    skipped = 0 if first else one.heading or 0
    with out.open("xb") as file:
        for piece in one.pieces([path], table):
            while skipped and piece:
                _, end, piece = piece.partition(b"\n")
                skipped -= len(end)
            file.write(piece)
