"""Colours for colour-blind readers (Okabe and Ito), each with a glyph for NO_COLOR."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from zlib import crc32

from rich.style import Style
from textual.color import Color

from taxtui import shipped

SUBSTRATES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {name: row.look for name, row in shipped.SUBSTRATES.items() if row.variant_looks}
)
"""Substrates with a specific glyph and colour."""

LEVELS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "ok": ("✓", "text-success"),
        "info": ("·", "foreground"),
        "warning": ("!", "text-warning"),
        "error": ("✗", "text-error"),
    }
)
"""Level of a log line → glyph and theme variable."""


def _look(label: str) -> tuple[str, str]:
    """Return the glyph and the colour of a substrate's variant, chosen by name to be stable between sessions."""
    name, _, variant = label.partition(":")
    row = shipped.row_of(name)
    looks = row.variant_looks
    if not looks or variant in ("", row.usual_variant):
        return row.look
    return looks[crc32(variant.encode(errors="replace")) % len(looks)]


def glyph(label: str) -> str:
    """Return the glyph of a substrate; the label may contain a variant."""
    return _look(label)[0]


def colour(label: str) -> str:
    """Return the colour of a substrate as #rrggbb."""
    return _look(label)[1]


def cause_colour(cause: str) -> str:
    """Return the colour of a cause as #rrggbb."""
    from taxtui.report.palette import LOOKS  # the first frame has no cause

    return LOOKS[cause].shade.dark


def themed(variables: Mapping[str, str], name: str) -> Style:
    """Return a colour of the theme as a Rich style."""
    return Style(color=Color.parse(variables[name]).rich_color)


def substrate_style(label: str) -> Style:
    """Return a Rich style in the colour of a substrate."""
    return Style(color=colour(label))
