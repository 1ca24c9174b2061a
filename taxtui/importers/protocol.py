"""The interface of a reader of logs.

A reader finds the files of its format, recognises a file by its content and yields the file's trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from taxtui.importers.files import Unreadable, walk
from taxtui.importers.trial import ImportedTrial

HEAD_BYTES: Final = 1 << 16
"""Bytes at the beginning of a file by which a reader recognises the format."""


class Skipped(NamedTuple):
    """A part of a file that cannot be read while the rest can: a line, a sample."""

    where: str  # "line 7"; never the file's words
    why: str


def trial_or_skipped(where: str, make: Callable[..., ImportedTrial], *arguments: Any) -> ImportedTrial | Skipped:
    """Return the trial of a part of a file, or the reason why the part cannot be read."""
    try:
        return make(*arguments)
    except Unreadable as error:
        return Skipped(where, str(error))


class Reader(Protocol):
    """A format. The constructor has no arguments; a reader has no state between files, except ``--map``."""

    name: ClassVar[str]
    """Name on the command line: ``taxtui import NAME``."""

    file_names: ClassVar[tuple[str, ...]] = ()
    """Patterns of file names, for the default ``files``."""

    span_phases: Mapping[str, str] | None = None
    """``--map``: one of ``TIMES`` by the name of a span. None: the format has no spans."""

    def files(self, folder: Path) -> Iterator[Path]:
        """Yield the files below a folder that may contain trials, sorted, by file name alone."""
        return walk(folder, lambda name: any(fnmatchcase(name, pattern) for pattern in self.file_names))

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the file's content is of the format; ``head`` has the first ``HEAD_BYTES``."""
        ...

    def trials(self, path: Path) -> Iterator[ImportedTrial | Skipped]:
        """Yield the trials of a file. A file of the format without trials (a job's summary) yields nothing.

        Raises:
            Unreadable: the rest of the file is invalid. The trials before it count.
        """
        ...
