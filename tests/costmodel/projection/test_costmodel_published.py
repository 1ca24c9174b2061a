"""The essay's and the paper's tables come out of their published latencies, within the printed rounding."""

from __future__ import annotations

from pathlib import Path

import pytest

from costmodel import PriceError, SourceError, TrainingRun, TrainingRunError, answer_of, load, load_prices, project
from taxtui.report.headline import sentence

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
        unknown = (row.worker_hours.low, row.wall_clock_hours.low, row.tax_worker_hours, row.by_cause_worker_hours)
        assert (*unknown, row.trials) == (None,) * 5


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
    with pytest.raises(PriceError, match=r"no price for docker(.|\n)*\[\[sandbox\]\](.|\n)*usd_per_vcpu_hour"):
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
        (ROW + SECOND, r"bad\.toml: rows: row 2 is x x 7 once more; keep one of them"),
    ],
)
def test_bad_files_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(SourceError, match=message) as error:
        load(path)
    assert "\n" not in str(error.value)


def test_the_same_row_in_two_files_is_no_pair_to_compare(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(ROW)
    files = [load(tmp_path / f"{name}.toml") for name in ("a", "b")]
    rows = project(files, TrainingRun(trajectories=10, workers=2))
    assert "nothing to compare it with" in sentence(answer_of(rows))
