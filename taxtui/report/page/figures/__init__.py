"""The figures of a page: one module each, with ``figures(material)``."""

from __future__ import annotations

from collections import Counter

from taxtui.report.page.figure import Figure
from taxtui.report.page.figures import attribution, by_length, cold_start, composition
from taxtui.report.page.material import Material


def figures(material: Material) -> list[Figure]:
    """Return all figures with panels, in the order of the page."""
    modules = (attribution, composition, cold_start, by_length)
    results = [figure for module in modules for figure in module.figures(material)]
    counts: Counter[str] = Counter()
    return [_distinct(figure, counts) for figure in results if figure.panels]


def _distinct(figure: Figure, counts: Counter[str]) -> Figure:
    """Number the panels with equal names."""
    panels = []
    for panel in figure.panels:
        counts[panel.name] += 1
        number = counts[panel.name]
        panels.append(panel._replace(name=f"{panel.name}-no{number}") if number > 1 else panel)
    return figure._replace(panels=panels)
