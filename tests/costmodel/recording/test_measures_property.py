"""The causes of held add up to it to the nanosecond, and the badge does not depend on how it is computed."""

from __future__ import annotations

import json
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import TrainingRun, load, project
from costmodel.recording.breakdown import UNKNOWN, Split, known_parts, measure, parted
from taxtui.cli import app
from tests.support.cost_model.costmodel_files import S, cell, trial, write

many = settings(max_examples=300, deadline=None)
times = st.integers(0, 10**13)
Command = tuple[int, int, int]  # duration, run and wrapper time
unsure = st.one_of(st.just(UNKNOWN), times)
commands = st.lists(
    st.one_of(
        st.tuples(times, unsure, unsure),
        st.tuples(times, times, times).map(lambda each: (sum(each), each[1], each[2])),
    ),
    max_size=30,
)
phases = st.dictionaries(st.sampled_from(["create", "reset", "ready", "ready_again", "preload", "setup"]), times)


def split(of: list[Command]) -> Split:
    durations = [duration for duration, *_ in of]
    return Split.of(durations, *known_parts(durations, [run for _, run, _ in of], [wrapper for *_, wrapper in of]))


def counted(command: Command) -> int:
    """The wrapper time of a command, 0 where it is unknown."""
    duration, run, wrapper = command
    return wrapper if 0 <= run <= duration and 0 <= wrapper <= duration - run else 0


@many
@given(phases, commands, commands, times, times, times, st.booleans(), st.none() | times, st.none() | st.floats(0, 1))
def test_the_causes_of_held_add_up_to_it(
    found: dict[str, int],
    setup: list[Command],
    actions: list[Command],
    queued: int,
    think: int,
    held: int,
    ok: bool,
    cpu: int | None,
    share: float | None,
) -> None:
    one = measure(found, split(setup), split(actions), held_ns=held, queued_ns=queued, think_ns=think, cpu_ns=cpu)
    parts = one.startup_ns + one.dispatch_ns + one.work_ns + one.unsplit_ns + one.wrapper_ns
    assert parts + one.harness_ns + queued + think == held
    assert one.trajectory_ns == held - queued - think
    assert one.fresh_episode_ns == one.startup_ns + found.get("setup", 0)
    useful = one.work_ns - one.contention_ns(share) + one.wrapper_ns
    assert one.tax_ns(ok=ok, contended=share) == held - (think + useful) * ok
    taken = sum(duration for duration, *_ in setup + actions)
    assert one.harness_ns == one.trajectory_ns - one.startup_ns - taken
    assert 0 <= one.contention_ns(share) <= one.work_ns
    assert (one.waiting_ns is None) == (cpu is None or not one.divided)
    assert not (one.divided and one.unsplit_ns)
    assert one.wrapper_ns == sum(map(counted, setup + actions))


@many
@given(commands, commands)
def test_commands_are_split_alike_at_once_in_parts_and_in_arrays(one: list[Command], other: list[Command]) -> None:
    whole = split(one + other)
    assert whole == split(one).plus(split(other))
    assert whole.taken_ns == sum(duration for duration, *_ in one + other)
    possible = [command for command in one + other if 0 <= command[1] <= command[0]]
    assert whole.divided == (len(possible) == len(one + other))
    assert whole.work_ns == sum(run for _, run, _ in possible)
    assert whole.wrapper_ns == sum(map(counted, possible))
    assert whole.dispatch_ns == sum(duration - run for duration, run, _ in possible) - whole.wrapper_ns
    durations = array("q", [duration for duration, *_ in one + other])
    runs, wrappers = (array("q", [command[place] for command in one + other]) for place in (1, 2))
    runs, wrappers = (array("q", column) for column in known_parts(durations, runs, wrappers))
    assert Split.of(durations, runs, wrappers) == whole
    assert [list(column) for column in parted(durations, runs, wrappers)] == [
        [run for _, run, _ in possible],
        [command[0] - command[1] - counted(command) for command in possible],
    ]


# -- What commands wait because others run is no work: read off CPU time, against the same cell alone ---------------

SLEEP = S // 2
"""That each action sleeps, alone or not: waiting, and no contention."""


def both_cells(folder: Path, *, alone: bool = True, cpus: bool = True) -> Path:
    """1 s of CPU time per action; side by side each action also waits 1 s for the other sandbox."""
    trials = []
    for number in range(8):
        crowd = number % 2
        run = S + SLEEP + crowd * S
        told = {"cpus": [S] * 3} if cpus else {}
        trials.append(trial(number, cell=crowd, actions=[run + S // 10] * 3, runs=[run] * 3, **told))
    cells = [cell(0, concurrency=1 if alone else 4), cell(1, concurrency=2, arrival="closed")]
    return write(folder / "a.msgpack", trials, *cells)


def reported(path: Path) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["report", str(path), "--format", "json"])
    assert result.exit_code == 0
    found: list[dict[str, Any]] = json.loads(result.output)
    return sorted(found, key=lambda row: int(row["concurrency"]))


def test_the_share_of_the_tax_does_not_fall_where_sandboxes_compete(tmp_path: Path) -> None:
    alone, crowd = reported(both_cells(tmp_path))
    assert (alone["work_per_success_ns"], crowd["work_per_success_ns"]) == (4.5 * S, 4.5 * S)
    assert (alone["tax_by_cause_ns"]["contention"], crowd["tax_by_cause_ns"]["contention"]) == (0, 3 * S)
    assert (alone["mean_ns"]["waiting"], crowd["mean_ns"]["waiting"]) == (1.5 * S, 4.5 * S)
    assert (crowd["mean_ns"]["work"], crowd["mean_ns"]["contention"]) == (4.5 * S, 3 * S)
    assert crowd["tax_share_of_held"] > alone["tax_share_of_held"]
    parts = crowd["tax_by_cause_ns"].values()
    assert sum(parts) == crowd["tax_per_success_ns"]["value"] == pytest.approx((3 + 0.3 + 3) * S)


def test_report_and_project_say_the_same_and_at_another_length_contention_keeps_its_share(tmp_path: Path) -> None:
    path, asked = both_cells(tmp_path), TrainingRun(trajectories=3600, workers=1)
    for row, told in zip(project([load(path)], asked, each_level=True), reported(path), strict=True):
        causes = row.by_cause_worker_hours
        assert causes.contention == pytest.approx(told["tax_by_cause_ns"]["contention"] / S)
        assert causes.work == pytest.approx(told["work_per_success_ns"] / S)
        assert row.tax_worker_hours.value == pytest.approx(told["tax_per_success_ns"]["value"] / S)
        assert sum(part or 0.0 for part in causes) == pytest.approx(row.worker_hours.value)
    causes = project([load(path)], replace(asked, actions=6), each_level=True)[1].by_cause_worker_hours
    assert (causes.contention, causes.work) == pytest.approx((6, 9))


@pytest.mark.parametrize(("alone", "cpus"), [(False, True), (True, False)])
def test_it_is_unknown_without_the_cell_alone_or_without_cpu_time(tmp_path: Path, alone: bool, cpus: bool) -> None:
    path = both_cells(tmp_path, alone=alone, cpus=cpus)
    rows = {row["concurrency"]: row for row in reported(path)}
    assert rows[2]["tax_by_cause_ns"]["contention"] is None
    assert rows[2]["work_per_success_ns"] == 7.5 * S
    assert "contention_unknown" in rows[2]["flags"]
    if not cpus:
        assert rows[1]["mean_ns"]["waiting"] is None
        assert "contention_unknown" not in rows[1]["flags"]
