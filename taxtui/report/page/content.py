"""Builds a page: answer, figures, tables, method and origin as one HTML text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from taxtui.report.answer import sections as answer_sections
from taxtui.report.answer.record import rows_by_key
from taxtui.report.cells import RowName
from taxtui.report.measured import failures
from taxtui.report.measured.record import record
from taxtui.report.measured.sections import HEAD, TABLES, sections
from taxtui.report.page.drawing import inline_svg
from taxtui.report.page.figure import Figure
from taxtui.report.page.figures import by_length, causes, cold_start
from taxtui.report.page.material import Material
from taxtui.report.page.origins import commands, origin_of
from taxtui.report.page.shell import csv_link, render
from taxtui.report.page.views import PageTable, tables_of
from taxtui.terminal_text import clean, cut

METHOD: Final = (
    "A trial creates a sandbox, waits for the first command, prepares the tier, runs the actions in sequence, and "
    "removes the sandbox. All times are from one process's monotonic clock. Every trial is in the recording.",
    "held: from the first create request to the end of the last action. work: the commands' own time inside the "
    "sandbox. dispatch: the rest of every command. tax = held − think − work, failures included.",
    "Intervals are 95 %: order statistics for percentiles, with a trial's actions as a cluster; Hall's for means; "
    "Wilson's for shares. Ratios and differences are paired within a run. All intervals include the variation between "
    "runs: measured from three runs on, else assumed.",
    "No outlier is removed, and nothing is resampled. A number without enough trials is not shown.",
    "Only rows of equal work with equal settings and equal provenance are ranked: emulated, imported, published and "
    "estimated rows are never ranked with measured rows.",
)


def page(material: Material, options: Sequence[str] = (), command: str = "report") -> str:
    """Return the whole page, made by ``taxtui command`` with ``options``. Equal input gives equal bytes."""
    origins = [origin_of(path, source) for path, source in zip(material.paths, material.sources, strict=True)]
    names = ", ".join(cut(clean(path.name), 60) for path in material.paths[:3])
    more = f" and {len(material.paths) - 3} more" if len(material.paths) > 3 else ""
    run, rows, projections = material.run, material.rows, rows_by_key(material.answer)
    figures = [
        causes.figure("causes", "Time by cause", material.answer),
        cold_start.figure(rows, material.colours),
        by_length.figure(rows, material.colours),
    ]
    tables = [
        *failures.sections({row: RowName(row.label, row.details) for row in rows}, HEAD),
        *sections(rows, material.sources, TABLES, material.unfinished, material.answer, reference=material.bounds),
    ]
    context: dict[str, Any] = {
        "title": f"{names}{more}",
        "sentence": answer_sections.headline_text(run.answer if run else material.answer),
        "answer": answer_tables(material),
        "run": run and run.title,
        "run_tables": tables_of(run.sections) if run else [],
        "run_figures": [figure_view(causes.figure("costs", "Costs by cause", run.answer))] if run else [],
        "figures": [figure_view(figure) for figure in figures if figure.panels],
        "tables": tables_of(tables),
        "method": METHOD,
        "origins": origins,
        "commands": commands([origin["name"] for origin in origins], options, command),
        "trials": sum(len(row.cell.trials) for row in rows),
        "failed": sum(row.failed for row in rows),
        "csv": csv_link("taxtui-report.csv", [record(row, TABLES, projections.get(row.key)) for row in rows]),
    }
    return render("page.html", context)


def answer_tables(material: Material) -> list[PageTable]:
    """Return the tables of the answer about occupied time."""
    return tables_of(answer_sections.sections(material.answer, "", full=True))


def figure_view(figure: Figure) -> dict[str, Any]:
    """Return a drawn figure for the template."""
    panels = [(panel, Markup(inline_svg(panel))) for panel in figure.panels]
    return {
        "name": figure.name,
        "title": figure.title,
        "measured": [(panel.title, svg) for panel, svg in panels if not panel.provenance],
        "unmeasured": [(panel.title, svg) for panel, svg in panels if panel.provenance],
        "notes": figure.notes,
    }
