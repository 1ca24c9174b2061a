"""The feeds: an emulated ``taxtui run`` in a child process, and a recording; every action of Live, by its key."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from costmodel.errors import SourceError
from costmodel.recording import events
from costmodel.recording.follower import read_events
from costmodel.recording.framing import PREFIX, FrameParser
from taxtui.errors import SubstrateUnavailable
from taxtui.live import catalogue
from taxtui.live.cell_state import FACETS
from taxtui.live.state import RunState
from taxtui.recording.writer import Sealer
from taxtui.tui.dialogs import Choose, Tell
from taxtui.tui.live.chart import Chart
from taxtui.tui.live.feed import RunFeed, RunStarter
from taxtui.tui.live.panels import LogView
from taxtui.tui.live.replay import ReplayFeed
from taxtui.tui.live.screen import LiveScreen
from taxtui.tui.live.summary import farewell
from taxtui.tui.setup import lookups
from tests.support.waiting import block_until
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import SIZE, app, focus, live, running, text, until
from tests.taxtui.tui.story import fold, record

STAND_IN = """
import sys
from pathlib import Path
from costmodel.recording import events
from taxtui.recording.writer import Recorder
from tests.taxtui.tui import story
from tests.taxtui.tui.story import fold
plan, path = sys.argv[sys.argv.index("run") + 1], Path(sys.argv[sys.argv.index("-o") + 1])
if "refuse" in plan:
    sys.exit("taxtui: no such scenario")
with Recorder(path) as recorder:
    for event in story.run(20, until=5, finish=False):
        recorder.add(event)
    recorder.flush()
    for line in sys.stdin:
        recorder.add(events.Notice(1, "info", line.strip()))
        recorder.flush()
        if "cancel" in line:
            break
    recorder.add(events.RunFinished("cancelled", {}))
