"""Copies a text for a person, and says how to get at it where the terminal does not take it."""

from __future__ import annotations

import shlex
from typing import Any, Final

from textual.app import App

from taxtui import folders
from taxtui.errors import UsageError

COPIED: Final = "copied.txt"
"""In the cache: what was copied last."""


def copy(app: App[Any], text: str, told: str) -> None:
    """Put ``text`` on the clipboard and into a file; say ``told``, and where the file is.

    A terminal never answers whether it took what was copied: some do not, and tmux only where it is told to.
    """
    app.copy_to_clipboard(text)
    try:
        folder = folders.cache()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / COPIED
        path.write_text(text, encoding="utf-8", errors="replace")
    except (OSError, UsageError):
        kept = "select it with the mouse and shift held"
    else:
        kept = f"cat {shlex.quote(str(path))}"
    app.notify(f"{told}\nNot on the clipboard? {kept}", title="Copied")
