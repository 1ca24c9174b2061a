"""Text that others have written, on its way to a terminal: nothing in it steers that, and columns are counted.

Whatever comes from a recording, a scenario, a provider or a person's own arguments passes ``clean``.
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
"""Control, direction and zero-width characters, fillers, selectors and tags that nothing is seen of, and what a file's
name holds that is no text."""
_UPON_OTHERS: Final = frozenset({"Mn", "Me", "Mc"})
"""Categories of what is written upon the character before it."""

_WITHIN_SYLLABLES: Final = re.compile("[\u1160-\u11ff\ud7b0-\ud7fb]")
_WIDE_BY_NOW: Final = re.compile("[\u2630-\u2637\u268a-\u268f\u4dc0-\u4dff\U0001d300-\U0001d356\U0001d360-\U0001d376]")
"""Since Unicode 16, which not every Python knows."""
_USER_INFO: Final = re.compile(r"(?<=://)[^\s/:@]*:[^\s/@]+(?=@)")


def clean(text: str) -> str:
    """Mark each character that a terminal would obey or hide, and mask user and password of a URL."""
    if "://" in text:
        text = _USER_INFO.sub("***", text)
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def clean_lines(text: str) -> str:
    """As ``clean``, but lines stay lines."""
    return "\n".join(map(clean, text.split("\n")))


def is_utf8(text: str) -> bool:
    """Whether an argument or a file's name is text: a byte of it that is not stands in it as half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def width(text: str) -> int:
    """Columns of a terminal: wide characters take two, combining ones and the vowels within a Hangul syllable none."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


@lru_cache(maxsize=4096)  # a table has few characters, and each of them many times
def _columns(character: str) -> int:
    if unicodedata.category(character) in _UPON_OTHERS or _WITHIN_SYLLABLES.match(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" or _WIDE_BY_NOW.match(character) else 1


def widest(texts: Iterable[str]) -> int:
    """The width of the widest one; 0 where there is none."""
    return max(map(width, texts), default=0)


def cut(text: str, columns: int) -> str:
    """The text where it fits, else its beginning and an ellipsis."""
    if width(text) <= columns:
        return text
    return f"{next(_pieces(text, columns - 1))}…"[: max(0, columns)]


def fit(text: str, columns: int) -> str:
    """The text, cut or padded to exactly so many columns."""
    text = cut(text, columns)
    return text + " " * (columns - width(text))


def wrap(text: str, columns: int, indent: str = "") -> list[str]:
    """Lines of at most so many columns, the second and later ones behind ``indent``.

    As ``textwrap.wrap``, which counts characters: broken at spaces, within a word only where it has no line alone.
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
    """The word in pieces of at most so many columns."""
    piece, room = "", columns
    for character in word:
        if width(character) > room:
            yield piece
            piece, room = "", columns
        piece += character
        room -= width(character)
    yield piece
