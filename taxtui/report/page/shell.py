"""Common parts of all pages, and the page of a decision: templates, style, and a policy against loading anything."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from taxtui.report.formats import Section, csv_rows
from taxtui.report.page.palette import style_sheet
from taxtui.report.page.views import table_of
from taxtui.terminal_text import clean

_ADDRESS: Final = re.compile(r"(https?://[^\s;,)]+[^\s;,).:])")


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


def decision_page(sections: Sequence[Section]) -> str:
    """Return the page of a decision as HTML: the title, the reasons, and the parts."""
    tables = [table_of(section)._replace(notes=list(map(_linked, section.notes))) for section in sections]
    title, *rest = tables
    parts = [table for table in rest if table.title]
    lead = [note for table in rest if not table.title for note in table.notes]
    return render("decision.html", {"title": title.title, "lead": lead, "tables": parts})


def _linked(text: str) -> Markup:
    """Return a text with code between backticks and with links."""
    html = Markup("")
    for number, piece in enumerate(clean(text).split("`")):
        for place, part in enumerate([piece] if number % 2 else _ADDRESS.split(piece)):
            form = "<code>{0}</code>" if number % 2 else '<a href="{0}">{0}</a>' if place % 2 else "{0}"
            html += Markup(form).format(part)
    return html


def csv_link(name: str, records: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return a CSV file as a link within the page."""
    text = csv_rows.to_text(records) + "\n"
    return {"name": name, "href": f"data:text/csv;charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"}
