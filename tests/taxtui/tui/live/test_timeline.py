"""Seeking in a recording: wherever a replay is taken, it shows the fold of the events before that place."""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.errors import SourceError
from costmodel.recording import events
from costmodel.recording.events import Event, RunFinished
from costmodel.recording.follower import Follower, read_events
from costmodel.recording.framing import PREFIX, FrameParser
from taxtui.errors import UsageError
from taxtui.live.state import RunState
from taxtui.recording.writer import Recorder, Sealer
from taxtui.tui.live import replay as replay_module
from taxtui.tui.live import timeline as timeline_module
from taxtui.tui.live.replay import ReplayFeed
from taxtui.tui.live.timeline import KEYFRAMES, After, Upto
from taxtui.tui.live.timeline import ReplayTimeline as Timeline
from tests.taxtui.live.test_state_property import fold, runs
from tests.taxtui.tui import story

WORDS = st.one_of(
    st.tuples(st.just("seek"), st.floats(-0.2, 1.2)),
    st.tuples(st.just("seek_by"), st.floats(-0.5, 0.5)),
    st.tuples(st.just("go_to"), st.sampled_from(["0:00", "0:01", "99:00:00", "50%", "100%", "#0", "#1", "#5", "#77"])),
    st.tuples(st.just("faster"), st.integers(-3, 3)),
    st.just(("pause",)),
)


@contextmanager
def small_slices(octets: int) -> Iterator[None]:
    """Slices of a few events, and a clock on which thirty looks are a whole budget."""
    looks = (number / 1000 for number in range(10**9))
    with (
        mock.patch.object(timeline_module, "SLICE_BYTES", octets),
        mock.patch.object(replay_module, "SLICE_BYTES", octets),
        mock.patch.object(time, "monotonic", looks.__next__),
    ):
        yield


def write(path: Path, told: list[Event], every: int = 4) -> Path:
    with Recorder(path) as recorder:
        for number, event in enumerate(told):
            recorder.add(event)
            if number % every == 0:
                recorder.flush()
    return path


def settle(feed: ReplayFeed) -> None:
    for _ in range(5000):
        if not feed.advance():
            return
    raise AssertionError("it never comes to rest")


def to_the_end(feed: ReplayFeed) -> RunState:
    feed.paused, feed.speed = False, 0.0
    for _ in range(5000):
        feed.advance()
        if feed.over:
            return feed.state
    raise AssertionError("it never ends")


@st.composite
def recordings(draw: st.DrawFn) -> list[Event]:
    """Runs of one or several workers."""
    told = draw(runs())
    for _ in range(draw(st.integers(0, 3))):
        clock = story.clock(draw(st.integers(0, 3)), story.UNIX_NS + draw(st.integers(-(10**12), 10**12)))
        told.insert(draw(st.integers(2, len(told) - isinstance(told[-1], RunFinished))), clock)
    return told


