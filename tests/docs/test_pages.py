"""The pages hang together: links, substrates, the reader of recordings, price sheets."""

from __future__ import annotations

import importlib
import re
import tomllib
import types
from importlib.metadata import entry_points
from pathlib import Path

import msgspec
import pytest

import costmodel
from costmodel.recording import events
from costmodel.recording.follower import Follower
from taxtui import shipped
from taxtui.sandboxes import registry
from tests.docs.pages import DOCS, PAGES, README, ROOT, anchors, blocks, name_of, page_of, prose, text_of

LINK = events.Link.__struct_config__.tag
"""The kind of what frames alone know: their place in the chain."""

SUBSTRATES = tuple(shipped.SUBSTRATES)


def test_the_pages_are_short() -> None:
    assert len(text_of(README).split()) <= 700
    pages = sorted(DOCS.rglob("*.md"))
    assert len(pages) <= 22
    assert sum(len(text_of(page).split()) for page in pages) <= 22_000


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


@pytest.mark.parametrize("name", SUBSTRATES)
def test_a_substrates_page_has_its_options_and_what_is_verified(name: str) -> None:
    page = text_of(page_of(name))
    for heading in ("# Options", "# Verified", "# Not verified", "# What can go wrong"):
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
    assert {page_of(name) for name in SUBSTRATES} == set((DOCS / "substrates").glob("*.md"))


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
    sheet, profile, provider = blocks("command-line.md", "toml")
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


def test_code_sends_nobody_to_the_readme() -> None:
    sources = [*ROOT.glob("taxtui/**/*.py"), *ROOT.glob("costmodel/**/*.py"), *ROOT.glob("scenarios/**/*.toml")]
    assert [file.name for file in sources if "README" in file.read_text("utf-8")] == []


def test_every_value_of_the_shipped_question_has_a_source() -> None:
    document = tomllib.loads((ROOT / "scenarios/training/lab-question.toml").read_text(encoding="utf-8"))
    sources, places = document.pop("sources"), document.pop("at")
    tables = [*document.values(), *(table for place in places.values() for table in place.values())]
    assert {key for table in tables for key in table} - {"compose"} == set(sources)
