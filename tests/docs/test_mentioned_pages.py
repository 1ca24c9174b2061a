"""Code refers only to pages that a reader of the repository has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = re.compile(r"(?<![\w*./-])[\w./-]+\.md\b")


def mentions() -> Iterator[tuple[Path, str]]:
    """Each file of the product with each page that it names."""
    for folder in ("costmodel", "taxtui", "scenarios"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".toml", ".tcss"):
                for page in PAGE.findall(path.read_text(encoding="utf-8")):
                    yield path.relative_to(ROOT), page
    for name in ("Makefile", "pyproject.toml"):
        for page in PAGE.findall((ROOT / name).read_text(encoding="utf-8")):
            yield Path(name), page


def test_every_page_that_code_mentions_is_in_the_repository() -> None:
    found = list(mentions())
    assert (Path("costmodel/recording/breakdown.py"), "docs/measurement.md") in found
    assert [(str(path), page) for path, page in found if not (ROOT / page.lstrip("/")).is_file()] == []
