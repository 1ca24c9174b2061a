"""Colours that colour-blind people can tell apart (Okabe and Ito), each with a glyph: NO_COLOR turns them grey."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from zlib import crc32

from rich.style import Style
from textual.color import Color

THEMES: Final = ("textual-dark", "textual-light", "nord", "gruvbox", "solarized-light", "ansi-dark", "ansi-light")

USUAL: Final[Mapping[str, str]] = MappingProxyType({"docker": "runc", "local": "bwrap", "ecs": "fargate"})
"""Substrate → the variant that is drawn as the substrate alone is."""

SUBSTRATES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "local": ("○", "#F0E442"),
        "docker": ("●", "#56B4E9"),
        "kubernetes": ("◆", "#009E73"),
        "daytona": ("▲", "#E69F00"),
        "ec2": ("■", "#D55E00"),
        "ecs": ("▼", "#CC79A7"),
    }
)
OTHER: Final = ("•", "#999999")

VARIANTS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = MappingProxyType(
    {
        "local": (("◌", "#B8AF1F"), ("⊙", "#F7F1A0")),
        "docker": (("◉", "#2E8FD0"), ("◍", "#A9D8F3"), ("◐", "#4A7FB5"), ("◒", "#8AB8FF"), ("◎", "#C5E4F5")),
        "kubernetes": (("◈", "#56D6B0"), ("◇", "#3D8A72")),
        "daytona": (("△", "#FFD27F"), ("◬", "#B98420")),
        "ec2": (("□", "#FF9A5C"), ("▣", "#B5683A")),
        "ecs": (("▽", "#E7BFD6"), ("⧩", "#A8688C")),
    }
)
"""What the other variants of a substrate are drawn with: a shape and a shade of its own family."""

LEVELS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "ok": ("✓", "text-success"),
        "info": ("·", "foreground"),
        "warning": ("!", "text-warning"),
        "error": ("✗", "text-error"),
    }
)
"""Level of a log line → its glyph and the theme variable of its colour."""


def _look(label: str) -> tuple[str, str]:
    """Glyph and colour of a substrate's variant: the same on every screen and in every session, so by its name."""
    name, _, variant = label.partition(":")
    usual = SUBSTRATES.get(name, OTHER)
    others = VARIANTS.get(name, ())
    if not others or variant in ("", USUAL.get(name)):
        return usual
    return others[crc32(variant.encode(errors="replace")) % len(others)]


def glyph(label: str) -> str:
    """The glyph of a substrate, by its label with or without a variant."""
    return _look(label)[0]


def colour(label: str, *, dark: bool = True) -> str:
    """The colour of a substrate as #rrggbb, darkened where the theme is light."""
    return shade(_look(label)[1], dark=dark)


def shade(hexadecimal: str, *, dark: bool) -> str:
    """The colour as it is on a dark background; readable on a light one too."""
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
