"""The parts that all pages share: templates, style, script, and the policy that lets a page load nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from taxtui.report.formats import csv_rows
from taxtui.report.page.palette import style_sheet


def chrome(script: str) -> dict[str, Any]:
    """The parts of any page: its style, its script, and the policy that lets nothing but these work."""
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {
        "style": Markup(style_sheet() + text_of("page.css")),
        "script": Markup(script),
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{allowed}'",
    }


def environment() -> Environment:
    """Templates in which every text is escaped, and a name that is missing is an error."""
    return Environment(
        loader=PackageLoader("taxtui.report.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def csv_link(name: str, records: Sequence[dict[str, Any]]) -> dict[str, str]:
    """A file within the page, that a click saves without a script."""
    text = csv_rows.to_text(records) + "\n"
    return {"name": name, "href": f"data:text/csv;charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"}


def text_of(name: str) -> str:
    """A style sheet or a script."""
    path = files("taxtui.report.page").joinpath("templates", name)
    return path.read_text(encoding="utf-8")
