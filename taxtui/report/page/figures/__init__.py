"""The figures of a page: one module each, with ``figures(material)``."""

from __future__ import annotations

from collections import Counter

from taxtui.report.page.figure import Figure
from taxtui.report.page.figures import attribution, cold_start, composition
from taxtui.report.page.material import Material


def figures(material: Material) -> list[Figure]:
    """Return all figures with panels, in the order of the page."""
    results = [*attribution.figures(material), *composition.figures(material), *cold_start.figures(material)]
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
