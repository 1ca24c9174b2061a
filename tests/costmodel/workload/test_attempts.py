"""Attempts of the recorded and of other lengths, and distributions of what was recorded."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import Interval, Length, RecordedTrial, Recording, TrainingRun, load, project, read_events
from costmodel.errors import TrainingRunError
from costmodel.recording.breakdown import UNKNOWN
from costmodel.workload.attempts import FIRST_CYCLE
from costmodel.workload.characterization import hazard, think_law
from costmodel.workload.pool import attempts, pools
from taxtui.importers import registry
from taxtui.importers.importing import import_files
from taxtui.live.state import RunState
from tests.studies.study_length import held_out
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, cell, trial, write

RECORDINGS = Path(__file__).parents[3] / "recordings"
PLAIN = TrainingRun(trajectories=1000, workers=10)


@pytest.mark.parametrize("name", ["small", "kubernetes2", "varied"])
@pytest.mark.parametrize("cleanup", [False, True])
def test_an_attempt_at_the_recorded_length_is_the_trial(tmp_path: Path, name: str, cleanup: bool) -> None:
    """Failures at every length, think time, clean-up, CPU time, and an unknown in-sandbox time are among the trials."""
    trials = [
        trial(
            n,
            create=(2 + n % 5) * S,
            actions=[S + n] * (3 if n % 7 else n % 4),
            runs=[(S // 2, UNKNOWN)[n == 5]] * (3 if n % 7 else n % 4),
            thinks=[S] * 3 if n % 7 and n % 3 else (),
            cleanup=n % 2 * S,
            queued=n % 3 * S,
            outcome="ok" if n % 7 else "failed",
        )
        for n in range(40)
    ]
    path = RECORDINGS / f"{name}.msgpack"
    if name == "varied":
        path = write(tmp_path / "varied.msgpack", trials, cell(length="recorded"))
    asked = TrainingRun(trajectories=1, workers=1, include_cleanup=cleanup)
    for pool in pools([load(path)]):
        found = attempts(pool, None, asked)
        for attempt, recorded in zip(found, pool.trials, strict=True):
            measures = recorded.measures
            cleanup_ns = (measures.cleanup_ns or 0) * cleanup
            assert (attempt.ok, attempt.held_ns) == (recorded.ok, measures.held_ns + cleanup_ns)
            assert (attempt.think_ns, attempt.queued_ns) == (measures.think_ns, measures.queued_ns)
            assert attempt.run_ns == (measures.work_ns if measures.divided else UNKNOWN)
            assert attempt.dispatch_ns == (measures.dispatch_ns if measures.divided else 0)
            assert attempt.harness_ns == measures.harness_ns
            assert attempt.sandbox_ns == recorded.sandbox_ns + (measures.cleanup_ns or 0)


def test_a_recording_without_trials_is_a_pool_and_an_unknown_run_makes_all_of_it_undivided(tmp_path: Path) -> None:
    found = load(write(tmp_path / "a", []))
    [pool] = pools([found])
    assert (found.trials, pool.length, pool.exposure, pool.waiting_ns) == (0, Length.constant(3), None, None)
    [pool] = pools([load(write(tmp_path / "b", [trial(n, runs=[UNKNOWN, S, S]) for n in range(4)]))])
    assert not pool.run_known
    assert {(attempt.run_ns, attempt.unsplit_ns) for attempt in attempts(pool, None, PLAIN)} == {(UNKNOWN, 3 * S)}


def recorded(folder: Path, durations: list[int], count: int = 4) -> Recording:
    trials = [trial(n, actions=[ns + n for ns in durations]) for n in range(count)]
    return load(write(folder / "a.msgpack", trials, cell(0, actions=len(durations), cycle=2)))


def test_the_first_cycle_is_not_repeated(tmp_path: Path) -> None:
    one = recorded(tmp_path, [9 * S, 9 * S, S, S, S, S])
    (row,) = project([one], TrainingRun(trajectories=3600, workers=1, actions=12))
    assert row.worker_hours.value == pytest.approx(3 + 22 + 6, rel=1e-6)
    assert "beyond_measured_length" in row.flags
    assert "first_cycle_only" not in row.flags


def test_from_one_cycle_it_is_said_and_the_interval_allows_later_ones_to_be_cheaper(tmp_path: Path) -> None:
    one = recorded(tmp_path, [S, S])
    short, long = (project([one], TrainingRun(trajectories=3600, workers=1, actions=n, run_sd=0.0))[0] for n in (2, 12))
    assert "first_cycle_only" not in short.flags
    assert "first_cycle_only" in long.flags
    for interval in (long.worker_hours, long.trajectory_s.mean):
        assert interval.low == pytest.approx(5 + 10 * FIRST_CYCLE[0], rel=1e-6)
        assert interval.high == pytest.approx(5 + 10 * FIRST_CYCLE[1], rel=1e-6)


def test_the_shipped_recordings_predict_their_longer_lengths() -> None:
    steps = held_out()
    assert list(steps) == [(10, 50), (10, 150), (50, 150)]
    long = [step.inside for step in steps[50, 150]]
    assert len(long) >= 16
    assert sum(long) >= 0.9 * len(long)
    every = [step.inside for cells in steps.values() for step in cells]
    assert sum(every) >= 0.95 * len(every)  # the intervals are of 95 %
    run = load(RECORDINGS / "small.msgpack")  # of ten actions
    rows = project([run], TrainingRun(trajectories=100, workers=1, actions=50))
    assert all("first_cycle_only" in row.flags for row in rows)


LENGTHS = (2, 3, 3, 8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    trials = [trial(n, actions=[S] * count) for n, count in enumerate(LENGTHS)]
    trials.append(trial(9, actions=[S] * 5, outcome="failed", extra=60 * S))
    return write(tmp_path / "varied.msgpack", trials, cell(0, actions=0, length="recorded", cycle=1))


def test_every_trial_counts_with_the_length_it_has(path: Path) -> None:
    (row,) = project([load(path)], TrainingRun(trajectories=3600, workers=1))
    assert (row.trials, row.failures) == (5, 1)
    assert row.length == Length(((2, 1), (3, 2), (8, 1)))
    assert row.length.actions == 4
    assert row.worker_hours.value == pytest.approx((5 * 3 + sum(LENGTHS) + 5 + 60) / 4)
    assert "beyond_measured_length" not in row.flags


def test_a_law_of_lengths_is_the_mixture_of_its_lengths(path: Path) -> None:
    recording, mixed = load(path), Length(((2, 3), (4, 1)))
    (pool,) = pools([recording])
    asked = TrainingRun(trajectories=3600, workers=1)
    found = attempts(pool, mixed, asked)
    assert [(one.trial, one.actions, one.weight) for one in found[:4]] == [(0, 2, 3), (0, 4, 1), (1, 2, 3), (1, 4, 1)]
    held_s = [one.held_ns // S for one in (*found[:2], found[-1])]
    assert held_s == [5, 7, 7]  # the first has two actions, the rest repeats them; the last fails after the fourth
    rows = [project([recording], replace(asked, actions=length))[0] for length in (mixed, 2, 4)]
    hours = [row.worker_hours.value for row in rows]
    assert hours[0] == pytest.approx((3 * hours[1] + hours[2]) / 4, rel=1e-9)


def test_a_wide_law_is_dealt_out_without_moving_its_mean(path: Path) -> None:
    (pool,) = pools([load(path)])
    found = attempts(pool, Length.between(1, 2000), PLAIN)
    weights = [sum(one.weight for one in found if one.trial == number) for number in range(5)]
    assert len(set(weights)) == 1
    good = [one for one in found if one.ok]
    assert sum(one.actions * one.weight for one in good) / sum(weights[:4]) == pytest.approx(1000.5, rel=0.03)


def test_a_trajectory_without_an_action_goes_on_as_the_longest_of_its_cell(tmp_path: Path) -> None:
    trials = [trial(0, actions=()), trial(1, actions=[S] * 4, cpus=[S // 2] * 4), trial(2, actions=[2 * S] * 2)]
    path = write(tmp_path / "a.msgpack", trials, cell(0, actions=0, length="recorded", cycle=1))
    (pool,) = pools([load(path)])
    found = attempts(pool, Length.constant(6), TrainingRun(trajectories=1, workers=1))
    assert [one.held_ns // S for one in found] == [3 + 6, 3 + 6, 3 + 12]
    assert [(one.run_ns // S, one.cpu_ns // S) for one in found] == [(6, 3), (6, 3), (12, -1)]


def test_what_is_shown_is_the_shortest_the_longest_and_the_mean(path: Path) -> None:
    assert "T2 2-8 avg 4 exec c1" in printed("report", path, "--table", "tax")
    told = printed("project", path, "--trajectories", "100", "--workers", "1")
    assert "T2 2-8 avg 4 exec" in told
    assert "100 trajectories of 2-8 avg 4 actions" in told
    assert "T2 x 2-8 avg 4 exec" in printed("recordings", "info", path)
    state = RunState()
    read_events(path, state.apply)
    assert (state.cells[0].workload, state.cells[0].mean_actions) == ("T2 x 2-8 avg 4", 4)


def test_the_length_is_part_of_the_identity_and_fixed_cells_keep_their_ids(tmp_path: Path, path: Path) -> None:
    fixed = load(write(tmp_path / "fixed", [trial(0)], cell(0, actions=3)))
    found = load(path)
    (one,), (other,) = fixed.cells, found.cells
    assert one.identity.cell_id == "51ef20c4"
    assert one.identity._replace(length="recorded").cell_id != one.identity.cell_id
    assert other.identity.length == "recorded"


def test_cells_of_other_lengths_are_not_ranked_against_each_other(tmp_path: Path) -> None:
    cells = [cell(n, actions=0, length="recorded", substrate=name) for n, name in enumerate("abc")]
    trials = [trial(n, cell=n % 3, actions=[S] * (2 + n % 3 // 2)) for n in range(30)]
    path = write(tmp_path / "a.msgpack", trials, *cells)
    rows = project([load(path)], TrainingRun(trajectories=9, workers=1, baseline="a"))
    assert [row.versus is not None for row in rows] == [False, True, False]


def test_a_law_says_what_it_is() -> None:
    law = Length.weighted({7: 2, 31: 1, 9: 1})
    assert (law.low, law.high, law.mean) == (7, 31, Fraction(27, 2))
    assert law.draws(4) == [7, 7, 9, 31]
    assert law == Length.weighted({9: 2, 31: 2, 7: 4})
    assert (str(law), str(Length.constant(1000))) == ("7-31 avg 13.5", "1,000")
    for bad in ({}, {3: 0}, {-1: 2}, {3: -1, 4: 5}):
        with pytest.raises(TrainingRunError):
            Length.weighted(bad)


HOUR_NS = 3_600 * 10**9


def thinking(
    thinks_s: Sequence[float] = (), *, group: str = "", failed: bool = False, hours: float = 1.0
) -> RecordedTrial:
    one = RecordedTrial("r", 0)
    one.thinks_ns = array("q", (round(s * 1e9) for s in thinks_s))
    one.durations_ns = array("q", [10**6] * len(thinks_s))
    one.ok, one.failed_in, one.group = not failed, "action" * failed, group
    one.sandbox_ns = round(hours * HOUR_NS)
    return one


def failures_per_hour(trials: Sequence[RecordedTrial]) -> Interval | None:
    hours = [one.sandbox_ns / HOUR_NS for one in trials]
    return hazard([int(not one.ok) for one in trials], hours, [one.group or n for n, one in enumerate(trials)])


@pytest.mark.parametrize(
    ("count", "low", "high"), [(0, 0.0, 3.689), (1, 0.0253, 5.572), (10, 4.795, 18.391), (100, 81.36, 121.63)]
)
def test_the_interval_of_a_count_is_about_garwood_s(count: int, low: float, high: float) -> None:
    found = hazard([count], [1.0], [0])
    assert found == pytest.approx((count, low, high), abs=0.025)
    assert found.low <= low + 0.005


def _covered(intervals: Sequence[Interval], truth: float) -> float:
    return sum(found.low <= truth <= found.high for found in intervals) / len(intervals)


def test_a_think_law_is_in_its_intervals_where_trials_differ_in_their_pace() -> None:
    rng = Random(11)
    found = []
    for _ in range(150):
        paces = [rng.gauss(math.log(8), 0.4) for _ in range(25)]
        found.append(think_law([thinking([rng.lognormvariate(pace, 0.6) for _ in range(10)]) for pace in paces]))
    mean = 8 * math.exp((0.4**2 + 0.6**2) / 2)
    assert _covered([law.median_s for law in found], 8.0) >= 0.9
    assert _covered([law.mean_s for law in found], mean) >= 0.88


def test_a_hazard_is_in_its_interval() -> None:
    rng = Random(13)
    found = []
    for _ in range(150):
        trials = []
        for _ in range(80):
            until_h, wanted_h = rng.expovariate(0.5), rng.uniform(0.2, 1.0)
            trials.append(thinking(hours=min(until_h, wanted_h), failed=until_h < wanted_h))
        found.append(failures_per_hour(trials))
    assert _covered(found, 0.5) >= 0.92


def test_groups_that_fail_together_widen_the_hazard() -> None:
    apart = [thinking(group=f"g{i}", failed=i % 8 == 0) for i in range(80)]
    together = [thinking(group=f"g{i % 10}", failed=i % 10 == 0) for i in range(80)]
    narrow, wide = (failures_per_hour(trials) for trials in (apart, together))
    assert wide.high - wide.low > 1.3 * (narrow.high - narrow.low)


@settings(max_examples=60)
@given(st.lists(st.lists(st.floats(0, 1e7), max_size=6), min_size=1, max_size=8), st.booleans())
def test_whatever_was_thought_a_law_is_finite(thinks: list[list[float]], grouped: bool) -> None:
    law = think_law([thinking(own, group=f"g{i % 3}" if grouped else "") for i, own in enumerate(thinks)])
    if law is not None:
        assert math.isfinite(law.median_s.value)
        assert law.sigma.value >= 0


def test_nothing_is_said_without_data() -> None:
    assert think_law([thinking(), thinking([0.0, 0.0])]) is None
    one = think_law([thinking([0.0, 8.0])])
    assert (one.median_s.value, one.median_s.low, one.thinks) == (pytest.approx(8.0), None, 1)
    assert failures_per_hour([thinking(hours=0.0)]) is None


def test_logs_of_somebody_s_training_feed_every_law_in_a_table_of_their_own(tmp_path: Path) -> None:
    out = tmp_path / "out.msgpack"
    logs = Path(__file__).parents[2] / "logs" / "verifiers-given.jsonl"
    import_files(registry.load("verifiers"), [logs], out)

    def shown(*words: str) -> str:
        return printed("report", out, *words)

    text = shown("--table", "distributions")
    assert "Distributions" in text
    assert "Failures by cause" in text
    (row,) = json.loads(shown("--table", "distributions", "--format", "json"))
    assert row["think_law"]["thinks"] > 0
    assert '"think_law.median_s.low"' in shown("--table", "distributions", "--format", "csv")
    assert "think_law" not in shown("--format", "json")
