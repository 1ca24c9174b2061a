from __future__ import annotations

from pathlib import Path

import pytest
from textual.app import App

from taxtui import folders
from taxtui.tui.dialogs import copy


async def test_what_is_copied_can_be_had_where_the_terminal_does_not_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App[None]().run_test() as pilot:
        copy(pilot.app, "taxtui project ×\n", "one line")
        kept = tmp_path / "cache" / "copied.txt"
        assert pilot.app.clipboard == kept.read_text(encoding="utf-8") == "taxtui project ×\n"
        await pilot.pause()
        (note,) = pilot.app._notifications
        assert note.message == f"one line\nNot on the clipboard? cat {kept}"

        monkeypatch.setattr(folders, "cache", lambda: kept)  # no folder
        copy(pilot.app, "another", "told")
        await pilot.pause()
        assert [one.message for one in pilot.app._notifications][-1].endswith("shift held")
