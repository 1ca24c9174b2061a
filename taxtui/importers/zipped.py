"""Members of a zip file, also with Zstandard: Python reads it from 3.14 on, before with ``zipfile_zstd``.

A few kilobytes can unpack to gigabytes. A member has the limit of any document. The sum of a file's unpacked members
has a limit that grows with the file.
"""

from __future__ import annotations

import importlib
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from costmodel import open_regular, too_large
from taxtui import installed
from taxtui.errors import TaxtuiError
from taxtui.importers.files import MOST_BYTES, Unreadable, unreadable

ZSTANDARD: Final = 93
"""The compression method's number in a zip file."""
KNOWN_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTANDARD)
PIECE_BYTES: Final = 4096
FREE_BYTES: Final = 64 << 20
"""Bytes that any file may unpack to."""
MOST_RATIO: Final = 200
"""Further unpacked bytes for each byte of the file. Logs of agents repeat themselves less often."""


class Archive:
    """A zip file with a limit of unpacked bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read the table of members. Raises ``zipfile.BadZipFile``, ``OSError``."""
        self._zip = zipfile.ZipFile(file)
        self._size = file.seek(0, 2)
        self._remaining = self._most = FREE_BYTES + MOST_RATIO * self._size

    def members(self) -> dict[str, zipfile.ZipInfo]:
        """Return the members by name; the last member of a name counts."""
        return {info.filename: info for info in self._zip.infolist()}

    def content(self, info: zipfile.ZipInfo) -> bytes:
        """Unpack a member.

        Raises:
            Unreadable: damaged, encrypted or too large; the message quotes nothing.
            TooMuch: the archive unpacks to more than the limit.
            TaxtuiError: the package ``zipfile-zstd`` is not installed.
        """
        if self._remaining <= 0:
            raise TooMuch(
                f"more than {self._most >> 20:,} MiB unpacked: {FREE_BYTES >> 20} MiB and {MOST_RATIO} times the size"
            )
        content = _content(self._zip, info)
        self._remaining -= len(content)
        return content


class TooMuch(Unreadable):
    """The archive unpacks to more than its limit: the rest is left out."""


@contextmanager
def archive(path: Path) -> Iterator[Archive]:
    """Open a zip file. Raises ``Unreadable``: no zip file, or not readable."""
    try:
        file = open_regular(path)
    except OSError as error:
        raise unreadable(error) from error
    with file:
        try:
            opened = Archive(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise Unreadable("no zip file, or cut off") from error
        yield opened


def is_archive(path: Path) -> bool:
    """Return whether a file ends like a zip file. Raises ``Unreadable``: the file is not readable."""
    try:
        with open_regular(path) as file:
            return zipfile.is_zipfile(file)
    except OSError as error:
        raise unreadable(error) from error


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.file_size > MOST_BYTES:
        raise Unreadable(f"a member is {too_large(MOST_BYTES)}")
    if info.compress_type not in KNOWN_METHODS:
        raise Unreadable("a member has an unknown compression")
    if info.compress_type == ZSTANDARD and sys.version_info < (3, 14):
        _teach_zipfile()
    try:
        with archive.open(info) as opened:
            # At most the size in the header; the checksum has to fit. Zstandard unpacks each piece as a whole.
            return b"".join(iter(lambda: opened.read(PIECE_BYTES), b""))
    except (NotImplementedError, RuntimeError) as error:  # another version, a password
        raise Unreadable("a member is encrypted, or has an unknown compression") from error
    except Exception as error:  # each decompressor has its own class
        raise Unreadable("a member is damaged") from error


def _teach_zipfile() -> None:
    try:
        importlib.import_module("zipfile_zstd")
    except ImportError as error:
        raise TaxtuiError(
            "this log is compressed with Zstandard, and the package zipfile-zstd is not installed",
            fix=installed.extra_command("import"),
        ) from error
