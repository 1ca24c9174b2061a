"""Origin of a page's numbers: files with digests, software, and the commands that repeat the page."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from costmodel import Follower, Recording
from taxtui.terminal_text import clean, cut

MOST_COLUMNS = 120


def origin_of(path: Path, source: Recording) -> dict[str, Any]:
    """Return the name of a recording without its folder, its digest, and the facts of its measurement."""
    with Follower(path) as follower:
        follower.poll(1)
        header = follower.header
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    scenario = header.scenario if header else {}
    facts = {"SHA-256": digest, "run": source.run_id, "counted trials": f"{source.trials:,}"}
    facts |= {name: str(scenario[name]) for name in ("name", "seed") if scenario.get(name)}
    facts |= {name.replace("_", " "): version for name, version in sorted((header.software if header else {}).items())}
    return {
        "name": _short(path.name),
        "whole": source.whole,
        "facts": {_short(name): _short(fact) for name, fact in facts.items()},
    }


def commands(names: Sequence[str], options: Sequence[str] = (), command: str = "report") -> list[tuple[str, str]]:
    """Return commands for the folder of the recordings, each with its purpose.

    ``taxtui command`` with ``options`` made the page.
    """
    files = " ".join(map(shlex.quote, names))
    arguments = "".join(f" {shlex.quote(clean(option))}" for option in options)
    return [
        (f"taxtui {command} {files}{arguments} --html page.html", "Make this page."),
        (f"taxtui recordings verify {files}", "Check every byte of the recordings."),
        (f"taxtui export {files} --format csv -o trials.csv", "Export every trial."),
    ]


def _short(text: str) -> str:
    return cut(clean(text), MOST_COLUMNS)
