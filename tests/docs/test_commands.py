"""README and docs say what works: their commands exist and run, and what they show is what the code says today."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from pathlib import Path

import click
import pytest

from taxtui.cli import app
from taxtui.options.training_file import TEMPLATE
from tests.docs.pages import PAGES, ROOT, blocks, name_of, prose, text_of
from tests.support import reference
from tests.support.command_line import printed
from tests.support.cost_model.simulating import attribute_coarsely, run_coarsely
from tests.support.reference import SHOWN

CHEAP = ("report", "project", "compare", "recordings")
"""Commands that only read what ships. The others measure, build, remove, or open the interface."""


def commands() -> list[str]:
    """Every taxtui command line in a shell block, without its comment, and in the text itself."""
    lines = [
        line.removeprefix("$ ").partition("  #")[0].strip()
        for page in PAGES
        for language in ("sh", "console")
        for block in blocks(page, language)
        for line in block.splitlines()
    ]
    here = [page for page in PAGES if page.name not in ("CHANGELOG.md", "CONTRIBUTING.md")]
    inline = [found for page in here for found in re.findall(r"`(taxtui [^`]+)`", prose(page), re.DOTALL)]
    parts = [part.strip() for line in [*lines, *inline] for part in line.split("&&")]
    return sorted({" ".join(part.split()) for part in parts if part.startswith("taxtui")})


@pytest.mark.parametrize("line", [line for line in commands() if "…" not in line and "COMMAND" not in line])
def test_every_command_is_accepted_as_it_stands(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("recordings", "scenarios"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "lab.toml").write_text(TEMPLATE)
    monkeypatch.chdir(tmp_path)
    group: click.Command = app
    arguments = shlex.split(line)[1:]
    context = click.Context(app, info_name="taxtui")
    while isinstance(group, click.Group) and arguments and not arguments[0].startswith("-"):
        name = arguments.pop(0)
        group = group.get_command(context, name)
        assert group is not None, f"there is no command {name!r}"
    with contextlib.suppress(click.exceptions.Exit):  # --help is an answer
        group.make_context("taxtui", arguments, parent=context, resilient_parsing=not arguments)


def cheap() -> list[str]:
    whole = [line for line in commands() if line.split()[1:] and line.split()[1] in CHEAP and "msgpack" in line]
    whole += [line for line in commands() if "essay" in line]
    compared = {command for page in PAGES for command, _ in SHOWN.findall(text_of(page))}  # below
    own = re.compile(r"\b(mine|yours|reference|before|after|ladder)\.msgpack|\blab\.toml|\bFILE\b|\*")
    return sorted({line for line in whole if not own.search(line)} - compared)


@pytest.mark.parametrize("line", cheap())
def test_cheap_commands_run_as_written(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a folder that has what a checkout has, and in this process: most of what they took was to import."""
    run_coarsely(monkeypatch)
    attribute_coarsely(monkeypatch)
    for name in ("recordings", "scenarios"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    assert printed(*shlex.split(line)[1:]).strip()


def test_the_targets_of_make_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    asked = {target for page in PAGES for target in re.findall(r"(?:^|`)make (\w+)", text_of(page), re.MULTILINE)}
    assert {"run", "test", "docs"} <= asked
    for target in asked:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


SHOWING = [page for page in reference.PAGES if reference.SHOWN.search(text_of(page))]
GENERATED = [page for page in reference.PAGES if reference.GENERATED.search(text_of(page))]


def test_each_block_has_a_place() -> None:
    names = [name for page in GENERATED for name in reference.GENERATED.findall(text_of(page))]
    assert sorted(names) == sorted(reference.BLOCKS)


@pytest.mark.parametrize("page", GENERATED, ids=name_of)
def test_generated_tables_are_up_to_date(page: Path) -> None:
    assert reference.redrawn(text_of(page), outputs=False) == text_of(page), "make reference"


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_shown_outputs_are_up_to_date() -> None:
    """All in one process, which runs a command of two pages once; outputs that take a minute on demand alone."""
    long = bool(os.environ.get("TAXTUI_LONG_OUTPUTS"))
    for page in SHOWING:
        assert reference.redrawn(text_of(page), long=long) == text_of(page), f"make reference: {name_of(page)}"


@pytest.mark.slow
def test_python_examples_print_what_the_page_shows() -> None:
    for page in reference.PAGES:
        assert reference.failures(page) == 0, name_of(page)
