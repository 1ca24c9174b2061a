"""What Recordings looks like. Regenerate with ``pytest … --snapshot-update``, and look."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot

from costmodel.recording import events
from taxtui.live import catalogue
from taxtui.recording.writer import Sealer
from taxtui.tui.app import TaxtuiApp
from taxtui.tui.recordings.screen import RecordingsScreen
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import until
from tests.taxtui.tui.feeds import StoryRun, app
from tests.taxtui.tui.story import record

SIZES = [(80, 24), (160, 50)]
LONG_AGO_S = story.UNIX_NS // 10**9
Compare = Callable[..., bool]
Look = Callable[[Pilot[None]], Awaitable[None]]
sizes = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


def put(path: Path, told: list[events.Event], hours: int, **software: str) -> Path:
    """A recording that was begun so many hours after the others."""
    told[1] = story.clock(unix_ns=story.UNIX_NS + hours * 3600 * 10**9)
    if software:
        told[0] = msgspec.structs.replace(story.header(CELLS), software=software)
    return aged(record(path, told, path.stem), hours)


def aged(path: Path, hours: int = 0) -> Path:
    os.utime(path, (LONG_AGO_S + hours * 3600, LONG_AGO_S + hours * 3600))
    return path


CELLS = [story.planned("local", trials=30), story.planned("docker", trials=30, runtime="runc")]
MACHINE = {
    "taxtui": "0.1.0", "python": "3.11.7", "msgspec": "0.22.0", "kernel": "Linux 6.18.44", "cpu": "AMD EPYC",
    "cores": "2", "arch": "x86_64", "local:bwrap.kernel": "6.18.44", "docker:runc.server": "20.10.24",
    "docker:runc.api": "1.41", "docker:runc.sdk": "7.2.0", "docker:runc.storage": "overlay2",
}  # fmt: skip


@pytest.fixture
def shelf(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording in every state, and one that is shipped."""
    put(folder / "20231115t081320z-0c11a7f3.msgpack", story.run(30), 9, **MACHINE)
    put(folder / "20231115t061320z-1b22c3d4.msgpack", story.run(400, until=120, finish=False), 7)
    put(folder / "20231115t051320z-2c33d4e5.msgpack", story.run(40, until=20, finish=False), 6)
    damaged = put(folder / "before-the-upgrade.msgpack", story.run(40), 5)
    data = bytearray(damaged.read_bytes())
    data[-3000] ^= 4
    damaged.write_bytes(data)
    aged(damaged)
    cancelled = [*story.run(20, finish=False), events.RunFinished("cancelled", {"ok": 31, "cancelled": 3})]
    put(folder / "20231114t221320z-3d44e5f6.msgpack", cancelled, 0)
    newer = events.Header(events.MAGIC, 9, "later", {}, {})
    others = {"empty": b"", "notes": b"not what it seems", "tomorrow": Sealer().seal([newer])[0]}
    for hours, (name, content) in enumerate(others.items()):
        (folder / f"{name}.msgpack").write_bytes(content)
        aged(folder / f"{name}.msgpack", -1 - hours)
    (tmp_path / "bundle").mkdir()
    shipped = put(tmp_path / "bundle" / "small.msgpack", story.run(20), -9)
    monkeypatch.setattr(catalogue, "bundled", lambda name: shipped if "small" in name else None)
    return folder


def running(folder: Path) -> TaxtuiApp:
    """The app whose run writes the second recording."""
    feed = StoryRun(story.run(400, until=120, finish=False))
    feed.path = folder / "20231115t061320z-1b22c3d4.msgpack"
    return app(feed)


def look(name: str, *keys: str, then: Callable[[RecordingsScreen], object] | None = None) -> Look:
    """Open the screen, put the cursor on a recording, press keys, do something."""

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("5")
        screen = pilot.app.screen
        assert isinstance(screen, RecordingsScreen)
        await until(pilot, lambda: screen.listing is not None)
        for _ in screen.entries:
            if screen.chosen is not None and screen.chosen.name != name:
                await pilot.press("down")
        await pilot.press(*keys)
        if then:
            await until(pilot, lambda: then(screen))
        await pilot.pause()

    return steps


@pytest.mark.usefixtures("folder")
def test_empty(snap_compare: Compare) -> None:
    assert snap_compare(app(), terminal_size=(80, 24), run_before=look(""))


@sizes
def test_every_state(snap_compare: Compare, size: tuple[int, int], shelf: Path) -> None:
    steps = look("20231115t081320z-0c11a7f3")
    assert snap_compare(running(shelf), terminal_size=size, run_before=steps)


@pytest.mark.parametrize("name", ["20231115t061320z-1b22c3d4", "before-the-upgrade", "tomorrow"])
def test_what_is_not_complete(snap_compare: Compare, name: str, shelf: Path) -> None:
    assert snap_compare(running(shelf), terminal_size=(80, 24), run_before=look(name))


def test_no_color(snap_compare: Compare, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(running(shelf), terminal_size=(80, 24), run_before=look("before-the-upgrade"))
