"""Options of a training run are used by a row or refused by name; published rows answer what was published."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest

from costmodel import Prices, Recording, Row, load, load_prices, load_provider, project, warnings
from costmodel.errors import PriceError, TrainingRunError
from costmodel.projection.diagnostics import option, used_by
from costmodel.training.run import Precision, TrainingRun
from tests.support.cost_model.asked_training_runs import ASKED, STEP_MODEL_ASKED
from tests.support.cost_model.costmodel_files import S, cell, price_sheet, trial, write

ALL = ASKED | STEP_MODEL_ASKED
USUAL: dict[str, Any] = {"trajectories": 120, "workers": 6, "precision": Precision(tolerance=0.1)}
PRINTED: dict[str, Any] = {"trajectories": 1000, "workers": 5}
SOME_FAIL = {"measured": 8.00000004, "composed": 5.65}
"""After which time some are killed and some are not."""
UNCHANGED = {"precision"}
"""It changes the simulation, where anything is simulated."""
LIMITS = ("include_cleanup", "quota", "create_rate", "create_burst", "max_attempts", "timeout_s", "think", "actions")
"""What composed rows treat in a way of their own; the rest they share with measured ones."""


def asked(name: str, kind: str) -> dict[str, Any]:
    """A field with what it needs to matter to the row of a recorded, a published or a composed cell."""
    if kind == "published":
        return PRINTED | ALL[name] | ({"baseline": "ec2"} if name == "baseline" else {})
    late = {"timeout_s": SOME_FAIL[kind]}
    otherwise: dict[str, dict[str, Any]] = {
        "trajectories": {"trajectories": 80},
        "actions": {"actions": 2},
        "baseline": {"baseline": "local"},
        "full_speed": {"full_speed": "local"},
        "timeout_s": late,
        "max_attempts": {"max_attempts": 2} | late,
        "backoff_s": {"backoff_s": 1.0} | late,
        "policy": {"policy": "async", "batch": 40},
    }
    return USUAL | otherwise.get(name, ALL[name])


def test_every_field_of_a_training_run_is_asked_for_and_recorded_rows_use_all() -> None:
    assert set(ALL) == {one.name for one in fields(TrainingRun)}
    for kind in (warnings.MEASURED, warnings.STAND_IN, warnings.IMPORTED):
        assert used_by(kind) == set(ALL)
    for kind in (warnings.PUBLISHED, warnings.COMPOSED):
        assert used_by(kind) < set(ALL)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("matrix") / "run.msgpack"
    trials = [
        trial(n, actions=(S + n,) * 3, thinks=(0, S, S), cleanup=S, outcome="failed" if n == 4 else "ok", cell=n % 2)
        for n in range(40)
    ]
    return load(write(path, trials, cell(0), cell(1, substrate="local")))


@cache
def row(recording: Recording, kind: str, training_run: TrainingRun) -> Row:
    """The row of the docker cell, of its work elsewhere, or the essay's; few simulated steps show a change, too."""
    providers = [replace(load_provider("e2b"), profile=None)] if kind == "composed" else []
    sources = [load(SHIPPED / "essay.toml")] if kind == "published" else [recording]
    rows = project(sources, training_run, None, None, providers, effort=0.01)
    return next(one for one in rows if one.provenance == kind)


CASES = [(name, kind) for kind in ("measured", "published") for name in ALL] + [(name, "composed") for name in LIMITS]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_an_option_changes_a_row_or_is_refused_by_name(recording: Recording, name: str, kind: str) -> None:
    training_run = TrainingRun(**asked(name, kind))
    if name not in used_by(kind):
        with pytest.raises(TrainingRunError, match=option(name)):
            row(recording, kind, training_run)
        return
    with_it, without = row(recording, kind, training_run), row(recording, kind, _without(name, kind))
    assert with_it.unused == ()
    if name in STEP_MODEL_ASKED and with_it.attribution is None:
        pytest.skip("only an attribution answers it")
    if name not in UNCHANGED and (name, kind) != ("actions", "published"):  # the printed length is the only one
        told = {one.name for one in fields(Row)} - {"evidence"}
        assert any(getattr(with_it, one) != getattr(without, one) for one in told)


def _without(name: str, kind: str) -> TrainingRun:
    """The same training run without the field, and without what makes no sense then."""
    usual = PRINTED if kind == "published" else USUAL
    rest = {field: value for field, value in asked(name, kind).items() if field != name}
    try:
        return TrainingRun(**usual | rest)
    except TrainingRunError:
        return TrainingRun(**usual)


def test_what_a_source_does_not_tell_is_named_by_the_row(tmp_path: Path) -> None:
    told = cell(provenance="imported", capabilities=["unknown:create"])
    trials = [trial(n, create=0, ready=0, runs=(-1,) * 3) for n in range(5)]
    events = [[event for event in one if event[:3:2] != [5, "cleanup"]] for one in trials]
    source = load(write(tmp_path / "imported", events, told))
    asked = {"include_cleanup": True, "full_speed": "docker", "warm_pool": 2, "refill_s": 1.0}
    (imported,) = project([source], TrainingRun(trajectories=10, workers=2, **asked))
    assert imported.unused == ("--full-speed", "--include-cleanup", "--warm-pool")
    assert "option_unused" in imported.flags
    (plain,) = project([source], TrainingRun(trajectories=10, workers=2))
    assert plain.unused == ()
    assert "option_unused" not in plain.flags


SHIPPED = Path(__file__).parents[3] / "scenarios" / "published"


def test_published_trajectories_run_in_waves() -> None:
    for trajectories, waves in ((0, 0), (10, 1), (500, 1), (501, 2)):
        [row, *_] = project([load(SHIPPED / "essay.toml")], TrainingRun(trajectories=trajectories, workers=500))
        assert row.wall_clock_hours.value * 3600 == pytest.approx(waves * 14.1)


def test_other_lengths_are_unknown_not_guessed() -> None:
    essay = load(SHIPPED / "essay.toml")
    with pytest.raises(TrainingRunError, match="nothing was published for 150 actions"):
        project([essay], TrainingRun(trajectories=10, workers=1, actions=150))
    rows = project([essay, load(SHIPPED / "paper.toml")], TrainingRun(trajectories=10, workers=1, actions=150))
    assert [row.worker_hours is None for row in rows] == [True] * 5 + [False] * 2
    assert (rows[0].trials, rows[-1].trials) == (None, None)
    assert "length_unknown" in rows[0].flags


def test_published_rows_are_billed_at_their_mean(tmp_path: Path) -> None:
    asked = TrainingRun(trajectories=100, workers=5)
    essay, prices = load(SHIPPED / "essay.toml"), []
    for name in ("docker", "ec2", "kubernetes", "ecs", "daytona"):
        sheet = price_sheet(tmp_path, "usd_per_hour = 3600", substrate=name, minimum_s=60, increment_s=1)
        sheet.write_text(sheet.read_text().replace("2026", "2020"))
        prices.append(load_prices(sheet))
    row = project([essay], asked, reduce(Prices.combined_with, prices))[-1]
    assert row.cost.total_usd == pytest.approx(100 * 60)
    assert row.cost.billed_ratio == pytest.approx(60 / 12.9)  # 4.65: the minimum bills it as a minute
    assert {"billed_at_mean", "stale_prices"} <= set(row.flags)
    with pytest.raises(PriceError, match=r"no price for docker.*\[\[sandbox\]\]"):
        project([essay], asked, load_prices("aws-fargate"))
