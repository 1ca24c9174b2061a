"""Read the files of one format into a recording. Unreadable files are left out, counted and named."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from costmodel import causes, open_regular
from taxtui.errors import RecordingError, TaxtuiError, UsageError, located
from taxtui.importers import registry
from taxtui.importers.files import Unreadable
from taxtui.importers.names import Names
from taxtui.importers.protocol import HEAD_BYTES, Reader, Skipped
from taxtui.importers.spool import Spool
from taxtui.importers.trial import ImportedTrial
from taxtui.importers.writing import write
from taxtui.terminal_text import clean

MOST_GUESSES: Final = 50
"""Opened files of a folder, to guess a format."""
NAMED: Final = 20
"""Limit of skipped files with their names; the rest is counted."""


@dataclass(slots=True)
class ImportResult:
    """Counts and notes of an import."""

    files: int = 0
    trials: int = 0
    skipped: int = 0  # files and parts of files
    named: list[str] = field(default_factory=list)  # the first skipped files, each with the reason
    unknown: list[str] = field(default_factory=list)  # quantities that the source lacks
    limits: list[str] = field(default_factory=list)  # trajectories by the agent's limit, and failures by cause
    outcomes: Counter[str] = field(default_factory=Counter)


def reader_for(name: str | None, paths: Sequence[Path]) -> Reader:
    """Return the reader of a format; without a name, the reader that recognises the first readable file.

    Raises:
        UsageError: no such format or path, or no reader or several readers recognise the file.
    """
    for path in paths:
        if not path.exists():
            raise UsageError(f"there is no {path}")
    if name is not None:
        return registry.load(name)
    readers = [registry.load(known) for known in registry.names()]
    for path in paths:
        matches = [reader for reader in readers if _recognises(reader, path)]
        if len(matches) > 1:
            several = " and ".join(reader.name for reader in matches)
            raise UsageError(f"{path} could be {several}", fix="say which: taxtui import FORMAT PATH…")
        if matches:
            return matches[0]
    names = ", ".join(reader.name for reader in readers)
    raise UsageError(f"{paths[0]} has an unknown format", fix=f"say which: {names}")


def _recognises(reader: Reader, path: Path) -> bool:
    for number, file in enumerate(_files(reader, path)):
        if number == MOST_GUESSES:
            break
        try:
            with open_regular(file) as opened:
                head = opened.read(HEAD_BYTES) or b""
        except OSError:
            continue
        if reader.recognises(file, head):
            return True
    return False


def _files(reader: Reader, path: Path) -> Iterator[Path]:
    return reader.files(path) if path.is_dir() else iter((path,))


def import_files(
    reader: Reader,
    paths: Sequence[Path],
    out: Path,
    *,
    keep_names: bool = False,
    strict: bool = False,
    progress: Callable[[float], object] = lambda share: None,
) -> ImportResult:
    """Write a recording of all trials in the files. ``progress`` is called with the finished share of the files.

    Raises:
        UsageError: ``out`` exists or cannot be created.
        RecordingError: no trial could be read, or with ``strict`` a file could not be read.
        WriteFailed: the disk is full. After any error there is no ``out``.
    """
    if out.exists():  # before an hour of reading
        raise UsageError(f"{out} exists", fix="choose another name with -o, nothing is overwritten")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"cannot create {out}: there is no such folder", fix="choose another with -o")
    names = Names(keep=keep_names)
    result = ImportResult()
    spool = Spool()
    # A file of two paths counts once. Path.resolve() would raise for a link to itself.
    files = list({os.path.realpath(file): file for path in paths for file in _files(reader, path)}.values())
    for path in files:
        for item in _trials(reader, path):
            if isinstance(item, ImportedTrial):
                spool.add(names.clean(item))
                continue
            where = clean(f"{path}, {item.where}" if item.where else str(path))
            if strict:
                raise Unreadable(f"{where}: {item.why}", fix="without --strict the file is left out")
            result.skipped += 1
            if len(result.named) < NAMED:
                result.named.append(f"{where}: {item.why}")
        result.files += 1
        progress(result.files / len(files))
    if not len(spool):
        raise _nothing_read(reader, result)
    result.unknown = list(missing_quantities(spool))
    result.trials, result.outcomes = len(spool), spool.outcomes
    result.limits = [
        f"{count:,} of {result.trials:,} trajectories ended by {limit}: delivered, not failed"
        for limit, count in sorted(spool.limits.items())
    ]
    result.limits += [
        f"{count:,} of {result.trials:,} trials failed, cause {cause}: {causes.policy_of(cause).treatment} in the model"
        for cause, count in sorted(spool.causes.items())
    ]
    notes = [*result.unknown, *result.limits]
    if result.skipped:
        notes.append(f"{result.skipped:,} files or parts of files left out")
    write(spool, reader.name, notes, out)
    return result


def _trials(reader: Reader, path: Path) -> Iterator[ImportedTrial | Skipped]:
    """Yield the items of a reader; an error becomes a skipped item."""
    try:
        yield from reader.trials(path)
    except Unreadable as error:
        yield Skipped("", str(error))
    except OSError as error:
        yield Skipped("", f"not readable: {error.strerror}")
    except TaxtuiError:
        raise
    except Exception as error:  # a defect of the reader
        yield Skipped("", f"unexpected {located(error)}: report the defect to the author of the reader {reader.name}")


def _nothing_read(reader: Reader, result: ImportResult) -> TaxtuiError:
    if not result.files:
        return RecordingError(f"no file here can be {reader.name}'s", fix="formats: `taxtui import --help`")
    count = f"{result.files:,} file{'s' * (result.files != 1)}"
    if result.named:
        return RecordingError(f"nothing could be read of {count}, first {result.named[0]}")
    return RecordingError(f"no trial in {count}")


def missing_quantities(spool: Spool) -> Iterator[str]:
    """Yield a line per missing quantity and reason, with the number of trials where some trials have the quantity."""
    total = len(spool)
    for (quantity, why, partly), count in sorted(spool.unknown.items()):
        where = "" if count == total else f" ({count:,} of {total:,} trials)"
        yield f"{quantity} {'partly ' * partly}unknown: {why}{where}"
