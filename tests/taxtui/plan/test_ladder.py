"""A ladder: what each level sustains, where more stop helping, whose knee it is, and when nobody can tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
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
Climb = Callable[..., Ladder]


def climbed(path: Path, first_s: float, more_s: float, *, lag_ms: float = 0.2, cpu: int = 100, waits: int = 0) -> Path:
    """Each level's lanes in step, a lane ``more_s`` longer for each beside it; health each second.

    Two blocks of four turns a level, two actions a trial, a quarter of a lane's time its clean-up.
    """
    frames, number, now, lag = [frame([header()]), frame([[1, 0, 0, 0, "h"]])], 0, 0, round(lag_ms * S / 1000)
    frames.append(frame([cell(n, concurrency=at, arrival="closed", actions=2) for n, at in enumerate(LEVELS)]))
    for place, at in enumerate(LEVELS):
        lane = round((first_s + more_s * (at - 1)) * S)
        held = round(lane * 0.75)
        for block in range(2):
            told: list[tuple[int, list[Any]]] = []
            for start in range(now, now + 4 * lane, lane):
                for _ in range(at):
                    actions = [held // 2, held - held // 2]
                    told += [
                        (start, [3, number, place, "s", start, start, 0, False, block]),
                        (start + lane, [6, number, "action", 0, [], [], actions, [0, 0], [], [], []]),
                        (start + lane, [5, number, "cleanup", start + held, lane - held]),
                        (start + lane, [7, number, "ok", "", "", "", start + held, 0, "warm"]),
                    ]
                    number += 1
            for second in range(now // S + 1, (now + 4 * lane) // S + 1):
                told.append((second * S, [8, second * S, lag, 3 * lag, 5 * lag, cpu, at, waits, 800_000]))
            now += 4 * lane
            frames.append(frame([event for _, event in sorted(told, key=lambda one: (one[0], one[1][0] == 3))]))
    frames.append(frame([[10, "finished", {"ok": number}]]))
    path.write_bytes(b"".join(frames))
    return path


@pytest.fixture
def climb(tmp_path: Path) -> Climb:
    """The ladder of a recording whose every number is known."""

    def made(first_s: float, more_s: float, **runner: Any) -> Ladder:
        found = load(climbed(tmp_path / "ladder.msgpack", first_s, more_s, **runner))
        (ladder,) = ladders(pools([found]))
        return ladder

    return made


def test_throughput_is_that_of_full_lanes_and_counts_clean_up(climb: Climb) -> None:
    found = climb(2.0, 0.1)
    for level in found.levels:
        assert level.throughput_per_s.value == pytest.approx(level.concurrency / (2 + 0.1 * (level.concurrency - 1)))
        assert level.actions_per_s.value == pytest.approx(2 * level.throughput_per_s.value)
        assert level.action_p50_ns == pytest.approx(0.375 * (2 + 0.1 * (level.concurrency - 1)) * S)


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
    ],
)
def test_whose_knee_it_is(climb: Climb, runner: dict[str, Any], whose: str, why: str) -> None:
    found = climb(1.0, 0.125, **runner)
    assert (found.knee.whose, found.knee.why) == (whose, why)


def test_a_level_that_was_over_before_the_runner_told_of_itself_is_nobodys(climb: Climb) -> None:
    found = climb(0.001, 0.000125)
    assert found.knee.whose == UNKNOWN
    assert found.knee.why == "the level at 8 was over before the runner's health was told: plan more trials"


def test_the_table_and_its_rows(tmp_path: Path) -> None:
    path = str(climbed(tmp_path / "ladder.msgpack", 1.0, 0.125))
    text = " ".join(printed("report", path, "--table", "ladder").split())
    assert "knee: 4 at a time, the last level with a completion within 1.5x of the first level" in text
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
