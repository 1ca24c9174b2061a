"""Scenario and tier files: what they plan, and what is wrong with them in one line with its place; and notations."""

from __future__ import annotations

import json
from pathlib import Path

import click
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.training.length import Length
from taxtui.commands import run as run_command
from taxtui.commands import run_plan
from taxtui.errors import ScenarioError, UsageError
from taxtui.options.numbers import COUNT
from taxtui.plan import arrivals, scenario
from taxtui.plan.durations import parse_duration_ns
from taxtui.plan.notation import parse_count, parse_length, parse_substrate, parse_think
from taxtui.plan.spec import CellPlan, Plan, Step, SubstrateRef, ThinkTime, Tier
from taxtui.workloads.repository import to_toml

CELLS = '[[cells]]\nsubstrates = ["local"]\ntiers = ["T0"]\nactions = [10]\n'


def load(tmp_path: Path, text: str, name: str = "mine.toml") -> scenario.Plan:
    path = tmp_path / name
    path.write_text(text)
    return scenario.plan(*scenario.load_file(str(path)))


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
    assert all(scenario.plan(*scenario.load_file(name)).cells for name in scenario.shipped_names())


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
        scenario.plan(*scenario.load_file(str(tmp_path / "binary.toml")))


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
        scenario.plan(*scenario.load_file(str(tmp_path / "endless.toml")))


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


@pytest.mark.parametrize(
    ("text", "seconds"), [("250ms", 0.25), ("8s", 8), ("1.5m", 90), ("1h", 3600), ("2", 2), ("0s", 0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_ns(text) == seconds * 10**9


@pytest.mark.parametrize("text", ["", "soon", "-3s", "3 parsecs", "nan", "1e3s", "3s4", "9223372037s", "9" * 400])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"not a duration|beyond 292 years"):
        parse_duration_ns(text)


@pytest.mark.parametrize(
    ("text", "length", "shown"),
    [
        ("50", Length.constant(50), "50"),
        ("20-22", Length(((20, 1), (21, 1), (22, 1))), "20-22 avg 21"),
        ("10:3, 50:1", Length(((10, 3), (50, 1))), "10-50 avg 20"),
        ("1-2:2,2-3", Length(((1, 2), (2, 3), (3, 1))), "1-3 avg 1.83"),
        ("2000", Length.constant(2000), "2,000"),
    ],
)
def test_lengths(text: str, length: Length, shown: str) -> None:
    assert parse_length(text) == length
    assert str(length) == shown


@pytest.mark.parametrize("text", ["", "0", "-5", "1.5", "9-3", "5:0", "5,", "long", "1-10001", "1:2:3"])
def test_lengths_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="no number of actions") as caught:
        parse_length(text)
    assert "20-120" in str(caught.value.fix)


@given(st.dictionaries(st.text("abz_", min_size=1, max_size=8), st.text("az09./-", min_size=1, max_size=8)))
def test_a_substrate_is_written_as_it_is_read(options: dict[str, str]) -> None:
    ref = SubstrateRef(name="docker", options=options | {"image": "a:b=c"})
    assert parse_substrate(str(ref)) == ref


@pytest.mark.parametrize("text", ["", ":a=b", "docker:runsc", "docker:=x"])
def test_substrates_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="NAME:key=value"):
        parse_substrate(text)


@pytest.mark.parametrize("text", [*arrivals.NOTATIONS, "open:1200/m:poisson"])
def test_a_plan_is_read_from_json_as_it_was_written(text: str) -> None:
    tier = Tier(name="T", title="", cycle=(Step(name="one", run="true"),))
    cell = CellPlan(substrate=SubstrateRef(name="x"), tier=tier, actions=1, arrival=arrivals.parse(text))
    plan = Plan(cells=(cell,))
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_what_a_recording_says_of_an_arrival_never_changes() -> None:
    known = ["sequential", "closed", "burst", "open:20/s", "open:20/s:poisson"]
    assert [str(arrivals.parse(text)) for text in known] == known
    assert str(arrivals.parse("open:1200/m")) == "open:20/s"


@pytest.mark.parametrize("text", ["", "burst:3s", "open", "open:", "open:0/s", "open:20", "open:2000000/s"])
def test_what_is_no_arrival_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(UsageError, match=r"open:20/s"):
        arrivals.parse(text)


@pytest.mark.parametrize("text", ["0s", "8s", "lognormal:8s,0.6"])
def test_think_times_are_written_as_they_are_read(text: str) -> None:
    assert str(parse_think(text)) == text


def test_think_times_that_are_none() -> None:
    assert parse_think("lognormal:2s,0") == ThinkTime(median_ns=2 * 10**9)
    for text in ("lognormal:8s", "lognormal:8s,-1", "lognormal:8s,nan", "lognormal:8s,500", "lognormal:8s,x"):
        with pytest.raises(UsageError, match="not a think time"):
            parse_think(text)


@pytest.mark.parametrize(
    ("spellings", "count"),
    [
        ("500", 500),
        ("0", 0),
        ("1,000,000 1_000_000 1M 1m 1e6 1E+6", 1_000_000),
        ("10k 10K", 10_000),
        ("2.5M", 2_500_000),
        ("1B", 10**9),
        ("2.5e3", 2_500),
        ("5.0", 5),
    ],
)
def test_counts_are_read_as_people_write_them(spellings: str, count: int) -> None:
    assert {parse_count(f" {text} ") for text in spellings.split()} == {count}


@pytest.mark.parametrize("text", ["", "many", "1.5", "-1", "1,00", "1,0000", "1e-3", "10 k", "1e99", "1kk", "nan", "١"])
def test_what_is_no_count_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(UsageError, match=r"no count.*10k"):
        parse_count(text)


def test_an_option_that_counts_takes_the_same_and_leaves_negative_ones_to_who_counts() -> None:
    assert [COUNT.convert(text, None, None) for text in ("10k", 7, "-1")] == [10_000, 7, -1]
    with pytest.raises(click.BadParameter, match="'three' is no count"):
        COUNT.convert("three", None, None)
