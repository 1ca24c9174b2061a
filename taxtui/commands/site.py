"""``taxtui site``: a folder of recordings and published figures as pages, with an index that compares them."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import click

from taxtui.commands import new_file
from taxtui.errors import RecordingError
from taxtui.options.count import COUNT
from taxtui.options.run_spread import run_sd_option


@click.command("site")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Write to a new folder.",
)
@click.option(
    "--prices", "sheets", multiple=True, metavar="FILE", help="Price sheet (TOML), or a shipped one, repeatable."
)
@click.option(
    "--trajectories", type=COUNT, default="1M", show_default=True, metavar="N", help="Trajectories of the training run."
)
@click.option(
    "--workers", type=COUNT, default="500", show_default=True, metavar="W", help="Rollout workers of the training run."
)
@run_sd_option
def command(
    folder: Path, out: Path, sheets: tuple[str, ...], trajectories: int, workers: int, run_sd: float | None
) -> None:
    """Write pages for a server: one per recording in FOLDER, and an index that compares them.

    The index has dollars against hours where prices are given, ranks that tie, dated rows of each provider with their
    sources (those of FOLDER's TOML files of published figures, and those that ship), and all that is missing.
    """
    from costmodel import Prices, TrainingRun, load_prices
    from taxtui.report.page import site

    training_run = TrainingRun(trajectories=trajectories, workers=workers, run_sd=run_sd)
    prices = reduce(Prices.combined_with, map(load_prices, sheets)) if sheets else None
    book = site.opened(folder, sheets)
    if not book.paths and not book.published:
        if not book.gaps:
            raise RecordingError(f"{folder} holds no recording", fix=f"taxtui run -o {folder / 'NAME.msgpack'}")
        first = book.gaps[0]
        others = f" (and {len(book.gaps) - 1} more such)" if book.gaps[1:] else ""
        raise RecordingError(f"{folder} holds no recording that can be compared{others}: {first.name}: {first.why}")
    new_file.empty_folder(out, "-o")
    for number, name in enumerate(book.pages):
        new_file.write([site.page_of(book, number, run_sd).encode()], out / name, "-o")
    new_file.write([site.index(book, folder.resolve().name, training_run, prices).encode()], out / "index.html", "-o")
    for gap in book.gaps:
        click.echo(f"taxtui: {gap.name}: {gap.why}", err=True)
    click.echo(out / "index.html")
