"""The page's colours by what they stand for, each for light and for dark, and which of them a substrate has.

The hues of substrates are those of Okabe and Ito that the screens have. Every colour of text and of a mark has a
contrast of at least 4.5 to the surface that it is on (WCAG 2: L1 + 0.05 over L2 + 0.05).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from taxtui import shipped
from taxtui.report.palette import LOOKS, Shade

SURFACE: Final = "surface"
INK: Final = "ink"
MUTED: Final = "muted"
RULE: Final = "rule"

_ROLES: Final[Mapping[Shade, str]] = {look.shade: cause for cause, look in reversed(list(LOOKS.items()))}


def role_of(cause: str) -> str:
    """The role that a cause is drawn in: causes of one colour have one role."""
    return _ROLES[LOOKS[cause].shade]


SHADES: Final[Mapping[str, Shade]] = MappingProxyType(
    {
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
        **{cause: shade for shade, cause in _ROLES.items()},
    }
)
"""Role → its shades. No two roles share a light one: a picture is drawn in those, and each is then told from it."""

SUBSTRATES: Final = tuple(name for name, row in shipped.SUBSTRATES.items() if all(row.page_colours))
OTHERS: Final = ("other1", "other2", "other3", "other4", "other5", "other6")
MARKERS: Final = ("o", "s", "D", "^", "v", "P", "X", "h", "<", ">")


DASHED: Final = (0, (4, 1.5))


class Look(NamedTuple):
    """How a substrate is drawn: by colour and by shape, as not everybody sees colours."""

    role: str
    marker: str


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """Label (``docker:runc``) → its look: a substrate's own colour for its first variant, others' for the rest."""
    result: dict[str, Look] = {}
    taken: set[str] = set()
    for label in dict.fromkeys(labels):
        own = label.removeprefix("STAND-IN ").removeprefix("IMPORTED ").partition(":")[0]
        free = [role for role in OTHERS if role not in taken]
        role = own if own in SUBSTRATES and own not in taken else (free or OTHERS)[0]
        taken.add(role)
        result[label] = Look(role, MARKERS[len(result) % len(MARKERS)])
    return result


def style(mode: str) -> Any:
    """A line's: dashed where many commands share one shell."""
    return DASHED if mode == "session" else "solid"


def light(role: str) -> str:
    """Return the light colour of a role."""
    return SHADES[role].light


def style_sheet() -> str:
    """The roles as CSS variables: light, dark where the reader's system is, and light on paper."""
    plain = "".join(f"--{role}:{shade.light};" for role, shade in SHADES.items())
    night = "".join(f"--{role}:{shade.dark};" for role, shade in SHADES.items())
    return (
        f":root{{color-scheme:light dark;{plain}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{night}}}}}\n"
    )
