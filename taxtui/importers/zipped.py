"""Members of a zip file, those that are compressed with Zstandard too, which Python reads from 3.14 on.

A few kilobytes can unpack to gigabytes. One member has the limit of any document, and all that is unpacked of one file
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
from taxtui.importers.files import MOST_BYTES, unreadable
from taxtui.importers.protocol import Unreadable

ZSTANDARD: Final = 93
"""The compression method's number in a zip file."""
KNOWN_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTANDARD)
LOCAL_HEADER: Final = 30
FREE_BYTES: Final = 64 << 20
"""Unpacked of one file however small it is."""
MOST_RATIO: Final = 200
"""Unpacked beyond that for each byte of the file: logs of agents repeat themselves, but not so often."""


class Archive:
    """A zip file and how much may still be unpacked of it."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read its table of members. Raises ``zipfile.BadZipFile``, ``OSError``."""
        self._zip = zipfile.ZipFile(file)
        self._size = file.seek(0, 2)
        self._left = self._most = FREE_BYTES + MOST_RATIO * self._size

    def members(self) -> dict[str, zipfile.ZipInfo]:
        """The members by name; the last of a name is the one that counts."""
        return {info.filename: info for info in self._zip.infolist()}

    def content(self, info: zipfile.ZipInfo) -> bytes:
        """Unpack one member.

        Raises:
            Unreadable: it is damaged, encrypted or too large; the message holds nothing of it.
            TooMuch: the archive unpacks to more than its limit.
            TaxtuiError: it needs the package ``zstandard``, which is not installed.
        """
        if self._left <= 0:
            raise TooMuch(
                f"it unpacks to more than {self._most >> 20:,} MiB, "
                f"which is {FREE_BYTES >> 20} MiB and {MOST_RATIO} times its size"
            )
        content = _content(self._zip, info)
        self._left -= len(content)
        return content


class TooMuch(Unreadable):
    """Nothing more of an archive is unpacked."""


@contextmanager
def archive(path: Path) -> Iterator[Archive]:
    """Open a zip file. Raises ``Unreadable``: it cannot be read, or is none."""
    try:
        file = open_regular(path)
    except OSError as error:
        raise unreadable(error) from error
    with file:
        try:
            opened = Archive(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise Unreadable("it is no zip file, or was cut off") from error
        yield opened


def is_archive(path: Path) -> bool:
    """Whether a file ends as a zip file does. Raises ``Unreadable``: it cannot be read."""
    try:
        with open_regular(path) as file:
            return zipfile.is_zipfile(file)
    except OSError as error:
        raise unreadable(error) from error


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.file_size > MOST_BYTES:
        raise Unreadable(f"a member is {too_large(MOST_BYTES)}")
    if info.compress_type not in KNOWN_METHODS:
        raise Unreadable("a member of it is compressed in a way that is not known")
    try:
        if info.compress_type == ZSTANDARD:
            return _zstandard(archive, info)
        with archive.open(info) as opened:
            return _bounded(opened)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise Unreadable("a member of it is damaged") from error
    except (NotImplementedError, RuntimeError) as error:  # another version, a password
        raise Unreadable("a member of it is encrypted, or compressed in a way that is not known") from error


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
        raise Unreadable("a member of it is encrypted")
    file.seek(info.header_offset)
    header = file.read(LOCAL_HEADER)
    if len(header) < LOCAL_HEADER or header[:4] != b"PK\x03\x04":
        raise Unreadable("a member of it is damaged")
    file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    try:
        with zstandard.ZstdDecompressor().stream_reader(file.read(info.compress_size)) as opened:
            content = _bounded(opened)
    except zstandard.ZstdError as error:
        raise Unreadable("a member of it is damaged") from error
    if zlib.crc32(content) != info.CRC:
        raise Unreadable("a member of it is damaged")
    return content


def _bounded(opened: IO[bytes]) -> bytes:
    """All that there is: the size in the header is only what a file says of itself."""
    content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Unreadable(f"a member is {too_large(MOST_BYTES)}")
    return content
