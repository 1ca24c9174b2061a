"""The state of a run by its events: durations, counts, what is left, and histograms.

One trial in full, and the slowest ones: what is read of a recording, and how it is told.
"""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.errors import SourceError
from costmodel.recording import events
from costmodel.recording.events import Event
from costmodel.recording.follower import Follower
from taxtui.cli import app
from taxtui.errors import RecordingError
from taxtui.live.histogram import LogHistogram, bucket, lower
from taxtui.live.state import RunState
from taxtui.live.trial_story import read_story, slowest
from taxtui.recording.writer import Recorder
from taxtui.report.trial_timeline import lines
from taxtui.terminal_text import widest
from tests.taxtui.tui import story
from tests.taxtui.tui.story import MS, S, cell, clock, fold, header, health, planned, record, trial


def in_flight(state: RunState) -> list[object]:
    trials = state.open.values()
    return [
        (trial.started, trial.doing, trial.phases, trial.trial.cpu_ns, trial.trial.durations_ns) for trial in trials
    ]


def test_the_durations_are_those_of_the_definitions() -> None:
    state = fold(
        [
            clock(),
            cell(0, "local"),
            *trial(
                1, 0, 5 * S, create_ns=100 * MS, ready_ns=30 * MS, setup_ns=700 * MS,
                durations_ns=[10 * MS, 20 * MS], runs_ns=[4 * MS, 5 * MS], think_ns=[0, 3 * S], queued_ns=2 * S,
            ),
        ]
    )  # fmt: skip
    facets = state.cells[0].facets
    assert facets["cold_start"].total == 130 * MS
    assert facets["fresh_episode"].total == 830 * MS
    # held − queued − think, and the second no-op (2 ms) is in neither
    assert facets["trajectory"].total == (100 + 30 + 700 + 10 + 20) * MS
    assert (facets["action"].total, facets["action"].n) == (30 * MS, 2)
    assert facets["run"].total == 9 * MS
    assert facets["dispatch"].total == 21 * MS
    assert facets["cleanup"].total == 10 * MS
    assert state.log[-1].held_ns == (860 + 3_000 + 2_000) * MS
    assert state.cells[0].mean_parts_ns() == {
        "create": 100 * MS, "ready": 30 * MS, "work": 9 * MS, "dispatch": 21 * MS, "cleanup": 10 * MS,
        "harness": 700 * MS,  # a set-up that ran no command
    }  # fmt: skip
    means = {name: state.cells[0].mean_ns(name) for name in ("setup", "held", "queued", "think", "ready_again")}
    assert means == {"setup": 700 * MS, "held": 5_860 * MS, "queued": 2 * S, "think": 3 * S, "ready_again": 2 * MS}


def test_an_unknown_run_splits_nothing_and_guesses_nothing() -> None:
    state = fold(trial(1, 0, 0, durations_ns=[10 * MS, 20 * MS], runs_ns=[events.UNKNOWN, 5 * MS]))
    facets, parts = state.cells[0].facets, state.cells[0].mean_parts_ns()
    assert (facets["action"].n, facets["run"].n, facets["dispatch"].total) == (2, 1, 15 * MS)
    assert (parts["unsplit"], parts["work"], parts["dispatch"]) == (10 * MS, 5 * MS, 15 * MS)


def test_warm_ups_are_shown_and_not_counted() -> None:
    state = fold([cell(0, "local"), *trial(1, 0, 0, warm_up=True)])
    assert (state.cells[0].warm_ups, state.cells[0].finished, state.cells[0].facets["cold_start"].n) == (1, 0, 0)
    assert state.log[-1].text == "warm-up"


@pytest.mark.parametrize(
    ("outcome", "failed", "level"),
    [
        *((outcome, 1, "error") for outcome in (events.FAILED, events.TIMEOUT, "exploded")),
        *((outcome, 0, "warning") for outcome in (events.CANCELLED, events.INTERRUPTED)),
    ],
)
def test_a_trial_that_did_not_go_well_is_counted_by_outcome_and_measured_only_in_cleanup(
    outcome: str, failed: int, level: str
) -> None:
    state = fold(trial(3, 0, 0, outcome=outcome, phase="create", error="CreateFailed", message="no space"))
    at = state.cells[0]
    assert (at.outcomes, at.ok, at.failed, at.finished) == ({outcome: 1}, 0, failed, 1)
    assert {name for name, facet in at.facets.items() if facet.n} == {"cleanup"}
    assert (state.log[-1].level, state.log[-1].text) == (level, f"{outcome} in create · CreateFailed: no space")
    assert at.mean_parts_ns() == {}


