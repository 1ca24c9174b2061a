"""Reads the files of one format into a recording; a broken one among thousands is left out and named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from costmodel import open_regular, policy_of
from taxtui.errors import RecordingError, TaxtuiError, UsageError, located
from taxtui.importers import registry
from taxtui.importers.names import Names
from taxtui.importers.protocol import HEAD_BYTES, Asked, ImportedTrial, Reader, Skipped, Unreadable
from taxtui.importers.spool import Spool
from taxtui.importers.writing import write
from taxtui.terminal_text import clean

MOST_GUESSES: Final = 50
"""Files of a folder that are looked at to guess a format."""
NAMED: Final = 20
"""Skipped files that are named; the rest is counted."""


@dataclass(slots=True)
class Imported:
    """Result of an import."""

    run_id: str = ""
    files: int = 0  # read as far as they could be
    trials: int = 0
    skipped: int = 0  # files and pieces of files
    named: list[str] = field(default_factory=list)  # the first of those, each with its reason
    unknown: list[str] = field(default_factory=list)  # quantities that the source lacks
    limits: list[str] = field(default_factory=list)  # trajectories by the agent's limit, and failures by cause
    outcomes: Counter[str] = field(default_factory=Counter)


class ImportProgress:
    """Observer of an import; silent by default."""

    def file(self, path: Path, trials: int) -> None:
        """A file is done; ``trials`` are known by now."""

    def trial(self, trials: int) -> None:
        """One more trial of a file."""


def reader_for(name: str | None, paths: Sequence[Path]) -> Reader:
    """The reader of the format, or of the one that the content of the first readable file shows.

    Raises:
        UsageError: no such format or path, or the content shows none or several.
    """
    for path in paths:
        if not path.exists():
            raise UsageError(f"there is no {path}")
    if name is not None:
        return registry.load(name)
    readers = [registry.load(known) for known in registry.names()]
    for path in paths:
        found = [reader for reader in readers if _shows(reader, path)]
        if len(found) > 1:
            several = " and ".join(reader.name for reader in found)
            raise UsageError(f"{path} could be {several}", fix="say which: taxtui import FORMAT PATH…")
        if found:
            return found[0]
    names = ", ".join(reader.name for reader in readers)
    raise UsageError(f"{paths[0]} is of no format that this version knows", fix=f"say which: {names}")


def _shows(reader: Reader, path: Path) -> bool:
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


def files_of(reader: Reader, paths: Sequence[Path]) -> Iterator[Path]:
    """All files that may hold trials, in the order of the paths.

    Raises:
        UsageError: one of the paths lies within another: its trials would count twice.
    """
    resolved = [path.resolve() for path in paths]
    for index, one in enumerate(resolved):
        for other in resolved[:index]:
            if one == other or one in other.parents or other in one.parents:
                raise UsageError(f"{paths[index]} is given twice, its trials would count twice")
    for path in paths:
        yield from _files(reader, path)


def import_files(
    reader: Reader,
    paths: Sequence[Path],
    out: Path,
    asked: Asked,
    *,
    keep_names: bool = False,
    strict: bool = False,
    progress: ImportProgress | None = None,
) -> Imported:
    """Write a recording of all trials in the files; what became of it.

    Raises:
        UsageError: an option that the format does not take, ``out`` exists, or a path is given twice.
        RecordingError: nothing could be read, or with ``strict`` a file could not.
        WriteFailed: the disk is full; there is no ``out`` then, as after any error.
    """
    if asked.span_phases and not reader.takes_map:
        raise UsageError(f"{reader.name} has no spans: --map means nothing to it")
    if out.exists():  # before an hour of reading, not after it
        raise UsageError(f"{out} exists", fix="choose another name with -o, nothing is overwritten")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"cannot create {out}: there is no such folder", fix="choose another with -o")
    progress = progress or ImportProgress()
    names = Names(keep=keep_names)
    result = Imported()
    with Spool() as spool:
        for path in files_of(reader, paths):
            result.files += 1
            for found in _trials(reader, path, asked):
                if isinstance(found, ImportedTrial):
                    spool.add(names.clean(found))
                    progress.trial(len(spool))
                    continue
                where = clean(f"{path}, {found.where}" if found.where else str(path))
                if strict:
                    raise Unreadable(f"{where}: {found.why}", fix="without --strict it would be left out")
                result.skipped += 1
                if len(result.named) < NAMED:
                    result.named.append(f"{where}: {found.why}")
            progress.file(path, len(spool))
        if not len(spool):
            raise _nothing(reader, result)
        result.unknown = list(missing_quantities(spool))
        result.trials, result.outcomes = len(spool), spool.outcomes
        result.limits = [
            f"{count:,} of {result.trials:,} trajectories ended by {limit}: delivered, not failed"
            for limit, count in sorted(spool.limits.items())
        ]
        result.limits += [
            f"{count:,} of {result.trials:,} trials failed, cause {cause}: {policy_of(cause).treatment} in the model"
            for cause, count in sorted(spool.causes.items())
        ]
        notes = [*result.unknown, *result.limits]
        if result.skipped:
            notes.append(f"{result.skipped:,} files or pieces of them left out")
        result.run_id = write(spool, reader.name, notes, out)
    return result


def _trials(reader: Reader, path: Path, asked: Asked) -> Iterator[ImportedTrial | Skipped]:
    """The items of a reader; an unreadable item becomes a skipped item."""
    try:
        yield from reader.trials(path, asked)
    except Unreadable as error:
        yield Skipped("", str(error))
    except OSError as error:
        yield Skipped("", f"it cannot be read: {error.strerror}")
    except TaxtuiError:
        raise
    except Exception as error:  # a reader that does not keep to the protocol
        yield Skipped("", f"unexpected {located(error)}: report it to the author of the reader {reader.name}")


def _nothing(reader: Reader, result: Imported) -> TaxtuiError:
    if not result.files:
        return RecordingError(f"no file here can be {reader.name}'s", fix="`taxtui import --help` says what is read")
    if result.named:
        return RecordingError(f"nothing could be read of {result.files:,} files, first {result.named[0]}")
    return RecordingError(f"{result.files:,} files hold no trial")


def missing_quantities(spool: Spool) -> Iterator[str]:
    """One line per missing quantity and reason, with the number of trials where some trials have the quantity."""
    total = len(spool)
    for (quantity, why, partly), count in sorted(spool.unknown.items()):
        where = "" if count == total else f" ({count:,} of {total:,} trials)"
        yield f"{quantity} {'partly ' * partly}unknown: {why}{where}"
