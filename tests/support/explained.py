"""The lines of an answer that README and the page on numbers explain: written as the command prints them.

``make screenshots`` runs it after the numbers have moved; a test says where they have.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

COMMAND: Final = "taxtui project recordings/run.msgpack --trajectories 1000000 --workers 500 --full"
WORKS: Final = ("T1 50 exec", "T1 50 session", "T2 50 session")
ROW: Final = ("docker:runc", "T1 50 exec")


def printed() -> list[str]:
    """What the command prints on 80 columns."""
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(COMMAND)],
        env={**os.environ, "COLUMNS": "80"},
        check=True,
        capture_output=True,
        text=True,
    )
    return [line.rstrip() for line in done.stdout.splitlines()]


def answer(lines: list[str]) -> list[str]:
    """Head and rule of the answer's table, and the works that are explained."""
    head = next(place for place, line in enumerate(lines) if line.startswith("tier n mode"))
    works = [next(line for line in lines[head:] if line.startswith(work)) for work in WORKS]
    return [lines[head], lines[head + 1], *works]


def row(lines: list[str]) -> list[str]:
    """Head and the one row of the long table that is explained."""
    head = next(place for place, line in enumerate(lines) if re.match(r"sandbox +trajectory", line))
    found = next(
        place
        for place in range(head, len(lines))
        if lines[place].startswith(ROW[0]) and lines[place + 1].startswith(ROW[1])
    )
    return [*lines[head : head + 2], *lines[found : found + 2]]


def with_block(page: str, begins: str, lines: list[str]) -> str:
    """The page with these lines in its text block that has a line which begins so."""
    block = re.compile(rf"```text\n(?:(?!```)(?s:.))*?^{re.escape(begins)}(?s:.)*?```", re.MULTILINE)
    assert block.search(page), begins
    return block.sub(lambda _: "\n".join(["```text", *lines, "```"]), page, count=1)


def main() -> None:
    """Write both pages."""
    lines = printed()
    told = answer(lines)
    asked = next(line for line in lines if line.startswith("1,000,000 trajectories"))
    for name, blocks in (
        ("README.md", {"T2 50 session": told}),
        ("docs/reading-the-numbers.md", {"T2 50 session": [asked, told[2], told[4]], "sandbox": row(lines)}),
    ):
        text = Path(name).read_text(encoding="utf-8")
        for begins, block in blocks.items():
            text = with_block(text, begins, block)
        Path(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
