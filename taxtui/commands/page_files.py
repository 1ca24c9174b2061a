"""``taxtui report --html`` and ``--figures``: pages and pictures as new files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taxtui.commands import new_file
from taxtui.errors import UsageError

if TYPE_CHECKING:
    from taxtui.report.answer.choice import Choice
    from taxtui.report.page.material import Material

html_option = click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A page to send, in one new file: answer, figures, tables, data. Needs taxtui[report].",
)
figures_option = click.option(
    "--figures",
    "pictures",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Its figures in a new folder, as SVG and PNG, with what is drawn as CSV.",
)


def needed(what: str) -> None:
    """Raises ``UsageError`` where a package of the extra is missing; ``what`` needs it."""
    for package in ("jinja2", "matplotlib"):
        try:
            __import__(package)
        except ModuleNotFoundError as error:
            raise UsageError(f"{what} needs {error.name}", fix="pip install 'taxtui[report]'") from error


def check(html: Path | None, pictures: Path | None, others: Mapping[str, object]) -> None:
    """Refuse what cannot be made before a recording is read; ``others`` are options that do not go with it, if given.

    Raises:
        UsageError: one of them is given, the extra is missing, or there is something of that name.
    """
    asked = "--html" if html is not None else "--figures"
    if given := next((option for option, value in others.items() if value), None):
        raise UsageError(f"{given} does not go with {asked}, which always holds the whole report")
    needed(asked)
    if html is not None:
        new_file.absent(html, "--html")
    if pictures is not None:
        new_file.empty_folder(pictures, "--figures")


def asked(choice: Choice, options: Mapping[str, object]) -> list[str]:
    """What the command line asked for that changes the numbers or chooses among them; None: not given."""
    told: list[tuple[str, object]] = []
    names = {
        "--tier": choice.tiers,
        "--mode": choice.modes,
        "--substrate": choice.substrates,
        "--actions": choice.lengths,
    }
    for option, values in names.items():
        told += [(option, value) for value in values]
    told += [("--sort", choice.sort), *options.items()]
    return [part for option, value in told if value is not None for part in (option, str(value))]


def write(material: Material, html: Path | None, pictures: Path | None, options: Sequence[str]) -> list[Path]:
    """Write what is asked for, and say where; ``options`` are those of the command line, as ``asked`` has them."""
    written = []
    if html is not None:
        from taxtui.report.page.content import page

        new_file.write([page(material, options).encode()], html, "--html")
        written.append(html)
    if pictures is not None:
        written += _write_figures(material, pictures)
    return written


def _write_figures(material: Material, folder: Path) -> list[Path]:
    from taxtui.report.formats import csv_rows
    from taxtui.report.page.drawing import png_file, svg_file
    from taxtui.report.page.figures import figures

    for figure in figures(material):
        for panel in figure.panels:
            new_file.write([svg_file(panel)], folder / f"{panel.name}.svg", "--figures")
            new_file.write([png_file(panel)], folder / f"{panel.name}.png", "--figures")
        data = [{"panel": panel.name, **one} for panel in figure.panels for one in panel.data]
        new_file.write([f"{csv_rows.to_text(data)}\n".encode()], folder / f"{figure.name}.csv", "--figures")
    return [folder]
