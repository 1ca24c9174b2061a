"""``taxtui site``: pages of a folder of recordings and published figures, with a comparing index."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import click

from taxtui import starting
from taxtui.commands.files import require_empty_folder, write_new_file
from taxtui.errors import RecordingError
from taxtui.options.numbers import COUNT, run_sd_option


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

    The index has dollars against hours if prices are given, dated figures of each provider, and missing data.
    """
    from costmodel import Prices, TrainingRun, load_prices
    from taxtui.report.page import site

    starting.interrupt_on_signals()
    training_run = TrainingRun(trajectories=trajectories, workers=workers, run_sd=run_sd)
    prices = reduce(Prices.combined_with, map(load_prices, sheets)) if sheets else None
    book = site.opened(folder, sheets)
    if not book.paths and not book.published:
        if not book.gaps:
            raise RecordingError(f"{folder} holds no recording", fix=f"taxtui run -o {folder / 'NAME.msgpack'}")
        gap, *more = book.gaps
        count = f" (and {len(more)} more)" if more else ""
        raise RecordingError(f"{folder} holds no recording that can be compared{count}: {gap.name}: {gap.why}")
    require_empty_folder(out, "-o")
    for number, name in enumerate(book.pages):
        write_new_file([site.page_of(book, number, run_sd).encode()], out / name, "-o")
    write_new_file([site.index(book, folder.resolve().name, training_run, prices).encode()], out / "index.html", "-o")
    for gap in book.gaps:
        click.echo(f"taxtui: {gap.name}: {gap.why}", err=True)
    click.echo(out / "index.html")
