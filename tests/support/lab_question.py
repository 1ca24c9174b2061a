"""The page docs/lab-question.md: what its commands print, and how to put that in anew.

``python -m tests.support.lab_question`` runs its commands and rewrites what it shows of them.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from taxtui.cli import app

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/lab-question.md"
DEMAND: Final = ROOT / "scenarios/demands/lab-question.toml"
_SHOWN: Final = re.compile(r"```console\n\$ (taxtui [^\n]*)\n```\n\n```text\n(.*?)```", re.DOTALL)


def shown() -> list[tuple[str, str]]:
    """Each command of the page, and what it shows of its output."""
    return _SHOWN.findall(PAGE.read_text(encoding="utf-8"))


def told(command: str) -> str:
    """The part of a command's output that the page shows: up to the first note, or the first heading."""
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    before = re.split(r"^(?:–|Each cause|Each input alone)", result.stdout, maxsplit=1, flags=re.MULTILINE)[0]
    return "\n".join(line.rstrip() for line in before.strip().splitlines()) + "\n"


def redrawn() -> str:
    """The page with the demand and the outputs of today."""
    text = PAGE.read_text(encoding="utf-8")
    demand = DEMAND.read_text(encoding="utf-8")
    text = re.sub(r"```toml\n.*?```", lambda _: f"```toml\n{demand}```", text, count=1, flags=re.DOTALL)
    return _SHOWN.sub(lambda found: f"```console\n$ {found[1]}\n```\n\n```text\n{told(found[1])}```", text)


if __name__ == "__main__":
    PAGE.write_text(redrawn(), encoding="utf-8")
