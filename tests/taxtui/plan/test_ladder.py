"""A ladder: what each level sustains, where more stop helping, whose knee it is, and when nobody can tell."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest

from costmodel import load
from costmodel.analysis.concurrency_sweep import RUNNER, SUBSTRATE, UNKNOWN, Ladder, ladders
from costmodel.workload.pool import pools
from taxtui.errors import ScenarioError, UsageError
from taxtui.plan import crowding
from taxtui.plan.notation import parse_ladder
from taxtui.plan.scenario import CellBlock, ScenarioFile
from taxtui.plan.scenario import plan as planned
from taxtui.tui.setup.form import Choices
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, cell, frame, header

LEVELS = (1, 2, 4, 8, 16, 32)
STEADY = itertools.repeat(1.0)
Climb = Callable[..., Ladder]


def climbed(path: Path, first_s: float, more_s: float, times: Iterator[float], **runner: float) -> Path:
    """A lane is ``more_s`` longer for each beside it, each trial ``times`` as long; health each second.

    Three blocks of three turns a level, two actions a trial, a quarter of a lane's time its clean-up.
    """
    cpu, waits, lag = runner.get("cpu", 100), runner.get("waits", 0), round(runner.get("lag_ms", 0.2) * S / 1000)
    frames, number, now = [frame([header()]), frame([[1, 0, 0, 0, "h"]])], 0, 0
    frames.append(frame([cell(n, concurrency=at, arrival="closed", actions=2) for n, at in enumerate(LEVELS)]))
    for place, at in enumerate(LEVELS):
        for block in range(3):
            told: list[tuple[int, list[Any]]] = []
            lanes = [now] * at
            for _ in range(3 * at):
                start, lane = min(lanes), round((first_s + more_s * (at - 1)) * next(times) * S)
                held = round(lane * 0.75)
                told += [
                    (start, [3, number, place, "s", start, start, 0, False, block]),
                    (start + lane, [6, number, "action", 0, [], [], [held // 2, held - held // 2], [0, 0], [], [], []]),
                    (start + lane, [5, number, "cleanup", start + held, lane - held]),
                    (start + lane, [7, number, "ok", "", "", "", start + held, 0, "warm"]),
                ]
                lanes[lanes.index(start)] = start + lane
                number += 1
            for second in range(now // S + 1, max(lanes) // S + 1):
                told.append((second * S, [8, second * S, lag, 3 * lag, 5 * lag, cpu, at, waits, 800_000]))
            now = max(lanes)
            frames.append(frame([event for _, event in sorted(told, key=lambda one: (one[0], one[1][0] == 3))]))
    frames.append(frame([[10, "finished", {"ok": number}]]))
    path.write_bytes(b"".join(frames))
    return path


@pytest.fixture
def climb(tmp_path: Path) -> Climb:
    """The ladder of a recording whose every number is known."""

    def made(first_s: float, more_s: float, times: Iterator[float] = STEADY, **runner: float) -> Ladder:
        found = load(climbed(tmp_path / "ladder.msgpack", first_s, more_s, times, **runner))
        (ladder,) = ladders(pools([found]))
        return ladder

    return made


def test_throughput_is_that_of_full_lanes_out_of_step_and_counts_clean_up(climb: Climb) -> None:
    for level in climb(2.0, 0.1, map(Random(1).uniform, itertools.repeat(0.7), itertools.repeat(1.3))).levels[3:]:
        lane_s = 2 + 0.1 * (level.concurrency - 1)
        low, high = level.throughput_per_s.limits or (0.0, 0.0)
        assert low < level.concurrency / lane_s < high
        assert level.throughput_per_s.value == pytest.approx(level.concurrency / lane_s, rel=0.04)
        assert level.actions_per_s.value == pytest.approx(2 * level.throughput_per_s.value)
        assert level.action_p50_ns == pytest.approx(0.375 * lane_s * S, rel=0.04)


def test_a_rare_slow_trial_is_no_knee(climb: Climb) -> None:
    rng = Random(0)
    knee = climb(1.0, 0.0, iter(lambda: 30.0 if rng.random() < 0.02 else 1.0, 0.0)).knee
    assert (knee.at, knee.whose) == (None, UNKNOWN)
    assert knee.why.startswith("cannot tell: completion at 16 is ")


def test_the_knee_is_the_last_level_that_takes_hardly_longer_than_the_first_and_not_made_up(climb: Climb) -> None:
    found = climb(1.0, 0.125)
    assert found.knee.at == 4
    assert found.knee.throughput_per_s == found.levels[2].throughput_per_s
    without_a_loss = climb(1.0, 0.0).knee
    assert (without_a_loss.at, without_a_loss.why) == (None, "not reached with 32 at a time: go higher")


@pytest.mark.parametrize(
    ("runner", "whose", "why"),
    [
        ({}, SUBSTRATE, "the runner took 10 % of a core and was 0.2 ms late at the median at 8"),
        ({"cpu": 950}, RUNNER, "its CPU: 95 % of a core at 8"),
        ({"waits": 3}, RUNNER, "its threads: calls waited for one in 100% of the seconds at 8"),
        ({"lag_ms": 200.0}, RUNNER, "its event loop: 200 ms late at the median at 8, twice in a command"),
        ({"first": 0.001}, UNKNOWN, "the level at 8 was over before the runner's health was told: plan more trials"),
    ],
)
def test_whose_knee_it_is(climb: Climb, runner: dict[str, float], whose: str, why: str) -> None:
    found = climb(runner.get("first", 1.0), runner.get("first", 1.0) / 8, **runner)
    assert (found.knee.whose, found.knee.why) == (whose, why)


def test_the_table_and_its_rows(tmp_path: Path) -> None:
    path = str(climbed(tmp_path / "ladder.msgpack", 1.0, 0.125, STEADY))
    text = " ".join(printed("report", path, "--table", "ladder").split())
    assert "knee: 4 at a time, the last level with a completion surely within 1.5x of the first level" in text
    assert "the substrate's: the runner took 10 %" in text
    assert "closed loop:" in text
    assert "knee: 4 at" in " ".join(printed("report", path).split())  # without being asked
    told = json.loads(printed("report", path, "--table", "ladder", "--format", "json"))
    assert [row["concurrency"] for row in told] == list(LEVELS)
    assert {row["knee"]["whose"] for row in told} == {SUBSTRATE}


def test_levels_and_what_is_no_ladder() -> None:
    assert parse_ladder("1:256") == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert parse_ladder("1:50") == [1, 2, 4, 8, 16, 32, 50]
    for text in ("", "8", "8:8", "8:1", "0:8", "1:8:x2"):
        with pytest.raises(UsageError, match="write 1:256"):
            parse_ladder(text)


def test_a_ladder_is_planned_in_whole_blocks() -> None:
    def of(**fields: object) -> list[tuple[int, str, int]]:
        block = CellBlock(**{"substrates": ["fake"], "tiers": ["T0"], "actions": [1], "trials": 10} | fields)  # type: ignore[arg-type]
        cells = planned(ScenarioFile(cells=[block]), Path()).cells
        return [(cell.concurrency, str(cell.arrival), cell.trials) for cell in cells]

    assert of(ladder="1:8") == [(1, "closed", 12), (2, "closed", 16), (4, "closed", 16), (8, "closed", 32)]
    with pytest.raises(ScenarioError, match="a ladder is the concurrency; leave concurrency out, or the ladder"):
        of(ladder="1:8", concurrency=4)
    with pytest.raises(ScenarioError, match="keeps its lanes full: arrival closed; leave arrival out"):
        of(ladder="1:8", arrival="burst")


@pytest.mark.parametrize(
    ("substrates", "concurrency", "cores", "begins"),
    [
        (("local",), "2", 2, ""),
        (("local", "docker"), "3", 2, "local, docker: 3 sandboxes at a time on 2 cores wait"),
        (("docker",), "2", 1, "docker: 2 sandboxes at a time on 1 core wait"),
        (("ec2",), "64", 2, ""),  # elsewhere
    ],
)
def test_more_sandboxes_at_a_time_than_cores_are_warned_of(
    substrates: tuple[str, ...], concurrency: str, cores: int, begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowding, "cores", lambda: cores)
    plan = Choices(substrates=substrates, tiers=("T0",), actions="10", modes=("exec",), concurrency=concurrency).plan()
    said = crowding.crowding_warning(plan)
    assert said.startswith(begins)
    assert bool(said) == bool(begins)


@pytest.mark.parametrize(("load", "begins"), [(None, ""), (0.5, ""), (4.55, "this machine is busy: its load is 4.5")])
def test_only_a_high_load_is_a_warning(load: float | None, begins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", Mock(side_effect=[(load, 0.0, 0.0)] * 2 if load else OSError))
    monkeypatch.setattr(crowding, "cores", lambda: 1)
    assert crowding.load_warning().startswith(begins)
    assert bool(crowding.load_warning()) == bool(begins)


def test_a_wait_ends_with_a_low_load_or_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    loads, slept = [3.0, 2.0, 0.1, 9.0], list[float]()
    monkeypatch.setattr("os.getloadavg", lambda: (loads.pop(0), 0.0, 0.0))
    monkeypatch.setattr(crowding, "cores", lambda: 1)
    monkeypatch.setattr("time.sleep", slept.append)
    crowding.wait_until_idle(1e6)
    assert (loads, slept) == ([9.0], [crowding.LOOK_EVERY_S] * 2)
    crowding.wait_until_idle(0)
    assert len(slept) == 2
