"""What each screen looks like. ``make snapshots`` draws the pictures again; look at them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from costmodel.recording import events
from taxtui.live import catalogue
from taxtui.recording.writer import Sealer
from taxtui.tui.app import TaxtuiApp
from taxtui.tui.live.replay import Feed
from taxtui.tui.projection.form_panel import FormPanel
from taxtui.tui.setup.panels import PickList
from taxtui.tui.setup.screen import SetupScreen
from tests.support.cost_model.costmodel_files import trial, write
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import StoryRun, app, looking_at, priced, shown, text, until
from tests.taxtui.tui.story import record

SMALL, LARGE = (80, 24), (160, 50)
Compare = Callable[..., bool]
Look = Callable[[Pilot[None]], Awaitable[None]]


def press(*keys: str) -> Look:
    async def look(pilot: Pilot[None]) -> None:
        for key in keys:
            await pilot.press(key)
            await shown(pilot)
        await pilot.pause(0.1)  # what the answer set in motion: a scrollbar, the head of the table
        await pilot.pause()

    return look


def running() -> Feed:
    return StoryRun(story.run(400, until=150, finish=False))


def failing() -> Feed:
    told = story.run(20, until=4, finish=False)
    told.append(story.health(10**9, lag_p99_ns=9_000_000))
    for key in range(100, 112):
        told += story.trial(
            key, 1, key * 10**8, durations_ns=[], outcome=events.TIMEOUT, phase="ready", error="ReadyTimeout",
            message="no command was answered within 300 s",
        )  # fmt: skip
    told.append(events.Notice(12 * 10**9, "warning", "docker: 429 Too Many Requests, waiting 4 s"))
    return StoryRun(told)


def finished() -> Feed:
    return StoryRun(story.run(400), exit_code=0)


LIVE = {
    "nothing": (lambda: None, SMALL),
    "failing": (failing, SMALL),
    "finished": (finished, SMALL),
    "running": (running, LARGE),
}


@pytest.mark.parametrize("state", LIVE)
def test_live(snap_compare: Compare, state: str) -> None:
    feed, size = LIVE[state]
    assert snap_compare(app(feed()), terminal_size=size, run_before=press("2"))


def test_no_color(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(app(running()), terminal_size=SMALL)


@pytest.mark.parametrize(("state", "size"), [("free", LARGE), ("paid", SMALL)], ids=["free", "paid"])
def test_setup(snap_compare: Compare, state: str, size: tuple[int, int], only_recordings: Path) -> None:
    record(only_recordings / "earlier.msgpack")

    async def look(pilot: Pilot[None]) -> None:
        screen = pilot.app.screen
        assert isinstance(screen, SetupScreen)
        await until(pilot, lambda: screen.history is not None and not screen.substrates.awaited)
        screen.query_one("#tiers", PickList).pick(["T0", "T1"])
        screen.substrates.pick(["docker", "ecs" if state == "paid" else "local"])
        screen.substrates.highlighted = 2
        screen.refresh_plan()
        await pilot.pause()

    assert snap_compare(TaxtuiApp(None, priced), terminal_size=size, run_before=look)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return record(tmp_path / "story.msgpack", story.run(120))


@pytest.mark.parametrize(("table", "size"), [(0, SMALL), (3, LARGE)], ids=["0-80x24", "3-160x50"])
def test_results(snap_compare: Compare, path: Path, table: int, size: tuple[int, int]) -> None:
    look = press("3", *["right_square_bracket"] * table, "down")
    assert snap_compare(looking_at(path), terminal_size=size, run_before=look)


async def test_results_of_failures_alone_say_so(tmp_path: Path) -> None:
    failing = write(tmp_path / "failing.msgpack", [trial(number, outcome="failed") for number in range(12)])
    async with looking_at(failing).run_test(size=SMALL) as pilot:
        await press("3")(pilot)
        assert "No trajectory succeeded, so there is nothing to compare." in text(pilot)


def test_projection(snap_compare: Compare, path: Path) -> None:
    async def look(pilot: Pilot[None]) -> None:
        await press("4")(pilot)
        pilot.app.screen.query_one(FormPanel).values |= {
            **{"baseline": "local:bwrap", "full_speed": "local:bwrap", "include_cleanup": "yes"},
            **{"quota": "100", "batch": "512", "max_attempts": "3", "think": "8s"},
        }
        pilot.app.screen.ask()  # type: ignore[attr-defined]  # ProjectionScreen
        await press("down")(pilot)

    assert snap_compare(looking_at(path), terminal_size=SMALL, run_before=look)


@pytest.fixture
def every_state(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording in every state, the newest first, and one that is shipped."""

    def put(path: Path, told: list[events.Event] | bytes, age_h: int) -> Path:
        unix_s = story.UNIX_NS // 10**9 - age_h * 3600
        if isinstance(told, bytes):
            path.write_bytes(told)
        else:
            told[1] = story.clock(unix_ns=unix_s * 10**9)
            record(path, told, path.stem)
        os.utime(path, (unix_s, unix_s))
        return path

    data = bytearray(put(folder / "damaged.msgpack", story.run(40), 4).read_bytes())
    data[-3000] ^= 4
    newer = events.Header(events.MAGIC, 9, "later", {}, {})
    cancelled = [*story.run(20, finish=False), events.RunFinished("cancelled", {"ok": 31, "cancelled": 3})]
    states: dict[str, list[events.Event] | bytes] = {
        "20231115t081320z-0c11a7f3": story.run(30),
        "20231115t061320z-1b22c3d4": story.run(400, until=120, finish=False),
        "20231115t051320z-2c33d4e5": story.run(40, until=20, finish=False),
        "20231114t221320z-3d44e5f6": cancelled,
        "damaged": bytes(data),
        "empty": b"",
        "notes": b"not what it seems",
        "tomorrow": Sealer().seal([newer])[0],
    }
    for age_h, (name, told) in enumerate(states.items()):
        put(folder / f"{name}.msgpack", told, age_h)
    (tmp_path / "bundle").mkdir()
    shipped = put(tmp_path / "bundle" / "small.msgpack", story.run(20), 20)
    monkeypatch.setattr(catalogue, "bundled", lambda name: shipped if "small" in name else None)
    return folder


def test_recordings(snap_compare: Compare, every_state: Path) -> None:
    feed = StoryRun(story.run(400, until=120, finish=False))
    feed.path = every_state / "20231115t061320z-1b22c3d4.msgpack"
    assert snap_compare(app(feed), terminal_size=SMALL, run_before=press("5", "down", "down"))


async def test_a_terminal_that_is_too_small_shows_the_size_that_is_needed_and_nothing_else() -> None:
    async with app(running()).run_test(size=SMALL) as pilot:
        for key, width, height in (("1", 60, 18), ("2", 79, 24), ("3", 80, 23), ("4", 60, 18), ("5", 79, 24)):
            await pilot.press(key)
            await pilot.resize_terminal(width, height)
            needed = f"taxtui needs 80x24; this terminal is {width}x{height}"
            await until(pilot, lambda: " ".join(text(pilot).split()) == needed)  # noqa: B023  # awaited at once
            await pilot.resize_terminal(*SMALL)
            await until(pilot, lambda: "taxtui needs" not in text(pilot))
