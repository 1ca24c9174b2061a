"""Every action of Setup, by its key, on a running app."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from taxtui import folders
from taxtui.errors import SubstrateUnavailable
from taxtui.report.plan_cost import CheckedSubstrate
from taxtui.tui.app import TaxtuiApp
from taxtui.tui.dialogs import Ask, Choose
from taxtui.tui.fields import PickList
from taxtui.tui.live import feed as feed_module
from taxtui.tui.live.feed import RunStarter
from taxtui.tui.setup.form import presets
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import SIZE, covers, focus, live, setup, until
from tests.taxtui.tui.earlier import only_here
from tests.taxtui.tui.feeds import ANSWERS, StoryRun, answers, app
from tests.taxtui.tui.story import record

ECS = CheckedSubstrate(
    name="ecs", ok=True, variant="fargate", prices="aws-fargate", capabilities={"paid": True},
    detail="ready as me in us-east-1; 0.049 USD per sandbox-hour, 60 s at least: --prices aws-fargate",
)  # fmt: skip


async def priced(refs: Sequence[str]) -> Mapping[str, CheckedSubstrate]:
    return {**ANSWERS, "ecs": ECS}


def shown(pilot: Pilot[None]) -> str:
    """The screen as text, its lines joined by one space each."""
    strips = pilot.app.screen._compositor.render_strips()
    lines = ("".join(segment.text for segment in strip).strip("│ ") for strip in strips)
    return " ".join(lines)


def told(pilot: Pilot[None]) -> str:
    """What was notified."""
    return " ".join(notification.message for notification in pilot.app._notifications)


def pick(pilot: Pilot[None], **picked: Sequence[str]) -> None:
    for key, values in picked.items():
        setup(pilot).query_one(f"#{key}", PickList).pick(values)
    setup(pilot).edited()


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[object, list[str]]]:
    """What would have been started, as (scenario, options)."""
    seen: list[tuple[object, list[str]]] = []

    class Started(StoryRun):
        def __init__(self, scenario: object, path: Path, launcher: object, options: Sequence[str] = ()) -> None:
            super().__init__(story.run(20, until=3, finish=False))
            seen.append((scenario, list(options)))

    monkeypatch.setattr(feed_module, "RunFeed", Started)
    monkeypatch.setattr(folders, "recordings", lambda: tmp_path)
    monkeypatch.setattr(RunStarter, "yield_cpu", lambda self: None)
    return seen


@covers("launch", "copy")
async def test_ctrl_r_launches_the_form_and_y_copies_its_command(launched: list[tuple[object, list[str]]]) -> None:
    async with app().run_test(size=SIZE) as pilot:
        await pilot.press("y")
        assert pilot.app.clipboard == (
            "taxtui run -s docker -s local -t T1 -n 50 --mode exec --mode session --trials 20 --warmup 1 "
            "--concurrency 1 --budget 120s"
        )
        await pilot.press("ctrl+r")
        await pilot.pause()
        live(pilot)
        await pilot.press("1", "ctrl+r")  # one run at a time
        await pilot.pause()
        setup(pilot)
    cells = {
        "substrates": ["docker", "local"], "tiers": ["T1"], "actions": [50], "modes": ["exec", "session"],
        "trials": 20, "warmup": 1, "concurrency": 1, "arrival": "",
    }  # fmt: skip
    assert launched == [({"name": "setup", "budget": "120s", "cells": [cells]}, [])]


async def test_a_paid_substrate_is_launched_only_after_its_name_is_typed(
    launched: list[tuple[object, list[str]]],
) -> None:
    async with app().run_test(size=SIZE) as pilot:
        await pilot.pause()
        pick(pilot, substrates=["daytona", "local"])
        await pilot.press("ctrl+r", *"daytina", "enter")
        assert isinstance(pilot.app.screen, Ask)
        assert 'that is not "daytona"' in shown(pilot)
        assert "only their number is" in shown(pilot)
        await pilot.press("escape")
        assert launched == []
        await pilot.press("ctrl+r", *"daytona", "enter")
        await pilot.pause()
        live(pilot)
    assert [options for _, options in launched] == [["--yes", "--max-sandboxes", "84"]]


async def test_where_the_price_is_known_the_run_is_held_to_it(launched: list[tuple[object, list[str]]]) -> None:
    async with TaxtuiApp(None, priced).run_test(size=SIZE) as pilot:
        await pilot.pause()
        pick(pilot, substrates=["ecs"])
        limits = ["--max-sandboxes", "42", "--max-cost", "0.08", "--prices", "aws-fargate"]
        await pilot.press("y")
        assert pilot.app.clipboard.endswith(" ".join(limits))
        assert "--yes" not in pilot.app.clipboard
        await pilot.press("ctrl+r")
        assert "at least $0.04 (not measured yet)" in shown(pilot)
        await pilot.press(*"ecs", "enter")
        await pilot.pause()
        live(pilot)
    assert [options for _, options in launched] == [["--yes", *limits]]


async def test_a_limit_and_a_sheet_of_ones_own_are_typed_into_fields_that_only_paid_runs_have(tmp_path: Path) -> None:
    async with TaxtuiApp(None, priced).run_test(size=SIZE) as pilot:
        await pilot.pause()
        assert "Prices" not in shown(pilot)
        pick(pilot, substrates=["ecs"])
        await pilot.pause()
        assert "Prices aws-fargate" in shown(pilot)
        await focus(pilot, setup(pilot).query_one("#most"))
        await pilot.press(*"0.5x")  # letters are no part of a number
        assert "(max $0.50)" in shown(pilot)
        await pilot.press("shift+tab", *"nosuch")
        assert "Not ready: cannot read nosuch: No such file" in shown(pilot)
        await focus(pilot, setup(pilot).query_one("#substrates"))
        await pilot.press("ctrl+r", "y")
        setup(pilot)
        assert pilot.app.clipboard == ""
        pick(pilot, substrates=["local"])
        await pilot.pause()
        assert "Prices" not in shown(pilot)


@covers("renew", "add")
async def test_r_checks_the_substrates_again_and_a_adds_one_with_options() -> None:
    checks = []

    async def checker(refs: Sequence[str]) -> Mapping[str, CheckedSubstrate]:
        checks.append(list(refs))
        return await answers(refs)

    async with TaxtuiApp(None, checker).run_test(size=SIZE) as pilot:
        await until(pilot, lambda: len(checks) == 1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            setup(pilot).action_renew()
            await pilot.press("r")  # replaces the check before
            await until(pilot, lambda: len(checks) >= 2)
            gc.collect()
        assert not [warning for warning in caught if "never awaited" in str(warning.message)]
        del checks[1:]
        await pilot.press("a", *"docker:runtime=runsc", "enter")
        await until(pilot, lambda: "docker:runtime=runsc 27.1" in shown(pilot))
        assert setup(pilot).choices.substrates == ("docker", "local", "docker:runtime=runsc")
        await pilot.press("r")
        await until(pilot, lambda: len(checks) == 4)
        assert checks[1:] == [["docker:runtime=runsc"], [], ["docker:runtime=runsc"]]
        for text, refusal in (("dokcer", "no substrate 'dokcer'"), ("docker:runsc", "is not an option")):
            await pilot.press("a", *text, "enter")
            await until(pilot, lambda: refusal in told(pilot))  # noqa: B023  # awaited at once
        await pilot.press("a", "escape")
        assert len(setup(pilot).choices.substrates) == 3


async def test_the_first_answer_is_awaited_in_the_background() -> None:
    answered = asyncio.Event()

    async def checker(refs: Sequence[str]) -> Mapping[str, CheckedSubstrate]:
        await answered.wait()
        return {**ANSWERS, "thirdparty": CheckedSubstrate(name="thirdparty", ok=True, detail="ready")}

    async with TaxtuiApp(None, checker).run_test(size=SIZE) as pilot:
        await pilot.pause()
        assert shown(pilot).count("checking…") == 4
        assert "local: not checked yet" in shown(pilot)
        answered.set()
        await pilot.pause()
        assert "checking…" not in shown(pilot)
        assert "thirdparty" in shown(pilot)


@pytest.mark.usefixtures("launched")
async def test_a_check_does_not_go_on_beside_a_run() -> None:
    begun, ended, answered = [0], [0], asyncio.Event()

    async def checker(refs: Sequence[str]) -> Mapping[str, CheckedSubstrate]:
        begun[0] += 1
        try:
            await answered.wait()
        finally:
            ended[0] += 1
        return await answers(refs)

    async with TaxtuiApp(None, checker).run_test(size=SIZE) as pilot:
        await until(pilot, lambda: begun[0] == 1)
        pick(pilot, substrates=["local"])  # else the launch waits for the check, which picks substrates
        await pilot.press("ctrl+r")
        await until(pilot, lambda: ended[0] == 1)
        await pilot.press("1")
        await pilot.pause()
        assert begun == [1]
        assert "local      not checked" in shown(pilot)
        feed = cast(TaxtuiApp, pilot.app).feed
        assert isinstance(feed, StoryRun)
        feed.goes_on([], exit_code=0)
        await pilot.press("2", "1")
        await until(pilot, lambda: begun[0] == 2)
        answered.set()
        await until(pilot, lambda: "not checked" not in shown(pilot))


async def test_a_check_that_fails_says_so_and_changes_nothing() -> None:
    async def checker(refs: Sequence[str]) -> Mapping[str, CheckedSubstrate]:
        raise SubstrateUnavailable("no Python")

    async with TaxtuiApp(None, checker).run_test(size=SIZE) as pilot:
        await pilot.pause()
        assert shown(pilot).count("not checked") == 5  # four substrates, and the cost
        assert "no Python" in told(pilot)
        await pilot.press("y")
        assert pilot.app.clipboard.startswith("taxtui run -s local")


@covers("load")
async def test_l_loads_a_scenario_to_run_unchanged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "aaa.toml").write_text(
        '[[cells]]\nsubstrates = ["docker"]\ntiers = ["T1"]\nactions = [25]\ntrials = 7\n'
    )
    (tmp_path / "broken.toml").write_text("[[cells]]\nsubstrates = 3\n")
    async with app().run_test(size=SIZE) as pilot:
        await pilot.press("l")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        presets = pilot.app.screen.query_one(OptionList)
        prompts = [str(presets.get_option_at_index(n).prompt) for n in range(presets.option_count)]
        presets.highlighted = next(n for n, prompt in enumerate(prompts) if prompt.startswith("aaa"))
        assert any("broken" in prompt and "expected" in prompt.lower() for prompt in prompts)
        await pilot.press("enter")
        await until(pilot, lambda: "preset aaa: 1 cell, 7 trials: docker" in shown(pilot))
        await pilot.press("y")
        assert pilot.app.clipboard == "taxtui run aaa.toml"


async def test_the_estimate_comes_from_the_recordings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    only_here(tmp_path, monkeypatch)
    async with app().run_test(size=SIZE) as pilot:
        await pilot.pause()
        pick(pilot, tiers=["T0"], modes=["exec"])
        await until(pilot, lambda: "no recording of it yet" in shown(pilot))
        record(tmp_path / "a.msgpack")
        await pilot.press("2", "1")
        await until(pilot, lambda: "estimated from 1 recording" in shown(pilot))
        (tmp_path / "a.msgpack").unlink()
        await pilot.press("l", "escape")  # a dialog was over it
        await until(pilot, lambda: "no recording of it yet" in shown(pilot))


async def test_a_preset_that_the_form_cannot_say_is_run_and_copied_as_it_stands(
    launched: list[tuple[object, list[str]]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    block = '[[cells]]\nsubstrates = ["ecs"]\ntiers = ["T0"]\nactions = [10]\ntrials = 7\n'
    (tmp_path / "a b.toml").write_text(f"seed = 3\n{block}")
    async with TaxtuiApp(None, priced).run_test(size=SIZE) as pilot:
        await pilot.pause()
        setup(pilot).use(next(preset for preset in presets(tmp_path) if preset.name == "a b"))
        await pilot.pause()
        assert "preset a b: 1 cell, 7 trials: ecs" in shown(pilot)
        await focus(pilot, setup(pilot).query_one("#most"))
        await pilot.press(*"0.5")  # money is no part of what is measured: the preset stays
        await focus(pilot, setup(pilot).query_one("#substrates"))
        await pilot.press("y")
        limits = ["--max-sandboxes", "8", "--max-cost", "0.50", "--prices", "aws-fargate"]
        path = tmp_path / "a b.toml"
        assert pilot.app.clipboard == f"taxtui run '{path}' {' '.join(limits)}"
        await pilot.press("ctrl+r", *"ecs", "enter")
        await pilot.pause()
        live(pilot)
        await pilot.press("1")
        await focus(pilot, setup(pilot).query_one("#trials"))
        await pilot.press("5")
        assert setup(pilot).preset is None
    assert launched == [(str(path), ["--yes", *limits])]


async def test_every_field_is_reached_by_tab() -> None:
    async with TaxtuiApp(None, priced).run_test(size=SIZE) as pilot:
        await pilot.pause()
        pick(pilot, substrates=["ecs"])
        await pilot.pause()
        seen = []
        for _ in range(13):
            assert pilot.app.focused is not None
            seen.append(pilot.app.focused.id)
            await pilot.press("tab")
    wanted = "substrates tiers modes actions trials warmup concurrency repeat budget arrival prices most plan"
    assert seen == wanted.split()


async def test_a_screen_that_was_visited_leaves_the_sizes_of_another_alone() -> None:
    """The rules of every visited screen apply to the app: a rule for an id that two screens share names its screen."""
    async with app().run_test(size=SIZE) as pilot:
        await until(pilot, lambda: bool(pilot.app.screen.query("#words")))
        await pilot.press("3")
        await until(pilot, lambda: bool(pilot.app.screen.query("#lines")))
        rows = pilot.app.screen.query_one("#lines").styles.height
        await pilot.press("1")
        await pilot.pause()
        words = pilot.app.screen.query_one("#words").styles.max_height
        await pilot.press("4")
        await pilot.pause()
        await pilot.press("1")
        await pilot.pause()
        assert pilot.app.screen.query_one("#words").styles.max_height == words
        await pilot.press("3")
        await pilot.pause()
        assert pilot.app.screen.query_one("#lines").styles.height == rows
