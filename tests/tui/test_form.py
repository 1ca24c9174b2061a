from __future__ import annotations

import shlex
from pathlib import Path

import click.testing
import msgspec
import pytest

from taxtui import scenario
from taxtui.commands import run as run_command
from taxtui.scenario import ScenarioFile
from taxtui.spec import Plan
from taxtui.tui.form import Choices, choices, presets, shipped_tiers

FORM = Choices(
    substrates=("local", "docker:runtime=runsc"), tiers=("T0", "T1"), actions=(10, 50), modes=("exec", "session"),
    trials="7", warmup="2", concurrency="1", budget="3m",
)  # fmt: skip


def planned(form: Choices) -> Plan:
    return scenario.plan(msgspec.convert(form.scenario(), ScenarioFile), Path())


def test_the_scenario_is_what_the_form_says() -> None:
    plan = planned(FORM)
    assert len(plan.cells) == 2 * 2 * 2 * 2
    assert {(cell.trials, cell.warmup, cell.concurrency) for cell in plan.cells} == {(7, 2, 1)}
    assert plan.budget_s == 180
    assert FORM.summary() == "2 substrates × 2 tiers × 2 lengths × 2 modes × 7 = 112 trials"
    assert FORM.sandboxes == {"local": 72, "docker:runtime=runsc": 72}


@pytest.mark.parametrize(
    "form",
    [FORM, msgspec.structs.replace(FORM, concurrency="4", modes=("exec",)), msgspec.structs.replace(FORM, budget="")],
)
def test_the_copied_command_makes_the_same_plan(form: Choices, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command's own parser reads it back, so that an option that changes its name fails here."""
    seen: list[Plan] = []

    def stop(plan: Plan, *_: object, **__: object) -> None:
        seen.append(plan)
        raise click.Abort

    monkeypatch.setattr(run_command, "_confirm_paid", stop)
    program, subcommand, *words = shlex.split(form.command())
    assert (program, subcommand) == ("taxtui", "run")
    click.testing.CliRunner().invoke(run_command.command, words)
    assert [msgspec.structs.replace(plan, name="") for plan in seen] == [
        msgspec.structs.replace(planned(form), name="")
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"substrates": ()}, "pick a substrate"),
        ({"tiers": ()}, "pick a tier"),
        ({"actions": ()}, "pick a number of actions"),
        ({"modes": ()}, "pick a mode"),
        ({"trials": "0"}, "trials must be a whole number from 1 up"),
        ({"trials": ""}, "trials must be"),
        ({"trials": "²"}, "trials must be"),
        ({"warmup": ""}, "warm-up must be a whole number from 0 up"),
        ({"concurrency": "0"}, "concurrency must be"),
        ({"budget": "soon"}, "budget: 'soon' is not a duration"),
    ],
)
def test_what_is_missing_is_said(change: dict[str, object], words: str) -> None:
    assert msgspec.structs.replace(FORM, **change).missing.startswith(words)


def test_nothing_is_missing_from_a_whole_form() -> None:
    assert FORM.missing == ""


def test_a_scenario_becomes_the_form_that_says_the_same() -> None:
    file = msgspec.convert(FORM.scenario(), ScenarioFile)
    assert choices(file) == FORM


@pytest.mark.parametrize(
    "change",
    [{"seed": 5}, {"bracket": False}, {"cells": []}, {"timeout": "5s"}],
)
def test_a_scenario_that_says_more_than_the_form_can_is_run_as_it_stands(change: dict[str, object]) -> None:
    file = msgspec.convert(FORM.scenario(), ScenarioFile)
    assert choices(msgspec.structs.replace(file, **change)) is None


@pytest.mark.parametrize("change", [{"think": "8s"}, {"concurrency": [1, 2]}, {"acquire": "reset"}])
def test_a_block_that_says_more_than_the_form_can_is_run_as_it_stands(change: dict[str, object]) -> None:
    file = msgspec.convert(FORM.scenario(), ScenarioFile)
    block = msgspec.structs.replace(file.cells[0], **change)
    assert choices(msgspec.structs.replace(file, cells=[block])) is None


def test_presets_are_the_shipped_scenarios_and_those_at_hand(tmp_path: Path) -> None:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "mine.toml").write_text('[[cells]]\nsubstrates=["local"]\ntiers=["T0"]\nactions=[10]\ntrials=3\n')
    (folder / "bad.toml").write_text('[[cells]]\nsubstrates=["local"]\ntears=["T0"]\nactions=[10]\n')
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    found = {preset.name: preset for preset in presets(tmp_path)}
    assert {"quick", "mine", "bad"} <= found.keys()
    assert "pyproject" not in found
    assert found["mine"].title == "1 cell, 3 trials: local"
    assert found["mine"].sandboxes == {"local": 4}
    assert not found["bad"].ok
    assert "tears" in found["bad"].title


def test_the_shipped_tiers_are_offered() -> None:
    assert shipped_tiers() == ["T0", "T1", "T2"]
