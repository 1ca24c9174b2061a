"""Colours that colour-blind people can tell apart (Okabe and Ito), each with a glyph: NO_COLOR turns them grey."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rich.style import Style
from textual.color import Color

THEMES: Final = ("textual-dark", "textual-light", "nord", "gruvbox", "solarized-light", "ansi-dark", "ansi-light")

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

PARTS: Final[Mapping[str, tuple[str, str, str]]] = MappingProxyType(
    {
        "create": ("C", "create", "#56B4E9"),
        "ready": ("R", "ready", "#0072B2"),
        "preload": ("P", "preload", "#999999"),
        "work": ("W", "work", "#009E73"),
        "dispatch": ("D", "dispatch", "#E69F00"),
        "unsplit": ("U", "work or dispatch", "#F0E442"),
        "harness": ("H", "harness", "#CC79A7"),
        "cleanup": ("X", "cleanup", "#D55E00"),
    }
)
"""Part of a trial's time → its letter in the phase bars, its name, its colour."""

LEVELS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "ok": ("✓", "text-success"),
        "info": ("·", "foreground"),
        "warning": ("!", "text-warning"),
        "error": ("✗", "text-error"),
    }
)
"""Level of a log line → its glyph and the theme variable of its colour."""


def glyph(label: str) -> str:
    """The glyph of a substrate, by its label with or without a variant."""
    return SUBSTRATES.get(label.partition(":")[0], OTHER)[0]


def colour(label: str, *, dark: bool = True) -> str:
    """The colour of a substrate as #rrggbb, darkened where the theme is light."""
    return shade(SUBSTRATES.get(label.partition(":")[0], OTHER)[1], dark=dark)


def shade(hexadecimal: str, *, dark: bool) -> str:
    """The colour as it is on a dark background; readable on a light one too."""
    return hexadecimal if dark else Color.parse(hexadecimal).darken(0.22).hex


def themed(variables: Mapping[str, str], name: str) -> Style:
    """A colour of the app's theme as a Rich style; a terminal's own sixteen colours are names, not numbers."""
    return Style(color=Color.parse(variables[name]).rich_color)


def substrate_style(label: str, *, dark: bool = True) -> Style:
    """A Rich style in a substrate's colour."""
    return Style(color=colour(label, dark=dark))