def test_planned_trials_come_from_the_header_and_the_rest_from_the_cell() -> None:
    state = fold([header([planned("docker", "T1", 50, 7), planned("local")]), cell(1, "local", "bwrap")])
    assert (state.cells[0].planned, state.cells[0].planned_warm_ups, state.cells[1].planned) == (7, 1, 20)
    assert list(state.by_substrate()) == ["cell 0", "local:bwrap"]
    assert (state.cells[1].tier, state.cells[1].actions, state.cells[1].mode) == ("T0", 10, "exec")


@pytest.mark.parametrize(
    "scenario", [{}, {"cells": 3}, {"cells": ["x", {}]}, {"cells": [{"trials": "many", "tier": 1}]}]
)
def test_a_scenario_of_another_version_is_no_obstacle(scenario: dict[str, object]) -> None:
    state = fold([events.Header(events.MAGIC, 1, "r", scenario, {}), *trial(1, 0, 0)])
    assert state.cells[0].ok == 1


def test_trials_in_flight_say_what_they_are_doing() -> None:
    started, created, *rest = trial(1, 0, 0)
    state = fold([started])
    assert state.open[1].doing == ""
    state.apply(created)
    assert state.open[1].doing == "create"
    state.apply(events.Mark(1, "image pulled", 5, 0))
    assert state.open[1].doing == "image pulled"
    for event in rest[:-2]:
        state.apply(event)
    assert state.open[1].doing == "action 10"
    for event in rest[-2:]:
        state.apply(event)
    assert state.open == {}


def test_the_runner_is_badged_for_lag_and_for_cpu_and_is_the_late_worker_of_many() -> None:
    state = fold([clock(), health(1 * S)])
    assert state.runner.problems == []
    state.apply(health(2 * S, lag_p99_ns=6 * MS, cpu_permille=900))
    assert state.runner.problems == ["loop lag"]
    state.apply(health(3 * S, cpu_permille=900))
    assert state.runner.problems == ["loop lag", "client CPU"]
    state = RunState()
    for second in range(1, 101):
        for worker in range(8):
            state.apply(clock(worker))
            state.apply(health(second * S, lag_p99_ns=6 * MS if worker == 5 and second % 20 == 0 else 1 * MS))
    assert state.runner is state.runners[5]
    assert state.runner.problems == ["loop lag"]


def test_a_repetition_until_a_precision_had_no_planned_number_of_trials() -> None:
    head = header([planned("local", trials=5)])
    repeated = msgspec.structs.replace(head, scenario={**head.scenario, "repeat": 100, "until": 0.05})
    assert fold([repeated]).cells[0].planned is None
    repeated = msgspec.structs.replace(head, scenario={**head.scenario, "repeat": 100, "until": None})
    assert fold([repeated]).cells[0].planned == 500


def test_what_is_left_is_trials_left_times_their_mean() -> None:
    state = fold([header([planned("local", trials=5), planned("docker", trials=2)]), clock()])
    assert state.remaining_ns(state.cells.values()) is None
    for event in trial(1, 0, 0):  # 122 ms with its cleanup
        state.apply(event)
    assert state.remaining_ns([state.cells[0]]) == 5 * 122 * MS  # 4 trials and a warm-up
    assert state.remaining_ns(state.cells.values()) == (5 + 3) * 122 * MS
    for event in trial(2, 1, S, warm_up=True):
        state.apply(event)
    assert state.remaining_ns(state.cells.values()) == (5 + 2) * 122 * MS
    assert RunState().remaining_ns([]) is None
    # Lanes beyond the trials do not make them any shorter.
    crowd = planned("local", trials=4) | {"warmup": 0}
    many = msgspec.structs.replace(cell(0, "local"), concurrency=64)
    state = fold([header([crowd]), clock(), many, *trial(0, 0, 0)])
    mean = state.cells[0].trial_ns
    assert mean == 122 * MS
    assert state.remaining_ns(state.cells.values()) == mean  # not 3/64 of it


