"""Scenario and tier files: what they plan, and what is wrong with them in one line with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxtui.commands import run as run_command
from taxtui.commands import run_plan
from taxtui.errors import ScenarioError
from taxtui.plan import scenario
from taxtui.plan.spec import Step, Tier
from taxtui.workloads.repository import to_toml

CELLS = '[[cells]]\nsubstrates = ["local"]\ntiers = ["T0"]\nactions = [10]\n'


def load(tmp_path: Path, text: str, name: str = "mine.toml") -> scenario.Plan:
    path = tmp_path / name
    path.write_text(text)
    return scenario.load(str(path))


def test_a_block_is_the_product_of_its_lists(tmp_path: Path) -> None:
    plan = load(
        tmp_path,
        'timeout = "5s"\nbudget = "3m"\n[limits]\ncpus = 2\n[[cells]]\nsubstrates = ["local", "docker:runtime=runsc"]\n'
        'tiers = ["T0"]\nactions = [10, 50]\nmodes = ["exec", "session"]\nconcurrency = [1, 4]\n'
        'trials = 7\nthink = "1s"\n',
    )
    assert len(plan.cells) == 2 * 1 * 2 * 2 * 2
    assert (plan.name, plan.timeout_s, plan.budget_s, plan.limits.cpus) == ("mine", 5.0, 180.0, 2.0)
    assert {str(cell.substrate) for cell in plan.cells} == {"local", "docker:runtime=runsc"}
    assert {(cell.concurrency, str(cell.arrival)) for cell in plan.cells} == {(1, "sequential"), (4, "closed")}
    assert {cell.trials for cell in plan.cells} == {7}


def test_json_says_the_same_as_toml_and_every_shipped_scenario_loads(tmp_path: Path) -> None:
    cells = [{"substrates": ["local"], "tiers": ["T0"], "actions": [10]}]
    assert load(tmp_path, json.dumps({"cells": cells}), "mine.json") == load(tmp_path, CELLS)
    assert "quick" in scenario.shipped_names()
    assert all(scenario.load(name).cells for name in scenario.shipped_names())


def test_a_tier_of_ones_own_is_relative_to_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "T9.toml").write_text('name = "T9"\ntitle = "ours"\n[[cycle]]\nname = "one"\nrun = "true"\n')
    plan = load(tmp_path, CELLS.replace("T0", "mine/T9.toml"))
    assert plan.cells[0].tier.name == "T9"


def test_a_tiers_digest_is_of_what_it_does(tmp_path: Path) -> None:
    text = 'name = "T9"\ntitle = "{}"\n[[cycle]]\nname = "one"\nrun = "{}"\n'
    digests = []
    for title, run in (("a", "true"), ("b", "true"), ("a", "false")):
        path = tmp_path / "t.toml"
        path.write_text(text.format(title, run))
        digests.append(scenario.load_tier("t.toml", tmp_path).digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CELLS + "trails = 3\n", r":5: cells\[1\].trails: unknown key; did you mean 'trials'\?"),
        (CELLS + "[limits]\ncpu = 1\n", r":6: limits.cpu: unknown key; did you mean 'cpus'\?"),
        ("nam = 1\n" + CELLS, r":1: nam: unknown key; did you mean 'name'\?"),
        (CELLS + 'trials = "many"\n', r":5: cells\[1\].trials: expected `int`, got `str`"),
        (CELLS + "trials = 0\n", r":5: cells\[1\].trials: expected `int` >= 1"),
        (CELLS.replace("10", f"10, {1 << 70}"), r":4: cells\[1\].actions\[2\]: expected `int` <= 9223372036854775807"),
        (f"seed = -{1 << 70}\n" + CELLS, r":1: seed: expected `int` >= -9223372036854775807"),
        (CELLS + "[limits]\ncpus = 1e300\n", "limits.cpus: expected `float` <= 9223372036854776"),
        (f'timeout = "{"9" * 400}s"\n' + CELLS, "beyond 292 years"),
        (CELLS + "concurrency = 0\n", "concurrency: expected"),
        (CELLS + 'modes = ["exce"]\n', r"unknown mode 'exce'; did you mean 'exec'\?"),
        (CELLS + 'think = "long"\n', "not a duration"),
        (CELLS + 'concurrency = 4\narrival = "sequential"\n', "arrival sequential means concurrency 1"),
        (CELLS + CELLS, "planned twice"),
        ("cells = []\n", "no cells"),
        ("name = 'x'\n", "missing required field `cells`"),
        ("cells = [\n", "mine.toml"),
        (CELLS + "[limits]\ncpus = nan\n", ":6: limits.cpus: must be a finite number, not nan"),
        ('"a\\nb" = 1\n' + CELLS, r":1: 'a\\nb': unknown key|'a\\nb': unknown key"),
        (CELLS + f"concurrency = {list(range(1, 5000))}\n", "more than 1024 cells; split the cells"),
        (f'name = "{"x" * 2000}"\n' + CELLS, ":1: name: expected `str` of length <= 512"),
        (f"seed = 1{'0' * 5000}\n" + CELLS, "limit"),
        ("seed = " + "[" * 5000 + CELLS, "mine.toml: "),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)
    assert "mine" in str(caught.value)


def test_a_number_that_no_recording_can_hold_is_refused_wherever_it_comes_from() -> None:
    params = run_command.command.make_context("run", ["-t", "T0", "-n", "10", "--set", f"seed={1 << 64}"]).params
    with pytest.raises(ScenarioError, match=r"^seed: expected `int` <= 9223372036854775807$"):
        run_plan.plan_of(None, params)


def test_a_scenario_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="UTF-8"):
        scenario.load(str(tmp_path / "binary.toml"))


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("expect_exit = 256", r":6: cycle\[1\].expect_exit: expected `int` <= 255"),
        ("timeout_s = nan", r":6: cycle\[1\].timeout_s: must be a finite number"),
        ("timeout_s = 0", r":6: cycle\[1\].timeout_s: expected `float` > 0"),
        ("expect_stdout = 3", r":6: cycle\[1\].expect_stdout: expected `str`, got `int`"),
    ],
)
def test_what_is_wrong_with_a_tier_is_said_with_its_place(step: str, words: str, tmp_path: Path) -> None:
    text = f'name = "T9"\ntitle = "ours"\n[[cycle]]\nname = "a"\nrun = "true"\n{step}\n'
    (tmp_path / "t.toml").write_text(text)
    with pytest.raises(ScenarioError, match=words):
        scenario.load_tier("t.toml", tmp_path)
    (tmp_path / "t.toml").write_text('name = "T9"\ntitle = "ours"\ncycle = []\n')
    with pytest.raises(ScenarioError, match="cycle is empty"):
        scenario.load_tier("t.toml", tmp_path)


def test_a_document_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    with pytest.raises(ScenarioError, match=r"no scenario|not a regular file"):
        scenario.load(str(tmp_path / "endless.toml"))


texts = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["", "'", "'''", 'say "hi"\n', "a\\\nb", "\n", "\r\n", "it's\nfine'", "\x7f\x00", "line\n'''\nend"]
)
steps = st.builds(Step, name=texts, run=texts, expect_stdout=texts, timeout_s=st.none() | st.floats(0.001, 1e6))


@settings(max_examples=60)
@given(
    tier=st.builds(
        Tier,
        name=texts,
        title=texts,
        requires=st.lists(texts, max_size=2).map(tuple),
        network=st.booleans(),
        preload=texts,
        setup=st.lists(steps, max_size=1).map(tuple),
        cycle=st.lists(steps, min_size=1, max_size=2).map(tuple),
    )
)
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, tier: Tier) -> None:
    path = tmp_path_factory.mktemp("tier") / "made.toml"
    path.write_bytes(to_toml(tier, "made by a test").encode())
    assert scenario.load_tier(str(path)) == tier


def _mine(folder: Path, think: str) -> None:
    step = '[[cycle]]\nname = "one"\nrun = "true"\n'
    (folder / "mine.toml").write_text(f'name = "M"\ntitle = ""\nthink = "{think}"\n{step}')


def test_a_cell_thinks_as_its_tier_does_unless_told_otherwise(tmp_path: Path) -> None:
    _mine(tmp_path, "lognormal:8s,0.6")
    cells = CELLS.replace("T0", "mine.toml")
    thinks = [str(load(tmp_path, cells + more, "s.toml").cells[0].think) for more in ("", 'think = "0s"\n')]
    assert thinks == ["lognormal:8s,0.6", "0s"]


def test_a_think_time_that_is_none_is_said_with_its_file(tmp_path: Path) -> None:
    _mine(tmp_path, "long")
    with pytest.raises(ScenarioError, match=r"mine\.toml: think: .*not a duration"):
        scenario.load_tier("mine.toml", tmp_path)
