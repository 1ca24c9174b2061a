"""The figures of a page: one module each, with ``figures(material)``; what is drawn is in each panel's ``data``."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from taxtui.report.page.material import Material
    from taxtui.report.page.panel import Figure

MODULES: Final = ("attribution", "composition", "cold_start", "by_length")
"""In the order of the page."""


def figures(material: Material) -> list[Figure]:
    """All that the material has something to show for."""
    results: list[Figure] = []
    for name in MODULES:
        results += import_module(f"{__name__}.{name}").figures(material)
    taken: Counter[str] = Counter()
    return [_distinct(figure, taken) for figure in results if figure.panels]


def _distinct(figure: Figure, taken: Counter[str]) -> Figure:
    """With a name for each panel that no other has: what they are called after may differ in a sign only."""
    panels = []
    for panel in figure.panels:
        taken[panel.name] += 1
        again = taken[panel.name]
        panels.append(panel._replace(name=f"{panel.name}-no{again}") if again > 1 else panel)
    return figure._replace(panels=panels)