def test_a_whole_run_and_its_time_by_whichever_worker_writes() -> None:
    assert fold([clock(), health(3 * S), clock(1, story.UNIX_NS + 10 * S), health(1 * S)]).elapsed_ns == 11 * S
    assert RunState().elapsed_ns == 0
    state = fold(story.run())
    assert (state.outcome, state.run_id, state.name) == ("finished", "7f3a0c11", "story")
    assert [(c.label, c.ok, c.failed, c.warm_ups, c.planned) for c in state.cells.values()] == [
        ("local:bwrap", 20, 0, 1, 20),
        ("docker:runc", 18, 2, 1, 20),
    ]
    assert state.remaining_ns(state.cells.values()) == 0


durations = st.integers(0, 2**60)  # a create and four actions stay within what a recording holds
outcomes = st.sampled_from([*events.OUTCOMES, "new-outcome"])


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    """A run of any shape: trials of known and unknown cells, interleaved, some never ending."""
    told: list[Event] = [header([planned("local")]), clock(), cell(0, "local")]
    trials = [
        trial(
            key,
            draw(st.integers(0, 2)),
            draw(st.integers(0, 10**12)),
            create_ns=draw(durations),
            durations_ns=draw(st.lists(durations, max_size=4)),
            runs_ns=[],
            outcome=draw(outcomes),
            warm_up=draw(st.booleans()),
        )[: draw(st.integers(1, 9))]
        for key in range(draw(st.integers(0, 6)))
    ]
    while any(trials):
        waiting = [one for one in trials if one]
        told.append(waiting[draw(st.integers(0, len(waiting) - 1))].pop(0))
    if draw(st.booleans()):
        told.append(events.RunFinished("finished", {}))
    return told


