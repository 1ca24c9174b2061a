"""Work that is worth processes of its own: a pool of them that leaves nothing behind, whoever ends."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Final

from costmodel.errors import SourceError
from costmodel.recording.parallel.dealing import forks, interrupts_held, watch

WORTH_BYTES: Final = 8_000_000
"""Recordings of less than this in all are read before other processes have started."""


def worth(paths: Sequence[Path]) -> int:
    """How many processes to read these with: one for each core, and 1 for one file or little to read."""
    if len(paths) < 2 or sum(path.stat().st_size for path in paths if path.exists()) < WORTH_BYTES:
        return 1
    return min(len(paths), os.cpu_count() or 1)


@contextlib.contextmanager
def pool(count: int, scratch: Path | None = None) -> Iterator[ProcessPoolExecutor]:
    """So many processes; they end with the block, with this process, and at once where the block raises.

    A script that gets here has to guard what it does by ``if __name__ == "__main__"``: where they cannot be forked, the
    processes import it.

    Args:
        count: how many.
        scratch: a folder that goes with them.

    Raises:
        SourceError: one of them was killed.
    """
    context = multiprocessing.get_context("fork" if forks() else "spawn")
    made = ProcessPoolExecutor(count, context, initializer=watch, initargs=(partial(_forget, scratch),))
    try:
        with interrupts_held():
            for _ in range(count):
                made.submit(int)  # processes start with what is submitted first
        yield made
    except BaseException as error:  # also where nobody wants the rest: what is under way is of no use
        for process in list((made._processes or {}).values()):  # of this pool: the caller may have other children
            process.terminate()
        if isinstance(error, BrokenProcessPool):
            raise SourceError("a process that read recordings was killed: give fewer, or more memory") from None
        raise
    finally:
        made.shutdown(cancel_futures=True)
        _forget(scratch)


def _forget(scratch: Path | None) -> None:
    if scratch is not None:
        shutil.rmtree(scratch, ignore_errors=True)
