"""Members of a zip file, also with Zstandard: Python reads it from 3.14 on, before with ``zipfile_zstd``."""

from __future__ import annotations

import importlib
import os
import sys
import zipfile
from typing import IO, Final

from costmodel import too_large
from taxtui import installed
from taxtui.errors import TaxtuiError
from taxtui.importers.files import MOST_BYTES, Unreadable

ZSTANDARD: Final = 93
"""The compression method's number in a zip file."""
KNOWN_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTANDARD)
PIECE_BYTES: Final = 4096
FREE_BYTES: Final = 64 << 20
MOST_RATIO: Final = 200
"""A file may unpack to ``FREE_BYTES``, and ``MOST_RATIO`` bytes for each byte: kilobytes can unpack to gigabytes."""


class TooMuch(Unreadable):
    """The archive unpacks to more than its limit: the rest is left out."""


class Archive(zipfile.ZipFile):
    """A zip file with limits of unpacked bytes: of a member as of any document, and of all members together."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read the table of members. Raises ``Unreadable``: no zip file, or cut off."""
        try:
            super().__init__(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise Unreadable("no zip file, or cut off") from error
        self._remaining = self._most = FREE_BYTES + MOST_RATIO * file.seek(0, os.SEEK_END)

    def content(self, name: str) -> bytes:
        """Unpack a member.

        Raises:
            Unreadable: damaged, encrypted or too large; the message quotes nothing.
            TooMuch: the archive unpacks to more than the limit.
            TaxtuiError: the package ``zipfile-zstd`` is not installed.
        """
        info = self.getinfo(name)
        if self._remaining <= 0:
            raise TooMuch(f"more than {self._most >> 20:,} MiB unpacked")
        if info.file_size > MOST_BYTES:
            raise Unreadable(f"a member is {too_large(MOST_BYTES)}")
        if info.compress_type not in KNOWN_METHODS:
            raise Unreadable("a member has an unknown compression")
        if info.compress_type == ZSTANDARD and sys.version_info < (3, 14):
            _teach_zipfile()
        try:
            with self.open(info) as opened:
                # At most the size in the header; the checksum has to fit. Zstandard unpacks each piece as a whole.
                content = b"".join(iter(lambda: opened.read(PIECE_BYTES), b""))
        except Exception as error:  # each decompressor has its own class
            raise Unreadable("a member is damaged") from error
        self._remaining -= len(content)
        return content


def _teach_zipfile() -> None:
    try:
        importlib.import_module("zipfile_zstd")
    except ImportError as error:
        raise TaxtuiError(
            "this log is compressed with Zstandard, and the package zipfile-zstd is not installed",
            fix=installed.extra_command("import"),
        ) from error
