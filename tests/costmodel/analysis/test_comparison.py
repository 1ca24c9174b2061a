"""``taxtui compare``: one table, exit codes for CI, and how often its verdicts are right where the truth is known."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import Interval, Recording, TrainingRunError, read_recording
from costmodel.analysis.comparison import INCONCLUSIVE, NO_DIFFERENCE, WORSE, Comparison, compare, parse_metric
from costmodel.statistics.intervals import difference, ratio
from costmodel.statistics.repetitions import assumed
from taxtui.commands.compare import command
from taxtui.errors import Regressed, TaxtuiError, TooLittleData, UsageError
from tests.support.compared import metrics, noisy_checks, noisy_rates, rates, recording_of, repetition_pairs
from tests.support.cost_model.costmodel_files import S, cell, trial, write
from tests.support.cost_model.repeated import AA, measured


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


def checked(after: Path, before: Path, *options: str) -> Result:
    limit = [] if "--fail-above" in options else ["--fail-above", "10%"]
    return CliRunner().invoke(command, [str(before), str(after), *limit, *options])


def verdicts(result: Result) -> dict[str, str]:
    return {one["metric"]: one["verdict"] for one in json.loads(result.stdout)}


ALIKE = {"mean:trajectory": NO_DIFFERENCE, "p50:action": NO_DIFFERENCE, "failure_rate": NO_DIFFERENCE}
SLOWER = ALIKE | {"mean:trajectory": WORSE, "p50:action": WORSE}


@pytest.mark.parametrize(
    ("scale", "limit", "ended", "told"), [(1.0, "10%", 0, ALIKE), (1.3, "10%", 5, SLOWER), (1.3, "50%", 0, SLOWER)]
)
def test_the_limit_changes_the_exit_code_and_not_the_verdicts(
    tmp_path: Path, scale: float, limit: str, ended: int, told: dict[str, str]
) -> None:
    result = checked(new(tmp_path, scale), base(tmp_path), "--fail-above", limit, "--format", "json")
    assert verdicts(result) == told
    assert getattr(result.exception, "exit_code", 0) == ended
    assert isinstance(result.exception, Regressed) == (ended == 5)
    assert ended == 0 or "2 of 3 comparisons got worse" in str(result.exception)
    table = checked(tmp_path / "new.msgpack", tmp_path / "base.msgpack", "--fail-above", limit).stdout
    worse = list(told.values()).count(WORSE)
    assert table.startswith(f"3 comparisons: {worse} worse, 0 inconclusive, 0 better, {3 - worse} no difference")


def test_what_one_run_each_cannot_tell_is_exit_6(tmp_path: Path) -> None:
    before, after = base(tmp_path, runs=1), new(tmp_path, 1.05, runs=1)
    result = checked(after, before)
    assert isinstance(result.exception, TooLittleData)
    assert result.exception.exit_code == 6
    assert f"assumed for 1 repetition: sd {100 * assumed('docker').sd:g} %" in " ".join(result.stdout.split())
    wide = compared(tmp_path, 1.05, 0.1, runs=1)
    assert wide.verdict == INCONCLUSIVE
    assert wide.needs >= 3
    assert f"needs {wide.needs}" in result.stdout, "how many repetitions would show the limit"
    alone = checked(after, before, "--run-sd", "0", "--fail-above", "15%")
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


def test_among_many_metrics_a_small_change_for_the_worse_is_no_failure(tmp_path: Path) -> None:
    """Each metric by itself is worse; chance shows such a change in one of so many metrics too often."""
    before, after = base(tmp_path), new(tmp_path, 1.07)
    names = ("mean:trajectory", "mean:action", "mean:create", "mean:held_per_success", "mean:cold_start")
    alone = checked(after, before, "--metric", names[0], "--fail-above", "0%")
    assert isinstance(alone.exception, Regressed)
    options = [option for name in names for option in ("--metric", name)]
    together = checked(after, before, *options, "--fail-above", "0%")
    assert isinstance(together.exception, TooLittleData)
    text = " ".join(together.stdout.split())
    assert "--fail-above does not count 3 worse metrics" in text
    assert " needs " in text.split("--fail-above")[0]


def test_failures_count_in_points_and_none_passes_however_few_trials(tmp_path: Path) -> None:
    before, metric = base(tmp_path), ("--metric", "failure_rate")
    broken = checked(new(tmp_path, failing=6), before, *metric, "--format", "json")
    assert isinstance(broken.exception, Regressed)
    [found] = json.loads(broken.stdout)
    assert (found["after"]["share"]["value"], found["change"]["value"]) == (0.5, 0.5)
    told = checked(tmp_path / "new.msgpack", before, *metric, "--fail-above", "5%")
    assert re.search(r"failure_rate \+50(\.0)? points.*, limit 5 points", str(told.exception))
    assert "± 5 points" in told.stdout
    slower = checked(new(tmp_path, scale=2.0), before, "--fail-above", "5%")
    assert re.search(r"mean:trajectory \+\d+ % .*, limit 5\.0 %", str(slower.exception)), "every change has its sign"
    few = recorded(tmp_path / "few.msgpack", runs=1, trials=2)
    assert checked(few, before, *metric).exception is None


def test_what_never_succeeds_is_caught_by_failures_though_it_has_no_durations(tmp_path: Path) -> None:
    before = base(tmp_path)
    result = checked(new(tmp_path, failing=12), before, "--format", "json")
    assert isinstance(result.exception, Regressed)
    assert verdicts(result)["mean:trajectory"] == INCONCLUSIVE
    sides = str(before), str(tmp_path / "new.msgpack")
    for both in (sides, sides[::-1]):
        assert "no success: " in CliRunner().invoke(command, both).stdout, "the warnings of both sides are shown"


def test_a_percentile_that_the_trials_do_not_support_says_how_many_it_needs(tmp_path: Path) -> None:
    result = checked(new(tmp_path), base(tmp_path), "--metric", "p95:cold_start", "--format", "json")
    assert isinstance(result.exception, TooLittleData)
    assert json.loads(result.stdout)[0]["reason"] == "needs 72 values, has 48 before"


def test_equal_cells_alone_are_compared_and_the_others_are_named(tmp_path: Path) -> None:
    trials = [trial(n, cell=n % 2, create=S + n) for n in range(24)]
    paths = [
        write(tmp_path / f"{name}.msgpack", trials, cell(0), cell(1, tier=tier), run_id=name)
        for name, tier in (("then", "Tgone"), ("now", "Tnew"))
    ]
    result = checked(paths[1], paths[0], "--fail-above", "60%", "--junit", str(tmp_path / "j.xml"))
    assert result.exception is None, result.output
    text = " ".join(result.stdout.split())
    assert "Only before, so not compared: docker Tgone 3 exec c1." in text
    assert "Only after, so not compared: docker Tnew 3 exec c1." in text
    data = checked(paths[1], paths[0], "--format", "json")
    assert data.stderr.startswith("taxtui: Only before, so not compared: docker Tgone 3 exec c1.\ntaxtui: Only after")
    cases = ElementTree.parse(tmp_path / "j.xml").getroot().findall("testsuite/testcase[skipped]")
    assert [case.get("classname") for case in cases] == ["docker Tgone 3 exec c1", "docker Tnew 3 exec c1"]


def test_runs_of_several_files_pool_on_each_side_and_what_they_ran_on_may_differ(tmp_path: Path) -> None:
    before = [str(recorded(tmp_path / f"b{n}.msgpack", runs=1, seed=n, environment=f"env{n}")) for n in range(4)]
    after = new(tmp_path, 1.3, image="sha256:2")
    pooled = [part for path in before[1:] for part in ("--pool-before", path)]
    metrics = ("--metric", "mean:trajectory=60%", "--metric", "mean:held_per_success")
    result = checked(after, Path(before[0]), *pooled, *metrics)
    text = " ".join(result.stdout.split())
    assert "measured over 8 repetitions" in text
    assert "Different on the two sides: environment, image." in text
    data = json.loads(checked(after, Path(before[0]), *pooled, *metrics, "--format", "json").stdout)
    limits = {one["metric"]: (one["limit"], one["beyond_limit"]) for one in data}
    assert limits == {"mean:trajectory": (0.6, False), "mean:held_per_success": (0.1, True)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a", "b", "--junit", "x.xml"], "--junit needs --fail-above; add --fail-above 10%"),
        (["a", "--fail-above", "10%"], "--fail-above compares two recordings; give BEFORE and AFTER"),
        (["a", "--metric", "x"], "--metric compares two recordings; give BEFORE and AFTER"),
        (["BEFORE", "AFTER"], "new.msgpack and base.msgpack share no cell"),
        (["BEFORE", "BEFORE"], "hold the same run"),
        (["BEFORE", "AFTER", *["--metric", "p50:action"] * 2], "--metric p50:action is given twice"),
        (["BEFORE", "AFTER", "--metric", "p50:acton"], "quantities of p50 are create, ready"),
        (["BEFORE", "AFTER", "--metric", "median:x"], "write mean:QUANTITY, a percentile as p50:QUANTITY, or fail"),
        (["BEFORE", "AFTER", "--metric", "p0:action"], "write mean:QUANTITY"),
        (["BEFORE", "AFTER", "--metric", "mean"], "quantities of mean are create"),
        (["BEFORE", "AFTER", "--metric", "p50:held_per_success"], "quantities of p50 are create"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_exit_2(tmp_path: Path, options: list[str], message: str) -> None:
    paths = {"BEFORE": str(base(tmp_path)), "AFTER": str(new(tmp_path, tier="other"))}
    result = CliRunner().invoke(command, [paths.get(word, word) for word in options])
    assert isinstance(result.exception, TrainingRunError | UsageError), result.output
    assert (result.exception.exit_code, result.stdout) == (2, "")
    assert message in str(result.exception)


def test_a_limit_is_a_percentage(tmp_path: Path) -> None:
    refused = checked(new(tmp_path), base(tmp_path), "--fail-above", "10")
    assert (refused.exit_code, refused.stdout) == (2, "")


def test_a_tier_selects_cells(tmp_path: Path) -> None:
    trials = [trial(n, cell=n % 2, create=S + n) for n in range(24)]
    one, other = (write(tmp_path / name, trials, cell(0), cell(1, tier="T0"), run_id=name) for name in ("a", "b"))
    chosen = checked(other, one, "-t", "T0", "--format", "json")
    assert {row["tier"] for row in json.loads(chosen.stdout)} == {"T0"}
    refused = checked(other, one, "-t", "T9")
    assert str(refused.exception).startswith("no row is of --tier T9; there are T0, T2")


def test_failure_rates_without_a_failure_are_counted_and_not_shown(tmp_path: Path) -> None:
    before = base(tmp_path)
    text = checked(new(tmp_path), before).stdout
    assert "cells without a failed trial on either side are not listed (1)" in " ".join(text.split())
    assert " failure_rate " not in text.split("before:")[0]
    assert " failure_rate " in checked(new(tmp_path, failing=1), before).stdout.split("before:")[0]


def test_reports_are_written_and_nothing_that_is_no_report_is_overwritten(tmp_path: Path) -> None:
    before, after = base(tmp_path), new(tmp_path, 1.3)
    junit, summary = tmp_path / "junit.xml", tmp_path / "summary.md"
    summary.write_text("of an earlier step\n")
    for _ in range(2):
        checked(after, before, "--junit", str(junit), "--summary", str(summary))
    root = ElementTree.parse(junit).getroot()
    [suite] = root.findall("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "2", "0")
    assert [case.get("name") for case in suite.findall("testcase[failure]")] == ["mean:trajectory", "p50:action"]
    told = summary.read_text()
    assert told.startswith("of an earlier step\n")
    assert told.count("## taxtui compare") == 2
    refused = checked(after, before, "--junit", str(before))
    assert isinstance(refused.exception, UsageError)
    missing = checked(after, before, "--summary", str(tmp_path / "no" / "s.md"))
    assert isinstance(missing.exception, TaxtuiError)
    assert "cannot write" in str(missing.exception)


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_junit_is_xml_whatever_a_cell_is_called(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    before, after = base(folder, runs=1, trials=3, tier=name), new(folder, runs=1, trials=3, tier=name)
    checked(after, before, "--junit", str(folder / "j.xml"))
    assert len(ElementTree.parse(folder / "j.xml").getroot().findall("testsuite/testcase")) == 3


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


def test_equal_runs_raise_no_false_alarm_and_20_per_cent_are_found() -> None:
    for limit in (0.0, 0.10):
        assert noisy_checks(40, 3, 0.05, 1.0, limit=limit).regressed <= 0.05
    assert noisy_checks(40, 3, 0.02, 1.2, limit=0.05, sigma=0.05).regressed >= 0.90
    assert noisy_checks(10, 6, 0.02, 1.0, limit=0.10, sigma=0.05).passed >= 0.90


def test_equal_runs_on_a_drifting_machine_raise_no_false_alarm() -> None:
    """Neighbouring trials correlate; alone, a run is as sure as they allow. As independent trials: .11 for .02."""

    def pairs(rounds: int, runs: int, sd: float) -> Iterator[tuple[Recording, Recording]]:
        for seed in range(rounds):
            rng = Random(f"drift {seed}")
            after, before = (recording_of(rng, measured(rng, runs, sd)["a"], name) for name in ("after", "before"))
            yield after, before

    for limit in (0.0, 0.10):
        assert rates(pairs(40, 3, 0.05), metrics(limit)).regressed <= 0.05
    assert rates(pairs(80, 1, 0.0), metrics(0.0, "mean:trajectory", "p50:action"), run_sd=0.0).worse <= 0.05


@pytest.mark.parametrize(("runs", "found"), [(1, 0.7), (5, 0.95)])
def test_outages_of_equal_sides_are_no_change_and_a_broken_side_is(runs: int, found: float) -> None:
    """In 30 % of all repetitions ten trials fail in a row; as independent trials, 27 and 17 % were worse."""

    def side(rng: Random, broken: float, name: str) -> Recording:
        recording = recording_of(rng, [[1.0] * 30] * runs, name)
        firsts = [rng.randrange(20) if rng.random() < 0.3 else 30 for _ in range(runs)]
        for at, one in enumerate(recording.cells[0].trials):
            one.ok = not 0 <= at % 30 - firsts[at // 30] < 10 and rng.random() >= broken
        return recording

    for broken, least, most in ((0.0, 0.0, 0.05), (0.8, found, 1.0)):
        sides = ((side(rng, broken, "after"), side(rng, 0.0, "before")) for rng in map(Random, range(60)))
        assert least <= rates(sides, metrics(0.0, "failure_rate")).worse <= most


@pytest.mark.parametrize("runs", [1, 3])
def test_real_repetitions_never_fail_a_check_of_39_metrics(runs: int) -> None:
    result = rates(repetition_pairs(AA, runs), metrics(0.0))
    assert result.regressed == 0
    assert result.worse <= 0.025


def test_equal_recordings_of_many_cells_fail_a_check_in_at_most_5_percent() -> None:
    result = noisy_checks(20, 3, 0.06, 1.0, cells=13)
    assert result.regressed <= 0.05
    assert result.any_worse > 0.05  # the 95 % intervals alone


def test_the_repetitions_that_compare_asks_for_find_the_change() -> None:
    """Three a side find half of + 20 % at an sd of 6 %; as many as ``needs`` says find it, and equal sides stay equal.

    tests/studies/study_power.py has the large version, and what would narrow the intervals.
    """
    few, needs = noisy_rates(60, 3, 0.06, 1.2)
    assert 0.35 <= few <= 0.65
    assert 4 <= needs <= 7
    assert noisy_rates(60, round(needs), 0.06, 1.2)[0] >= 0.75
