"""The pages hang together, and hold what people look for there: every flag, option, event and name."""

from __future__ import annotations

import importlib
import re
import types
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import get_args

import click
import msgspec
import pytest

import costmodel
import taxtui.sandboxes
from costmodel.projection import warnings
from costmodel.recording import events
from costmodel.recording.follower import Follower
from taxtui import shipped
from taxtui.cli import app
from taxtui.report.measured.tables import DO, WORDS
from taxtui.sandboxes import registry
from tests.docs.pages import DOCS, PAGES, README, ROOT, anchors, blocks, name_of, prose, text_of

LINK = events.Link.__struct_config__.tag
"""The kind of what frames alone know: their place in the chain."""

SUBSTRATES = tuple(shipped.SUBSTRATES)


def test_the_readme_is_short() -> None:
    assert len(README.read_bytes()) < 10_000


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(page)):
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name_of)
def test_a_page_of_the_site_links_to_pages_of_the_site(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", prose(page)):
        assert (page.parent / target).resolve().is_relative_to(DOCS), target


@pytest.mark.parametrize("flag", {**warnings.WORDS, **WORDS})
def test_every_flag_is_explained_with_what_to_do(flag: str) -> None:
    assert flag in DO
    rows = re.findall(r"^\| (`.*?) \| (.+?) \| (.+?) \|$", text_of("reading-the-numbers.md"), re.MULTILINE)
    assert [row for row in rows if f"`{flag}" in row[0] and len(row[2]) > 10], flag


def options(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """(command, option) of a command and of all below it."""
    context = click.Context(command)
    shown = (one for one in command.get_params(context) if not getattr(one, "hidden", False))
    for parameter in shown:
        yield from ((path, option) for option in parameter.opts if option.startswith("-"))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from options(found, f"{path} {name}")


def test_every_option_of_project_is_explained() -> None:
    page = text_of("cost-model.md")
    wanted = {option for path, option in options(app, "taxtui") if path == "taxtui project"} - {"-h", "--help"}
    assert [option for option in sorted(wanted) if f"`{option}" not in page] == []


@pytest.mark.parametrize("name", SUBSTRATES)
def test_a_substrates_page_has_its_options_and_what_is_verified(name: str) -> None:
    page = text_of(f"substrates/{name}.md")
    for heading in ("## Options", "## Verified", "## Not verified", "## What can go wrong"):
        assert heading in page
    # By the options' own module: an SDK may need another Python than this one.
    (point,) = entry_points(group=registry.GROUP, name=name)
    kind, package = f"{name.capitalize()}Options", point.module.rpartition(".")[0]
    around = importlib.import_module(package)
    options = around if hasattr(around, kind) else importlib.import_module(f"{package}.options")
    fields = msgspec.structs.fields(getattr(options, kind))
    missing = [field.name for field in fields if f"`{field.name}`" not in page]
    assert missing == []


def test_every_substrate_has_a_page() -> None:
    assert set(SUBSTRATES) <= set(registry.names())
    assert {path.stem for path in (DOCS / "substrates").glob("*.md")} == set(SUBSTRATES)


@pytest.mark.parametrize("kind", get_args(events.Event), ids=lambda kind: kind.__name__)
def test_every_event_and_field_is_in_the_format(kind: type[msgspec.Struct]) -> None:
    tag = kind.__struct_config__.tag
    page = text_of("recording-format.md")
    section = page.partition(f"### {tag} · {kind.__name__}:")[2].partition("\n##")[0]
    told = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(told)) == list(kind.__struct_fields__)


def own_reader() -> types.ModuleType:
    [source] = blocks("recording-format.md", "python")
    module = types.ModuleType("own_reader")
    exec(compile(source, "recording-format.md", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("name", ["small", "run"])
def test_the_reader_of_the_format_page_reads_what_taxtui_reads(name: str) -> None:
    path = ROOT / "recordings" / f"{name}.msgpack"
    told = []
    with Follower(path) as follower:
        while batch := follower.poll():
            told += [msgspec.msgpack.decode(msgspec.msgpack.encode(event)) for event in batch]
    reader = own_reader()
    read = [event for event in reader.events(path) if event[0] != LINK]
    assert read == [event[: len(raw)] for raw, event in zip(read, told, strict=True)]  # fields were appended since
    assert 0 < reader.mean_held_s(path) < 60


def test_the_reader_of_the_format_page_notices_a_flipped_bit(tmp_path: Path) -> None:
    data = bytearray((ROOT / "recordings/small.msgpack").read_bytes())
    data[5000] ^= 1
    (tmp_path / "damaged").write_bytes(data)
    with pytest.raises(ValueError, match="damaged at byte"):
        list(own_reader().events(tmp_path / "damaged"))


def test_the_sheet_the_profile_and_the_provider_of_the_page_are_some(tmp_path: Path) -> None:
    sheet, profile, provider = blocks("prices.md", "toml")
    (tmp_path / "acme-prices.toml").write_text(sheet)
    prices = costmodel.load_prices(tmp_path / "acme-prices.toml")
    assert [price.substrate for price in prices.sandboxes] == ["kubernetes"]
    (tmp_path / "acme-limits.toml").write_text(profile)
    assert costmodel.load_profile(tmp_path / "acme-limits.toml").concurrent == 5000
    (tmp_path / "acme.toml").write_text(provider)
    found = costmodel.load_provider(str(tmp_path / "acme.toml"))
    assert found.slowdown.high == 1.3
    assert found.profile is not None
    assert found.prices is not None


def test_every_public_name_is_in_the_api() -> None:
    sandboxes, model = text_of("api/sandboxes.md"), text_of("api/costmodel.md")
    whole = {
        "taxtui.errors",
        "costmodel.projection.row",
        "costmodel.errors",
        "costmodel.analysis.ranking",
    }  # shown with all that they hold
    for module, page in ((taxtui.sandboxes, sandboxes), (costmodel, model)):
        shown = set(re.findall(r"^::: [\w.]+\.(\w+)$", page, re.MULTILINE))
        lost = [
            name
            for name in module.__all__
            if name not in shown
            and name.upper() != name  # constants stand with what uses them
            and getattr(getattr(module, name), "__module__", "") not in whole
        ]
        assert lost == []


def test_code_sends_nobody_to_the_readme() -> None:
    sources = [*ROOT.glob("taxtui/**/*.py"), *ROOT.glob("costmodel/**/*.py"), *ROOT.glob("scenarios/**/*.toml")]
    assert [file.name for file in sources if "README" in file.read_text("utf-8")] == []
