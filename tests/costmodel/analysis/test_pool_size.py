"""What a warm pool costs over its size, and the smallest that keeps waits short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from costmodel import Recording, SourceError, TrainingRun, TrainingRunError, load, load_prices, project
from costmodel.analysis.pool_size import PoolChoice, pool_sizes
from costmodel.workload.pool import pools
from tests.support.cost_model.costmodel_files import S, trial, write

USUAL: dict[str, Any] = {"trajectories": 2000, "workers": 16, "warm_pool": 1, "refill_s": 20.0, "tolerance": 0.05}


def recorded(folder: Path, outcome: str = "ok") -> Recording:
    trials = [trial(n, create=(1 + n % 4) * S, actions=((5 + n % 7) * S,) * 3, outcome=outcome) for n in range(28)]
    found = load(write(folder / "run.msgpack", trials))
    assert isinstance(found, Recording)
    return found


def chosen(folder: Path, usd_hour: float | None = None, worker: float = 0.0, **asked: Any) -> PoolChoice:
    limit, most = asked.pop("p95_wait_s", None), asked.pop("most", None)
    prices = None
    if usd_hour is not None:
        sheet = folder / "ours.toml"
        sheet.write_text(
            f'date = 2026-11-01\n[[sandbox]]\nsubstrate = "docker"\nusd_per_hour = {usd_hour}\nminimum_s = 0\n'
            f'increment_s = 1\nsource = "x"\n[worker]\nusd_per_hour = {worker}\n'
        )
        prices = load_prices(sheet)
    (pool,) = pools([recorded(folder)])
    return pool_sizes(pool, TrainingRun(**USUAL | asked), prices, p95_wait_s=limit, most=most)


def test_a_larger_pool_has_more_hits_shorter_waits_and_fewer_worker_hours(tmp_path: Path) -> None:
    points = chosen(tmp_path).points
    assert [point.size for point in points] == [0, 1, 2, 4, 8, 16]
    hits = [point.hit for point in points]
    waits, hours = [point.p95_wait_s for point in points], [point.worker_hours for point in points]
    assert hits == sorted(hits)
    assert hits[0] == 0
    assert hits[-1] > 0.95
    assert waits == sorted(waits, reverse=True)
    assert (waits[0], waits[-1]) == (5.0, 0.0)  # create of 4 s and ready of 1 s, or neither
    assert hours == sorted(hours, reverse=True)
    assert all(point.total_usd is None for point in points)


def test_no_pool_is_what_the_projection_says_of_none(tmp_path: Path) -> None:
    (row,) = project([recorded(tmp_path)], TrainingRun(trajectories=2000, workers=16))
    (none, *_) = chosen(tmp_path).points
    assert row.worker_hours is not None
    assert none.worker_hours == pytest.approx(row.worker_hours.value)


def test_the_smallest_that_keeps_the_limit_is_found_to_the_sandbox(tmp_path: Path) -> None:
    choice = chosen(tmp_path, p95_wait_s=0.5, refill_s=12.0)
    assert choice.smallest is not None
    size = choice.smallest.size
    assert 4 < size < 16
    waits = {point.size: point.p95_wait_s for point in choice.points}
    assert waits[size] <= 0.5 < waits[size - 1]
    everybody = chosen(tmp_path, p95_wait_s=5.0).smallest
    assert everybody is not None
    assert everybody.size == 0
    assert chosen(tmp_path, p95_wait_s=0.5, most=4).smallest is None


def test_what_is_cheapest_depends_on_what_waits(tmp_path: Path) -> None:
    idle = chosen(tmp_path, usd_hour=10.0).cheapest
    workers = chosen(tmp_path, usd_hour=0.001, worker=100.0).cheapest
    assert idle is not None
    assert workers is not None
    assert idle.size < workers.size
    assert idle.total_usd == pytest.approx(
        (idle.sandbox_usd or 0.0) + (idle.idle_usd or 0.0) + (idle.worker_usd or 0.0)
    )
    gpus = chosen(tmp_path, batch=16, gpus=512, gpu_usd_hour=2.0).cheapest
    assert gpus is not None
    assert gpus.gpu_usd == gpus.total_usd


def test_the_same_numbers_make_the_same_answer(tmp_path: Path) -> None:
    assert chosen(tmp_path, p95_wait_s=1.0) == chosen(tmp_path, p95_wait_s=1.0)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"warm_pool": None, "refill_s": None}, "add --warm-pool 1 and --refill-seconds S"),
        ({"refill_s": None, "group_size": 4}, "a pool for each image is not sized here"),
        ({"create_rate": 5.0}, "with --create-rate; leave that out"),
        ({"timeout_s": 5.0}, "with --timeout-seconds; leave that out"),
        ({"batch": 16, "failure_rate": 0.1}, "with --failure-rate"),
        ({"p95_wait_s": -1.0}, "at least 0, not -1"),
        ({"most": 0}, "at least 1, not 0"),
    ],
)
def test_what_cannot_be_answered_is_one_line(tmp_path: Path, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingRunError, match=message) as error:
        chosen(tmp_path, **asked)
    assert "\n" not in str(error.value)


def test_a_cell_without_a_success_has_no_pool(tmp_path: Path) -> None:
    (pool,) = pools([recorded(tmp_path, "failed")])
    with pytest.raises(SourceError, match="docker: no attempt succeeds"):
        pool_sizes(pool, TrainingRun(**USUAL))
