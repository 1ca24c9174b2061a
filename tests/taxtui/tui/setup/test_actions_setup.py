"""Every action of Setup, by its key, on a running app; and the plans of its form."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from textual.pilot import Pilot

from taxtui import folders
from taxtui.commands import run as run_command
from taxtui.commands import run_plan
from taxtui.errors import ScenarioError, SubstrateUnavailable
from taxtui.plan import scenario
from taxtui.plan.scenario import ScenarioFile
from taxtui.plan.spec import Plan
from taxtui.report.plan_cost import CheckedSubstrate
from taxtui.tui.app import TaxtuiApp
from taxtui.tui.dialogs import Ask
from taxtui.tui.live import feed as feed_module
from taxtui.tui.live.feed import RunStarter
from taxtui.tui.setup.form import Choices
from taxtui.tui.setup.panels import PickList
from taxtui.tui.setup.screen import FREE_HERE
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import ANSWERS, SIZE, StoryRun, answers, app, live, priced, said, setup, text, until


def shown(pilot: Pilot[None]) -> str:
    """The screen as text, its lines joined by one space each."""
    return " ".join(line.strip("│ ") for line in text(pilot).split("\n"))


async def pick(pilot: Pilot[None], **picked: Sequence[str]) -> None:
    await until(pilot, lambda: not setup(pilot).substrates.awaited)
    for key, values in picked.items():
        setup(pilot).query_one(f"#{key}", PickList).pick(values)
    setup(pilot).refresh_plan()
    await pilot.pause()


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
        await pick(pilot, substrates=["daytona", "local"])
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
        await pick(pilot, substrates=["ecs"])
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


async def test_r_checks_the_substrates_again_and_a_adds_one_with_options() -> None:
    checks = []

    async def checker(refs: Sequence[str]) -> Mapping[str, CheckedSubstrate]:
        checks.append(list(refs))
        return await answers(refs)

    async with TaxtuiApp(None, checker).run_test(size=SIZE) as pilot:
        await until(pilot, lambda: len(checks) == 1)
        await pilot.press("a", *"docker:runtime=runsc", "enter")
        await until(pilot, lambda: "docker:runtime=runsc 27.1" in shown(pilot))
        assert setup(pilot).choices.substrates == ("docker", "local", "docker:runtime=runsc")
        await pilot.press("r")
        await until(pilot, lambda: checks[1:] == [["docker:runtime=runsc"], [], ["docker:runtime=runsc"]])
        for text, refusal in (("dokcer", "no substrate 'dokcer'"), ("docker:runsc", "is not an option")):
            await pilot.press("a", *text, "enter")
            await until(pilot, lambda: refusal in said(pilot))  # noqa: B023  # awaited at once
        await pilot.press("a", "escape")
        assert len(setup(pilot).choices.substrates) == 3


async def test_a_launch_waits_for_the_check(launched: list[tuple[object, list[str]]]) -> None:
    answered = asyncio.Event()

    async def checker(refs: Sequence[str]) -> Mapping[str, CheckedSubstrate]:
        await answered.wait()
        return {**ANSWERS, "thirdparty": CheckedSubstrate(name="thirdparty", ok=True, detail="ready")}

    async with TaxtuiApp(None, checker).run_test(size=SIZE) as pilot:
        await until(pilot, lambda: shown(pilot).count("checking…") == 4)
        assert "local: not checked yet" in shown(pilot)
        await pilot.press("ctrl+r")
        await pilot.pause()
        assert launched == []
        answered.set()
        await until(pilot, lambda: launched)
        await pilot.press("1")
        assert "checking…" not in shown(pilot)
        assert "thirdparty" in shown(pilot)


async def test_a_check_that_fails_says_so_and_changes_nothing() -> None:
    async def checker(refs: Sequence[str]) -> Mapping[str, CheckedSubstrate]:
        raise SubstrateUnavailable("no Python")

    async with TaxtuiApp(None, checker).run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "no Python" in said(pilot))
        assert shown(pilot).count("not checked") == 5  # four substrates, and the cost
        await pilot.press("y")
        assert pilot.app.clipboard.startswith("taxtui run -s local")


def commanded(words: Sequence[str]) -> Plan:
    """The plan that ``taxtui run`` makes of a command line: by its own parser, which knows its options' names."""
    options = run_command.command.make_context("run", list(words)).params
    for own in ("output", "control", "progress"):
        del options[own]
    return run_plan.plan_of(options.pop("scenario"), options)


