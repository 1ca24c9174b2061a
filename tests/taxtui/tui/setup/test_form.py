from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from taxtui.commands import run as run_command
from taxtui.commands import run_plan
from taxtui.errors import ScenarioError
from taxtui.plan import scenario
from taxtui.plan.scenario import ScenarioFile
from taxtui.plan.spec import Plan
from taxtui.tui.setup.form import Choices
from taxtui.tui.setup.screen import FREE_HERE


def commanded(words: Sequence[str]) -> Plan:
    """The plan that ``taxtui run`` makes of a command line: by its own parser, which knows its options' names."""
    options = run_command.command.make_context("run", list(words)).params
    for own in ("output", "control", "progress"):
        del options[own]
    return run_plan.plan_of(options.pop("scenario"), options)


def launched(form: Choices, limits: Sequence[str], folder: Path) -> Plan:
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
    plans = [commanded(words), launched(form, ["--yes", *limits], tmp_path_factory.mktemp("launched"))]
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
    quick, form = scenario.load("quick"), Choices(substrates=("local",)).plan()
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
