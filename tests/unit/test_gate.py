"""``taxtui compare --fail-above``: the verdicts on recordings whose truth is known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from statistics import stdev
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.analysis import regression
from costmodel.errors import DemandError
from costmodel.recording.reader import read_recording
from costmodel.statistics.intervals import Interval, difference, ratio, student_t
from costmodel.statistics.quantiles import Percentile, spread_of, with_runs
from costmodel.statistics.repetitions import Assumed, assumed
from taxtui.commands.compare import command
from taxtui.errors import Regressed, TaxtuiError, TooLittleData, UsageError
from tests.support.costmodel_files import S, cell, trial, write


def recorded(
    path: Path, scale: float = 1.0, runs: int = 4, seed: int = 1, failing: int = 0, trials: int = 12, **identity: Any
) -> Path:
    """Runs of one cell whose own effects differ by 2 %; of each, the first ``failing`` trials fail."""
    random, found = Random(seed), []
    for run in range(runs):
        effect = random.lognormvariate(0, 0.02)
        for number in range(trials):
            took = [round(S * scale * effect * random.lognormvariate(0, 0.05)) for _ in range(3)]
            ended = "error" if number < failing else "ok"
            number += run * trials
            found.append(trial(number, create=took[0], actions=took, repetition=run, block=number // 4, outcome=ended))
    return write(path, found, cell(0, **identity), run_id=path.stem)


def base(tmp_path: Path, **more: Any) -> Path:
    return recorded(tmp_path / "base.msgpack", **more)


def new(tmp_path: Path, scale: float = 1.0, **more: Any) -> Path:
    return recorded(tmp_path / "new.msgpack", scale, seed=2, **more)


def checked(tmp_path: Path, after: Path, before: Path, *options: str) -> Result:
    return CliRunner().invoke(
        command, [str(before), str(after), *([] if "--fail-above" in options else ["--fail-above", "10%"]), *options]
    )


def verdicts(result: Result) -> dict[str, str]:
    return {one["metric"]: one["verdict"] for one in json.loads(result.stdout)}


def test_what_has_not_changed_passes_with_exit_0(tmp_path: Path) -> None:
    result = checked(tmp_path, new(tmp_path), base(tmp_path))
    assert (result.exit_code, result.exception) == (0, None)
    assert result.stdout.startswith("3 comparisons: 0 worse, 0 inconclusive, 3 no difference")


def test_what_is_surely_beyond_the_limit_has_regressed_with_exit_5(tmp_path: Path) -> None:
    result = checked(tmp_path, new(tmp_path, 1.3), base(tmp_path), "--format", "json")
    assert isinstance(result.exception, Regressed)
    assert result.exception.exit_code == 5
    assert "2 of 3 comparisons got worse" in str(result.exception)
    assert verdicts(result) == {
        "mean:trajectory": regression.REGRESSED,
        "p50:action": regression.REGRESSED,
        "failure_rate": regression.PASSED,
    }
    assert (
        checked(tmp_path, tmp_path / "new.msgpack", tmp_path / "base.msgpack", "--fail-above", "50%").exception is None
    )


def test_what_one_run_each_cannot_tell_is_exit_6(tmp_path: Path) -> None:
    before, after = base(tmp_path, runs=1), new(tmp_path, 1.05, runs=1)
    result = checked(tmp_path, after, before)
    assert isinstance(result.exception, TooLittleData)
    assert result.exception.exit_code == 6
    assert f"assumed for 1 run: sd {100 * assumed('docker').sd:g} %" in result.stdout
    alone = checked(tmp_path, after, before, "--run-sd", "0", "--fail-above", "15%")
    assert alone.exception is None, "of these runs only it can be told"


def test_a_regression_is_one_only_where_the_near_bound_is_beyond_the_limit(tmp_path: Path) -> None:
    files = [read_recording(path) for path in (new(tmp_path, 1.3), base(tmp_path))]
    [found] = regression.check(files[:1], files[1:], [regression.metric("mean:trajectory", 0.0)]).comparisons
    assert found.change is not None
    low, high = found.change.low, found.change.high
    assert low is not None
    assert high is not None
    assert low < found.change.value < high
    for limit, verdict in (
        (low - 1e-6, regression.REGRESSED),
        (low + 1e-6, regression.TOO_LITTLE),
        (high + 1e-6, regression.PASSED),
    ):
        assert regression.check(files[:1], files[1:], [regression.metric("mean:trajectory", limit)]).verdict == verdict


def test_failures_count_in_points_and_none_passes_however_few_trials(tmp_path: Path) -> None:
    before = base(tmp_path)
    broken = checked(tmp_path, new(tmp_path, failing=6), before, "--metric", "failure_rate", "--format", "json")
    assert isinstance(broken.exception, Regressed)
    [found] = json.loads(broken.stdout)
    assert found["after"]["share"]["value"] == 0.5
    assert found["change"]["value"] == 0.5
    few = recorded(tmp_path / "few.msgpack", runs=1, trials=2)
    assert checked(tmp_path, few, before, "--metric", "failure_rate").exception is None


def test_what_never_succeeds_is_caught_by_failures_though_it_has_no_durations(tmp_path: Path) -> None:
    result = checked(tmp_path, new(tmp_path, failing=12), base(tmp_path), "--format", "json")
    assert isinstance(result.exception, Regressed)
    assert verdicts(result)["mean:trajectory"] == regression.TOO_LITTLE


def test_a_percentile_that_the_trials_do_not_support_says_how_many_it_needs(tmp_path: Path) -> None:
    result = checked(tmp_path, new(tmp_path), base(tmp_path), "--metric", "p95:cold_start", "--format", "json")
    assert isinstance(result.exception, TooLittleData)
    [found] = json.loads(result.stdout)
    assert found["reason"] == "needs 72 values, has 48 before"


def test_a_metric_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    options = ("--metric", "mean:trajectory=60%", "--metric", "mean:held_per_success", "--format", "json")
    result = checked(tmp_path, new(tmp_path, 1.3), base(tmp_path), *options)
    assert verdicts(result) == {"mean:trajectory": regression.PASSED, "mean:held_per_success": regression.REGRESSED}


def test_equal_cells_alone_are_compared_and_the_others_are_named(tmp_path: Path) -> None:
    trials = [trial(n, cell=n % 2, create=S + n) for n in range(24)]
    paths = [
        write(tmp_path / f"{name}.msgpack", trials, cell(0), cell(1, tier=tier), run_id=name)
        for name, tier in (("then", "Tgone"), ("now", "Tnew"))
    ]
    result = checked(tmp_path, paths[1], paths[0], "--fail-above", "60%", "--junit", str(tmp_path / "j.xml"))
    assert result.exception is None, result.output
    text = " ".join(result.stdout.split())
    assert "Only before, so not compared: docker Tgone 3 exec c1." in text
    assert "Only after, so not compared: docker Tnew 3 exec c1." in text
    cases = ElementTree.parse(tmp_path / "j.xml").getroot().findall("testsuite/testcase[skipped]")
    assert [case.get("classname") for case in cases] == ["docker Tgone 3 exec c1", "docker Tnew 3 exec c1"]


def test_what_a_cell_ran_on_may_differ_and_is_said(tmp_path: Path) -> None:
    before, after = (
        base(tmp_path, environment="env1", image="sha256:1"),
        new(tmp_path, environment="env2", image="sha256:2"),
    )
    result = checked(tmp_path, after, before)
    assert result.exception is None
    assert "Not the same on both sides: environment, image." in " ".join(result.stdout.split())


def test_runs_of_several_files_pool_on_each_side(tmp_path: Path) -> None:
    before = [str(recorded(tmp_path / f"b{n}.msgpack", runs=1, seed=n, environment=f"env{n}")) for n in range(4)]
    pooled = [part for path in before[1:] for part in ("--pool-before", path)]
    result = CliRunner().invoke(command, [before[0], str(new(tmp_path)), *pooled, "--fail-above", "10%"])
    assert result.exception is None, result.output
    assert "measured over 8 runs" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    "options", [["--metric", "p50:action"], ["--junit", "x.xml"], ["--pool-after", "x"], ["--summary", "x"]]
)
def test_an_option_of_a_limit_needs_the_limit(options: list[str]) -> None:
    result = CliRunner().invoke(command, ["a.msgpack", "b.msgpack", *options])
    assert str(result.exception) == f"{options[0]} needs --fail-above; add --fail-above 10%"


def test_a_limit_is_for_two_recordings_and_for_every_cell() -> None:
    alone = CliRunner().invoke(command, ["a.msgpack", "--fail-above", "10%"])
    assert str(alone.exception) == "--fail-above compares two recordings; give BEFORE and AFTER"
    chosen = CliRunner().invoke(command, ["a.msgpack", "b.msgpack", "--fail-above", "10%", "-t", "T1"])
    assert isinstance(chosen.exception, UsageError)
    assert "leave -s, -t, --mode" in str(chosen.exception)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("p50:acton", "did you mean p50:action? quantities are create, ready"),
        ("median:action", "write mean:QUANTITY, a percentile as p50:QUANTITY, or failure_rate; quantities are create"),
        ("p0:action", "write mean:QUANTITY"),
        ("mean", "quantities of mean are create"),
        ("p50:held_per_success", "quantities of p50 are create"),
    ],
)
def test_an_unknown_metric_lists_the_known(name: str, told: str) -> None:
    with pytest.raises(DemandError) as refused:
        regression.metric(name, 0.1)
    assert told in str(refused.value)
    assert refused.value.exit_code == 2


def test_what_cannot_be_compared_is_refused_with_exit_2(tmp_path: Path) -> None:
    before, after = base(tmp_path), new(tmp_path, tier="other")
    no_cell = checked(tmp_path, after, before)
    same_run = checked(tmp_path, before, before)
    twice = checked(tmp_path, after, before, "--metric", "p50:action", "--metric", "p50:action=5%")
    for result, told in (
        (no_cell, "new.msgpack and base.msgpack share no cell"),
        (same_run, "hold the same run"),
        (twice, "--metric p50:action is given twice"),
    ):
        assert isinstance(result.exception, DemandError | UsageError), result.output
        assert (result.exception.exit_code, result.stdout) == (2, "")
        assert told in str(result.exception)
    assert checked(tmp_path, after, before, "--fail-above", "10").exit_code == 2


def test_reports_are_written_and_nothing_that_is_no_report_is_overwritten(tmp_path: Path) -> None:
    before, after = base(tmp_path), new(tmp_path, 1.3)
    junit, summary = tmp_path / "junit.xml", tmp_path / "summary.md"
    summary.write_text("of an earlier step\n")
    for _ in range(2):
        checked(tmp_path, after, before, "--junit", str(junit), "--summary", str(summary))
    root = ElementTree.parse(junit).getroot()
    [suite] = root.findall("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "2", "0")
    assert [case.get("name") for case in suite.findall("testcase[failure]")] == ["mean:trajectory", "p50:action"]
    told = summary.read_text()
    assert told.startswith("of an earlier step\n")
    assert told.count("## taxtui compare") == 2
    refused = checked(tmp_path, after, before, "--junit", str(before))
    assert isinstance(refused.exception, UsageError)
    missing = checked(tmp_path, after, before, "--summary", str(tmp_path / "no" / "s.md"))
    assert isinstance(missing.exception, TaxtuiError)
    assert "cannot write" in str(missing.exception)


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_junit_is_xml_whatever_a_cell_is_called(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    before, after = base(folder, runs=1, trials=3, tier=name), new(folder, runs=1, trials=3, tier=name)
    checked(folder, after, before, "--junit", str(folder / "j.xml"))
    assert len(ElementTree.parse(folder / "j.xml").getroot().findall("testsuite/testcase")) == 3


def test_a_percentile_of_one_run_differs_as_those_that_it_is_compared_with_do() -> None:
    one, zero = [[[100], [101], [102]]], [[[0], [0], [100]]] * 3
    others = [[[value], [value], [value]] for value in (90, 100, 110, 120)]
    given = Percentile(101, 100, 102, 1)
    alone, beside = (with_runs(given, 0.5, one, Assumed(0.01, ""), runs) for runs in ([], others))
    assert spread_of(0.5, one) is None
    spread = spread_of(0.5, one, others)
    assert spread is not None
    assert spread == pytest.approx((stdev(math.log(value) for value in (90, 100, 110, 120)), 3))
    assert alone.high is not None
    assert beside.high == round(101 * math.exp(student_t(3) * spread.sd)) > alone.high
    assert spread_of(0.5, zero) is None
    assert with_runs(given, 0.5, zero, Assumed(0.2, "")).high != 102, "assumed where no logarithm shows it"


limits = st.floats(0.01, 3)


@settings(max_examples=100, deadline=None)
@given(st.floats(0.1, 10), limits, limits, st.floats(0.1, 10), st.floats(0.01, 2), limits, st.floats(0.02, 10))
def test_a_ratio_holds_a_factor_where_the_difference_at_that_factor_holds_0(
    a: float, a_below: float, a_above: float, b: float, b_below: float, b_above: float, factor: float
) -> None:
    one, other = Interval(a, a - a_below, a + a_above), Interval(b, b - b_below, b + b_above)
    found, delta = ratio(one, other), difference(one, other.times(factor))
    assert found.low is not None
    assert delta.low is not None
    assert delta.high is not None
    assert found.value == a / b
    near = 1e-9 * (abs(factor) + 1)
    if not -near < factor - found.low < near:
        assert (factor > found.low) == (delta.low < 0 or factor > found.value)
    if found.high is None:
        assert other.low is not None
        assert other.low <= 0
    elif not -near < factor - found.high < near:
        assert (factor < found.high) == (delta.high > 0 or factor < found.value)
