"""Bad seconds of the measuring process: by trial, as far as they show in a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from costmodel import Exposure, Health, Recording, TrainingRun, WorkerFitness, load, pools, project
from taxtui.cli import app
from tests.support.cost_model.costmodel_files import S, cell, trial, write

MS = S // 1000
BAD_NS = 6 * MS


def second(at_ns: int, lag_ns: int = 0, cpu_permille: int = 0) -> list[Any]:
    return [8, at_ns, 0, lag_ns, lag_ns, cpu_permille, 1, 0, 800_000]


def recorded(folder: Path, slow_ns: int, *, bad: int = 5, spread_ns: int = 0) -> Recording:
    """20 trials of 6 s, one each 1000 s; of ``bad`` of them a bad second, and an action that took longer."""
    trials = []
    for number in range(20):
        exposed = number < bad
        events = trial(number, actions=[S, S, S + exposed * slow_ns + number % 4 * spread_ns])
        start = number * 1000 * S
        seconds = [second(start), second(start + 2 * S, BAD_NS * exposed), second(start + 900 * S)]
        trials.append([*events[:-1], *seconds, events[-1]])
    return load(write(folder / "a.msgpack", trials, cell(0)))


def exposure(recording: Recording) -> Exposure | None:
    [pool] = pools([recording])
    return pool.exposure


def test_a_trial_is_exposed_for_its_share_of_the_bad_seconds() -> None:
    seconds = WorkerFitness()
    for at, lag_ns, cpu in ((10, 0, 0), (20, BAD_NS, 0), (30, 0, 0), (40, 0, 900), (50, BAD_NS, 900)):
        seconds.add(Health(at, 0, lag_ns, lag_ns, cpu, 0, 0, 0))
    shares = [seconds.share(*span) for span in ((0, 10), (10, 20), (15, 35), (0, 50), (20, 30), (45, 65), (60, 60))]
    assert shares == [0, 1, 0.5, 0.6, 0, 0.25, 0]


def test_a_bad_second_of_one_repetition_exposes_no_trial_of_another(tmp_path: Path) -> None:
    """Each worker's clock is its own: what happened at the same instants did not happen together."""
    frames: list[list[list[Any]]] = [[], [], [], []]
    for worker, lag_ns in enumerate((BAD_NS, 0)):
        clock = [1, worker, 0, 0, "h"]
        started, *rest = ([event[0], worker, *event[2:]] for event in trial(0, repetition=worker))
        frames[worker] = [clock, started]
        frames[2 + worker] = [clock, second(0), second(2 * S, lag_ns), *rest]
    recording = load(write(tmp_path / "a.msgpack", frames, cell(0)))
    first, other = recording.cells[0].trials
    assert (first.start_ns, first.end_ns) == (other.start_ns, other.end_ns)
    assert (first.exposed, other.exposed) == (1 / 3, 0)


def test_what_bad_seconds_do_is_told_with_and_without_their_trials(tmp_path: Path) -> None:
    found = exposure(recorded(tmp_path, 4 * S))
    assert (found.exposed, found.successes) == (5, 20)
    assert (found.every_ns.value, found.clean_ns.value, found.difference_ns) == (7 * S, 6 * S, S)
    assert exposure(recorded(tmp_path, S, bad=19)).exposed == 19
    assert exposure(recorded(tmp_path, S, bad=0)) is None


@pytest.mark.parametrize(("slow_ns", "spread_ns", "badged"), [(4 * S, 0, True), (S // 10, S, False), (0, 0, False)])
def test_a_row_is_badged_only_where_that_is_more_than_it_resolves(
    tmp_path: Path, slow_ns: int, spread_ns: int, badged: bool
) -> None:
    recording = recorded(tmp_path, slow_ns, spread_ns=spread_ns)
    (row,) = project([recording], TrainingRun(trajectories=100, workers=1))
    assert ("runner_distorted" in row.flags) == badged
    result = CliRunner().invoke(app, ["report", str(tmp_path / "a.msgpack"), "--format", "json"])
    (told,) = json.loads(result.output)
    assert ("runner_distorted" in told["flags"]) == badged
    assert told["bad_seconds"]["exposed_trials"] == 5
    text = CliRunner().invoke(app, ["report", str(tmp_path / "a.msgpack"), "--table", "breakdown"]).output
    assert "Trials in bad seconds" in text


def test_the_start_delay_is_shown_where_there_is_one(tmp_path: Path) -> None:
    trials = [trial(number) for number in range(1, 8)]
    for events in trials:
        events[0][4] = events[0][5] - 3 * S  # when it was scheduled
    late = write(tmp_path / "late.msgpack", trials)
    prompt = write(tmp_path / "prompt.msgpack", [trial(number) for number in range(1, 8)])
    shown = [CliRunner().invoke(app, ["report", str(one), "--table", "breakdown"]).output for one in (late, prompt)]
    assert "start delay" in shown[0]
    assert "3.00 s" in shown[0]
    assert "start delay" not in shown[1]
