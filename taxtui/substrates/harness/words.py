"""What harnesses and docker's compose say when something fails, in one line. Plain data in, nothing is called."""

from __future__ import annotations

from typing import Final

_FIXES: Final = {
    "No such image": "taxtui setup",
    "pull access denied": "taxtui setup",
    "all predefined address pools have been fully subnetted": "fewer at once, or more address pools for docker",
    "could not find an available, non-overlapping": "fewer at once, or more address pools for docker",
    "Cannot connect to the Docker daemon": "start docker",
    "'compose' is not a docker command": "install docker's compose plugin, 2.21 or newer",
    "unknown shorthand flag: 'p'": "install docker's compose plugin, 2.21 or newer",
}
"""Words in what it says → what helps."""


def last_words(text: str, error: BaseException) -> str:
    """The last line that has something in it, with the exception's name where it has no words."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def compose_fix(text: str) -> str:
    """What helps, where that is known."""
    return next((fix for words, fix in _FIXES.items() if words in text), "")
