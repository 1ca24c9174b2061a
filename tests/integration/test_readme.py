"""The README says what works: its commands exist with these options, its substrate passes the suite it is held to."""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
import types
from pathlib import Path

import click
import pytest

from taxtui.cli import app
from taxtui.sandboxes.conformance import Check, NotApplicable, checks

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    """Every taxtui command line in a shell block, without its comment."""
    blocks = re.findall(r"```(?:sh|console)\n(.*?)```", README, re.DOTALL)
    lines = [line.removeprefix("$ ").partition("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [part.strip() for line in lines for part in line.split("&&") if part.strip().startswith("taxtui")]


def test_there_are_commands_to_check() -> None:
    assert len(commands()) >= 15


@pytest.mark.parametrize("line", commands())
def test_every_command_of_the_readme_is_accepted_as_it_stands(line: str) -> None:
    group: click.Command = app
    arguments = shlex.split(line)[1:]
    context = click.Context(app, info_name="taxtui")
    while isinstance(group, click.Group) and arguments:
        name = arguments.pop(0)
        found = group.get_command(context, name)
        assert found is not None, f"there is no command {name!r}"
        group = found
    group.make_context("taxtui", arguments, parent=context)


def test_the_two_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert {"run", "test"} <= set(re.findall(r"^make (\w+)", README, re.MULTILINE))


def test_every_file_that_the_readme_links_to_is_there() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def readme_substrate() -> types.ModuleType:
    [source] = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "class Folders" in block]
    assert len(source.splitlines()) < 60
    module = types.ModuleType("folders")
    sys.modules["folders"] = module  # msgspec looks annotations up there
    exec(compile(source, "README.md", "exec"), module.__dict__)
    return module


FOLDERS = readme_substrate()


@pytest.mark.parametrize("check", checks(), ids=str)
async def test_the_readmes_substrate_passes_the_conformance_suite(check: Check) -> None:
    with tempfile.TemporaryDirectory() as root:
        try:
            await check(lambda: FOLDERS.Folders(FOLDERS.Options(root)))
        except NotApplicable as reason:
            assert FOLDERS.Folders.capabilities.acquire == ("create",), reason