def started(form: Choices, limits: Sequence[str], folder: Path) -> Plan:
    """The plan of the child that the screen starts, as ``RunFeed`` starts it."""
    path = folder / "plan.json"
    path.write_bytes(msgspec.json.encode(form.scenario()))
    return commanded([str(path), "-o", "x.msgpack", "--control", "stdin", "--progress", "none", *limits])


def some(*values: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), min_size=1, unique=True).map(tuple)


FORMS = st.builds(
    Choices,
    substrates=some("local", "local:isolation=plain", "docker:runtime=runsc,image=a b:1", "ec2:spot=true"),
    tiers=some("T0", "T1", "T2"),
    actions=st.lists(st.integers(1, 500), min_size=1, max_size=3, unique=True).map(lambda n: ", ".join(map(str, n))),
    modes=some("exec", "session"),
    trials=st.integers(1, 10**6).map(str) | st.just("007"),
    warmup=st.integers(0, 99).map(str),
    concurrency=st.sampled_from(["1", "2", "16", "0100"]),
    arrival=st.sampled_from(["", "sequential", "closed", "burst", "open:20/s", "open:20/s:poisson"]),
    budget=st.sampled_from(["", "3m", "90", "1.5h"]),
)
LIMITS = st.sampled_from(
    [(), ("--max-sandboxes", "9"), ("--max-sandboxes", "9", "--max-cost", "2.60", "--prices", "p")]
)


@given(form=FORMS, limits=LIMITS)
def test_the_copied_command_the_form_and_the_launched_run_are_one_plan(
    form: Choices, limits: Sequence[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assume(not form.missing)
    program, subcommand, *words = shlex.split(form.command(limits))
    assert (program, subcommand) == ("taxtui", "run")
    plans = [commanded(words), started(form, ["--yes", *limits], tmp_path_factory.mktemp("launched"))]
    assert msgspec.structs.replace(plans[0], name="") == msgspec.structs.replace(plans[1], name="")
    unlimited = msgspec.structs.replace(plans[0], name="setup", max_sandboxes=None, max_cost_usd=None)
    planned = scenario.plan(msgspec.convert(form.scenario(), ScenarioFile), Path())
    assert unlimited == planned == form.plan()


@given(form=FORMS)
def test_what_the_run_would_refuse_the_form_refuses_in_the_same_words(form: Choices) -> None:
    try:
        commanded(shlex.split(form.command())[2:])
    except ScenarioError as error:
        assert form.missing == str(error)
    else:
        assert form.missing == ""


def test_the_form_starts_with_what_taxtui_run_measures() -> None:
    quick, form = scenario.plan(*scenario.load_file("quick")), Choices(substrates=("local",)).plan()
    assert (quick.cells, quick.budget_s, quick.repeat) == (form.cells, form.budget_s, form.repeat)
    assert FREE_HERE == run_plan.FREE_HERE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"substrates": ()}, "pick a substrate"),
        ({"actions": "ten"}, "actions must be whole numbers from 1 up"),
        ({"trials": "²"}, "trials must be"),
        ({"budget": "soon"}, "budget: 'soon' is not a duration"),
        ({"arrival": "burst:"}, "'burst:' is not an arrival; write sequential, closed, burst or open:20/s"),
    ],
)
def test_what_is_missing_is_said(change: dict[str, object], words: str) -> None:
    form = Choices(substrates=("local",), tiers=("T0",), actions="10", modes=("exec",))
    assert msgspec.structs.replace(form, **change).missing.startswith(words)


def test_any_number_of_actions_can_be_typed() -> None:
    typed = {"64": (64,), "10, 50 150": (10, 50, 150), "7,7": (7,), "1k": (1000,), "0": (), "": ()}
    assert {text: Choices(actions=text).lengths for text in typed} == typed
