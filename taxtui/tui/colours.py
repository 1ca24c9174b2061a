"""Colours for colour-blind readers (Okabe and Ito), each with a glyph for NO_COLOR."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from zlib import crc32

from rich.style import Style
from textual.color import Color

from taxtui import shipped

THEMES: Final = ("textual-dark", "textual-light", "nord", "gruvbox", "solarized-light", "ansi-dark", "ansi-light")

SUBSTRATES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {name: row.look for name, row in shipped.SUBSTRATES.items() if row.variant_looks}
)
"""Substrates with a glyph and a colour of their own; all others share a look."""

VARIANTS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = MappingProxyType(
    {name: shipped.SUBSTRATES[name].variant_looks for name in SUBSTRATES}
)
"""Looks of a substrate's other variants."""

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
    """Glyph and colour of a substrate's variant: the same on every screen and in every session, so by its name."""
    name, _, variant = label.partition(":")
    row = shipped.row_of(name)
    looks = row.variant_looks
    if not looks or variant in ("", row.usual_variant):
        return row.look
    return looks[crc32(variant.encode(errors="replace")) % len(looks)]


def glyph(label: str) -> str:
    """The glyph of a substrate, by its label with or without a variant."""
    return _look(label)[0]


def colour(label: str, *, dark: bool = True) -> str:
    """The colour of a substrate as #rrggbb, darkened where the theme is light."""
    return shade(_look(label)[1], dark=dark)


def shade(hexadecimal: str, *, dark: bool) -> str:
    """Return a colour of the dark palette, darkened for a light theme."""
    return hexadecimal if dark else Color.parse(hexadecimal).darken(0.22).hex


def cause_colour(cause: str, *, dark: bool) -> str:
    """The colour of a cause as #rrggbb."""
    from taxtui.report.palette import LOOKS  # the first frame has no cause

    look = LOOKS[cause].shade
    return look.dark if dark else look.light


def themed(variables: Mapping[str, str], name: str) -> Style:
    """A colour of the app's theme as a Rich style; a terminal's own sixteen colours are names, not numbers."""
    return Style(color=Color.parse(variables[name]).rich_color)


def substrate_style(label: str, *, dark: bool = True) -> Style:
    """A Rich style in a substrate's colour."""
    return Style(color=colour(label, dark=dark))
