"""Move, stay, or cannot tell: the rules, and the page that says so."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from costmodel import Interval, Pool, Row, Share, Think, TrainingRun, load, load_prices, pools, project
from costmodel.analysis.baseline import with_baseline
from costmodel.analysis.decision import (
    CANNOT_TELL,
    MOVE,
    STAY,
    USD,
    WORKER_HOURS,
    Decision,
    Side,
    check_prices,
    decide_between,
    verdict,
)
from costmodel.attribution import paired_comparison
from costmodel.errors import CostModelError, TrainingRunError
from costmodel.workload.rescaling import Alternatives, Assumption
from taxtui.cli import app
from taxtui.errors import TaxtuiError
from taxtui.report.decision.sections import page as page_of
from taxtui.report.formats.markdown_tables import to_text as to_markdown
from tests.support.cost_model.attributed import attribution
from tests.support.cost_model.costmodel_files import S, cell, price_sheet, trial, write

DEMAND = TrainingRun(
    trajectories=1000, workers=10, batch=100, gpus=8, gpu_usd_hour=2.0, nodes=2, pods_per_node=16, think=Think(S)
)
"""10 steps."""
PRICED = replace(DEMAND, node_usd_hour=1.0)


@pytest.fixture(autouse=True)
def not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bills of rows are compared, as where both sides have different steps."""
    monkeypatch.setattr(paired_comparison, "run_difference", lambda *_, **_options: None)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    trials = [trial(n, block=n, create=(2 + n % 3) * S, runs=[S // 2] * 3) for n in range(40)]
    trials += [trial(n, cell=1, block=n, create=(20 + n % 3) * S, runs=[S // 2] * 3) for n in range(50, 90)]
    trials += [trial(n, cell=2, runs=[S // 2] * 3) for n in range(100, 110)]
    cells = cell(0), cell(1, substrate="kubernetes"), cell(2, tier="T1", tier_digest="d1")
    return str(write(tmp_path_factory.mktemp("decision") / "run.msgpack", trials, *cells))


@pytest.fixture(scope="module")
def cells(recording: str) -> list[Pool]:
    return list(pools([load(Path(recording))]))[:2]


@pytest.fixture(scope="module")
def rows(cells: list[Pool]) -> list[Row]:
    return project(cells[0].recordings, TrainingRun(trajectories=1000, workers=10))[:2]


def side(row: Row, training_run: TrainingRun, step_s: float, *, off: float = 0.01) -> Side:
    """A place whose steps take so long, all paid by the hour: 8 GPUs at $2 and, where priced, 2 nodes at $1."""
    rate = 8 * (training_run.gpu_usd_hour or 0.0) + 2 * (training_run.node_usd_hour or 0.0)
    hours = step_s * 10 / 3600

    def about(value: float) -> Interval:
        return Interval(value, value * (1 - off), value * (1 + off))

    run = Share(about(step_s), about(10 * hours), about(8 * hours), about(rate * hours))
    found = attribution()._replace(run=run, sandbox=run, steps=10, waiting=None)
    return of_row(replace(row, attribution=found), training_run)


def of_row(row: Row, training_run: TrainingRun) -> Side:
    """A side whose inputs nobody simulates."""
    return Side(row=row, inputs=Alternatives(None, training_run, None))


def decided(
    rows: list[Row], start_s: float, goal_s: float, start: TrainingRun = PRICED, goal: TrainingRun | None = None
) -> Decision:
    """Decide between docker and kubernetes, whose steps take so long."""
    return decide_between(side(rows[0], start, start_s), side(rows[1], goal or start, goal_s))


@pytest.mark.parametrize(
    ("saving", "told"),
    [
        (Interval(3.0, 1.0, 5.0), MOVE),
        (Interval(-3.0, -5.0, -1.0), STAY),
        (Interval(0.0, 0.0, 0.0), STAY),
        (Interval(3.0, -1.0, 5.0), CANNOT_TELL),
        (Interval(3.0), CANNOT_TELL),
        (Interval(3.0, 1.0, None), CANNOT_TELL),
    ],
)
def test_the_interval_of_the_saving_decides(saving: Interval, told: str) -> None:
    assert verdict(saving) == told


def test_the_bill_is_gpus_and_nodes_for_as_long_as_the_run_lasts(rows: list[Row]) -> None:
    found = decided(rows, 3600, 1800)
    assert (found.verdict, found.unit) == (MOVE, USD)
    assert found.start_bill.whole.value == pytest.approx(180)
    assert found.start_bill.gpus.value == pytest.approx(160)
    assert found.start_bill.nodes.value == pytest.approx(20)
    assert found.start_bill.rest == pytest.approx(0)
    assert found.saving.value == pytest.approx(90)
    back = decide_between(side(rows[1], PRICED, 1800), side(rows[0], PRICED, 3600))
    assert (back.verdict, back.saving.value) == (STAY, pytest.approx(-90))
    assert decided(rows, 3600, 3590).verdict == CANNOT_TELL


def test_without_prices_it_is_about_worker_hours_paired_within_the_run(rows: list[Row]) -> None:
    training_run = TrainingRun(trajectories=1000, workers=10, think=Think(0))
    found = decide_between(*(of_row(row, training_run) for row in rows))
    assert (found.verdict, found.unit) == (STAY, WORKER_HOURS)
    assert found.saving.value == pytest.approx(-1000 * 18 / 3600, rel=0.1)
    assert found.saving == with_baseline(rows, "kubernetes")[0].versus.worker_hours
    longer = [replace(row, evidence=row.evidence._replace(beyond=Interval(0.0, -0.9, 0.05))) for row in rows]
    assert decide_between(*(of_row(row, training_run) for row in longer)).verdict == CANNOT_TELL


def test_different_work_and_a_place_without_a_number_are_not_compared(rows: list[Row]) -> None:
    longer = replace(rows[1], identity=rows[1].identity._replace(tier="T9"))
    empty = replace(rows[1], worker_hours=None, attribution=None, flags=("no_success",))
    there = side(rows[1], PRICED, 60)
    for other, told in (
        (replace(there, row=longer), "did different work, T2 3 and T9 3"),
        (replace(there, row=empty), "there is no number for kubernetes: no_success"),
    ):
        with pytest.raises(TrainingRunError, match=told):
            decide_between(side(rows[0], PRICED, 60), other)


def page(found: Decision) -> str:
    given = [Assumption("gpu_usd_hour", "2", "our contract"), Assumption("images", "500 of 2-8 GB", "a_b *c*")]
    return to_markdown(page_of(found, [], given, "taxtui decide lab.msgpack"))


def test_the_page_has_everything_in_its_place(rows: list[Row]) -> None:
    start, goal = side(rows[0], PRICED, 3600), side(rows[1], PRICED, 1800)
    found = decide_between(start, goal)
    told = page(found)
    assert told.startswith(
        "# MOVE from docker to kubernetes\n\nMoving to kubernetes saves this run $90.0 ($88.0–$92.0)"
    )
    headings = [line for line in told.splitlines() if line.startswith("### ")]
    assert headings == [
        "### Costs of the training run",
        "### Costs of the sandbox by cause",
        "### Not verified",
        "### Measure next, the most useful first",
        "### Command that writes this page",
        "### Source of each input",
    ]
    assert "| GPUs, whole duration | 160 (±2) | 80.0 (±0.8) |" in told
    assert r"a_b \*c\*" in told
    assert page(decide_between(goal, start)).startswith(
        "# STAY with kubernetes\n\nMoving to docker costs this run $90.0 ($88.0–$92.0)"
    )
    assert "≈" not in told
    rough = to_markdown(page_of(found, [], [], "taxtui decide --quick", rough=True))
    assert "saves this run ≈ $90.0 ($88.0–$92.0), 50 % of $180.\n\nA rough simulation" in rough
    unsure = page(decided(rows, 3600, 3590))
    assert unsure.startswith("# CAN'T TELL docker from kubernetes")
    assert "The 95 % interval of the saving includes zero." in unsure


def test_a_place_without_ranges_that_was_not_measured_is_never_a_verdict(rows: list[Row]) -> None:
    for provenance in ("published", "stand_in", "composed"):
        there = side(replace(rows[1], provenance=provenance), PRICED, 1800)
        found = decide_between(side(rows[0], PRICED, 3600), there)
        assert found.verdict == CANNOT_TELL
        assert [point.words for point in found.open_points] == ["nothing was measured there"]
    imported = side(replace(rows[1], provenance="imported"), PRICED, 1800)
    assert decide_between(side(rows[0], PRICED, 3600), imported).verdict == MOVE


def test_without_the_models_time_there_is_no_verdict(rows: list[Row]) -> None:
    with pytest.raises(
        TrainingRunError, match=r"the model's time .* is missing.*: add --think lognormal:8s,1 \(--think 0s"
    ):
        decide_between(side(rows[0], replace(PRICED, think=None), 3600), side(rows[1], PRICED, 1800))
    thinking = [replace(row, think_s=8.0) for row in rows]  # recorded
    asked = replace(PRICED, think=None)
    assert decide_between(side(thinking[0], asked, 3600), side(thinking[1], asked, 1800)).verdict == MOVE
    assert decided(rows, 3600, 1800, replace(PRICED, think=Think(0))).verdict == MOVE


def test_with_one_side_free_there_is_no_verdict(cells: list[Pool], tmp_path: Path) -> None:
    free, billed = ([Alternatives(pool, run, None) for pool in cells] for run in (DEMAND, PRICED))
    told = r"docker costs nothing here and kubernetes is billed: add .*\[at.docker.nodes\]"
    with pytest.raises(TrainingRunError, match=told):
        check_prices(free[0], billed[1])
    with pytest.raises(TrainingRunError, match="kubernetes costs nothing here and docker is billed"):
        check_prices(billed[0], free[1])
    check_prices(*free)  # GPUs alone, on both
    check_prices(billed[0], Alternatives(cells[1], TrainingRun(trajectories=9, workers=9), None))  # worker-hours
    sheet = price_sheet(tmp_path, "usd_per_vcpu_hour = 0\nusd_per_egress_gib = 1")
    paid_for_otherwise = Alternatives(cells[0], DEMAND, load_prices(sheet))
    with pytest.raises(TrainingRunError, match="docker costs nothing here and kubernetes is billed"):
        check_prices(paid_for_otherwise, billed[1])
    check_prices(paid_for_otherwise, free[1])
    composed = copy.copy(cells[1])
    composed.provenance, composed.identity = "composed", cells[1].identity._replace(substrate="daytona")
    with pytest.raises(TrainingRunError, match=r"daytona costs nothing here .*: add .* --compose daytona:prices=FILE"):
        check_prices(billed[0], Alternatives(composed, DEMAND, None))


def test_trials_that_do_not_bound_a_step_decide_nothing(rows: list[Row]) -> None:
    start, goal = side(rows[0], PRICED, 3600), side(rows[1], PRICED, 1800)
    attribution, wall = start.row.attribution, start.row.wall_clock_hours
    run = attribution.run._replace(usd=attribution.run.usd._replace(high=None))
    row = replace(
        start.row,
        attribution=attribution._replace(run=run),
        wall_clock_hours=wall._replace(high=None, needs_trials=149),
    )
    found = decide_between(replace(start, row=row), goal)
    assert (found.verdict, found.saving) == (CANNOT_TELL, Interval(found.saving.value))
    told = page(found)
    assert "40 trials do not bound how long the slowest rollouts of a step take; record 149 successes there" in told
    assert "| the whole run | ≥ 178 |" in told


def test_beyond_the_measured_concurrency_each_place_has_its_own_limits(tmp_path: Path) -> None:
    """Half of a saving is sure at the 8 that were measured, not at 12, and at 500 nothing is."""
    cells, trials = [], []
    for number, (substrate, level) in enumerate((s, n) for s in ("docker", "local") for n in (1, 8)):
        cells.append(cell(number, substrate=substrate, concurrency=level))
        create = (8 if substrate == "docker" else 5) * S
        trials += [trial(100 * number + n, cell=number, create=create + n * S // 100) for n in range(10)]
    recording = load(write(tmp_path / "levels.msgpack", trials, *cells))
    for workers, told in ((8, MOVE), (12, CANNOT_TELL), (500, CANNOT_TELL)):
        training_run = TrainingRun(trajectories=1000, workers=workers, think=Think(0))
        rows = project([recording], training_run)
        found = decide_between(*(of_row(row, training_run) for row in rows))
        assert found.verdict == told
        assert [point.side for point in found.open_points] == (["docker", "local"] if workers == 500 else [])
    assert found.open_points[0].words == "measured with up to 8 at a time, and 500 share a host"
    assert found.open_points[0].do == "taxtui run --concurrency 500 there"


def asked(*words: str, think: tuple[str, ...] = ("--think", "0s")) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["decide", *words, "--trajectories", "1k", "--workers", "10", *think])
    if isinstance(result.exception, TaxtuiError | CostModelError):
        return result.exception.exit_code, str(result.exception)
    return result.exit_code, result.output


def test_the_command_answers_and_its_exit_code_says_whether(recording: str, tmp_path: Path) -> None:
    """``run_sd`` is nothing here: both are of the same run."""
    code, told = asked(recording, "--to", "kubernetes", "--tier", "T2", "--set", "run_sd=90%")
    assert (code, told.splitlines()[:2]) == (0, ["taxtui: from docker: the measured substrate", "STAY with docker"])
    back = (recording, "--from", "kubernetes", "--to", "docker", "--tier", "T2")
    memo, html = tmp_path / "memo.md", tmp_path / "memo.html"
    assert asked(*back, "-o", str(memo), "--html", str(html))[0] == 0
    assert memo.read_text().startswith("# MOVE from kubernetes to docker")
    refused = (2, f"{memo} exists; choose another name with -o, nothing is overwritten")
    assert asked(*back, "-o", str(memo)) == refused
    written = html.read_text()
    assert "<h1>MOVE from kubernetes to docker</h1>" in written
    assert not re.findall(r'(?:src|href)="(?!#|https?:)', written)
    assert all(heading in written for heading in ("Costs of the training run", "Measure next", "Source of each input"))
    code, told = asked(*back, "--format", "json")
    assert (code, json.loads(told)[0]["verdict"]) == (0, MOVE)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--from docker --to docker", "--from and --to are both docker; name two substrates"),
        ("--from daytona --to docker --compose daytona", "nothing was recorded of daytona; only the substrate of --to"),
        ("--to e2b", "2 measured substrates to move from; choose one with --from: docker, kubernetes"),
        ("--from docker --to x", "nothing was recorded of x; recorded: docker, kubernetes; --compose adds a provider"),
        ("--from docker --to e2b --tier T9", "nothing was recorded of docker T9; recorded: T1 x 3 exec, T2 x 3 exec"),
        ("--from docker --to e2b:profile=x", "--to e2b:profile=x: options of an estimate belong to --compose; --to"),
        ("--from docker --to e2b --format json --html x", "--format json does not go with --html alone; add -o FILE"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(recording: str, words: str, told: str) -> None:
    code, line = asked(recording, *words.split())
    assert code == 2
    assert line.startswith(told)
    assert "\n" not in line


def test_the_workload_is_the_middle_one_and_what_to_measure_of_a_provider_is_named(
    recording: str, tmp_path: Path
) -> None:
    code, text = asked(recording, "--from", "docker", "--to", "daytona", "--quick")
    first, verdict_line, *_ = text.splitlines()
    assert "workload T1 x 3 exec: the middle of 2 recorded workloads" in first
    assert text.count("the middle of 2 recorded workloads") == 2  # on stderr, and among what was given
    assert (code, verdict_line) == (6, "CAN'T TELL docker from daytona (estimated)")
    assert "`taxtui run -s daytona -t T1 -n 3 --mode exec" in text.replace("\n   ", "")
    assert "failures, from other providers" in text
    file = tmp_path / "lab.toml"
    file.write_text('[workload]\ntier = "T2"\n')
    code, text = asked(recording, "--from", "docker", "--to", "kubernetes", "--training", str(file))
    assert (code, text.partition("\n")[0]) == (0, "STAY with docker")


def test_an_option_that_says_nothing_here_is_not_taken(recording: str, tmp_path: Path) -> None:
    assert asked(recording, "--from", "docker", "--to", "kubernetes", "--set", "baseline=docker")[0] == 2
    file = tmp_path / "lab.toml"
    file.write_text('[run]\nbaseline = "docker"\n')
    code, told = asked(recording, "--from", "docker", "--to", "kubernetes", "--training", str(file))
    assert code == 2
    assert "[run] baseline is unknown" in told
