"""Foreign text in a terminal: harmless characters, and widths in columns.

Text from a recording, a scenario, a provider or a command line passes ``clean``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control, direction, zero-width and invisible characters, and bytes outside UTF-8 in a file's name."""
_COMBINING: Final = frozenset({"Mn", "Me", "Mc"})
"""Unicode categories of combining characters."""
_WITHIN_SYLLABLES: Final = re.compile("[\u1160-\u11ff\ud7b0-\ud7fb]")
_NEWLY_WIDE: Final = re.compile("[\u2630-\u2637\u268a-\u268f\u4dc0-\u4dff\U0001d300-\U0001d356\U0001d360-\U0001d376]")
"""Characters that are wide since Unicode 16, missing in the table of an older Python."""
_USER_INFO: Final = re.compile(r"(?<=://)[^\s/:@]*:[^\s/@]+(?=@)")


def clean(text: str) -> str:
    """Replace each character that a terminal would obey or hide, and mask user and password of a URL."""
    if "://" in text:
        text = _USER_INFO.sub("***", text)
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def clean_lines(text: str) -> str:
    """As ``clean``, but keep line breaks."""
    return "\n".join(map(clean, text.split("\n")))


def width(text: str) -> int:
    """Return the columns in a terminal: two for wide characters, none for combining characters and Hangul vowels."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


@lru_cache(maxsize=4096)  # a table repeats few characters
def _columns(character: str) -> int:
    if unicodedata.category(character) in _COMBINING or _WITHIN_SYLLABLES.match(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" or _NEWLY_WIDE.match(character) else 1


def widest(texts: Iterable[str]) -> int:
    """Return the width of the widest text; 0 without texts."""
    return max(map(width, texts), default=0)


def cut(text: str, columns: int) -> str:
    """Return a fitting text, or the beginning of a longer text with an ellipsis."""
    if width(text) <= columns:
        return text
    return f"{next(_pieces(text, columns - 1))}…"[: max(0, columns)]


def fit(text: str, columns: int) -> str:
    """Return the text, cut or padded to a width."""
    text = cut(text, columns)
    return text + " " * (columns - width(text))


def wrap(text: str, columns: int, indent: str = "") -> list[str]:
    """Break a text into lines of at most ``columns``; later lines begin with ``indent``.

    As ``textwrap.wrap``, but by columns instead of characters: only a word longer than a line is broken.
    """
    lines: list[str] = []
    line = ""
    for chunk in re.findall(r"\s*\S+", text):
        if width(line) + width(chunk) <= columns:
            line += chunk
            continue
        lines += [line] if line else []
        *full, line = (f"{indent}{piece}" for piece in _pieces(chunk.lstrip(), columns - width(indent)))
        lines += full
    return [*lines, line] if line else lines


def _pieces(word: str, columns: int) -> Iterator[str]:
    """Break a word into pieces of at most ``columns``."""
    piece, room = "", columns
    for character in word:
        if width(character) > room:
            yield piece
            piece, room = "", columns
        piece += character
        room -= width(character)
    yield piece
