"""Colours of a page by role, for light and dark pages, and the colours of substrates.

The hues of substrates are by Okabe and Ito, as on the screens. Every colour of text and curves has a contrast of at
least 4.5 to its background (WCAG 2: L1 + 0.05 over L2 + 0.05).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from taxtui import shipped
from taxtui.report.palette import LOOKS, Shade

SURFACE: Final = "surface"
INK: Final = "ink"
MUTED: Final = "muted"
RULE: Final = "rule"

SHADES: Final[Mapping[str, Shade]] = {
    SURFACE: Shade("#ffffff", "#15181d"),
    "panel": Shade("#f4f6f8", "#1d2127"),
    RULE: Shade("#d5dae0", "#39404a"),
    INK: Shade("#1b1f24", "#e6e8eb"),
    MUTED: Shade("#57606a", "#9ba5b1"),
    "link": Shade("#0b5cad", "#7cb7ff"),
    **{name: Shade(*row.page_colours) for name, row in shipped.SUBSTRATES.items() if all(row.page_colours)},
    "other1": Shade("#882255", "#d9679a"),
    "other2": Shade("#332288", "#8f86e8"),
    "other3": Shade("#20776e", "#44aa99"),
    "other4": Shade("#736f00", "#bcb93c"),
    "other5": Shade("#7a3fa0", "#b98ae0"),
    "other6": Shade("#5c6470", "#99a3ae"),
    **{cause: look.shade for cause, look in LOOKS.items()},
}
"""Role → shades. A light shade has one dark shade, because a page replaces light colours of a picture by roles."""

SUBSTRATES: Final = tuple(name for name, row in shipped.SUBSTRATES.items() if all(row.page_colours))
OTHERS: Final = ("other1", "other2", "other3", "other4", "other5", "other6")
DASHED: Final = (0, (4, 1.5))


def colours(labels: Iterable[str]) -> dict[str, str]:
    """Return label (``docker:runc``) → role: the substrate's colour for its first variant, else another colour."""
    result: dict[str, str] = {}
    for label in dict.fromkeys(labels):
        substrate = label.removeprefix("STAND-IN ").removeprefix("IMPORTED ").partition(":")[0]
        free = [role for role in OTHERS if role not in result.values()]
        unused = substrate in SUBSTRATES and substrate not in result.values()
        result[label] = substrate if unused else (free or OTHERS)[0]
    return result


def style(mode: str) -> Any:
    """Return the line style of a mode: dashed for session."""
    return DASHED if mode == "session" else "solid"


def light(role: str) -> str:
    """Return the light shade of a role."""
    return SHADES[role].light


def style_sheet() -> str:
    """Return the roles as CSS variables: light, dark if the reader's system is dark, and light on paper."""
    plain = "".join(f"--{role}:{shade.light};" for role, shade in SHADES.items())
    night = "".join(f"--{role}:{shade.dark};" for role, shade in SHADES.items())
    return (
        f":root{{color-scheme:light dark;{plain}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{night}}}}}\n"
    )
