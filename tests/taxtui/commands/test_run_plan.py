"""``taxtui run`` without options, and ``--dry-run``: the plan, which nothing is measured for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from click.testing import CliRunner

from taxtui.cli import app
from taxtui.commands import run as run_command
from taxtui.commands import run_plan
from taxtui.errors import SubstrateUnavailable, UsageError
from taxtui.workloads import image

READY = {"ok": True, "detail": "ready", "fix": "", "capabilities": {"paid": False}}
NO_IMAGE = READY | {"ok": False, "detail": f"there is no image {image.DEFAULT_IMAGE} here", "fix": "taxtui setup"}
NO_DAEMON = READY | {"ok": False, "detail": "no daemon", "fix": "start it"}


def answering(monkeypatch: pytest.MonkeyPatch, **rows: dict[str, Any]) -> None:
    def checked(names: Sequence[str]) -> list[dict[str, Any]]:
        return [rows[name] | {"name": name} for name in names]

    monkeypatch.setattr(run_plan, "_checked", checked)


def test_every_substrate_that_works_here_is_measured_and_the_others_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    answering(monkeypatch, local=READY, docker=READY)
    assert run_plan.usable_here(said.append) == ["local", "docker"]
    answering(monkeypatch, local=READY, docker=NO_DAEMON)
    assert run_plan.usable_here(said.append) == ["local"]
    assert said == ["taxtui: docker is left out: no daemon; start it"]
    answering(monkeypatch, local=NO_DAEMON, docker=NO_DAEMON)
    with pytest.raises(SubstrateUnavailable, match="taxtui doctor"):
        run_plan.usable_here(said.append)


def test_the_image_of_docker_is_built_where_only_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[bool] = []
    monkeypatch.setattr(image, "build", lambda progress: built.append(True))
    answering(monkeypatch, local=READY, docker=NO_IMAGE)
    assert run_plan.usable_here(lambda line: None) == ["local", "docker"]
    assert built == [True]
    assert run_plan.usable_here(lambda line: None, build=False) == ["local", "docker"]
    assert built == [True]

    def refused(progress: object) -> None:
        raise UsageError("no network", fix="--base IMAGE")

    said: list[str] = []
    monkeypatch.setattr(image, "build", refused)
    assert run_plan.usable_here(said.append) == ["local"]
    assert said == ["taxtui: docker is left out: its image cannot be built: no network; --base IMAGE"]


def test_without_options_one_tier_is_compared_in_both_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    params = run_command.command.make_context("run", []).params
    plan = run_command._plan(None, params, ["local", "docker"])
    assert {(str(cell.substrate), cell.tier.name, cell.mode) for cell in plan.cells} == {
        (substrate, "T1", mode) for substrate in ("local", "docker") for mode in ("exec", "session")
    }
    assert run_plan.outline(plan) == "local, docker: T1 x 50, exec and session; 80 trials, at most 2 min"


def test_modes_may_be_separated_by_commas_and_a_recording_is_no_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, local=READY)
    words = ["run", "-s", "local", "--mode", "exec,session", "--think", "8s", "--dry-run"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.exception
    assert {"exec", "session"} <= set(result.output.split())
    params = run_command.command.make_context("run", words[1:]).params
    assert "h 27 min of it think time" in run_plan.outline(run_command._plan(None, params, ["local"]))
    refused = CliRunner().invoke(app, ["run", "run.msgpack"])
    assert str(refused.exception).endswith("print it: taxtui report run.msgpack")


def test_a_dry_run_prints_cells_trials_time_and_money_and_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, local=READY, docker=NO_DAEMON)
    result = CliRunner().invoke(app, ["run", "-s", "local", "-s", "docker", "-t", "T0", "-n", "10", "--dry-run"])
    assert result.exit_code == 0, result.exception
    words = " ".join(result.output.split())
    assert "substrate tier n mode concurrency trials time" in words
    assert "local T0 10 exec 1 20 ~" in words
    assert "trials 80" in words
    assert "money local $0" in words
    assert "docker cannot be used now: no daemon; start it" in words
