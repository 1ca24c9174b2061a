"""A figure as data: panels that each know their numbers and how to draw them. Nothing here needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from taxtui.report.page.sheet import Sheet


class Panel(NamedTuple):
    """One picture."""

    name: str  # of its file, unique within a page
    title: str
    about: str  # what is to be seen, in words: for those who do not see it
    height: int  # px at a width of 400
    draw: Callable[[Sheet], None]
    data: list[dict[str, Any]]  # every number that is drawn, a mapping per mark; durations in ns
    apart: str = ""  # what its numbers are instead of measured here: IMPORTED, STAND-IN, PUBLISHED, COMPOSED


class Figure(NamedTuple):
    """Panels side by side under one caption."""

    name: str
    title: str
    panels: list[Panel]
    notes: list[str]  # how to read it, what its intervals include, which flags are marked, what is not drawn
