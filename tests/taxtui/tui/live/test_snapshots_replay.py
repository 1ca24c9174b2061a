"""What a replay looks like, and that its last frame is the run's. As in test_snapshots.py: regenerate, and look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widget import Widget

from costmodel.recording.framing import FrameParser
from taxtui.recording.writer import Recorder
from taxtui.tui.live import replay as replay_module
from taxtui.tui.live.replay import ReplayFeed
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import finished, live, until
from tests.taxtui.tui.feeds import app
from tests.taxtui.tui.story import record

SIZES = [(80, 24), (160, 50)]
Compare = Callable[..., bool]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the current folder: it is shown, and a snapshot must not tell where the test was run."""
    monkeypatch.chdir(tmp_path)
    path = Path("story.msgpack")
    with Recorder(path) as recorder:
        for event in story.run(400):
            recorder.add(event)
    return path


@pytest.fixture
def opened() -> Iterator[list[ReplayFeed]]:
    feeds: list[ReplayFeed] = []
    yield feeds
    for feed in feeds:
        feed.close()


def cut(path: Path, *, torn: bool) -> None:
    """Leave half of the file, or damage one byte in its middle."""
    data = path.read_bytes()
    offsets = [offset for offset, _ in FrameParser().feed(data)]
    middle = offsets[len(offsets) // 2]
    path.write_bytes(data[: middle + 9] if torn else data[: middle + 20] + b"!" + data[middle + 21 :])


@pytest.mark.parametrize("state", ["paused", "end", "incomplete", "damaged"])
def test_replay(
    snap_compare: Compare, path: Path, opened: list[ReplayFeed], state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if state in ("incomplete", "damaged"):
        cut(path, torn=state == "incomplete")
    now_s = [0.0]
    monkeypatch.setattr(replay_module, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    feed = ReplayFeed(path, 10.0 if state == "paused" else 0.0)
    opened.append(feed)
    if state == "paused":
        feed.advance()  # the clock starts
        now_s[0] = 15.0
        while feed.advance():
            pass
        feed.pause()

    async def look(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: feed.over or feed.paused)
        live(pilot).paint()
        await pilot.pause()

    assert snap_compare(app(feed), terminal_size=SIZES[0], run_before=look)


def text_of(tui: App[None], widget: Widget) -> list[str]:
    """What stands on the screen where this widget is."""
    lines = ["".join(segment.text for segment in strip) for strip in tui.screen._compositor.render_strips()]
    area = widget.region
    return [line[area.x : area.right].rstrip() for line in lines[area.y : area.bottom]]


PANELS = ("progress", "chart", "cells", "phases", "log", "next")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_last_frame_of_a_replay_equals_the_last_frame_of_the_measurement(
    tmp_path: Path, opened: list[ReplayFeed], size: tuple[int, int]
) -> None:
    run, feed = finished(), ReplayFeed(record(tmp_path / "story.msgpack", story.run(20)))
    run.path = feed.path
    opened.append(feed)
    frames = []
    for shown in (run, feed):
        async with app(shown).run_test(size=size) as pilot:
            await until(pilot, lambda: live(pilot).over)
            frames.append({name: text_of(pilot.app, pilot.app.screen.query_one(f"#{name}")) for name in PANELS})
    assert feed.state == run.state
    assert frames[1] == frames[0]
    assert any("ok after" in line for line in frames[0]["log"])
    assert any("20/20" in line for line in frames[0]["progress"])
