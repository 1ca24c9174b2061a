"""A site: a page for each recording of a folder, and an index with a comparison and figures of providers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from costmodel import (
    Answer,
    CellIdentity,
    CostModelError,
    NoPrice,
    Pool,
    PriceError,
    Prices,
    Published,
    Recording,
    TrainingRun,
    answer_of,
    pools,
    project,
    published_figures,
    read_published,
    read_recording,
)
from taxtui.errors import RecordingError
from taxtui.report.answer.sections import headline_text
from taxtui.report.cells import Content, amount_cell
from taxtui.report.formats import Section
from taxtui.report.measured.rows import MeasuredRow, rows_of
from taxtui.report.numbers import DOLLARS, NOTHING
from taxtui.report.page.content import answer_tables, figure_view, page
from taxtui.report.page.figures import cold_start, frontier
from taxtui.report.page.figures.frontier import PlaceStanding, standings
from taxtui.report.page.material import Material
from taxtui.report.page.providers import provider_tables
from taxtui.report.page.shell import render
from taxtui.report.page.views import printable, table_of
from taxtui.report.row_limits import PAGE
from taxtui.terminal_text import clean


class Gap(NamedTuple):
    """A recording or row outside the comparison, and the reason."""

    name: str
    why: str


class Book(NamedTuple):
    """The readable recordings and files of published figures of a folder."""

    paths: list[Path]
    sources: list[Recording]
    gaps: list[Gap]
    published: list[Published]

    @property
    def pages(self) -> list[str]:
        """Distinct file names of the recordings' pages."""
        names: list[str] = []
        for path in self.paths:
            stem = re.sub("[^A-Za-z0-9]+", "-", path.stem).strip("-")[:40] or "recording"
            candidates = (stem, *(f"{stem}-{number}" for number in range(2, 1000)))
            taken = {"index", *map(str.casefold, names)}
            names.append(next(name for name in candidates if name.casefold() not in taken))
        return [f"{name}.html" for name in names]


def opened(folder: Path, sheets: Sequence[str] = ()) -> Book:
    """Read every recording and every TOML file of published figures of a folder; an unreadable file is a gap.

    ``sheets``: names of price sheets, which may be in the same folder.
    """
    book = Book([], [], [], [])
    sheet_paths = {Path(sheet).resolve() for sheet in sheets}
    for path in sorted(path for path in folder.glob("*.toml") if path.resolve() not in sheet_paths):
        try:
            book.published.append(read_published(path))
        except CostModelError as error:
            book.gaps.append(_unreadable(path, error))
    runs: dict[str, str] = {}
    for path in sorted(folder.glob("*.msgpack")):
        name = printable(path.name)
        try:
            source = read_recording(path)
        except CostModelError as error:
            book.gaps.append(_unreadable(path, error))
            continue
        if source.run_id in runs:
            book.gaps.append(Gap(name, f"holds the same run as {runs[source.run_id]}"))
        elif not source.trials:
            book.gaps.append(Gap(name, "no trial has ended"))
        elif too_many := _more_than_a_page(path, source):
            book.gaps.append(Gap(name, too_many))
        else:
            runs[source.run_id] = name
            book.paths.append(path)
            book.sources.append(source)
            if not source.whole:
                book.gaps.append(Gap(name, "INCOMPLETE: the finished trials are compared"))
    return book


def _unreadable(path: Path, error: CostModelError) -> Gap:
    """Return the reason without the folder of the file."""
    name = printable(path.name)
    return Gap(name, clean(str(error)).replace(clean(str(path)), name))


def _more_than_a_page(path: Path, source: Recording) -> str:
    """Return the reason if a recording has too many rows for a page, else ""."""
    try:
        PAGE.check(sum(bool(cell.trials) for cell in pools([source])), [path], "taxtui report --html --tier TIER")
    except RecordingError as error:
        return clean(str(error))
    return ""


def page_of(book: Book, number: int, run_sd: float | None) -> str:
    """Return the page of one recording."""
    source, path = book.sources[number], book.paths[number]
    return page(_material(pools([source]), [source], [path], run_sd))


def _material(
    cells: Sequence[Pool], sources: Sequence[Recording], paths: Sequence[Path], run_sd: float | None
) -> Material:
    rows = rows_of(cells, run_sd)
    return Material(rows, sources, paths, len(cells) - len(rows), run_sd=run_sd)


