"""What the sandbox costs a run in steps, as ``project`` says it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from costmodel import Row, TrainingRun, load, project
from taxtui.report.formats import Report, csv_rows, json_rows, markdown_tables, plain_tables
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


def text(*rows: Row, training_run: TrainingRun = DEMAND) -> str:
    return plain_tables.to_text(attributed.sections(rows, training_run))


def test_the_headline_is_the_sandboxs_part_and_its_largest_causes() -> None:
    assert attributed.headline(attribution()) == (
        "the sandbox costs this run $312k ($281k–$343k) of $1.27M: failures $234k, image pulls $91.0k, dispatch $4.00k"
    )


def test_the_headline_names_no_cause_that_may_cost_nothing() -> None:
    found = attribution()
    doubtful = share(400.0, 140_000.0, off=1.1)
    told = attributed.headline(found._replace(causes=found.causes | {"cleanup": doubtful}))
    assert told == attributed.headline(found)


def test_without_a_price_the_headline_is_in_worker_hours() -> None:
    told = attributed.headline(attribution(priced=False))
    assert told.startswith("the sandbox costs this run 488k worker-hours (440k–")
    assert "$" not in told


def test_the_answer_comes_first_with_every_cause(row: Row) -> None:
    told = text(row)
    assert told.startswith("docker T2 3 exec: the sandbox costs this run $312k")
    assert max(map(width, told.splitlines())) <= 80
    lines = {line.partition("  ")[0]: line.split() for line in told.splitlines()}
    assert lines["failures"][-1] == "234k"
    assert lines["interaction"][-1] == "-17.2k"
    assert lines["slower commands"][-1] == "–"
    assert "clean-up" not in lines
    assert "–: unknown: slower commands." in told
    assert "our nodes, measured in May" in told


def test_gpus_wait_in_parts_and_only_the_sandboxs_is_called_stalled(row: Row) -> None:
    told = text(row)
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
