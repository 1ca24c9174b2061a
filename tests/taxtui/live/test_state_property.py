from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.recording import events
from costmodel.recording.events import Event
from costmodel.recording.follower import Follower
from taxtui.live.histogram import LogHistogram, bucket, lower
from taxtui.live.state import RunState
from taxtui.recording.writer import Recorder
from tests.taxtui.tui import story

durations = st.integers(0, 2**60)  # a create and four actions stay within what a recording holds
outcomes = st.sampled_from([*events.OUTCOMES, "new-outcome"])


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    """A run of any shape: trials of known and unknown cells, interleaved, some never ending."""
    told: list[Event] = [story.header([story.planned("local")]), story.clock(), story.cell(0, "local")]
    trials = [
        story.trial(
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
        waiting = [trial for trial in trials if trial]
        told.append(waiting[draw(st.integers(0, len(waiting) - 1))].pop(0))
    if draw(st.booleans()):
        told.append(events.RunFinished("finished", {}))
    return told


def fold(told: list[Event]) -> RunState:
    state = RunState()
    for event in told:
        state.apply(event)
    return state


def in_flight(state: RunState) -> list[object]:
    trials = state.open.values()
    return [
        (trial.started, trial.doing, trial.phases, trial.trial.cpu_ns, trial.trial.durations_ns) for trial in trials
    ]


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
    ended = sum(cell.finished + cell.warm_ups for cell in state.cells.values())
    assert started == ended + len(state.open)
    for cell in state.cells.values():
        assert cell.ok == cell.facets["cold_start"].n == cell.facets["trajectory"].n
        assert cell.ok <= cell.finished


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
    columns = histogram.columns(number, histogram.least, histogram.greatest)
    assert sum(columns) == pytest.approx(len(values))
    assert min(columns) >= 0
    assert sum(histogram.columns(number, 2 * histogram.greatest + 2, 4 * histogram.greatest + 4)) == 0


def test_columns_share_wide_buckets_by_area() -> None:
    histogram = LogHistogram()
    histogram.add([10**6 + step for step in range(0, 10**6, 1_000)])
    assert min(histogram.columns(300, histogram.least, histogram.greatest)) > 0  # else narrow columns show a comb


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
