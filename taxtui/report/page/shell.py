"""Common parts of all pages: templates, style, script, and a policy against loading anything."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from taxtui.report.formats import csv_rows
from taxtui.report.page.palette import style_sheet


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a page: a template with escaped texts, the style, the script, and a policy that allows only these."""
    environment = Environment(
        loader=PackageLoader("taxtui.report.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates = files("taxtui.report.page").joinpath("templates")
    script = templates.joinpath("page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template(template).render(
        context,
        style=Markup(style_sheet() + templates.joinpath("page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'",
    )


def csv_link(name: str, records: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return a CSV file as a link within the page."""
    text = csv_rows.to_text(records) + "\n"
    return {"name": name, "href": f"data:text/csv;charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"}
