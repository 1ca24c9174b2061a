"""A ladder: what each level sustains, where more stop helping, whose knee it is, and when nobody can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from costmodel import Recording, load
from costmodel.analysis.concurrency_sweep import RUNNER, SUBSTRATE, UNKNOWN, Ladder, ladders
from costmodel.recording.throughput import Rate, together
from costmodel.workload.pool import pools
from taxtui.commands.report import command as report
from taxtui.errors import ScenarioError, UsageError
from taxtui.plan import crowding
from taxtui.plan.notation import parse_ladder
from taxtui.plan.scenario import CellBlock, ScenarioFile
from taxtui.plan.scenario import plan as planned
from taxtui.tui.setup.form import Choices
from tests.support.cost_model.climbing import LEVELS, S, climbed, law


def ladder_of(path: Path) -> Ladder:
    found = load(path)
    assert isinstance(found, Recording)
    (ladder,) = ladders(pools([found]))
    return ladder


def test_throughput_is_that_of_full_lanes_and_counts_clean_up(tmp_path: Path) -> None:
    found = ladder_of(climbed(tmp_path, law(2.0, 0.1, 0.0)))
    for level in found.levels:
        assert level.throughput_per_s.value == pytest.approx(level.concurrency / (2 + 0.1 * (level.concurrency - 1)))
        assert level.actions_per_s.value == pytest.approx(2 * level.throughput_per_s.value)
        assert level.action_p50_ns == pytest.approx(0.375 * (2 + 0.1 * (level.concurrency - 1)) * S)


def test_the_knee_is_the_last_level_that_takes_hardly_longer_than_the_first(tmp_path: Path) -> None:
    found = ladder_of(climbed(tmp_path, law(1.0, 0.125, 0.0)))
    assert found.knee.at == 4
    assert found.knee.throughput_per_s == found.levels[2].throughput_per_s


def test_without_a_loss_no_knee_is_made_up(tmp_path: Path) -> None:
    found = ladder_of(climbed(tmp_path, lambda n: 1.0))
    assert found.knee.at is None
    assert found.knee.why == "not reached with 32 at a time: go higher"


@pytest.mark.parametrize(
    ("runner", "whose", "why"),
    [
        ({}, SUBSTRATE, "the runner took 10 % of a core and was 0.2 ms late at the median at 8"),
        ({"cpu": 950}, RUNNER, "its CPU: 95 % of a core at 8"),
        ({"waits": 3}, RUNNER, "its threads: calls waited for one in 100% of the seconds at 8"),
        ({"lag_ms": 200.0}, RUNNER, "its event loop: 200 ms late at the median at 8, twice in a command"),
    ],
)
def test_whose_knee_it_is(tmp_path: Path, runner: dict[str, Any], whose: str, why: str) -> None:
    found = ladder_of(climbed(tmp_path, law(1.0, 0.125, 0.0), **runner))
    assert (found.knee.whose, found.knee.why) == (whose, why)


def test_a_level_that_was_over_before_the_runner_told_of_itself_is_nobodys(tmp_path: Path) -> None:
    found = ladder_of(climbed(tmp_path, law(0.001, 0.000125, 0.0)))
    assert found.knee.whose == UNKNOWN
    assert found.knee.why == "the level at 8 was over before the runner's health was told: plan more trials"


def test_a_block_that_never_had_its_lanes_full_is_counted_whole() -> None:
    assert Rate.of([(0, 2 * S, True), (0, 4 * S, False)]) == (1, 4 * S, 2)
    one = Rate.of([(n * S, (n + 1) * S, True) for n in range(4)])
    assert one == (3, 3 * S, 1)


def test_workers_of_one_block_add_up_and_parts_of_a_resumed_one_do_not() -> None:
    half = Rate.of([(n * S, (n + 1) * S, True) for n in range(8)])
    assert together([half, half], 2).per_s == pytest.approx(2.0)
    assert together([half, half], 1).per_s == pytest.approx(1.0)


def test_the_table_and_its_rows(tmp_path: Path) -> None:
    path = str(climbed(tmp_path, law(1.0, 0.125, 0.0)))
    text = " ".join(CliRunner().invoke(report, [path, "--table", "ladder"]).stdout.split())
    assert "knee: 4 at a time, the last level with a completion within 1.5x of the first level" in text
    assert "the substrate's: the runner took 10 %" in text
    assert "closed loop:" in text
    assert "knee: 4 at" in " ".join(CliRunner().invoke(report, [path]).stdout.split())  # without being asked
    told = json.loads(CliRunner().invoke(report, [path, "--table", "ladder", "--format", "json"]).stdout)
    assert [row["concurrency"] for row in told] == list(LEVELS)
    assert {row["knee"]["whose"] for row in told} == {SUBSTRATE}


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("1:256", [1, 2, 4, 8, 16, 32, 64, 128, 256]),
        ("1:50", [1, 2, 4, 8, 16, 32, 50]),
    ],
)
def test_levels(text: str, levels: list[int]) -> None:
    assert parse_ladder(text) == levels


@pytest.mark.parametrize("text", ["", "8", "8:8", "8:1", "0:8", "1:8:x2"])
def test_what_is_no_ladder(text: str) -> None:
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
    def loads() -> tuple[float, float, float]:
        if load is None:
            raise OSError
        return load, 0.0, 0.0

    monkeypatch.setattr("os.getloadavg", loads)
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
