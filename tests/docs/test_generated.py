"""README and docs show what the code says today; ``make reference`` writes them anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from taxtui.cli import app
from tests.docs.pages import name_of, text_of
from tests.support import reference

SHOWING = [page for page in reference.PAGES if reference.SHOWN.search(text_of(page)) or ">>>" in text_of(page)]
GENERATED = [page for page in reference.PAGES if reference.GENERATED.search(text_of(page))]


def test_each_block_has_a_place() -> None:
    names = [name for page in GENERATED for name in reference.GENERATED.findall(text_of(page))]
    assert sorted(names) == sorted(reference.BLOCKS)


@pytest.mark.parametrize("page", GENERATED, ids=name_of)
def test_generated_tables_are_up_to_date(page: Path) -> None:
    assert reference.redrawn(text_of(page), outputs=False) == text_of(page), "make reference"


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("page", SHOWING, ids=name_of)
def test_shown_outputs_are_up_to_date(page: Path) -> None:
    assert reference.redrawn(text_of(page)) == text_of(page), "make reference"


def options(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from options(found, f"{path} {name}")
    elif not command.hidden:
        yield from (
            (path, option.opts[-1])
            for option in command.get_params(context)
            if isinstance(option, click.Option) and not option.hidden
        )


def test_every_option_of_every_command_is_on_the_page() -> None:
    """The training file of the page has the options of project and decide too."""
    page = text_of("command-line.md")
    sections = {part.partition("\n")[0]: part for part in page.partition("## Training file")[0].split("\n### ")}
    training = page.partition("## Training file")[2]
    wanted = [(path, option) for path, option in options(app, "taxtui") if option != "--help"]
    assert len(wanted) > 80
    for path, option in wanted:
        section = next(
            text for title, text in sections.items() if title == path or title.startswith((f"{path} [", f"{path} "))
        )
        assert option in section or option in training, (path, option)
