"""``taxtui compare``: one table, its verdicts on recordings whose truth is known, and exit codes for CI."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.analysis.comparison import INCONCLUSIVE, NO_DIFFERENCE, WORSE, Comparison, compare, parse_metric
from costmodel.errors import TrainingRunError
from costmodel.recording.reader import read_recording
from costmodel.statistics.intervals import Interval, difference, ratio, student_t
from costmodel.statistics.quantiles import Percentile, percentile_with_runs, spread_of
from costmodel.statistics.repetitions import Assumed, assumed
from costmodel.statistics.verdict import POWER, repetitions_needed
from taxtui.commands.compare import command
from taxtui.errors import Regressed, TaxtuiError, TooLittleData, UsageError
from tests.support.cost_model.costmodel_files import S, cell, trial, write


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
    assert result.stdout.startswith("3 comparisons: 0 worse, 0 inconclusive, 0 better, 3 no difference")


def test_what_is_surely_beyond_the_limit_has_regressed_with_exit_5(tmp_path: Path) -> None:
    result = checked(tmp_path, new(tmp_path, 1.3), base(tmp_path), "--format", "json")
    assert isinstance(result.exception, Regressed)
    assert result.exception.exit_code == 5
    assert "2 of 3 comparisons got worse" in str(result.exception)
    assert verdicts(result) == {
        "mean:trajectory": WORSE,
        "p50:action": WORSE,
        "failure_rate": NO_DIFFERENCE,
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


def compared(tmp_path: Path, scale: float, limit: float, **more: Any) -> Comparison:
    """The mean of a trajectory in the new recording against the base."""
    before, after = (read_recording(path) for path in (base(tmp_path, **more), new(tmp_path, scale, **more)))
    [comparison] = compare([before], [after], [parse_metric("mean:trajectory", limit)]).comparisons
    return comparison


def test_a_metric_is_beyond_its_limit_where_it_is_worse_and_its_change_is_above_the_limit(tmp_path: Path) -> None:
    change = compared(tmp_path, 1.3, 0.0).change
    assert 0 < change.low < change.value < change.high
    for limit, beyond in ((change.low, True), (change.value - 1e-6, True), (change.value, None), (change.high, False)):
        comparison = compared(tmp_path, 1.3, limit)
        assert (comparison.verdict, comparison.beyond) == (WORSE, beyond), limit


@pytest.mark.parametrize(
    ("scale", "limit", "verdict", "beyond"),
    [(0.7, 0.1, "better", False), (1.0, 0.1, "no difference", False), (1.0, 0.001, "inconclusive", None)],
)
def test_the_other_verdicts(tmp_path: Path, scale: float, limit: float, verdict: str, beyond: bool | None) -> None:
    comparison = compared(tmp_path, scale, limit)
    assert (comparison.verdict, comparison.beyond) == (verdict, beyond)
    assert (comparison.needs is None) == (verdict != "inconclusive" or limit == 0.001)


def test_an_inconclusive_change_says_how_many_repetitions_would_show_the_limit(tmp_path: Path) -> None:
    wide = compared(tmp_path, 1.05, 0.1, runs=1)
    assert wide.verdict == INCONCLUSIVE
    assert wide.needs >= 3
    text = checked(tmp_path, tmp_path / "new.msgpack", tmp_path / "base.msgpack").stdout
    assert f"needs {wide.needs}" in text


def test_the_number_of_repetitions_has_the_power_that_it_claims() -> None:
    """Of two normal samples with a known sd, as many as it says."""
    random, sd, difference_ = Random(5), 0.08, 0.12
    change = Interval(0.0, -student_t(4) * sd * math.sqrt(2 / 3), student_t(4) * sd * math.sqrt(2 / 3))
    count = repetitions_needed(change, (3, 3), difference_, measured=True)
    assert count == 9
    hits = 0
    for _ in range(2_000):
        one, other = ([random.gauss(mean, sd) for _ in range(count)] for mean in (0, difference_))
        error = math.sqrt((stdev(one) ** 2 + stdev(other) ** 2) / count)
        hits += (fmean(other) - fmean(one)) / error > student_t(2 * count - 2)
    assert POWER - 0.03 <= hits / 2_000 <= POWER + 0.05
    assert repetitions_needed(change, (3, 3), 1e-4, measured=True) is None


def test_among_many_metrics_a_small_change_for_the_worse_is_no_failure(tmp_path: Path) -> None:
    """Each metric by itself is worse; chance shows such a change in one of so many metrics too often."""
    before, after = base(tmp_path), new(tmp_path, 1.07)
    names = ("mean:trajectory", "mean:action", "mean:create", "mean:held_per_success", "mean:cold_start")
    alone = checked(tmp_path, after, before, "--metric", names[0], "--fail-above", "0%")
    assert isinstance(alone.exception, Regressed)
    options = [option for name in names for option in ("--metric", name)]
    together = checked(tmp_path, after, before, *options, "--fail-above", "0%")
    assert isinstance(together.exception, TooLittleData)
    text = " ".join(together.stdout.split())
    assert "--fail-above does not count 3 worse metrics" in text
    assert " needs " in text.split("--fail-above")[0]


def test_failures_count_in_points_and_none_passes_however_few_trials(tmp_path: Path) -> None:
    before = base(tmp_path)
    broken = checked(tmp_path, new(tmp_path, failing=6), before, "--metric", "failure_rate", "--format", "json")
    assert isinstance(broken.exception, Regressed)
    [found] = json.loads(broken.stdout)
    assert found["after"]["share"]["value"] == 0.5
    assert found["change"]["value"] == 0.5
    few = recorded(tmp_path / "few.msgpack", runs=1, trials=2)
    assert checked(tmp_path, few, before, "--metric", "failure_rate").exception is None


def test_a_change_of_failures_is_in_points_and_every_change_has_its_sign(tmp_path: Path) -> None:
    options = "--metric", "failure_rate", "--fail-above", "5%"
    result = checked(tmp_path, new(tmp_path, failing=6), base(tmp_path), *options)
    assert re.search(r"failure_rate \+50(\.0)? points.*, limit 5 points", str(result.exception))
    assert "± 5 points" in result.stdout
    slower = checked(tmp_path, new(tmp_path, scale=2.0), base(tmp_path), "--fail-above", "5%")
    assert re.search(r"mean:trajectory \+\d+ % .*, limit 5\.0 %", str(slower.exception))


def test_what_never_succeeds_is_caught_by_failures_though_it_has_no_durations(tmp_path: Path) -> None:
    result = checked(tmp_path, new(tmp_path, failing=12), base(tmp_path), "--format", "json")
    assert isinstance(result.exception, Regressed)
    assert verdicts(result)["mean:trajectory"] == INCONCLUSIVE


def test_a_percentile_that_the_trials_do_not_support_says_how_many_it_needs(tmp_path: Path) -> None:
    result = checked(tmp_path, new(tmp_path), base(tmp_path), "--metric", "p95:cold_start", "--format", "json")
    assert isinstance(result.exception, TooLittleData)
    [found] = json.loads(result.stdout)
    assert found["reason"] == "needs 72 values, has 48 before"


def test_a_metric_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    options = ("--metric", "mean:trajectory=60%", "--metric", "mean:held_per_success", "--format", "json")
    result = checked(tmp_path, new(tmp_path, 1.3), base(tmp_path), *options)
    limits = {one["metric"]: (one["limit"], one["beyond_limit"]) for one in json.loads(result.stdout)}
    assert limits == {"mean:trajectory": (0.6, False), "mean:held_per_success": (0.1, True)}


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
    data = checked(tmp_path, paths[1], paths[0], "--format", "json")
    assert data.stderr.startswith("taxtui: Only before, so not compared: docker Tgone 3 exec c1.\ntaxtui: Only after")
    cases = ElementTree.parse(tmp_path / "j.xml").getroot().findall("testsuite/testcase[skipped]")
    assert [case.get("classname") for case in cases] == ["docker Tgone 3 exec c1", "docker Tnew 3 exec c1"]


def test_what_a_cell_ran_on_may_differ_and_is_said(tmp_path: Path) -> None:
    before, after = (
        base(tmp_path, environment="env1", image="sha256:1"),
        new(tmp_path, environment="env2", image="sha256:2"),
    )
    result = checked(tmp_path, after, before)
    assert result.exception is None
    assert "Different on the two sides: environment, image." in " ".join(result.stdout.split())


def test_runs_of_several_files_pool_on_each_side(tmp_path: Path) -> None:
    before = [str(recorded(tmp_path / f"b{n}.msgpack", runs=1, seed=n, environment=f"env{n}")) for n in range(4)]
    pooled = [part for path in before[1:] for part in ("--pool-before", path)]
    result = CliRunner().invoke(command, [before[0], str(new(tmp_path)), *pooled, "--fail-above", "10%"])
    assert result.exception is None, result.output
    assert "measured over 8 runs" in " ".join(result.stdout.split())


def test_the_limit_changes_the_exit_code_and_not_the_table(tmp_path: Path) -> None:
    before, after = base(tmp_path), new(tmp_path, 1.3)
    tables = [CliRunner().invoke(command, [str(before), str(after), *more]) for more in ([], ["--fail-above", "10%"])]
    assert tables[0].exception is None
    assert isinstance(tables[1].exception, Regressed)
    assert tables[0].stdout == tables[1].stdout
    assert "worse" in tables[0].stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a", "b", "--junit", "x.xml"], "--junit needs --fail-above; add --fail-above 10%"),
        (["a", "--fail-above", "10%"], "--fail-above compares two recordings; give BEFORE and AFTER"),
        (["a", "--metric", "x"], "--metric compares two recordings; give BEFORE and AFTER"),
    ],
)
def test_options_that_need_another(options: list[str], message: str) -> None:
    assert str(CliRunner().invoke(command, options).exception) == message


def test_substrate_tier_and_mode_select_cells(tmp_path: Path) -> None:
    trials = [trial(n, cell=n % 2, create=S + n) for n in range(24)]
    paths = [
        write(tmp_path / f"{name}.msgpack", trials, cell(0), cell(1, tier="T0"), run_id=name) for name in ("a", "b")
    ]
    chosen = checked(tmp_path, paths[1], paths[0], "-t", "T0", "--format", "json")
    assert {one["tier"] for one in json.loads(chosen.stdout)} == {"T0"}
    refused = checked(tmp_path, paths[1], paths[0], "-t", "T9")
    assert str(refused.exception).startswith("no row is of --tier T9; there are T0, T2")


def test_the_flags_of_both_sides_are_shown(tmp_path: Path) -> None:
    before = write(tmp_path / "a.msgpack", [trial(n, create=S, outcome="ok") for n in range(9)], cell(0), run_id="a")
    after = write(tmp_path / "b.msgpack", [trial(n, outcome="failed") for n in range(9)], cell(0), run_id="b")
    for sides in ((before, after), (after, before)):
        assert "no success: " in CliRunner().invoke(command, [str(side) for side in sides]).stdout


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("p50:acton", "quantities of p50 are create, ready"),
        ("median:action", "write mean:QUANTITY, a percentile as p50:QUANTITY, or failure_rate; quantities are create"),
        ("p0:action", "write mean:QUANTITY"),
        ("mean", "quantities of mean are create"),
        ("p50:held_per_success", "quantities of p50 are create"),
    ],
)
def test_an_unknown_metric_lists_the_known(name: str, told: str) -> None:
    with pytest.raises(TrainingRunError) as refused:
        parse_metric(name, 0.1)
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
        assert isinstance(result.exception, TrainingRunError | UsageError), result.output
        assert (result.exception.exit_code, result.stdout) == (2, "")
        assert told in str(result.exception)
    assert checked(tmp_path, after, before, "--fail-above", "10").exit_code == 2


def test_failure_rates_without_a_failure_are_counted_and_not_shown(tmp_path: Path) -> None:
    before = base(tmp_path)
    text = checked(tmp_path, new(tmp_path), before).stdout
    assert "cells without a failed trial on either side are not listed (1)" in " ".join(text.split())
    assert " failure_rate " not in text.split("before:")[0]
    assert " failure_rate " in checked(tmp_path, new(tmp_path, failing=1), before).stdout.split("before:")[0]


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
    alone, beside = (percentile_with_runs(given, 0.5, one, Assumed(0.01, ""), runs) for runs in ([], others))
    assert spread_of(0.5, one) is None
    spread = spread_of(0.5, one, others)
    assert spread == pytest.approx((stdev(math.log(value) for value in (90, 100, 110, 120)), 3))
    assert beside.high == round(101 * math.exp(student_t(3) * spread.sd)) > alone.high
    assert spread_of(0.5, zero) is None
    assert percentile_with_runs(given, 0.5, zero, Assumed(0.2, "")).high != 102, "assumed where no logarithm shows it"


limits = st.floats(0.01, 3)


@settings(max_examples=100, deadline=None)
@given(st.floats(0.1, 10), limits, limits, st.floats(0.1, 10), st.floats(0.01, 2), limits, st.floats(0.02, 10))
def test_a_ratio_holds_a_factor_where_the_difference_at_that_factor_holds_0(
    a: float, a_below: float, a_above: float, b: float, b_below: float, b_above: float, factor: float
) -> None:
    one, other = Interval(a, a - a_below, a + a_above), Interval(b, b - b_below, b + b_above)
    found, delta = ratio(one, other), difference(one, other.times(factor))
    assert found.value == a / b
    near = 1e-9 * (abs(factor) + 1)
    if not -near < factor - found.low < near:
        assert (factor > found.low) == (delta.low < 0 or factor > found.value)
    if found.high is None:
        assert other.low <= 0
    elif not -near < factor - found.high < near:
        assert (factor < found.high) == (delta.high > 0 or factor < found.value)
