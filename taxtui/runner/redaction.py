"""What may be said of an error in a recording, which is made to be shared.

An allow-list: only messages that taxtui's own classes were given get in, with everything that could name a person,
a machine or an account replaced; of any other exception only the class.
"""

from __future__ import annotations

import re
from typing import Final

from taxtui.errors import TaxtuiError

MAX_CHARACTERS: Final = 300

_REPLACED: Final = [
    (re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"]+", re.IGNORECASE), "<url>"),
    (re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+"), "<email>"),
    (re.compile(r"\barn:[^\s'\"]+"), "<arn>"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b"), "<address>"),
    (re.compile(r"\[?\b[0-9a-f]{0,4}(:[0-9a-f]{0,4}){3,7}\b\]?", re.IGNORECASE), "<address>"),
    (re.compile(r"(?<![\w<])(~|/)[\w.~-]*(/[\w.@~-]+)+"), "<path>"),
    (re.compile(r"\b(?=[A-Za-z0-9+/_=-]*\d)[A-Za-z0-9+/_=-]{12,}\b"), "<id>"),
    (re.compile(r"[\x00-\x1f\x7f-\x9f]+"), " "),
]


def redact(error: BaseException) -> tuple[str, str]:
    """(class name, one line) of an error, fit for a recording."""
    name = type(error).__name__
    return name, scrub(str(error)) if isinstance(error, TaxtuiError) else ""


def scrub(text: str) -> str:
    """One line of at most ``MAX_CHARACTERS`` without addresses, paths, ids or names of accounts."""
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    return text.strip()[:MAX_CHARACTERS]
