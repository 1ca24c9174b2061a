"""The figures of a page: one module each, with ``figures(material)``; what is drawn is in each panel's ``data``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from taxtui.report.page.material import Material
    from taxtui.report.page.panel import Figure

MODULES: Final = ("cold_start", "composition", "by_length", "scale", "tax", "failures", "run_means", "health")
"""In the order of the page."""


def figures(material: Material) -> list[Figure]:
    """All that the material has something to show for."""
    found: list[Figure] = []
    for name in MODULES:
        found += import_module(f"{__name__}.{name}").figures(material)
    return [figure for figure in found if figure.panels]
