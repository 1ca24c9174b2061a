"""Panels as SVG and PNG, by matplotlib: in the page's colours, text as text, the same bytes for the same numbers."""

from __future__ import annotations

import io
import re
import warnings
from html import escape
from typing import Any, Final

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG

from taxtui.report.page.palette import SHADES
from taxtui.report.page.panel import Panel
from taxtui.report.page.sheet import DOTS_PER_INCH, FONT, Sheet, legible

PNG_SCALE: Final = 2.5
_RC: Final[Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib, so that a text is as wide everywhere
    "font.size": FONT,
    "text.parse_math": False,  # a name with two dollar signs is no formula
    "text.usetex": False,
    "axes.unicode_minus": False,
    "svg.fonttype": "none",
    "path.simplify": False,
}
"""Any: matplotlib types its settings' names as a literal of three hundred."""


def inline_svg(panel: Panel) -> str:
    """The panel for a page: in its CSS variables, as wide as there is room, with a title and a description."""
    svg = _svg(panel, titled=False)
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)  # the page's has it
    svg = re.sub(r'style="[^"]*"', lambda result: _themed(result[0]), svg)
    return svg.replace("<svg ", f'<svg class="panel" data-name="{escape(panel.name)}" ', 1)


def _themed(style: str) -> str:
    """A style of the light colours as one of the page's: its colours, and its font in the same size."""
    for role, shade in SHADES.items():
        style = style.replace(shade.light, f"var(--{role})")
    return re.sub(r"font: ([^;\"]*?)([\d.]+px) 'DejaVu Sans'", r"font-size: \2", style)


def svg_file(panel: Panel) -> bytes:
    """The panel as a file of its own, in the light colours."""
    return _svg(panel, titled=True).encode()


def png_file(panel: Panel) -> bytes:
    """The panel as pixels, 1,000 wide."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    sheet = drawn(panel, titled=True)
    out = io.BytesIO()
    with mpl.rc_context(_RC), warnings.catch_warnings():
        _quiet()
        FigureCanvasAgg(sheet.canvas)
        sheet.canvas.savefig(out, format="png", dpi=DOTS_PER_INCH * PNG_SCALE, metadata={"Software": None})
    return out.getvalue()


def drawn(panel: Panel, *, titled: bool) -> Sheet:
    """The paper with the panel on it; ``titled`` for a picture that stands alone."""
    with mpl.rc_context(_RC), warnings.catch_warnings():
        _quiet()
        sheet = Sheet(panel.height, panel.title if titled else "")
        panel.draw(sheet)
        return sheet


def _svg(panel: Panel, *, titled: bool) -> str:
    return _named(_lean(_drawn_svg(panel, titled=titled)), panel)


def _drawn_svg(panel: Panel, *, titled: bool) -> str:
    sheet = drawn(panel, titled=titled)
    out = io.StringIO()
    # Ids are hashed with the panel's name: those of two panels on one page never meet.
    with mpl.rc_context({**_RC, "svg.hashsalt": panel.name}), warnings.catch_warnings():
        _quiet()
        FigureCanvasSVG(sheet.canvas)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        sheet.canvas.savefig(out, format="svg", dpi=DOTS_PER_INCH, metadata=nothing)
    return out.getvalue()


def _quiet() -> None:
    # A sign that the font lacks is the reader's font's to show.
    warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)


def _lean(svg: str) -> str:
    """Without what no reader needs: metadata, comments, ids that nothing refers to, a millionth of a pixel."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda result: result[0] if result[1] in used else "", svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(r' (?:d|x|y)="[^"]*"', lambda result: re.sub(r"(\.\d\d)\d+", r"\1", result[0]), svg)
    svg = re.sub(r'\s*\n(?=[A-Za-z\d"])', " ", svg)
    return re.sub(r">\s+<", ">\n<", svg)


def _named(svg: str, panel: Panel) -> str:
    """With an accessible name and a description."""
    name, title, about = escape(panel.name), escape(legible(panel.title)), escape(legible(panel.about))
    head = f'<title id="{name}-t">{title}</title><desc id="{name}-d">{about}</desc>'
    svg = svg.replace("<svg ", f'<svg role="img" aria-labelledby="{name}-t {name}-d" ', 1)
    return re.sub(r"(<svg [^>]*>)", lambda result: result[1] + head, svg, count=1)
