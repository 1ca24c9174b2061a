"""The essay's and the paper's tables come out of their published latencies, within the printed rounding."""

from __future__ import annotations

from pathlib import Path

import pytest

from costmodel import (
    PriceError,
    SourceError,
    TrainingRun,
    TrainingRunError,
    answer_of,
    load,
    load_prices,
    project,
)
from costmodel.projection.diagnostics import option, used_by
from taxtui.options.training import OPTIONS
from taxtui.report.headline import sentence
from tests.support.cost_model.asked_training_runs import ASKED
from tests.support.cost_model.costmodel_files import trial, write

PUBLISHED = 'provenance = "published"\n'
ROW = f'{PUBLISHED}\n[[rows]]\nsubstrate = "x"\nactions = 7\ntrajectory_s = 5\n'
SECOND = ROW.replace(PUBLISHED, "\n\n")
SHIPPED = Path(__file__).parents[3] / "scenarios" / "published"
ESSAY = {  # latency, wall-clock hours, worker-hours, versus Kubernetes: as printed
    "Docker": (14.1, 0.1, 39, -17),
    "EC2": (30.5, 0.2, 85, 29),
    "K8's": (20.1, 0.1, 56, None),
    "Fargate": (161.5, 0.9, 449, 393),
    "Daytona": (12.9, 0.1, 36, -20),
}


def test_the_essays_table() -> None:
    rows = project([load(SHIPPED / "essay.toml")], TrainingRun(trajectories=10_000, workers=500))
    assert [row.label for row in rows] == list(ESSAY)
    for row in rows:
        latency, wall, hours, versus = ESSAY[row.label]
        assert row.trajectory_s.mean.value == latency
        assert round(row.wall_clock_hours.fluid, 1) == wall
        assert round(row.worker_hours.value) == hours
        assert (row.versus and round(row.versus.worker_hours.value)) == versus
        assert row.flags == ("published",)
        (printed,) = row.assumptions
        assert printed.value == f"{latency:g} s for 50 actions"
        assert printed.source.endswith("(no date is known)")
        assert (
            row.worker_hours.low,
            row.wall_clock_hours.low,
            row.tax_worker_hours,
            row.by_cause_worker_hours,
            row.trials,
        ) == (None,) * 5


def test_the_papers_table_2() -> None:
    rows = project([load(SHIPPED / "paper.toml")], TrainingRun(trajectories=1_000_000, workers=500))
    slowest, fastest = rows
    assert round(slowest.worker_hours.value) == 11_811
    assert round(fastest.worker_hours.value) == 6_495
    assert round(slowest.versus.worker_hours.value) == 5_316
    assert [round(row.trajectory_s.mean.value, 1) for row in rows if row.trajectory_s] == [42.5, 23.4]


def test_other_lengths_are_unknown_not_guessed() -> None:
    essay = load(SHIPPED / "essay.toml")
    with pytest.raises(TrainingRunError, match="nothing was published for 150 actions"):
        project([essay], TrainingRun(trajectories=10, workers=1, actions=150))
    rows = project([essay, load(SHIPPED / "paper.toml")], TrainingRun(trajectories=10, workers=1, actions=150))
    assert [row.worker_hours is None for row in rows] == [True] * 5 + [False] * 2
    assert "length_unknown" in rows[0].flags


@pytest.mark.parametrize("name", ASKED)
def test_an_option_is_used_by_a_published_row_or_refused_by_name(tmp_path: Path, name: str) -> None:
    """A recording beside the published rows changes nothing."""
    sources = [load(write(tmp_path / "run.msgpack", [trial(n) for n in range(3)])), load(SHIPPED / "essay.toml")]
    usual = {"trajectories": 1000, "workers": 5}
    training_run = TrainingRun(**usual | ASKED[name])
    if name not in used_by("published"):
        with pytest.raises(TrainingRunError, match=r"^essay\.toml holds published latencies") as error:
            project(sources, training_run)
        assert f"{option(name)}" in str(error.value)
        assert "\n" not in str(error.value)
        assert option(name) in {text for one in OPTIONS for text in one.opts}
        return
    rows, before = project(sources, training_run)[-5:], project(sources, TrainingRun(**usual))[-5:]
    # the printed length is the only one; nothing is simulated
    assert (rows == before) == (name in ("actions", "precision"))


def test_published_rows_are_billed_at_their_mean(tmp_path: Path) -> None:
    sheet = tmp_path / "prices.toml"
    names = ("docker", "ec2", "kubernetes", "ecs", "daytona")
    tables = "".join(
        f'[[sandbox]]\nsubstrate = "{name}"\nusd_per_hour = 3600\nminimum_s = 60\nincrement_s = 1\nsource = "x"\n'
        for name in names
    )
    sheet.write_text(f"date = 2020-01-01\n{tables}")
    essay = load(SHIPPED / "essay.toml")
    rows = project([essay], TrainingRun(trajectories=100, workers=5), load_prices(sheet))
    daytona = rows[-1].cost
    assert daytona.total_usd == pytest.approx(100 * 60)
    assert daytona.billed_ratio == pytest.approx(60 / 12.9)  # 4.65: the minimum bills it as a minute
    assert {"billed_at_mean", "stale_prices"} <= set(rows[-1].flags)
    with pytest.raises(PriceError, match=r"no price for docker.*\[\[sandbox\]\]"):
        project([essay], TrainingRun(trajectories=100, workers=5), load_prices("aws-fargate"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "a scenario"', "not a file of published latencies"),
        (PUBLISHED, r"no \[\[rows\]\]; each needs"),
        (f'{PUBLISHED}[[rows]]\nsubstrat = "x"', r":3: rows\[1\].substrat: unknown key; did you mean 'substrate'\?"),
        (ROW + SECOND.replace("= 5", "= -1"), r":13: rows\[2\].trajectory_s: expected `float` >= 1e-09"),
        (ROW + SECOND.replace("= 7", "= 0"), r":12: rows\[2\].actions: expected `int` >= 1"),
        (ROW.replace('substrate = "x"\n', ""), "missing required field `substrate`; add substrate = "),
        (f"{PUBLISHED}cpu = 2\n{SECOND}", r":2: cpu: unknown key; did you mean 'cpus'\?"),
    ],
)
def test_bad_files_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(SourceError, match=message) as error:
        load(path)
    assert "\n" not in str(error.value)


def test_the_same_row_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.toml"
    path.write_text(ROW + SECOND)
    with pytest.raises(SourceError, match=r"twice\.toml: rows: row 2 is x x 7 once more; keep one of them"):
        load(path)


def test_the_same_row_in_two_files_is_no_pair_to_compare(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(ROW)
    files = [load(tmp_path / f"{name}.toml") for name in ("a", "b")]
    rows = project(files, TrainingRun(trajectories=10, workers=2))
    assert "nothing to compare it with" in sentence(answer_of(rows))
