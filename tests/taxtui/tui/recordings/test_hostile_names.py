"""Whatever a recording calls things, every screen shows it as text: no markup, no control character, no end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.pilot import Pilot

from taxtui.terminal_text import UNPRINTABLE
from taxtui.tui.actions import SCREENS
from taxtui.tui.results.model import TABLES
from tests.support.fuzz import hostile
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import app, names, open_shelf, shown, taxtui, text
from tests.taxtui.tui.story import record

SIZE = (118, 30)


@pytest.mark.slow
@seed(18)
@settings(max_examples=1, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=hostile.names, other=st.text(max_size=40))
@example(one=hostile.WIDE, other="[red]\x1b[31m")
def test_no_name_ends_a_screen_or_reaches_the_terminal(folder: Path, one: str, other: str) -> None:
    for path in folder.iterdir():
        path.unlink()
    record(folder / "a.msgpack", [hostile.renamed(event, one, other) for event in story.run(8)], run_id=one)
    record(folder / "b.msgpack", [hostile.renamed(event, one, other) for event in story.run(8)], run_id=f"{one}b")
    asyncio.run(_visit())


async def _visit() -> None:
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        assert sorted(names(screen)) == ["a", "b"]
        visit = "d escape 3 right_square_bracket enter enter escape escape 4 w escape"
        for key in f"{visit} 5 enter enter enter escape escape tab tab enter escape".split():
            await _pressed(pilot, key)
        taxtui(pilot).feed.close()


async def _pressed(pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    await shown(pilot)
    lines = text(pilot).split("\n")
    assert not any(map(UNPRINTABLE.search, lines))
    assert {cell_len(line) for line in lines} == {SIZE[0]}, "what is wider than it counts moves what stands beside it"


@pytest.mark.slow
async def test_markup_in_a_name_is_shown_as_it_stands_on_every_screen(folder: Path) -> None:
    name = "".join(hostile.MARKUP[:2])
    record(folder / "a.msgpack", [hostile.renamed(event, name, name) for event in story.run(8)], run_id=name)
    stands = set()
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        for key in ("5", "enter", *(tab.key for tab in SCREENS), "3", *["right_square_bracket"] * len(TABLES)):
            await _pressed(pilot, key)
            if name in text(pilot):
                stands.add(type(pilot.app.screen).__name__)
        taxtui(pilot).feed.close()
    assert stands >= {tab.screen for tab in SCREENS} - {"SetupScreen"}, "Setup shows nothing of a recording"
