"""Every action of the table, by its key, on a running app. A new action without a test fails the last one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from taxtui import events
from taxtui.cell_state import FACETS
from taxtui.recording import Recorder
from taxtui.tui import actions, projection
from taxtui.tui import app as app_module
from taxtui.tui.app import THEMES, TaxtuiApp
from taxtui.tui.feed import Launcher, ReplayFeed
from taxtui.tui.screens.dialogs import Ask, Choose, Confirm, Tell
from taxtui.tui.screens.live import LiveScreen
from taxtui.tui.screens.setup import SetupScreen
from taxtui.tui.widgets.log_view import LogView
from taxtui.tui.widgets.pick_list import PickList
from tests.tui import story
from tests.tui.feeds import StoryRun, app

SIZE = (80, 24)
TESTED: set[tuple[str, str]] = set()


def covers(scope: str, *names: str) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., Awaitable[None]]]:
    TESTED.update((scope, name) for name in names)
    return lambda function: function


def running() -> StoryRun:
    return StoryRun(story.run(20, until=10, finish=False))


def finished() -> StoryRun:
    return StoryRun(story.run(20), exit_code=0)


def live(pilot: Pilot[None]) -> LiveScreen:
    screen = pilot.app.screen
    assert isinstance(screen, LiveScreen)
    return screen


def setup(pilot: Pilot[None]) -> SetupScreen:
    screen = pilot.app.screen
    assert isinstance(screen, SetupScreen)
    return screen


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[ReplayFeed]:
    path = tmp_path / "story.msgpack"
    with Recorder(path) as recorder:
        for event in story.run():
            recorder.add(event)
    feed = ReplayFeed(path)
    yield feed
    feed.close()


@covers("app", "go('setup')", "go('live')")
async def test_digits_go_to_the_screens() -> None:
    async with app().run_test(size=SIZE) as pilot:
        await pilot.press("2")
        live(pilot)
        await pilot.press("1")
        setup(pilot)


@covers("app", "help")
async def test_help_lists_every_action_of_the_screen() -> None:
    async with app(running()).run_test(size=(160, 50)) as pilot:
        await pilot.press("question_mark")
        assert isinstance(pilot.app.screen, Tell)
        svg = pilot.app.export_screenshot().replace("&#160;", " ")
        for action in actions.of("live", "app"):
            assert action.label in svg
        await pilot.press("escape")
        live(pilot)


@covers("app", "command_palette")
async def test_the_palette_finds_an_action_by_name_and_does_it() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+p")
        await pilot.press(*"Freeze")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause(0.3)
        await pilot.press("enter")
        await pilot.pause()
        assert live(pilot).frozen is not None


def test_the_palette_has_every_action_of_both_screens() -> None:
    tui = app()
    for screen, scope in ((SetupScreen(), "setup"), (LiveScreen(), "live")):
        titles = [command.title for command in tui.get_system_commands(screen)]
        wanted = [a for a in actions.ACTIONS if a.scope in (scope, "app") and a.name != "command_palette"]
        assert sorted(titles) == sorted(f"{a.label} ({a.shown})" for a in wanted)


@covers("app", "next_theme")
async def test_t_goes_through_the_themes_and_back() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        seen = []
        for _ in THEMES:
            await pilot.press("t")
            seen.append(pilot.app.theme)
        assert sorted(seen) == sorted(THEMES)


@covers("app", "quit")
async def test_q_leaves_at_once_when_nothing_runs() -> None:
    async with app(finished()).run_test(size=SIZE) as pilot:
        await pilot.press("q")
        await pilot.pause()
    assert pilot.app.return_code == 0


async def test_q_asks_while_a_run_goes_on_cancels_it_and_leaves_when_it_is_cleaned_up() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("q", "n")
        assert feed.sent == []
        await pilot.press("q")
        assert isinstance(pilot.app.screen, Confirm)
        await pilot.press("y")
        await pilot.pause()
        assert feed.sent == ["cancel"]
        assert pilot.app.is_running
        assert "CLEANING UP" in pilot.app.export_screenshot().replace("&#160;", " ")
        feed.goes_on([events.RunFinished("cancelled", {})], exit_code=130)
        live(pilot).advance()
        await pilot.pause()
        assert not pilot.app.is_running


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[object, list[str]]]:
    """What would have been started, as (scenario, options)."""
    seen: list[tuple[object, list[str]]] = []

    class Started(StoryRun):
        def __init__(self, scenario: object, path: Path, launcher: object, options: Sequence[str] = ()) -> None:
            super().__init__(story.run(20, until=3, finish=False))
            seen.append((scenario, list(options)))

    monkeypatch.setattr(app_module, "RunFeed", Started)
    monkeypatch.setattr(app_module, "default_folder", lambda: tmp_path)
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


@covers("live", "freeze")
async def test_space_freezes_the_view_while_the_run_goes_on() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("space")
        before = pilot.app.export_screenshot()
        assert "FROZEN" in before
        feed.goes_on(story.run(20)[-200:])
        live(pilot).tick()
        await pilot.pause()
        assert pilot.app.export_screenshot() == before
        await pilot.press("space")
        await pilot.pause()
        assert "FROZEN" not in pilot.app.export_screenshot()


@covers("live", "pause")
async def test_capital_p_pauses_launching_and_resumes() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("P")
        await pilot.pause()
        assert "PAUSED" in pilot.app.export_screenshot()
        await pilot.press("P")
        assert feed.sent == ["pause", "resume"]


@covers("live", "cancel")
async def test_c_cancels_after_asking() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("c", "escape")
        assert feed.sent == []
        await pilot.press("c", "y")
        await pilot.pause()
        assert feed.sent == ["cancel"]
        assert "CLEANING UP" in pilot.app.export_screenshot().replace("&#160;", " ")


@covers("live", "facet(1)", "facet(-1)")
async def test_brackets_page_through_the_facets() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        for facet in (*FACETS[1:], FACETS[0]):
            await pilot.press("right_square_bracket")
            await pilot.pause()
            title = str(pilot.app.screen.query_one("#chart").border_title)
            assert title.startswith(facet.replace("_", " "))
        await pilot.press("left_square_bracket")
        assert live(pilot).facet == len(FACETS) - 1


@covers("live", "zoom(1)", "zoom(-1)", "zoom(0)")
async def test_plus_minus_and_a_zoom() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        await pilot.press("plus", "equals_sign")
        assert live(pilot).zoom == 2
        await pilot.press("minus")
        assert live(pilot).zoom == 1
        await pilot.press("a")
        assert live(pilot).zoom == 0


@covers("live", "filter")
async def test_slash_filters_while_typing_and_escape_shows_everything() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        log = pilot.app.screen.query_one(LogView)
        everything = len(log.items)
        await pilot.press("slash", *"throttled")
        await pilot.pause()
        assert 0 < len(log.items) < everything
        assert all("Throttled" in line.text for line in log.items)
        await pilot.press("enter")
        assert pilot.app.focused is log
        assert pilot.app.screen.query_one("#filter", Input).display
        await pilot.press("escape")
        await pilot.pause()
        assert len(log.items) == everything
        await pilot.press("slash", "enter")
        assert not pilot.app.screen.query_one("#filter", Input).display


@covers("live", "errors_only")
async def test_exclamation_mark_shows_errors_only() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        log = pilot.app.screen.query_one(LogView)
        everything = len(log.items)
        await pilot.press("exclamation_mark")
        await pilot.pause()
        assert {line.level for line in log.items} == {"error"}
        await pilot.press("exclamation_mark")
        await pilot.pause()
        assert len(log.items) == everything


@covers("live", "project")
async def test_p_projects_the_finished_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def project(path: Path) -> object:
        asked.append(path)
        return projection._table(path, [{"substrate": "local", "worker_hours": {"value": 56.1, "low": 50, "high": 60}}])

    monkeypatch.setattr(projection, "project", project)
    feed = finished()
    async with app(feed).run_test(size=(120, 40)) as pilot:
        await pilot.press("p")
        await pilot.pause()
        assert isinstance(pilot.app.screen, Tell)
        assert "56.1" in pilot.app.export_screenshot()
        await pilot.press("y")
        assert pilot.app.clipboard == projection.command(feed.path)
        await pilot.press("escape")
    assert asked == [feed.path]


async def test_p_does_nothing_while_the_run_goes_on() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        await pilot.press("p")
        live(pilot)


@covers("live", "faster(1)", "faster(-1)")
async def test_comma_and_full_stop_change_the_replay_speed(replay: ReplayFeed) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        await pilot.press("full_stop")
        assert replay.speed == 2.0
        await pilot.press("comma", "comma")
        assert replay.speed == 0.5


@covers("live", "step")
async def test_s_goes_on_to_the_next_trial_of_a_replay_and_stops_there(replay: ReplayFeed) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        await pilot.press("s")
        assert replay.paused
        ended = sum(cell.finished + cell.warm_ups for cell in replay.state.cells.values())
        await pilot.press("s")
        assert sum(cell.finished + cell.warm_ups for cell in replay.state.cells.values()) == ended + 1
        await pilot.press("P")
        assert not replay.paused


@covers("live", "copy")
async def test_y_copies_the_percentiles_as_markdown() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        await pilot.press("y")
        lines = pilot.app.clipboard.splitlines()
        assert lines[0] == "| cold start | cell | n | failed | p50 | p95 | p99 |"
        assert lines[2].startswith("| local:bwrap | T0×10 exec c1 | 10 | 0 | ≈")


@covers("live", "export")
async def test_e_writes_an_svg_beside_the_recording_and_never_over_another(replay: ReplayFeed) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        await pilot.press("e", "e")
        await pilot.pause()
    first, second = replay.path.with_suffix(".svg"), replay.path.with_suffix(".2.svg")
    assert first.read_text().startswith("<svg")
    assert second.exists()


async def test_export_into_a_folder_that_is_not_there_is_said() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        await pilot.press("e")
        await pilot.pause()
        assert [note.severity for note in pilot.app._notifications] == ["error"]


def test_every_action_has_a_test() -> None:
    assert {(action.scope, action.name) for action in actions.ACTIONS} == TESTED
