"""Finds credentials in commands by their known shapes: a tier may contain other people's commands, never keys.

Other credentials may remain.
"""

from __future__ import annotations

import re
from typing import Final

PLACEHOLDER: Final = "REDACTED"

_NAME: Final = r"(?:api[_-]?key|access[_-]?key|secret|token|passw(?:or)?d|passphrase|credentials?|auth)"
_VALUE: Final = r"(?P<value>'[^'\s$]{6,}'|\"[^\"\s$]{6,}\"|[^\s'\"$;|&()<>{}`\[\],]{6,}(?![\w(\[]))"
_QUOTED: Final = r"['\"](?P<value>[^'\"\s${}<>]{6,})['\"]"
_SHAPES: Final = (
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z ]+ )?PRIVATE KEY-----.*?(?:-----END [A-Z ]*KEY-----|\Z)", re.S)),
    ("an AWS key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})")),
    ("a GitLab token", re.compile(r"\bglpat-[\w-]{20,}")),
    ("an API key", re.compile(r"(?<![A-Za-z0-9])[spr]k[-_](?:[a-z]+[-_])*(?=\w*\d)[A-Za-z0-9_-]{16,}")),
    ("a Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{20,}")),
    ("a Slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("a Google key", re.compile(r"\bAIza[\w-]{30,}")),
    ("a PyPI token", re.compile(r"\bpypi-[\w-]{20,}")),
    ("a JSON web token", re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")),
    ("a password in a URL", re.compile(r"(?<=://)(?P<value>[^\s/:@'\"$]*:[^\s/@'\"$]+)(?=@)")),
    ("a password for curl", re.compile(r"(?<=\s)(?:-u|--user)[ =]?(?P<value>['\"]?[^\s:'\"$]+:[^\s'\"$]+)")),
    (
        "an authorization header",
        re.compile(r"(?i)\bauthorization:\s*(?:bearer |basic |token )?(?P<value>[\w.+/=~-]{6,})"),
    ),
    ("a secret in a variable", re.compile(rf"(?i)(?<![a-z0-9])\w*{_NAME}=(?!=){_VALUE}")),
    ("a secret in an option", re.compile(rf"(?i)(?<=\s)--[\w-]*{_NAME}[ =]{_VALUE}")),
    ("a secret by its name", re.compile(rf"(?i){_NAME}['\"]?\s*[:=]\s*{_QUOTED}")),
)
"""Kinds of credentials with their shapes: shapes of issuers first, then names of variables and options."""


def kinds(text: str) -> list[str]:
    """Return the apparent kinds of credentials in a text, each once."""
    return [kind for kind, shape in _SHAPES if any(_secret(match) != PLACEHOLDER for match in shape.finditer(text))]


def redacted(text: str) -> str:
    """Return the text with a placeholder for each credential. The command will probably fail."""
    for _, shape in _SHAPES:
        text = shape.sub(lambda match: match[0].replace(_secret(match), PLACEHOLDER), text)
    return text


def _secret(match: re.Match[str]) -> str:
    return (match["value"] if "value" in match.re.groupindex else match[0]).strip("'\"")
