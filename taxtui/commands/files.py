"""The files on a command line: recordings to read, and new files to write."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from taxtui.errors import RecordingError, UsageError, WriteFailed

if TYPE_CHECKING:
    from costmodel import Published, Recording, Reference

LAST: Final = "last"
"""Name of the last written recording in the folder of `taxtui run`."""


def find_recording(name: str) -> Path:
    """Return the path of a recording or of published latencies: a local path, ``last``, or the name of a shipped file.

    Raises:
        RecordingError: the file does not exist.
    """
    if (path := Path(name)).exists():
        return path
    if name == LAST:
        from taxtui.live import catalogue

        if recordings := catalogue.readable():
            return recordings[0].path
        raise RecordingError("there is no recording yet", fix="make one: taxtui run")
    if not path.is_absolute() and ".." not in path.parts:
        from taxtui.plan.scenario import bundled

        within = name.removeprefix("./").removeprefix("scenarios/")
        places = (within, f"published/{within}", f"published/{within}.toml", f"../{name}", f"../recordings/{name}")
        for shipped in map(bundled, places):
            if shipped is not None:
                return shipped
    raise RecordingError(f"there is no {name}, neither here nor among what ships with taxtui")


def load_recording(name: str) -> Recording | Published:
    """Read a recording or a file of published latencies.

    Raises:
        RecordingError: the file does not exist.
        costmodel.errors.SourceError: the file cannot be projected.
    """
    [recording] = load_recordings([name])
    return recording


def load_recordings(names: Sequence[str]) -> list[Recording | Published]:
    """Read several files, in their order. Raises as ``load_recording``."""
    from costmodel import load

    return [load(find_recording(name)) for name in names]


def load_reference(name: str) -> Reference:
    """Return the dispatch of the recording ``--reference``, which bounds unknown dispatch.

    Raises:
        RecordingError: the file does not exist.
        UsageError: the file has published latencies.
        costmodel.errors.CostModelError: the recording cannot be read, or has no dispatch.
    """
    from costmodel import Recording, reference_of

    if not isinstance(recording := load_recording(name), Recording):
        raise UsageError(f"--reference {name}: published latencies have no dispatch", fix="give a recording")
    return reference_of([recording])


def write_new_file(pieces: Iterable[bytes], path: Path, option: str) -> None:
    """Write a new file: all pieces, or no file. ``option``: the option with the file's name.

    Raises:
        UsageError: the file exists, or its folder does not take a file.
        WriteFailed: the disk is full or gone; the file is removed.
    """
    remaining = iter(pieces)
    first = next(remaining, b"")  # a damaged recording is refused before the file exists
    try:
        file = path.open("xb")
    except FileExistsError:
        raise _exists(path, option) from None
    except OSError as error:
        raise UsageError(f"cannot create {path}: {error.strerror}", fix=f"choose another with {option}") from error
    try:
        with file:
            file.write(first)
            file.writelines(remaining)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise WriteFailed(f"cannot write {path}: {error.strerror}", fix="nothing of it was kept") from error
        raise


def require_absent(path: Path, option: str) -> None:
    """Raise the errors of ``write_new_file`` before a long computation."""
    if os.path.lexists(path):  # also a link to nothing
        raise _exists(path, option)
    if not path.absolute().parent.is_dir():
        raise UsageError(f"cannot create {path}: there is no folder {path.parent}", fix=f"choose another with {option}")


def require_empty_folder(path: Path, option: str) -> None:
    """Make a folder, or accept an empty one. Raises ``UsageError``: the folder has files, or cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        empty = next(path.iterdir(), None) is None
    except OSError as error:
        raise UsageError(f"cannot use {path}: {error.strerror}", fix=f"choose another folder with {option}") from error
    if not empty:
        raise UsageError(f"{path} is not empty", fix=f"choose another folder with {option}, nothing is overwritten")


def _exists(path: Path, option: str) -> UsageError:
    return UsageError(f"{path} exists", fix=f"choose another name with {option}, nothing is overwritten")
