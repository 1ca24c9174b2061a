"""A decision as one self-contained page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from taxtui.report.decision.layout import Block, Code, Items, Page
from taxtui.report.page.shell import render
from taxtui.report.page.views import table_of
from taxtui.terminal_text import clean

_ADDRESS: Final = re.compile(r"(https?://[^\s;,)]+[^\s;,).:])")


def to_html(page: Page) -> str:
    """Return the page as HTML that loads nothing."""
    parts = [(heading, list(map(_view, blocks))) for heading, blocks in page.parts.items()]
    context = {"title": clean(page.title), "lead": list(map(_view, page.lead)), "parts_of_page": parts}
    return render("decision.html", context)


def _view(block: Block) -> dict[str, Any]:
    """Return a block for the template, by kind."""
    match block:
        case str():
            return {"kind": "paragraph", "text": list(_pieces(block))}
        case Code(text):
            return {"kind": "code", "text": clean(text)}
        case Items(texts, numbered):
            return {"kind": "items", "texts": [list(_pieces(text)) for text in texts], "numbered": numbered}
    return {"kind": "table", "table": table_of(block)}


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a text, each with its kind: ``code`` between backticks, ``link``, or nothing."""
    for number, piece in enumerate(clean(text).split("`")):
        if number % 2:
            yield "code", piece
            continue
        for place, part in enumerate(_ADDRESS.split(piece)):
            if part:
                yield ("link" if place % 2 else ""), part
