"""Every action of Setup, by its key, on a running app."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.widgets import OptionList

from taxtui.commands import run as run_command
from taxtui.tui import feed as feed_module
from taxtui.tui.app import TaxtuiApp
from taxtui.tui.feed import Launcher
from taxtui.tui.screens.dialogs import Ask, Choose
from taxtui.tui.widgets.pick_list import PickList
from tests.tui import story
from tests.tui.driving import SIZE, covers, live, setup
from tests.tui.feeds import StoryRun, app


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[object, list[str]]]:
    """What would have been started, as (scenario, options)."""
    seen: list[tuple[object, list[str]]] = []

    class Started(StoryRun):
        def __init__(self, scenario: object, path: Path, launcher: object, options: Sequence[str] = ()) -> None:
            super().__init__(story.run(20, until=3, finish=False))
            seen.append((scenario, list(options)))

    monkeypatch.setattr(feed_module, "RunFeed", Started)
    monkeypatch.setattr(run_command, "default_folder", lambda: tmp_path)
    monkeypatch.setattr(Launcher, "yield_cpu", lambda self: None)
    return seen


@covers("setup", "launch")
async def test_ctrl_r_launches_what_the_form_says(launched: list[tuple[object, list[str]]]) -> None:
    async with app().run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+r")
        await pilot.pause()
        live(pilot)
        await pilot.press("1", "ctrl+r")  # one run at a time
        await pilot.pause()
        setup(pilot)
    cells = {
        "substrates": ["local"], "tiers": ["T0"], "actions": [10], "modes": ["exec"],
        "trials": 100, "warmup": 1, "concurrency": 1,
    }  # fmt: skip
    assert launched == [({"name": "setup", "budget": "", "cells": [cells]}, [])]


async def test_a_paid_substrate_is_launched_only_after_its_name_is_typed(
    launched: list[tuple[object, list[str]]],
) -> None:
    async with app().run_test(size=SIZE) as pilot:
        await pilot.pause()
        setup(pilot).query_one("#substrates", PickList).pick(["daytona", "local"])
        await pilot.press("ctrl+r", *"daytina", "enter")
        assert isinstance(pilot.app.screen, Ask)
        await pilot.press("escape")
        assert launched == []
        await pilot.press("ctrl+r", *"daytona", "enter")
        await pilot.pause()
        live(pilot)
    assert [options for _, options in launched] == [["--yes", "--max-sandboxes", "202"]]


@covers("setup", "recheck")
async def test_r_asks_the_substrates_again() -> None:
    asked = []

    async def checker() -> dict[str, object]:
        asked.append(1)
        return {}

    async with TaxtuiApp(None, checker).run_test(size=SIZE) as pilot:  # type: ignore[arg-type]
        await pilot.press("r")
        await pilot.pause()
    assert len(asked) == 2


@covers("setup", "preset")
async def test_p_fills_the_form_from_a_scenario(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    block = '[[cells]]\nsubstrates = ["docker:runtime=runsc"]\ntiers = ["T1"]\nactions = [25]\ntrials = 7\n'
    (tmp_path / "aaa.toml").write_text(block)
    (tmp_path / "broken.toml").write_text("[[cells]]\nsubstrates = 3\n")
    async with app().run_test(size=SIZE) as pilot:
        await pilot.press("p")
        await pilot.pause()
        assert isinstance(pilot.app.screen, Choose)
        presets = pilot.app.screen.query_one(OptionList)
        prompts = [str(presets.get_option_at_index(n).prompt) for n in range(presets.option_count)]
        presets.highlighted = next(n for n, prompt in enumerate(prompts) if prompt.startswith("aaa"))
        assert any("broken" in prompt and "expected" in prompt.lower() for prompt in prompts)
        await pilot.press("enter")
        await pilot.pause()
        choices = setup(pilot).choices
        assert (choices.substrates, choices.tiers, choices.actions) == (("docker:runtime=runsc",), ("T1",), (25,))
        assert (choices.trials, choices.modes) == ("7", ("exec",))


@covers("setup", "add")
async def test_a_adds_a_substrate_with_options() -> None:
    async with app().run_test(size=SIZE) as pilot:
        await pilot.press("a", *"docker:runtime=runsc", "enter")
        await pilot.pause()
        assert setup(pilot).choices.substrates == ("local", "docker:runtime=runsc")
        await pilot.press("a", *"dokcer", "enter")
        await pilot.pause()
        assert len(setup(pilot).choices.substrates) == 2


@covers("setup", "copy")
async def test_y_copies_the_command_line() -> None:
    async with app().run_test(size=SIZE) as pilot:
        await pilot.press("y")
        assert pilot.app.clipboard == (
            "taxtui run -s local -t T0 -n 10 --mode exec --trials 100 --warmup 1 --concurrency 1"
        )
