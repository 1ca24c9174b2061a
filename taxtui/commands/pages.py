"""``--html`` of ``taxtui report`` and ``project``: pages as new files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from taxtui.commands.files import find_recording, load_reference, require_absent, write_new_file
from taxtui.errors import RecordingError, UsageError
from taxtui.report.row_limits import PAGE

if TYPE_CHECKING:
    from costmodel import Provider, SubstrateRun
    from taxtui.options.rows import RowChoice

html_option = click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a page to send, in a single new file: answer, figures, tables, data.",
)
NOT_REPEATED: Final = ("html", "form")
"""Options without an effect on a page: its file, and the output format."""
FILE_OPTIONS: Final = ("file", "reference", "prices", "profile", "images", "compose")
"""Options with files as values. A page prints the name of a file without its folder."""


def check(html: Path, excluded: Mapping[str, object]) -> None:
    """Refuse a page before a recording is read. ``excluded``: values of options without an effect on a page.

    Raises:
        UsageError: an excluded option has a value, or the file exists.
    """
    if word := next((word for word, value in excluded.items() if value), None):
        raise UsageError(f"{word} does not go with --html, which always holds the whole report")
    require_absent(html, "--html")


def write(
    context: click.Context,
    recordings: Sequence[str],
    html: Path,
    *,
    choice: RowChoice,
    reference: str | None,
    run_sd: float | None,
    places: Sequence[SubstrateRun] = (),
    providers: Sequence[Provider] = (),
) -> None:
    """Read recordings and published latencies, and write the page.

    ``places`` and ``providers``: the training run of each substrate and the estimated providers.

    Raises:
        TaxtuiError, CostModelError: as ``taxtui report`` and ``taxtui project``.
    """
    from costmodel import read_published
    from taxtui.report.measured.rows import rows_of
    from taxtui.report.measured.samples import read_samples
    from taxtui.report.page.content import page
    from taxtui.report.page.material import Material

    files = [find_recording(name) for name in recordings]
    published = [path for path in files if places and path.suffix == ".toml"]  # latencies have no measured rows
    paths = [path for path in files if path not in published]
    cells, sources = read_samples(paths)
    all_rows = rows_of(cells, run_sd)
    if not all_rows:
        raise RecordingError(f"{', '.join(recordings)}: no trial has ended, so there is nothing to report")
    rows = choice.of(all_rows)
    PAGE.check(len(rows), paths, "--tier, --mode, --substrate or --actions")
    material = Material(
        rows,
        sources,
        paths,
        len(cells) - len(all_rows),
        run_sd=run_sd,
        bounds=None if reference is None else load_reference(reference),
        published=[read_published(path) for path in published],
        places=places,
        providers=providers,
    )
    text = page(material, typed_options(context), str(context.info_name))
    write_new_file([text.encode()], html, "--html")


def typed_options(context: click.Context) -> list[str]:
    """Return the typed options with an effect on rows or numbers, to be typed again."""
    words: list[str] = []
    for option in context.command.params:
        name = str(option.name)
        typed = context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        if not isinstance(option, click.Option) or name in NOT_REPEATED or not typed:
            continue
        flag, value = option.opts[-1], context.params[name]
        if option.is_flag:
            words.append(flag)
            continue
        for text in _texts(context, name, value) if option.multiple else [_text(name, value)]:
            words += [f"{flag}={text}"] if text.startswith("-") else [flag, text]
    return words


def _texts(context: click.Context, name: str, values: Sequence[object]) -> list[str]:
    """Return the texts of a repeatable option; ``--set`` has ``KEY=VALUE``."""
    from taxtui.options.training import SET, SET_WORDS

    if name != SET.name:
        return [_text(name, value) for value in values]
    pairs = (word.partition("=") for word in context.meta[SET_WORDS])
    return [f"{key}={_text(key, value)}" for key, _, value in pairs]


def _text(name: str, value: object) -> str:
    """Return a value as it can be typed, without the folder of a file."""
    text = f"{value:g}" if isinstance(value, float) else str(getattr(value, "path", value))
    return re.sub(r"[^\s:,=]*/", "", text) if name in FILE_OPTIONS else text
