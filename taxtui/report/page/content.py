"""Builds a page: the answer, the figures, the tables, the method, where it all comes from; one text of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from taxtui.report.answer import table
from taxtui.report.formats import Section
from taxtui.report.measured.failures import errors
from taxtui.report.measured.record import record
from taxtui.report.measured.tables import TABLES, sections
from taxtui.report.page.answer_view import answer_view
from taxtui.report.page.drawing import inline_svg
from taxtui.report.page.figures import figures
from taxtui.report.page.figures.attribution import NAME as ATTRIBUTION
from taxtui.report.page.material import Material
from taxtui.report.page.origins import commands, origins
from taxtui.report.page.panel import Figure
from taxtui.report.page.shell import chrome, csv_link, environment, text_of
from taxtui.report.page.views import tables_of
from taxtui.terminal_text import clean, cut

METHOD: Final = (
    "A trial makes a sandbox, waits until a command returns, prepares the tier, runs its actions one after the other, "
    "and removes the sandbox. Every instant is of one process's monotonic clock, and every trial is in the recording.",
    "held: from the first create request to the end of the last action. work: the commands' own time inside the "
    "sandbox. dispatch: the rest of every command. tax = held − think − work, failures included.",
    "Intervals are 95 %. Percentiles: order statistics, a trial's actions as a cluster; means: Hall's; shares: "
    "Wilson's; ratios and differences: from both, paired where both were measured in the same run. How much runs "
    "differ is part of all of them: measured from three runs on, else assumed.",
    "Nothing is removed as an outlier, and nothing is resampled. A number that too few trials support is not shown.",
    "Only equal work that was asked for alike is ranked, and only what was come by in the same way: what imitates a "
    "provider, was imported, published or composed stands apart.",
)


def page(material: Material, options: Sequence[str] = (), command: str = "report") -> str:
    """The whole page. The same recordings and options give the same bytes; ``taxtui command`` makes it of them."""
    result = figures(material)
    told = origins(material.paths, material.sources)
    names = ", ".join(cut(clean(path.name), 60) for path in material.paths[:3])
    more = f" and {len(material.paths) - 3} more" if len(material.paths) > 3 else ""
    script = text_of("page.js")
    context: dict[str, Any] = {
        "title": f"{names}{more}",
        "sentence": table.said(material.run.answer if material.run else material.answer),
        "answer": answer_view(
            material.answer,
            material.bounds,
            [f"{item.title}: from {item.source}" for item in material.published],
        ),
        "run": material.run and {"title": material.run.title, "headlines": material.run.headlines},
        "run_tables": tables_of(material.run.sections()) if material.run else [],
        "run_figures": [figure_view(figure) for figure in result if figure.name == ATTRIBUTION],
        "figures": [figure_view(figure) for figure in result if figure.name != ATTRIBUTION],
        "tables": tables_of([errors(material.rows), *_tables(material)]),
        "method": METHOD,
        "origins": told,
        "commands": commands(told, options, command),
        "trials": sum(len(row.cell.trials) for row in material.rows),
        "failed": sum(row.failed for row in material.rows),
        "csv": csv_link("taxtui-report.csv", [record(row, TABLES) for row in material.rows]),
        **chrome(script),
    }
    return environment().get_template("page.html").render(context)


def _tables(material: Material) -> list[Section]:
    return sections(material.rows, material.sources, TABLES, material.unfinished)


def figure_view(figure: Figure) -> dict[str, Any]:
    """A figure for the template, drawn."""
    panels = [{"title": panel.title, "apart": panel.apart, "svg": Markup(inline_svg(panel))} for panel in figure.panels]
    data = [{"panel": panel.name, **item} for panel in figure.panels for item in panel.data]
    return {
        "name": figure.name,
        "title": figure.title,
        "here": [panel for panel in panels if not panel["apart"]],
        "apart": [panel for panel in panels if panel["apart"]],
        "notes": figure.notes,
        "csv": csv_link(f"taxtui-{figure.name}.csv", data),
    }
