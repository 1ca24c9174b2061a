"""Hand-made recordings into samples: every derived duration is recomputed here from what was written."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from costmodel import load
from costmodel.statistics.quantiles import effective_count
from costmodel.statistics.repetitions import RunKey
from costmodel.workload.pool import Pool
from taxtui.report.answer.measured import recorded
from taxtui.report.measured.record import record
from taxtui.report.measured.rows import MeasuredRow, namesakes, rows_of
from taxtui.report.measured.samples import Column, column, read_samples, summarize
from tests.support.cost_model.costmodel_files import S, cell, trial, write

MS = S // 1000


def cells_of(tmp_path: Path, *files: tuple[Sequence[list[list[Any]]], Sequence[list[Any]]]) -> list[Pool]:
    """The pooled cells of one file per (trials, cells)."""
    paths = [
        write(tmp_path / f"{number}.msgpack", trials, *cells, run_id=f"run-{number}")
        for number, (trials, cells) in enumerate(files)
    ]
    return read_samples(paths)[0]


def values(of: Pool, name: str) -> list[int]:
    return column(of.successes, name).values.tolist()


def test_every_duration_of_a_trial(tmp_path: Path) -> None:
    phases_ms = {"create": 200, "ready": 50, "ready_again": 7, "queued": 500, "cleanup": 80}
    commands_ms = {"actions": [40, 50, 60], "runs": [30, 45, 20], "thinks": [0, 1000, 2000], "gaps": [3, 1, 2]}
    events = trial(
        1,
        **{name: ms * MS for name, ms in phases_ms.items()},
        **{name: [ms * MS for ms in each] for name, each in commands_ms.items()},
        setup=[(300 * MS, 280 * MS), (100 * MS, 90 * MS)],
        extra=11 * MS,
    )
    start = 1000 * S
    create = start + 500 * MS
    events[3:3] = [
        [5, 1, "preload", create + 257 * MS, 11 * MS],
        [5, 1, "setup", create + 268 * MS, 400 * MS],
        [4, 1, "started", create - 1 * MS, 0],  # of a request that was throttled
        [4, 1, "accepted", create + 20 * MS, 0],
        [4, 1, "running", create + 150 * MS, 0],
        [4, 1, "started", create + 160 * MS, 0],
    ]
    [found] = cells_of(tmp_path, ([events], []))
    trajectory = 200 + 50 + 11 + 400 + 3 + 40 + 1 + 50 + 2 + 60
    expected = {
        **phases_ms,
        **{"orchestration": 150, "preload": 11, "setup": 400, "cold_start": 250, "fresh_episode": 661},
        **{"work": 95 + 370, "dispatch_total": 55 + 30, "unsplit": 0, "harness": 6, "think": 3000},
        **{"trajectory": trajectory, "held": trajectory + 500 + 3000},
    }
    assert {name: values(found, name) for name in expected} == {name: [ms * MS] for name, ms in expected.items()}
    assert found.trials[0].sandbox_ns == (trajectory + 3000) * MS  # from the request that succeeded
    assert values(found, "amortized_per_action") == [round(trajectory * MS / 3)]
    assert values(found, "action") == [40 * MS, 50 * MS, 60 * MS]
    assert values(found, "run") == [30 * MS, 45 * MS, 20 * MS]
    assert values(found, "dispatch") == [10 * MS, 5 * MS, 40 * MS]


@pytest.mark.parametrize("second", [-1, 2 * S + 1, 900 * S], ids=["unknown", "a bit too long", "much too long"])
def test_a_run_that_is_unknown_or_cannot_be_is_never_guessed(tmp_path: Path, second: int) -> None:
    known, unknown = trial(0, runs=[S // 2] * 3), trial(1, actions=[S, 2 * S, 3 * S], runs=[S // 4, second, S])
    [found] = cells_of(tmp_path, ([known, unknown], []))
    assert values(found, "run") == [S // 2] * 3 + [S // 4, S]
    assert values(found, "dispatch") == [S // 2] * 3 + [3 * S // 4, 2 * S]
    assert column(found.successes, "run").sizes.tolist() == [3, 2]
    assert values(found, "unsplit") == [0, 2 * S]
    row = MeasuredRow(found)
    told = record(row, ("tax",), recorded([load(tmp_path / "0.msgpack")])[0])
    assert told["tax_per_success_ns"]["value"] is told["work_per_success_ns"] is None
    assert told["held_per_success_ns"] == pytest.approx((6 * S + 9 * S) / 2)
    assert "run_time_unknown" in row.flags


def test_equal_cells_pool_across_files_and_others_never_do(tmp_path: Path) -> None:
    found = cells_of(
        tmp_path,
        ([trial(0), trial(1, cell=4)], [cell(0), cell(4, substrate_version="2.0")]),
        ([trial(0, cell=7), trial(1, cell=8)], [cell(7), cell(8, provenance="stand_in")]),
        ([trial(0)], [cell(0, bracket_cost_ns=5), cell(0, bracket_cost_ns=6)]),
    )
    assert [len(one.trials) for one in found] == [3, 1, 1]
    assert [" ".join(one.sources) for one in found] == ["0.msgpack 1.msgpack 2.msgpack", "0.msgpack", "1.msgpack"]
    rows = rows_of(found)
    assert sum(row.label == "STAND-IN docker" for row in rows) == 1
    differing = namesakes(rows)
    assert sorted(differing.values()) == ["substrate_version 1.0", "substrate_version 2.0"]
    assert {row.label for row in rows} == {"docker #1", "docker #2", "STAND-IN docker"}


def test_tax_and_failures(tmp_path: Path) -> None:
    good = [trial(n, create=n * S, runs=[S // 2] * 3, setup=[(2 * S, S)], thinks=[0, S, S]) for n in range(1, 6)]
    bad = [trial(n, actions=[S], outcome="failed", extra=(n - 5) * S) for n in (6, 7)]
    [found] = cells_of(tmp_path, (good + bad, []))
    row = MeasuredRow(found)
    told = record(row, ("tax",), recorded([load(tmp_path / "0.msgpack")])[0])
    held = [n * S + S + 2 * S + 3 * S + 2 * S for n in range(1, 6)] + [2 * S + S + S + extra * S for extra in (1, 2)]
    think, work = 5 * 2 * S, 5 * (3 * S // 2 + S)
    assert told["tax_per_success_ns"]["value"] == pytest.approx((sum(held) - think - work) / 5)
    assert told["tax_share_of_held"] == pytest.approx((sum(held) - think - work) / sum(held))
    causes = told["tax_by_cause_ns"]
    assert (causes["failed"], causes["contention"]) == (pytest.approx((5 * S + 6 * S) / 5), None)
    z, n, rate = 1.959963984540054, 7, 2 / 7
    center, half = rate + z * z / 14, z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    assert row.failures == pytest.approx((rate, (center - half) / (1 + z * z / n), (center + half) / (1 + z * z / n)))


def test_reasons_to_doubt_a_row(tmp_path: Path) -> None:
    conditions = {"arrival": "burst", "think": "8s", "acquire": "reset", "preload": "trial", "provenance": "stand_in"}
    path = write(tmp_path / "a.msgpack", [trial(0, outcome="failed")], cell(0, **conditions), complete=False)
    cells, sources = read_samples([path])
    assert not sources[0].whole
    expected = ["no_success", "stand_in", "incomplete_recording", "preload_in_trial"]
    assert MeasuredRow(*cells).flags == [*expected, "arrival burst", "think 8s", "acquire reset"]


def test_environments_are_compared_with_a_flag(tmp_path: Path) -> None:
    cells = [cell(0, environment="here"), cell(1, environment="there", substrate="local"), cell(2, tier="T0")]
    rows = rows_of(cells_of(tmp_path, ([trial(n, cell=n) for n in range(3)], cells)))
    assert {(row.identity.tier, row.label, *row.flags) for row in rows} == {
        ("T2", "docker", "environment_differs"),
        ("T2", "local", "environment_differs"),
        ("T0", "docker"),
    }


STUDENT = {4: 2.776445, 19: 2.093024}
"""Two-sided 95 % quantiles by degrees of freedom, from printed tables."""


def test_the_worth_of_clusters_is_korn_and_graubards() -> None:
    trials = [[1, 1, 1, 9], [1, 1, 9, 9], [1, 1, 1, 1], [9, 9, 9, 1], [1, 1, 9, 9]]
    share = 12 / 20
    shares = [3 / 4, 2 / 4, 4 / 4, 1 / 4, 2 / 4]
    variance = sum((one - share) ** 2 for one in shares) / 4 / 5  # of the mean of five equal clusters
    worth = share * (1 - share) / variance * (STUDENT[19] / STUDENT[4]) ** 2
    assert effective_count(trials, 1) == math.floor(worth)
    assert effective_count(trials[:2], 1) == 2
    assert effective_count([[1, 2]] * 50, 1) == 100  # every cluster alike: no worse than independent values


def test_the_mean_of_durations_is_not_negative() -> None:
    column = Column()
    for value in (1, 1, 1000):
        column.add(array("q", [value]))
    summary = summarize(column, [(RunKey("a", 0), 0)] * 3)
    assert summary.mean.value == 334
    assert summary.mean.low == 0
