"""Panels as SVG by matplotlib, with the same bytes for the same numbers."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, Final

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG

from taxtui.report.page.figure import DOTS_PER_INCH, FONT, Canvas, Panel, legible
from taxtui.report.page.palette import SHADES

_RC: Final[Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib, so the width of a text is the same everywhere
    "font.size": FONT,
    "text.parse_math": False,  # two dollar signs in a name are not a formula
    "text.usetex": False,
    "axes.unicode_minus": False,
    "svg.fonttype": "none",
    "path.simplify": False,
}
"""Any: matplotlib types the names of settings as a literal."""


@contextmanager
def _settings(hash_salt: str = "") -> Iterator[None]:
    with mpl.rc_context({**_RC, "svg.hashsalt": hash_salt}), warnings.catch_warnings():
        # The reader's font may have characters that are missing here.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def inline_svg(panel: Panel) -> str:
    """Return the panel for a page: in CSS variables, with flexible width, a title and a description."""
    svg = _svg(panel)
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' (?:width|height)="[^"]*"', "", svg, count=2)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)  # the page has a style
    svg = re.sub(r'style="[^"]*"', lambda result: _themed(result[0]), svg)
    return svg.replace("<svg ", f'<svg class="panel" data-name="{escape(panel.name)}" ', 1)


def _themed(style: str) -> str:
    """Replace light colours by the page's variables, and the font by the page's font."""
    for role, shade in SHADES.items():
        style = style.replace(shade.light, f"var(--{role})")
    return re.sub(r"font: ([^;\"]*?)([\d.]+px) 'DejaVu Sans'", r"font-size: \2", style)


def drawn(panel: Panel) -> Canvas:
    """Return a canvas with the panel."""
    with _settings():
        canvas = Canvas(panel.height)
        panel.draw(canvas)
        return canvas


def _svg(panel: Panel) -> str:
    canvas = drawn(panel)
    out = io.StringIO()
    # Ids are hashed with the panel's name, so they are unique on a page.
    with _settings(panel.name):
        FigureCanvasSVG(canvas.figure)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        canvas.figure.savefig(out, format="svg", dpi=DOTS_PER_INCH, metadata=nothing)
    return _named(_lean(out.getvalue()), panel)


def _lean(svg: str) -> str:
    """Remove metadata, comments, unused ids and needless decimals."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda result: result[0] if result[1] in used else "", svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(r' (?:d|x|y)="[^"]*"', lambda result: re.sub(r"(\.\d\d)\d+", r"\1", result[0]), svg)
    svg = re.sub(r'\s*\n(?=[A-Za-z\d"])', " ", svg)
    return re.sub(r">\s+<", ">\n<", svg)


def _named(svg: str, panel: Panel) -> str:
    """Add an accessible name and a description."""
    name, title, about = escape(panel.name), escape(legible(panel.title)), escape(legible(panel.about))
    head = f'<title id="{name}-t">{title}</title><desc id="{name}-d">{about}</desc>'
    svg = svg.replace("<svg ", f'<svg role="img" aria-labelledby="{name}-t {name}-d" ', 1)
    return re.sub(r"(<svg [^>]*>)", lambda result: result[1] + head, svg, count=1)