@settings(deadline=None, max_examples=150)
@given(
    recordings(), st.integers(1, 6), st.integers(40, 900), st.lists(st.tuples(WORDS, st.integers(0, 4)), max_size=12)
)
def test_wherever_it_is_taken_it_shows_the_events_before_and_ends_as_the_run_did(
    told: list[Event], every: int, octets: int, wishes: list[tuple[tuple[object, ...], int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder, small_slices(octets):
        feed = ReplayFeed(write(Path(folder) / "r.msgpack", told, every))
        for (name, *arguments), frames in wishes:
            getattr(feed, str(name))(*arguments)
            for _ in range(frames):
                feed.advance()
                assert feed.state == fold(told[: feed.standing.events])
        assert to_the_end(feed) == fold(told)
        assert feed.ending == fold(told)
        feed.close()


@settings(deadline=None, max_examples=60)
@given(recordings(), st.integers(40, 900), st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_a_seek_shows_exactly_what_had_become_true_by_then(told: list[Event], octets: int, shares: list[float]) -> None:
    whole = fold(told)
    with tempfile.TemporaryDirectory() as folder, small_slices(octets):
        feed = ReplayFeed(write(Path(folder) / "r.msgpack", told))
        feed.pause()
        settle(feed)
        for share in shares:
            feed.seek(share)
            settle(feed)
            until = whole.started_unix_ns + int(share * whole.elapsed_ns) if share < 1 else whole.now_unix_ns
            expected = RunState()
            for event in told:
                if expected.instant_unix_ns(event) > until:
                    break
                expected.apply(event)
            assert feed.state == expected
        feed.close()


@settings(deadline=None, max_examples=80)
@given(
    recordings(),
    st.lists(st.integers(0, 60), max_size=6),
    st.integers(40, 900),
    st.sampled_from([0.25, 1.0, 3.0, 100.0, 0.0]),
    st.integers(1, 30),
)
def test_a_run_that_was_followed_and_its_replay_at_any_speed_end_in_the_same_state(
    told: list[Event], cuts: list[int], octets: int, speed: float, frames: int
) -> None:
    live = RunState()
    now_s = [0.0]
    clock = mock.patch.object(time, "monotonic", lambda: now_s[0])  # noqa: PT008  # mypy: it must read the list anew
    with tempfile.TemporaryDirectory() as folder, small_slices(octets):
        path = Path(folder) / "r.msgpack"
        with Recorder(path) as recorder, Follower(path) as follower:
            for number, event in enumerate(told):
                recorder.add(event)
                if number in cuts:
                    recorder.flush()
                    for seen in follower.poll():
                        live.apply(seen)
            recorder.flush()
            for seen in follower.poll():
                live.apply(seen)
        with clock:
            feed = ReplayFeed(path, speed)
            for _ in range(frames + 1):
                feed.advance()
                now_s[0] += live.elapsed_ns / 1e9 / frames / (speed or 1.0) + 1e-6
            feed.advance()
            assert feed.over
            assert feed.state == live == fold(told)
            feed.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "story.msgpack", story.run(60))


def test_the_end_is_estimated_until_it_is_known(path: Path) -> None:
    whole = fold(story.run(60))
    with small_slices(600), closing(Timeline(path)) as timeline:
        assert not timeline.complete
        assert timeline.end_unix_ns > timeline.now_unix_ns
        while timeline.advance(0):
            pass
        assert timeline.end_unix_ns == whole.now_unix_ns


def test_the_number_of_keyframes_is_bounded(path: Path) -> None:
    with small_slices(60), closing(Timeline(path)) as timeline:
        while timeline.advance(0):
            pass
        places = [timeline.before(After(number)).events for number in range(timeline.events + 1)]
        assert KEYFRAMES / 2 < len(set(places)) <= KEYFRAMES + 2
        assert timeline.before(Upto(0)).events == 0


def test_it_stays_at_the_end_and_goes_back_from_there(path: Path) -> None:
    feed = ReplayFeed(path, 0)
    assert to_the_end(feed) == fold(story.run(60))
    assert not feed.advance()
    assert feed.over
    assert feed.standing.share == 1
    feed.seek_by(-0.05)
    assert feed.speed == 1.0  # or it would be at the end again at once
    assert not feed.over
    settle(feed)
    assert 0.94 < feed.standing.share < 0.97
    assert to_the_end(feed) == fold(story.run(60))
    feed.close()


def test_a_seek_beyond_what_has_been_read_says_how_far_it_is_and_gets_there(path: Path) -> None:
    with small_slices(100):
        feed = ReplayFeed(path)
        shown = feed.state.now_unix_ns
        assert feed.ending is None  # which nobody can know yet
        feed.seek(0.9)
        told = []
        while (seeking := feed.standing.seeking) is not None:
            assert feed.state.now_unix_ns == shown  # until it is there
            told.append(seeking)
            feed.advance()
        assert len(told) > 5
        assert told == sorted(told)
        assert told[-1] < 1
        settle(feed)
        assert 0.8 < feed.state.elapsed_ns / fold(story.run(60)).elapsed_ns <= 1
        feed.close()


def test_a_speed_beyond_what_can_be_read_shows_as_much_as_has_been(path: Path) -> None:
    with small_slices(100):
        feed = ReplayFeed(path, 0)
        seen = []
        while not feed.over:
            feed.advance()
            seen.append(feed.standing.events)
            assert feed.state == fold(story.run(60)[: seen[-1]])
        assert seen == sorted(seen)
        assert len(set(seen)) > 5
        feed.close()


@pytest.mark.parametrize(
    ("text", "share"),
    [("0:01", 1e9), ("0:00:02.5", 2.5e9), ("0:01.5", 1.5e9), ("25%", 0.25), ("12.5 %", 0.125), ("999:59:59", 1.0)],
)
def test_places_can_be_written(path: Path, text: str, share: float) -> None:
    feed = ReplayFeed(path)
    feed.pause()
    feed.go_to(text)
    settle(feed)
    whole = fold(story.run(60))
    wanted_ns = share * whole.elapsed_ns if share <= 1 else share
    assert abs(feed.standing.at_ns - wanted_ns) <= 2
    assert feed.state.elapsed_ns <= wanted_ns
    feed.close()


def test_the_end_of_a_trial_can_be_gone_to(path: Path) -> None:
    feed = ReplayFeed(path)
    feed.pause()
    for trial in (31, 7, 119):
        feed.go_to(f"#{trial}")
        settle(feed)
        assert [line.trial for line in feed.state.log if line.trial is not None][-1] == trial
    stood = feed.standing.events
    feed.go_to("#4711")
    settle(feed)
    assert feed.refusal == "no such trial has ended in this recording"
    assert feed.standing.events == stood
    feed.close()


@pytest.mark.parametrize("text", ["", "soon", "50", "#", "#x", "1:2:3:4", "-1:00", "٣:٠٠", "\x1b[31m"])
def test_what_is_no_place_is_refused_in_one_clean_line(path: Path, text: str) -> None:
    feed = ReplayFeed(path)
    with pytest.raises(UsageError, match="write 2:10, 1:02:10, 50% or #158") as refused:
        feed.go_to(text)
    assert str(refused.value).isprintable()
    feed.close()


def boundaries(path: Path) -> list[int]:
    return [offset for offset, _ in FrameParser().feed(path.read_bytes())]


@pytest.mark.parametrize("octets", [300, 128 << 10])
def test_a_damaged_file_is_shown_up_to_the_damage_which_is_named(path: Path, octets: int) -> None:
    offset = boundaries(path)[len(boundaries(path)) // 2]
    data = bytearray(path.read_bytes())
    data[offset + PREFIX.size + 2] ^= 1
    path.write_bytes(data)
    intact = RunState()
    with pytest.raises(SourceError):
        read_events(path, intact.apply)
    with small_slices(octets):
        feed = ReplayFeed(path)
        assert feed.damage == ""
        assert to_the_end(feed) == intact
        assert intact.actions > 0
        assert feed.damage == f"damaged at byte {offset}: checksum mismatch"
        feed.seek(0)
        settle(feed)
        assert feed.damage == ""
        feed.close()


def test_a_torn_file_is_shown_as_far_as_it_goes(path: Path) -> None:
    cut = boundaries(path)[-3] + 9
    path.write_bytes(path.read_bytes()[:cut])
    feed = ReplayFeed(path)
    state = to_the_end(feed)
    assert (state.outcome, feed.damage) == (None, "")
    feed.close()


@pytest.mark.parametrize(
    ("data", "words"), [(b"no", "not a taxtui recording"), (b"", "the file is empty"), (None, "cannot read")]
)
def test_what_is_no_recording_is_refused(tmp_path: Path, data: bytes | None, words: str) -> None:
    path = tmp_path / "x"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(SourceError, match=words):
        ReplayFeed(path)


def test_what_a_file_grows_by_after_it_was_read_is_not_shown(path: Path) -> None:
    feed = ReplayFeed(path)
    whole = copy.deepcopy(to_the_end(feed))
    with path.open("ab") as file:
        file.writelines(Sealer().seal([events.Notice(10**15, "error", "later")]))
    feed.seek(0.5)
    settle(feed)
    assert to_the_end(feed) == whole
    feed.close()
    assert not feed.advance()
