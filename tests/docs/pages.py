"""The pages that people read: where they are, and the blocks of code in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
README: Final = ROOT / "README.md"
PAGES: Final = (
    README,
    *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "recordings/README.md")),
    *sorted(DOCS.rglob("*.md")),
)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path | str) -> str:
    """A page, by its path or its name under docs/."""
    return (page if isinstance(page, Path) else DOCS / page).read_text(encoding="utf-8")


def page_of(substrate: str) -> Path:
    """The page with a substrate's name in its title."""
    [page] = [
        page
        for page in (DOCS / "substrates").glob("*.md")
        if substrate in re.split(r"[ ,]+", text_of(page).partition("\n")[0])
    ]
    return page


def blocks(page: Path | str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What a link may end with after #: the headings, as a forge and mkdocs make them."""
    headings = re.findall(r"^#+ +(.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}