def index(book: Book, title: str, training_run: TrainingRun, prices: Prices | None) -> str:
    """Return the page of all recordings: answer, dollars against hours, providers, recordings and gaps."""
    cells = pools(book.sources)
    material = _material(cells, book.sources, book.paths, training_run.run_sd)
    gaps = [*book.gaps, *_gaps(cells, material.rows)]
    result, unpriced = _projected(book.sources, training_run, prices)
    gaps += unpriced
    works = {line.name: standings(line, training_run.run_sd) for line in result.lines}
    works = {clean(name): group for name, group in works.items() if group}
    cost_figure = frontier.figure(works, material.colours)
    figures = [*([cost_figure] if cost_figure else []), cold_start.figure(material.rows, material.colours)]
    page_names = {path.name: name for path, name in zip(book.paths, book.pages, strict=True)}
    published = [*book.published, *published_figures()]
    tables = provider_tables(published, material.rows, page_names, prices)
    context: dict[str, Any] = {
        "title": printable(title),
        "question": f"{training_run.trajectories:,} trajectories on {training_run.workers:,} workers",
        "sentence": headline_text(material.answer),
        "answer": answer_tables(material),
        "figures": [figure_view(figure) for figure in figures if figure.panels],
        "costs": table_of(_costs(works, priced=prices is not None)),
        "tables": tables,
        "unpriced": prices is None,
        "recordings": [
            _recording(path, source, name)
            for path, source, name in zip(book.paths, book.sources, book.pages, strict=True)
        ],
        "gaps": gaps,
    }
    return render("site.html", context)


def _projected(
    sources: Sequence[Recording], training_run: TrainingRun, prices: Prices | None
) -> tuple[Answer, list[Gap]]:
    """Return the answer about a training run, in dollars where the sheet has a price, and the rows without one."""
    if not any(trial.ok for source in sources for cell in source.cells for trial in cell.trials):
        return answer_of([], run_sd=training_run.run_sd), []
    rows = project(sources, training_run)
    gaps: dict[str, Gap] = {}
    unpriced = set()
    for row in rows:
        try:
            if prices is not None:
                prices.sandbox(row.identity)
        except PriceError as error:
            why = "not among the dollars" if isinstance(error, NoPrice) else clean(str(error))
            gaps.setdefault(row.label, Gap(printable(row.label), f"no price: {why}"))
            unpriced.add(_sandbox(row.identity))
    if prices is not None and any(_sandbox(row.identity) not in unpriced for row in rows):
        priced = project(sources, training_run, prices, wanted=lambda cell: _sandbox(cell) not in unpriced)
        rows = [*priced, *(row for row in rows if _sandbox(row.identity) in unpriced)]
    return answer_of(rows, run_sd=training_run.run_sd), list(gaps.values())


def _sandbox(identity: CellIdentity) -> tuple[str, str, int, int]:
    """Return what a price depends on; concurrencies of a cell share a row, whose identity is that of one of them."""
    return identity.substrate, identity.variant, identity.cpu_milli, identity.memory_mib


def _gaps(cells: Sequence[Pool], rows: Sequence[MeasuredRow]) -> list[Gap]:
    """Return the cells outside of the comparison."""
    gaps = [
        Gap(printable(f"{row.label} {row.details}"), "no trial succeeded") for row in rows if not row.cell.succeeded
    ]
    empty = sum(not cell.trials for cell in cells)
    return [*gaps, Gap(f"{empty:,} cells", "no trial has ended")] if empty else gaps


def _costs(works: dict[str, list[PlaceStanding]], *, priced: bool) -> Section:
    head = ["workload\nsubstrate", "worker-hours\n", *["dollars\n", "frontier\n"] * priced]
    lines: list[list[Content]] = []
    for work, group in works.items():
        for item in group:
            money = [amount_cell(item.usd, DOLLARS), item.frontier or NOTHING] if priced else []
            lines.append([f"{work}\n{clean(item.place.name)}", amount_cell(item.hours), *money])
    notes = ["frontier: whether a substrate is better in both hours and dollars; tie: one is better, but not surely."]
    sheets = dict.fromkeys(item.row.cost.sheet for group in works.values() for item in group if item.row.cost)
    return Section("Costs", head, lines, [*notes, *(f"Prices: {clean(sheet)}." for sheet in sheets)] if priced else [])


def _recording(path: Path, source: Recording, name: str) -> dict[str, Any]:
    failed = sum(not trial.ok for cell in source.cells for trial in cell.trials)
    labels = dict.fromkeys(cell.identity.label for cell in source.cells)
    provenances = sorted({cell.provenance for cell in source.cells} - {"measured"})
    return {
        "page": name,
        "name": printable(path.name),
        "run_id": printable(source.run_id),
        "sandboxes": [printable(label) for label in labels][:8],
        "provenances": [printable(provenance) for provenance in provenances],
        "cells": len(source.cells),
        "trials": source.trials,
        "failed": failed,
        "whole": source.whole,
    }
