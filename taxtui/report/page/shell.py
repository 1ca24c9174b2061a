"""Common parts of all pages: templates, style, script, and a policy against loading anything."""

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
    """Return style, script, and the policy that allows only these."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {
        "style": Markup(style_sheet() + text_of("page.css")),
        "script": Markup(script),
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'",
    }


def environment() -> Environment:
    """Return templates with escaped texts, where a missing name is an error."""
    return Environment(
        loader=PackageLoader("taxtui.report.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def csv_link(name: str, records: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return a CSV file as a link within the page."""
    text = csv_rows.to_text(records) + "\n"
    return {"name": name, "href": f"data:text/csv;charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"}


def text_of(name: str) -> str:
    """Return the text of a style sheet or a script."""
    path = files("taxtui.report.page").joinpath("templates", name)
    return path.read_text(encoding="utf-8")
