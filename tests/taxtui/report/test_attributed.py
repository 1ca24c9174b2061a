"""What the sandbox costs a run in steps, as ``project`` says it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from costmodel import Row, TrainingRun, load, project
from costmodel.projection import warnings as flags
from taxtui.report import words
from taxtui.report.formats import Report, csv_rows, json_rows, markdown_tables, plain_tables
from taxtui.report.marks import FlagMarks
from taxtui.report.measured.sections import DO
from taxtui.report.projected import attributed
from taxtui.report.projected.record import record
from taxtui.terminal_text import width
from tests.support.cost_model.attributed import attribution, share
from tests.support.cost_model.costmodel_files import cell, trial, write

DEMAND = TrainingRun(trajectories=1_000_000, workers=2000, batch=1024, gpus=512, gpu_usd_hour=2.5)


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Row:
    path = write(tmp_path_factory.mktemp("attributed") / "run.msgpack", [trial(n) for n in range(9)], cell())
    [found] = project([load(path)], TrainingRun(trajectories=1024, workers=2000))
    return replace(found, attribution=attribution())


def test_the_headline_is_the_sandboxs_part_and_its_largest_causes_that_surely_cost_something() -> None:
    found = attribution()
    doubtful = share(400.0, 140_000.0, off=1.1)
    for each in (found, found._replace(causes=found.causes | {"cleanup": doubtful})):
        assert attributed.headline(each) == (
            "the sandbox costs this run $312k ($281k–$343k) of $1.27M: "
            "failures $234k, image pulls $91.0k, dispatch $4.00k"
        )
    unpriced = attributed.headline(attribution(priced=False))
    assert unpriced.startswith("the sandbox costs this run 488k worker-hours (440k–")
    assert "$" not in unpriced


def test_the_answer_comes_first_with_every_cause_and_only_the_sandboxs_waiting_is_called_stalled(row: Row) -> None:
    told = plain_tables.to_text(attributed.sections([row], DEMAND))
    assert told.startswith("docker T2 3 exec: the sandbox costs this run $312k")
    assert max(map(width, told.splitlines())) <= 80
    lines = {line.partition("  ")[0]: line.split() for line in told.splitlines()}
    assert lines["failures"][-1] == "234k"
    assert lines["interaction"][-1] == "-17.2k"
    assert lines["slower commands"][-1] == "–"
    assert "clean-up" not in lines
    assert "–: unknown: slower commands." in told
    assert "our nodes, measured in May" in told
    [line] = [line for line in told.splitlines() if " sync " in line]
    assert line.split()[-5:] == ["days", "450,000", "300,000", "22,000", "128,000"]
    assert told.count("stalled") == 2  # the head of its column, and what it is


def test_every_format_carries_it(row: Row) -> None:
    report = Report(lambda: attributed.sections([row], DEMAND), lambda: [record(row)])
    [told] = json.loads(json_rows.render(report))
    found = told["attribution"]
    assert found["sandbox"]["usd"] == {"value": 312_000, "low": 280_800, "high": pytest.approx(343_200)}
    assert found["causes"]["slowdown"] is None
    assert found["waiting"]["stalled_gpu_hours"] == 128_000
    assert found["assumptions"]["pull_gb_s"] == {"value": "0.5", "source": "our nodes, measured in May"}
    parts = [found["causes"][cause]["usd"]["value"] for cause in found["causes"] if found["causes"][cause]]
    assert sum(parts) + found["interaction"]["usd"]["value"] == found["sandbox"]["usd"]["value"]
    head = csv_rows.render(report).splitlines()[0]
    assert '"attribution.causes.failures.usd.low"' in head
    assert '"attribution.assumptions.failure_rate.source"' in head
    assert "### docker T2 3 exec: the sandbox costs this run $312k" in markdown_tables.render(report)


def test_a_family_of_all_rows_is_one_line_and_a_row_has_two_letters_at_most() -> None:
    rows = [
        (flags.FEW_RUNS, flags.NO_FAILURES),
        (flags.STAND_IN, flags.BEYOND_LENGTH, flags.FEW_TRIALS, flags.LOCKSTEP, flags.STALE_PRICES),
        (flags.BEYOND_CONCURRENCY, flags.FEW_RUNS),
    ]
    marks = FlagMarks(rows, words.DO)
    assert marks.shared == (words.LITTLE_DATA,)
    assert [marks.of(row) for row in rows] == ["", "ab", "b"]
    assert list(marks.letters) == [words.NOT_MEASURED, words.BEYOND]
    shared, one, two = marks.notes()
    advice = [words.DO[flag] for flag in (flags.FEW_RUNS, flags.NO_FAILURES, flags.FEW_TRIALS)]
    assert shared == f"All rows: little data ({'; '.join(advice)})."
    assert one == f"a  not measured here: {words.FAMILIES[words.NOT_MEASURED]}; {words.DO[flags.STAND_IN]}"
    assert two.startswith(f"b  beyond what was measured: {words.FAMILIES[words.BEYOND]}; ")


def test_the_advice_of_several_warnings_is_printed_once_and_the_value_of_a_warning_is_in_its_line() -> None:
    marks = FlagMarks([(flags.TAIL, flags.FEW_TRIALS), ()], words.DO)
    assert marks.notes() == [f"a  little data: {words.FAMILIES[words.LITTLE_DATA]}; record more trials"]
    (line,) = FlagMarks([("arrival open:20/s",), ()], DO).notes()
    assert line.startswith("a  environments differ: ")
    assert "arrival open:20/s" in line


def test_one_row_alone_shares_nothing() -> None:
    marks = FlagMarks([(flags.STAND_IN, flags.FEW_TRIALS, flags.FEW_RUNS)], words.DO)
    assert marks.of_all() == []
    assert marks.of((flags.STAND_IN, flags.FEW_TRIALS, flags.FEW_RUNS)) == "ab"
    assert FlagMarks([], words.DO).notes() == []


def test_every_warning_is_of_one_of_eight_families_in_words() -> None:
    assert words.FAMILY.keys() == words.WORDS.keys() | DO.keys()
    assert set(words.FAMILY.values()) == words.FAMILIES.keys()
    assert len(words.FAMILIES) == 8
    assert words.WORDS.keys() == words.DO.keys()
    assert not any("_" in family for family in words.FAMILIES)


def test_flags_are_in_the_order_of_what_they_could_move() -> None:
    some = (flags.FEW_RUNS, flags.NO_FAILURES, flags.STAND_IN, flags.DISTORTED)
    ordered = (flags.STAND_IN, flags.DISTORTED, flags.NO_FAILURES, flags.FEW_RUNS)
    assert flags.ordered((*some, flags.STAND_IN)) == ordered
