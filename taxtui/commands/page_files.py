"""``--html`` and ``--figures`` of ``taxtui report`` and ``project``: pages and pictures as new files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from taxtui.commands import new_file
from taxtui.errors import RecordingError, UsageError
from taxtui.report.row_limits import PAGE

if TYPE_CHECKING:
    from costmodel import Provider, SubstrateRun
    from taxtui.options.rows import RowChoice
    from taxtui.report.page.material import Material

html_option = click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a page to send, in a single new file: answer, figures, tables, data.",
)
figures_option = click.option(
    "--figures",
    "pictures",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the figures of the page to a new folder, as SVG, PNG and CSV.",
)


training_option = click.option(
    "--training",
    metavar="FILE",
    help="Training file; the page of --html or --figures shows the costs of the run too.",
)


def check(html: Path | None, pictures: Path | None, others: Mapping[str, object]) -> None:
    """Refuse what cannot be made before a recording is read; ``others`` are options that do not go with it, if given.

    Raises:
        UsageError: one of them is given, or there is something of that name.
    """
    asked = "--html" if html is not None else "--figures"
    if given := next((option for option, value in others.items() if value), None):
        raise UsageError(f"{given} does not go with {asked}, which always holds the whole report")
    if html is not None:
        new_file.absent(html, "--html")
    if pictures is not None:
        new_file.empty_folder(pictures, "--figures")


def make(
    recordings: Sequence[str],
    html: Path | None,
    pictures: Path | None,
    *,
    choice: RowChoice,
    reference: str | None,
    run_sd: float | None,
    places: Sequence[SubstrateRun] = (),
    providers: Sequence[Provider] = (),
    options: Sequence[str],
    command: str = "report",
) -> list[Path]:
    """Read the recordings, and published latencies among them; write what is asked for; where that is.

    ``places`` and ``providers`` are as ``asked_run`` takes them, where a run is asked for; ``taxtui command`` with
    ``options`` and the choice makes the same.

    Raises:
        TaxtuiError, CostModelError: as ``taxtui report`` and ``taxtui project`` do.
    """
    from costmodel import read_published
    from taxtui.commands.opening import located, reference_of
    from taxtui.report.measured.rows import bound, rows_of
    from taxtui.report.measured.samples import read_samples
    from taxtui.report.page.material import Material

    results = [located(name) for name in recordings]
    paths = [path for path in results if path.suffix != ".toml"]
    cells, sources = read_samples(paths)
    every = rows_of(cells, run_sd)
    if not every:
        raise RecordingError(f"{', '.join(recordings)}: no trial has ended, so there is nothing to report")
    rows = choice.of(every)
    PAGE.check(len(rows), paths, "--tier, --mode, --substrate or --actions")
    bounds = None if reference is None else reference_of(reference)
    if bounds is not None:
        bound(rows, bounds)
    published = [read_published(path) for path in results if path.suffix == ".toml"]
    unfinished = len(cells) - len(every)
    material = Material(
        rows,
        sources,
        paths,
        unfinished,
        run_sd=run_sd,
        bounds=bounds,
        sort=choice.sort,
        published=published,
        places=places,
        providers=providers,
    )
    again = [*asked(choice, {"--reference": reference and Path(reference).name}), *options]
    written = []
    if html is not None:
        from taxtui.report.page.content import page

        new_file.write([page(material, again, command).encode()], html, "--html")
        written.append(html)
    return written if pictures is None else [*written, _write_figures(material, pictures)]


def asked_by_file(training: str) -> tuple[list[SubstrateRun], list[Provider]]:
    """Return the training run of each substrate and the estimated providers of a training file."""
    from taxtui.commands.opening import opened
    from taxtui.options.asking import places_of, providers_of
    from taxtui.options.training import OPTIONS

    context = click.Command("report", params=list(OPTIONS)).make_context("report", ["--training", training])
    return places_of(context), providers_of(context, opened)


_FILES: Final = ("file", "prices", "profile", "images", "compose")
"""Options whose values may be files: of these a page tells the names alone."""


def words(context: click.Context) -> list[str]:
    """Return the options of a training run on the command line, as they can be typed again."""
    from taxtui.options.training import OPTIONS, SET, TYPED, is_typed, value_of
    from taxtui.options.training_file import field_of

    results: list[str] = []
    for option in OPTIONS:
        name, value = str(option.name), value_of(context, option)
        file = name == "file" and value is not None
        if name in ("changes", "tiers", "modes") or not (file or is_typed(context, name)):
            continue
        flag, key = (option.opts[-1], "") if option in TYPED else (SET.opts[-1], f"{field_of(option)}=")
        if option.is_flag:
            results += [flag, f"{key}true"]
            continue
        for item in value if option.multiple else [value.path if file else value]:
            text = f"{item:g}" if isinstance(item, float) else str(item)
            text = re.sub(r"[^\s:,=]*/", "", text) if name in _FILES else text
            text = f"{key}{text}"
            results += [f"{flag}={text}"] if text.startswith("-") else [flag, text]
    return results


def asked(choice: RowChoice, options: Mapping[str, object]) -> list[str]:
    """Return the options that change or select numbers; None: not given."""
    texts: list[tuple[str, object]] = []
    names = {"--tier": choice.tiers, "--mode": choice.modes, "--substrate": choice.substrates}
    for option, values in {**names, "--actions": tuple(map(str, choice.lengths))}.items():
        texts += [(option, value) for value in values]
    texts += [("--sort", choice.sort), *options.items()]
    return [part for option, value in texts if value is not None for part in (option, str(value))]


def _write_figures(material: Material, folder: Path) -> Path:
    from taxtui.report.formats import csv_rows
    from taxtui.report.page.drawing import png_file, svg_file
    from taxtui.report.page.figures import figures

    for figure in figures(material):
        for panel in figure.panels:
            new_file.write([svg_file(panel)], folder / f"{panel.name}.svg", "--figures")
            new_file.write([png_file(panel)], folder / f"{panel.name}.png", "--figures")
        data = [{"panel": panel.name, **item} for panel in figure.panels for item in panel.data]
        new_file.write([f"{csv_rows.to_text(data)}\n".encode()], folder / f"{figure.name}.csv", "--figures")
    return folder
