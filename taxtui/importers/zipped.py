"""Members of a zip file, those that are compressed with Zstandard too, which Python reads from 3.14 on."""

from __future__ import annotations

import zipfile
import zlib
from typing import IO, Final

from taxtui import installed
from taxtui.errors import TaxtuiError
from taxtui.importers.files import MOST_BYTES
from taxtui.importers.protocol import Unreadable

ZSTANDARD: Final = 93
"""The compression method's number in a zip file."""
LOCAL_HEADER: Final = 30


def member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The content of one member.

    Raises:
        Unreadable: it is damaged, encrypted or too large; the message holds nothing of it.
        TaxtuiError: it needs the package ``zstandard``, which is not installed.
    """
    if info.file_size > MOST_BYTES:
        raise Unreadable(f"a member is larger than {MOST_BYTES >> 20} MiB")
    try:
        if info.compress_type == ZSTANDARD:
            return _zstandard(archive, info)
        with archive.open(info) as opened:
            return _bounded(opened)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise Unreadable("a member of it is damaged") from error
    except (NotImplementedError, RuntimeError) as error:  # another method, a password
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
        raise Unreadable(f"a member is larger than {MOST_BYTES >> 20} MiB")
    return content
