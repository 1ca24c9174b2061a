"""Redaction of error messages: a recording is made to be shared.

Only messages of taxtui's error classes are recorded; for any other exception only the class. A message may quote a
provider. Four rules replace names of persons, machines and accounts:

- patterns: URLs, e-mail addresses, ARNs, IP addresses, paths, long ids, credentials;
- text in quotation marks or braces, and the word after phrases such as ``for user``;
- tokens with a digit, dot, slash, hyphen, underscore or non-ASCII letter, except numbers and a few public terms;
- names known to the run: the user, the host, and the values of private options.

A plain unquoted word stays, unless the run knows the name: adapters quote every name in messages.
"""

from __future__ import annotations

import functools
import os
import re
import socket
from pathlib import Path
from typing import Final

from taxtui import shipped
from taxtui.errors import TaxtuiError
from taxtui.plan.spec import Plan

SHOWN_OPTIONS: Final = frozenset({"runtime", "isolation", "network", "region", "instance_type", "spot"})
"""Options with recorded values. All other values are recorded as a digest."""
MAX_CHARACTERS: Final = 300

_PATTERNS: Final = [
    (re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s'\"]+", re.IGNORECASE), "<url>"),
    (re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(\.[\w-]+)*"), "<email>"),
    (re.compile(r"\barn:[^\s'\"]+"), "<arn>"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}(/\d+|:\d+)?\b"), "<address>"),
    (re.compile(r"\[?\b[0-9a-f]{0,4}(:[0-9a-f]{0,4}){3,7}\b\]?", re.IGNORECASE), "<address>"),
    (re.compile(r"(?<![\w<])(~|/)[\w.~-]*(/[\w.@~-]+)+"), "<path>"),
    (re.compile(r"\b(?=[A-Za-z0-9+/_=-]*\d)[A-Za-z0-9+/_=-]{12,}\b"), "<id>"),
    (re.compile(r"[\x00-\x1f\x7f-\x9f]+"), " "),
]
_SECRET: Final = re.compile(
    r"\b(\w*(?:pass|secret|token|key|auth|credential)\w*)(\s*[=:]\s*)"
    r"""("[^"]*"|'[^']*'|[^\s'"]+)""",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(
    r"\b(for user|as user|on host|to host|hostname|no such (?:container|image|network|volume):|access denied for"
    r"|network(?= \S+ not found))\s+(?!<)[^\s,;:]+",
    re.IGNORECASE,
)
"""Phrases of docker and SSH before an unquoted name."""
_QUOTED: Final = re.compile(
    r""""(?:\\.|[^"\\])*(?:"|\\?$)|(?<!\w)'[^']*'(?!\w)|“[^“”]*”|‘[^‘’]*’|\{[^{}]*\}"""  # an open " reaches to the end
)
_TOKEN: Final = re.compile(r"<[a-z]+>|[^\s`'\"“”‘’()\[\]{},;:=<>|]+")
_NUMBER: Final = re.compile(
    r"v?\d{1,4}(\.\d{1,4}){1,2}(\+(dfsg|deb)\w{0,4})?|v\d|[-+±]?\d{1,6}([./]\d{1,6})?(ns|us|ms|s|m|h|d|x|%|[KMG]i?B)?"
)
_WORD: Final = re.compile("[A-Za-z]+")
_SYMBOLS: Final = re.compile(r"[!-/:-@\[-`{-~≤≥×→·±−–—]*")
_FIELDS: Final = re.compile(r"[a-z][A-Za-z]*(\.[a-z][A-Za-z]*)+")
_PUBLIC_PATHS: Final = re.compile(
    r"docs/[a-z/-]+\.md|(node|node-role|node\.cloudprovider)\.kubernetes\.io/[a-z-]+", re.IGNORECASE
)
_PUBLIC: Final = frozenset(
    (
        *("agent-sandbox", "back-off", "clean-up", "cloud-init", "control-plane", "ephemeral-storage"),
        *("identity-based", "non-overlapping", "on-demand", "read-only", "self-signed", "set-up", "shutting-down"),
        *("ssh-add", "ssh-keygen", "start-up", "stand-in", "swe-rex", "inspect_ai", "i/o", "and/or"),
        *("affinity/selector", "mountvolume.setup", "kubernetes.io", "e.g", "i.e"),
        *("true", "false", "none", "bash", "sh", "public", "private", "default", "localhost", "root"),
        *shipped.SUBSTRATES,
    )
)
"""Public terms, in lower case."""
_REPEATED: Final = re.compile(r"(<[a-z]+>)([\s,:=]*\1)+")
_SHORTEST_NAME: Final = 3

_names: set[str] = set()


def hide_names_of(plan: Plan) -> None:
    """From now on replace each word of the plan's private options and acquired sandboxes."""
    this_machine()
    for cell in plan.cells:
        options = cell.substrate.options.items()
        for value in (*(value for key, value in options if key not in SHOWN_OPTIONS), cell.acquire.partition(":")[2]):
            _names.update(_names_in(value))


@functools.cache
def this_machine() -> frozenset[str]:
    """Names of this machine and of the user, in lower case. Read at the start of a run, while descriptors are free."""
    variables = (os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER", "HOSTNAME", "HOME"))
    try:
        home = Path.home().name
    except RuntimeError:  # a user without a home
        home = ""
    return _names_in(" ".join((socket.gethostname(), home, *variables)))


def _names_in(text: str) -> frozenset[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return frozenset(word for word in words if len(word) >= _SHORTEST_NAME and word not in _PUBLIC)


def redact(error: BaseException) -> tuple[str, str]:
    """(class name, one line) of an error, fit for a recording."""
    name = type(error).__name__
    return name, scrub(str(error)) if isinstance(error, TaxtuiError) else ""


def scrub(text: str) -> str:
    """One line of at most ``MAX_CHARACTERS``, by the rules above."""
    text = text[: 20 * MAX_CHARACTERS]
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    text = _SECRET.sub(r"\1\2<secret>", text)
    text = _NAMED.sub(r"\1 <name>", text)
    text = _QUOTED.sub(lambda quoted: _unquoted(quoted[0]), text)
    text = _TOKEN.sub(lambda token: _plain(token[0]), text)
    return _REPEATED.sub(r"\1", text).strip()[:MAX_CHARACTERS]


def _unquoted(quoted: str) -> str:
    """Return quoted text with a placeholder, or unchanged if every token is public."""
    opening, closing = quoted[0], quoted[-1] if len(quoted) > 1 and quoted[-1] in "\"'”’}" else ""
    inside = quoted[1 : len(quoted) - len(closing)]
    public = all(token.startswith("<") or _is_public(token) for token in _TOKEN.findall(inside))
    return quoted if public else f"{opening}<name>{closing}"


def _plain(token: str) -> str:
    """Return a plain word, number or public term unchanged, else a placeholder."""
    if token.startswith("<"):
        return token
    word = token.strip(".?!…-–*/\\&$#~^+")  # a dash may stand alone
    if _SYMBOLS.fullmatch(word) or _NUMBER.fullmatch(word) or _may_stay(word):
        return token
    return token.replace(word, "<id>" if any(map(str.isdigit, word)) else "<name>")


def _may_stay(word: str) -> bool:
    lower = word.lower()
    if _is_public(word):
        return True
    if _WORD.fullmatch(word):
        return lower not in _names and lower not in this_machine()
    return bool(_FIELDS.fullmatch(word)) and lower != word  # securityContext.runAsNonRoot; host names have no capitals


def _is_public(word: str) -> bool:
    return word.lower() in _PUBLIC or bool(_PUBLIC_PATHS.fullmatch(word))