@settings(deadline=None, max_examples=60)
@given(runs(), st.lists(st.integers(0, 70), max_size=8))
def test_following_a_file_as_it_grows_folds_to_the_same_state_as_the_events_at_once(
    told: list[Event], cuts: list[int]
) -> None:
    edges = sorted({0, *cuts, len(told)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.msgpack"
        live = RunState()
        with Recorder(path) as recorder, Follower(path) as follower:
            for start, end in itertools.pairwise(edges):
                for event in told[start:end]:
                    recorder.add(event)
                recorder.flush()
                for event in follower.poll():
                    live.apply(event)
        assert live == fold(told)
        assert in_flight(live) == in_flight(fold(told))


@given(runs())
def test_every_trial_is_somewhere(told: list[Event]) -> None:
    state = fold(told)
    started = sum(isinstance(event, events.TrialStarted) for event in told)
    ended = sum(at.finished + at.warm_ups for at in state.cells.values())
    assert started == ended + len(state.open)
    for at in state.cells.values():
        assert at.ok == at.facets["cold_start"].n == at.facets["trajectory"].n
        assert at.ok <= at.finished


@given(st.integers(0, 2**63 - 1))
def test_a_value_lies_in_its_bucket_and_the_bucket_is_narrow(value: int) -> None:
    index = bucket(value)
    assert lower(index) <= value < lower(index + 1)
    assert lower(index + 1) - lower(index) <= max(1, lower(index) / 32)


@given(st.lists(durations, min_size=1), st.integers(1, 200))
def test_columns_over_the_whole_range_hold_every_value_and_none_outside(values: list[int], number: int) -> None:
    histogram = LogHistogram()
    for value in values:
        histogram.add([value])
    whole = LogHistogram()
    whole.add(values)
    assert histogram == whole
    columns = histogram.columns(number, histogram.shortest, histogram.longest)
    assert sum(columns) == pytest.approx(len(values))
    assert min(columns) >= 0
    assert sum(histogram.columns(number, 2 * histogram.longest + 2, 4 * histogram.longest + 4)) == 0


def test_columns_share_wide_buckets_by_area() -> None:
    histogram = LogHistogram()
    histogram.add([10**6 + step for step in range(0, 10**6, 1_000)])
    assert min(histogram.columns(300, histogram.shortest, histogram.longest)) > 0  # else narrow columns show a comb


def test_a_clock_that_stepped_counts_as_zero() -> None:
    histogram = LogHistogram()
    histogram.add([])
    histogram.add([-5, 0])
    assert (histogram.counts, histogram.total, histogram.mean, LogHistogram().quantile(0.5)) == ({0: 2}, 0, 0.0, 0)


@given(st.lists(durations, min_size=1))
def test_quantiles_are_monotone_and_within_the_extremes(values: list[int]) -> None:
    histogram = LogHistogram()
    histogram.add(values)
    ladder = [histogram.quantile(q / 20) for q in range(21)]
    assert ladder == sorted(ladder)
    assert min(values) <= ladder[0]
    assert ladder[-1] <= max(values)


FAILED = {"outcome": events.FAILED, "phase": "create", "error": "Throttled", "message": "429 [bold], \x1b[31m 4 s"}


def two_trials() -> list[events.Event]:
    began = [story.header([story.planned("docker")]), story.clock(), story.cell(0, "docker", "runc")]
    good = story.trial(1, 0, 1 * S, durations_ns=[(1 + n) * MS for n in range(40)], think_ns=[2 * MS] * 40)
    bad = story.trial(2, 0, 3 * S, durations_ns=[], **FAILED)  # type: ignore[arg-type]  # texts all
    return [*began, *good, story.health(2 * S, lag_p99_ns=9 * MS), *bad, story.health(4 * S), story.health(5 * S)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return record(tmp_path / "a.msgpack", two_trials())


def test_a_trial_is_told_from_its_start_to_its_end(path: Path) -> None:
    found = read_story(path, 1)
    assert [phase.phase for phase in found.phases] == ["create", "ready", "ready_again", "cleanup"]
    assert found.durations_ns == [(1 + n) * MS for n in range(40)]
    assert found.began_unix_ns == story.UNIX_NS + 1 * S
    other = read_story(path, 2)
    assert other.end
    assert other.end.error == "Throttled"
    with pytest.raises(RecordingError, match="#3 is not in this recording"):
        read_story(path, 3)


@pytest.mark.parametrize("width", [50, 100])
def test_its_timeline_has_phases_actions_and_marks_as_far_as_it_came(width: int, path: Path) -> None:
    text = lines(read_story(path, 1), width)
    assert widest(text.split("\n")) <= width
    words = ("docker:runc T0 x 10 exec · ok", "create", "40.0 ms", "40 actions", "longest 40.0 ms (action 40)")
    for each in (*words, "think time 80.0 ms", "running +40"):
        assert each in " ".join(text.split())
    begun = record(path.with_name("begun.msgpack"), two_trials()[:6])
    assert "still runs, or was cut off" in lines(read_story(begun, 1), 80)


def test_the_command_prints_phases_and_a_line_per_action(path: Path) -> None:
    result = CliRunner().invoke(app, ["recordings", "trial", str(path), "1"])
    lines_of_output = result.output.splitlines()
    assert result.exit_code == 0, result.exception
    assert any(line.startswith("create") and "40.0 ms" in line for line in lines_of_output)
    actions = [line.split() for line in lines_of_output if line.startswith("action ")]
    assert [line[1:4] for line in actions[:2]] == [["1", "1.00", "ms"], ["2", "2.00", "ms"]]
    assert len(actions) == 40
    missing = CliRunner().invoke(app, ["recordings", "trial", str(path), "9"])
    assert isinstance(missing.exception, RecordingError)


def test_the_slowest_trials_come_first_and_warm_ups_do_not_count(tmp_path: Path) -> None:
    path = record(tmp_path / "a.msgpack", story.run(10))
    found = slowest([path], lambda one: one.label == "docker:runc")
    held = [each.held_ns for _, each in found]
    assert held == sorted(held, reverse=True)
    assert len(found) == 10
    assert read_story(path, found[0][1].trial).cell.label == "docker:runc"
    assert slowest([path], lambda _: False) == []


def test_what_stands_before_damage_is_told(tmp_path: Path) -> None:
    path = record(tmp_path / "a.msgpack", story.run(30))
    whole = len(slowest([path], lambda _: True))
    data = bytearray(path.read_bytes())
    data[-2000] ^= 4
    path.write_bytes(data)
    assert 0 <= len(slowest([path], lambda _: True)) <= whole
    path.write_bytes(msgspec.msgpack.encode("nothing"))
    with pytest.raises(SourceError):
        slowest([path], lambda _: True)
