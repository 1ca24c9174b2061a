"""What may be said of an error in a recording, which is made to be shared.

An allow-list twice over. Only messages that taxtui's own classes were given get in, of any other exception only the
class. And of such a message, which may quote a provider, only the words that ``words.txt`` has, and small numbers: all
else could name a person, a machine or an account. Those are the words of our own messages and pages, of the operating
system's errors and of the providers' codes; ``python -m tests.support.vocabulary`` collects them.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Final

from taxtui.errors import TaxtuiError

MAX_CHARACTERS: Final = 300
WORDS: Final = Path(__file__).with_name("words.txt")

_KINDS: Final = [  # what tells by its shape what it is, so that a reader knows what is missing
    (re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"]+", re.IGNORECASE), "<url>"),
    (re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)*"), "<email>"),
    (re.compile(r"\barn:[^\s'\"]+"), "<arn>"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}(/\d+|:\d+)?\b"), "<address>"),
    (re.compile(r"\[?\b[0-9a-f]{0,4}(:[0-9a-f]{0,4}){3,7}\b\]?", re.IGNORECASE), "<address>"),
    (re.compile(r"(?<![\w<])(~|/)[\w.~-]*(/[\w.@~-]+)+"), "<path>"),
    (re.compile(r"\b(?=[A-Za-z0-9+/_=-]*\d)[A-Za-z0-9+/_=-]{12,}\b"), "<id>"),
    (re.compile(r"[\x00-\x1f\x7f-\x9f]+"), " "),
]
_SECRET: Final = re.compile(r"\b(\w*(?:pass|secret|token|key|auth|credential)\w*)(\s*[=:]\s*)\S+", re.IGNORECASE)
_TOKEN: Final = re.compile(r"<[a-z]+>|[^\s`'\"“”‘’()\[\]{},;:=<>|]+")
_NUMBER: Final = re.compile(
    r"v?\d{1,4}(\.\d{1,4}){1,2}|v\d|[-+±]?\d{1,6}([./]\d{1,6})?(ns|us|ms|s|m|h|d|x|%|[KMG]i?B)?"
)
_CAMEL: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_FIELDS: Final = re.compile(r"[a-z]\w*(\.[a-z]\w*)*\.[a-z]\w*")
_REPEATED: Final = re.compile(r"(<[a-z]+>)([\s,:=]*\1)+")


def redact(error: BaseException) -> tuple[str, str]:
    """(class name, one line) of an error, fit for a recording."""
    name = type(error).__name__
    return name, scrub(str(error)) if isinstance(error, TaxtuiError) else ""


def scrub(text: str) -> str:
    """One line of at most ``MAX_CHARACTERS`` without anything that is not known to be a plain word."""
    text = text[: 20 * MAX_CHARACTERS]
    for pattern, replacement in _KINDS:
        text = pattern.sub(replacement, text)
    text = _SECRET.sub(r"\1\2<secret>", text)
    text = _TOKEN.sub(lambda found: _plain(found[0]), text)
    return _REPEATED.sub(r"\1", text).strip()[:MAX_CHARACTERS]


def _plain(token: str) -> str:
    """The token where it is a known word or a small number, else what stands for it."""
    if token.startswith("<"):
        return token
    word = token.strip(".?!…-–*/\\&$#~^+")  # a dash may stand alone
    if not word or _NUMBER.fullmatch(word) or known(word):
        return token
    return token.replace(word, "<id>" if any(map(str.isdigit, word)) else "<name>")


def known(word: str) -> bool:
    """Whether a word is in the vocabulary, or every part of an identifier or of the path of a field.

    Words that a slash or a dot joins are known as a whole only: two plain words may name a namespace and a pod.
    """
    words = vocabulary()
    if word.lower() in words:
        return True
    if _FIELDS.fullmatch(word) and not word.islower():  # securityContext.runAsNonRoot; a host's name has no capitals
        return all(map(known, word.split(".")))
    parts = _CAMEL.findall(word)
    return len(parts) > 1 and "".join(parts) == word and all(part.lower() in words for part in parts)


@functools.cache
def vocabulary() -> frozenset[str]:
    """Every plain word. A run reads them before it begins: later there may be no descriptor left to do so."""
    return frozenset(WORDS.read_text(encoding="utf-8").split())
