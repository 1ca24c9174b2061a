"""Members of a zip file, also with Zstandard, which Python reads from 3.14 on.

A few kilobytes can unpack to gigabytes. A member has the limit of any document. The sum of a file's unpacked members
has a limit that grows with the file.
"""

from __future__ import annotations

import zipfile
import zlib
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
LOCAL_HEADER: Final = 30
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
            TaxtuiError: the package ``zstandard`` is not installed.
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
    try:
        if info.compress_type == ZSTANDARD:
            return _zstandard(archive, info)
        with archive.open(info) as opened:
            return _bounded(opened)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise Unreadable("a member is damaged") from error
    except (NotImplementedError, RuntimeError) as error:  # another version, a password
        raise Unreadable("a member is encrypted, or has an unknown compression") from error


def _zstandard(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    try:
        import zstandard
    except ImportError as error:
        raise TaxtuiError(
            "this log is compressed with Zstandard, and the package zstandard is not installed",
            fix=installed.extra_command("import"),
        ) from error
    file = archive.fp
    if file is None or info.flag_bits & 1:
        raise Unreadable("a member is encrypted")
    file.seek(info.header_offset)
    header = file.read(LOCAL_HEADER)
    if len(header) < LOCAL_HEADER or header[:4] != b"PK\x03\x04":
        raise Unreadable("a member is damaged")
    file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    try:
        with zstandard.ZstdDecompressor().stream_reader(file.read(info.compress_size)) as opened:
            content = _bounded(opened)
    except zstandard.ZstdError as error:
        raise Unreadable("a member is damaged") from error
    if zlib.crc32(content) != info.CRC:
        raise Unreadable("a member is damaged")
    return content


def _bounded(opened: IO[bytes]) -> bytes:
    """Read a member with a limit, because the size in the header may be wrong."""
    content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Unreadable(f"a member is {too_large(MOST_BYTES)}")
    return content
