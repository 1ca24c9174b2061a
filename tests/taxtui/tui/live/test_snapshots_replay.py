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
from taxtui.tui.live import timeline as timeline_module
from taxtui.tui.live.replay import ReplayFeed
from taxtui.tui.live.timeline import ReplayTimeline
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import finished, live
from tests.taxtui.tui.feeds import app

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


STATES = {
    "middle": ["g", *"50%", "enter"],
    "seeking": ["full_stop", "full_stop", "full_stop", "g", *"90%", "enter"],
    "incomplete": ["g", *"100%", "enter"],
    "damaged": ["g", *"100%", "enter"],
}


@pytest.mark.parametrize(("state", "size"), [*((state, SIZES[0]) for state in STATES), ("middle", SIZES[1])])
def test_replay(
    snap_compare: Compare,
    path: Path,
    opened: list[ReplayFeed],
    state: str,
    size: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if state in ("incomplete", "damaged"):
        cut(path, torn=state == "incomplete")
    if state == "seeking":  # the timeline has read some of it and comes no further
        monkeypatch.setattr(timeline_module, "SLICE_BYTES", 8_000)
        monkeypatch.setattr(ReplayTimeline, "advance", lambda timeline, deadline_s: True)
    feed = ReplayFeed(path)
    opened.append(feed)
    if state in ("middle", "seeking"):
        feed.pause()

    async def look(pilot: Pilot[None]) -> None:
        await pilot.press(*STATES[state])
        for _ in range(3):
            live(pilot).tick()
            await pilot.pause()

    assert snap_compare(app(feed), terminal_size=size, run_before=look)


def text_of(tui: App[None], widget: Widget) -> list[str]:
    """What stands on the screen where this widget is."""
    lines = ["".join(segment.text for segment in strip) for strip in tui.screen._compositor.render_strips()]
    area = widget.region
    return [line[area.x : area.right].rstrip() for line in lines[area.y : area.bottom]]


PANELS = ("progress", "chart", "other", "cells", "phases", "log", "next")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("speed", [0.5, 1.0, 100.0, 0.0])
async def test_the_last_frame_of_a_replay_shows_what_that_of_the_run_did(
    tmp_path: Path, opened: list[ReplayFeed], size: tuple[int, int], speed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "story.msgpack"
    with Recorder(path) as recorder:
        for event in story.run(20):
            recorder.add(event)
    now_s = [0.0]
    monkeypatch.setattr(replay_module, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    run = finished()
    run.path = path
    frames = []
    feed = ReplayFeed(path, speed)
    opened.append(feed)
    for shown, taller in ((run, 0), (feed, 1)):  # by the bar
        async with app(shown).run_test(size=(size[0], size[1] + taller)) as pilot:
            for _ in range(100):
                now_s[0] += 2.0
                live(pilot).tick()
                await pilot.pause()
                if live(pilot).over:
                    break
            live(pilot).tick()
            await pilot.pause()
            frames.append({name: text_of(pilot.app, pilot.app.screen.query_one(f"#{name}")) for name in PANELS})
    assert feed.state == run.state
    assert frames[1] == frames[0]
    assert any("ok after" in line for line in frames[0]["log"])
    assert any("20/20" in line for line in frames[0]["progress"])
    assert any("▸" in line for line in frames[0]["cells"])
    assert any("█" in line for line in frames[0]["chart"])
