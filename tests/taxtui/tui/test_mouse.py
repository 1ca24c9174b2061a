"""What the keys do, done with the mouse."""

from __future__ import annotations

from pathlib import Path

from textual.widgets import Footer

from taxtui.tui import actions
from taxtui.tui.answer_table import AnswerTable
from taxtui.tui.live.panels import CellTable
from taxtui.tui.numbered_screen import NumberedScreen, Tab
from tests.taxtui.tui.driving import SIZE, looking_at, running, until
from tests.taxtui.tui.feeds import app
from tests.taxtui.tui.story import record


async def test_a_click_on_a_tab_goes_to_its_screen() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        for scope in (tab.scope for tab in reversed(actions.SCREENS)):
            tab = next(tab for tab in pilot.app.screen.query(Tab) if tab.mode == scope)
            await pilot.click(tab)
            await pilot.pause()
            assert isinstance(pilot.app.screen, NumberedScreen)
            assert pilot.app.screen.scope == scope


async def test_a_click_on_a_cell_chooses_it() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        await pilot.pause()
        table = pilot.app.screen.query_one(CellTable)
        await pilot.click(CellTable, offset=(5, 3))  # below the border and the heading, the second one
        assert table.chosen is not None
        assert table.chosen.label == "docker:runc"


async def test_a_click_on_a_row_chooses_it_and_on_a_key_of_the_footer_does_what_the_key_does(tmp_path: Path) -> None:
    path = record(tmp_path / "story.msgpack")
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("4")
        table = pilot.app.screen.query_one(AnswerTable)
        await until(pilot, lambda: table.items)
        await pilot.click(AnswerTable, offset=(5, 2))
        assert table.has_focus
        await pilot.click(
            next(key for key in pilot.app.screen.query_one(Footer).children if "Copy" in str(key.render()))
        )
        await pilot.pause()
        assert pilot.app.clipboard.startswith("taxtui project")