sys.exit(130)
"""


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunStarter:
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    start = RunStarter.start
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[4]))

    def stand_in(self: RunStarter, command: list[str], stderr: object) -> object:
        assert command[:3] == [sys.executable, "-m", "taxtui"]
        assert command[command.index("--run-id") + 1] == Path(command[command.index("-o") + 1]).stem
        assert command[-4:] == ["--control", "stdin", "--progress", "none"]
        return start(self, [sys.executable, str(script), *command[3:]], stderr)

    monkeypatch.setattr(RunStarter, "start", stand_in)
    return RunStarter()


def follow_until(feed: RunFeed, what: str) -> None:
    def seen() -> bool:
        feed.advance()
        return what in repr(feed.state.log) or (what == "over" and feed.over)

    block_until(seen, what)


def test_a_run_is_followed_paused_resumed_and_cancelled(launcher: RunStarter, tmp_path: Path) -> None:
    feed = RunFeed({"cells": []}, tmp_path / "run.msgpack", launcher)
    follow_until(feed, "present")
    assert not feed.over
    feed.pause()
    assert feed.paused
    follow_until(feed, '"pause"')
    feed.pause()
    follow_until(feed, '"resume"')
    feed.cancel()
    follow_until(feed, "over")
    ending = (feed.state.outcome, feed.exit_code)
    assert ending == ("cancelled", 130)
    assert feed.size_bytes > 0
    feed.cancel()  # too late, and no error
    feed.close()
    feed.close()


def test_closing_is_an_end_of_file_for_the_child_and_waits_for_it(launcher: RunStarter, tmp_path: Path) -> None:
    feed = RunFeed("quick", tmp_path / "run.msgpack", launcher)
    follow_until(feed, "present")
    feed.close()
    assert feed.exit_code == 130


def test_a_child_that_refuses_is_over_and_its_words_are_kept(launcher: RunStarter, tmp_path: Path) -> None:
    feed = RunFeed("refuse", tmp_path / "run.msgpack", launcher)
    follow_until(feed, "over")
    assert feed.complaint == ["taxtui: no such scenario"]
    assert feed.size_bytes == 0
    feed.close()


EVENTS = story.run(20)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "story.msgpack"
    path.write_bytes(b"".join(b"".join(Sealer().seal([event])) for event in EVENTS))
    return path


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    at = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: at[0])
    return at


@pytest.mark.parametrize("speed", [0.5, 7.0, 100.0, 0.0])
def test_a_replay_at_any_speed_ends_in_the_state_of_the_measurement(path: Path, now: list[float], speed: float) -> None:
    feed = ReplayFeed(path, speed)
    for _ in range(2000):
        feed.advance()
        if feed.over:
            break
        now[0] += 0.1
    assert feed.state == fold(EVENTS)
    feed.close()
    assert not feed.advance()


def test_a_replay_shows_no_event_before_its_instant_and_none_while_paused(path: Path, now: list[float]) -> None:
    feed = ReplayFeed(path, 1.0)
    feed.advance()
    start = feed.state.started_unix_ns
    for _ in range(50):
        now[0] += 0.1
        feed.advance()
        assert feed.state.now_unix_ns <= start + (now[0] - 100.0) * 1e9 + 1
    feed.pause()
    stopped = feed.state.now_unix_ns
    now[0] += 60
    feed.advance()
    assert feed.state.now_unix_ns == stopped
    feed.pause()
    now[0] += 1
    feed.advance()
    assert stopped < feed.state.now_unix_ns <= stopped + 1.2e9
    feed.close()


def test_a_damaged_recording_is_shown_up_to_the_damage(path: Path) -> None:
    frames = [offset for offset, _ in FrameParser().feed(path.read_bytes())]
    offset = frames[len(frames) // 2]
    data = bytearray(path.read_bytes())
    data[offset + PREFIX.size + 2] ^= 1
    path.write_bytes(data)
    intact = RunState()
    with pytest.raises(SourceError):
        read_events(path, intact.apply)
    feed = ReplayFeed(path)
    while feed.advance():
        pass
    assert feed.over
    feed.close()
    assert feed.state == intact
    assert any(cell.ok for cell in intact.cells.values())
    assert feed.damage == f"damaged at byte {offset}: checksum mismatch"


async def test_the_rows_of_the_check_are_read_and_cleaned_and_a_failure_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "taxtui" / "__main__.py"  # runs in place of the real one
    program.parent.mkdir()
    (program.parent / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    rows = [
        {"name": "docker", "ok": True, "detail": "ready,\x1b[2J 27.1", "capabilities": {"paid": True}, "new": 1},
        {"name": "ecs", "ok": True, "prices": "aws-\x1b[2Jfargate"},
        {"name": "ec2", "ok": False, "detail": "no", "fix": "do"},
    ]
    program.write_text(f"print({json.dumps(rows)!r})")
    found = await lookups.check()
    assert list(found) == ["docker", "ecs", "ec2"]
    assert found["ecs"].prices == "aws-�[2Jfargate"
    assert (found["docker"].detail, found["docker"].paid) == ("ready,�[2J 27.1", True)
    assert (found["ec2"].ok, found["ec2"].fix, found["ec2"].paid) == (False, "do", False)
    program.write_text('raise SystemExit("Traceback\\nsomething\\nboom")')
    with pytest.raises(SubstrateUnavailable, match=r"taxtui doctor: boom$"):
        await lookups.check()


def test_the_farewell_has_the_answer_the_end_the_file_and_the_next_command(tmp_path: Path) -> None:
    *told, end = story.run(20)
    told += [*story.trial(900, 0, 10**9, outcome=events.CANCELLED), story.health(1, lag_p99_ns=6_000_000), end]
    path = story.record(tmp_path / "x.msgpack", told)
    words = farewell(fold(told), path)
    assert "docker:runc exec takes" in words
    assert "finished after 0:16: 38 ok, 2 failed, 1 cut off\nthe runner was disturbed (loop lag)" in words
    assert words.endswith(f"{path}\nnext: taxtui project {path}")
    assert farewell(fold([]), tmp_path / "missing.msgpack").startswith("incomplete after 0:00: 0 ok")


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[ReplayFeed]:
    feed = ReplayFeed(record(tmp_path / "story.msgpack", story.run()))
    yield feed
    feed.close()


async def test_a_measurement_is_shown_by_durations_paused_and_cancelled_and_its_report_copied() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        chart = pilot.app.screen.query_one(Chart)
        await until(pilot, lambda: chart.curves)
        assert [curve.name for curve in chart.curves] == ["○ local:bwrap", "● docker:runc"]
        for facet in (*FACETS[1:], FACETS[0]):
            await pilot.press("right_square_bracket")
            await pilot.pause()
            assert str(chart.border_title).startswith(facet.replace("_", " "))
        await pilot.press("left_square_bracket")
        assert live(pilot).facet == len(FACETS) - 1
        await pilot.press("y")
        assert pilot.app.clipboard == f"taxtui report {catalogue.path_text(feed.path)}"
        await pilot.press("p")
        await pilot.pause()
        assert "PAUSED" in text(pilot)
        await pilot.press("p", "c", "escape")
        assert feed.sent == ["pause", "resume"]
        await pilot.press("c", "y")
        await pilot.pause()
        assert feed.sent == ["pause", "resume", "cancel"]
        assert "CLEANING UP" in text(pilot)


async def test_enter_shows_the_slowest_trials_of_a_cell_and_the_timeline_of_a_log_line(replay: ReplayFeed) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        await until(pilot, lambda: replay.over)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        assert "Slowest trials · local:bwrap T0 x 10 exec" in text(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Tell))
        assert "local:bwrap T0 x 10 exec · ok" in text(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, LiveScreen))
        log = pilot.app.screen.query_one(LogView)
        await focus(pilot, log)
        assert log.chosen is log.items[-1]  # the newest
        failed = next(n for n, line in enumerate(log.items) if line.level == "error")
        log.put(failed)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Tell))
        assert f"Trial #{log.items[failed].trial}" in text(pilot)
        assert "Throttled: 429, waited 4 s" in text(pilot)
        await pilot.press("escape", "h")
        await until(pilot, lambda: any(note.title == "Page written" for note in pilot.app._notifications))
    assert replay.path.with_suffix(".html").read_text().startswith("<!doctype html>")
