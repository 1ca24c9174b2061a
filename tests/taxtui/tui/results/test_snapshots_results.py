"""What Results and Projection look like: with nothing, at work, refusing, with results, compared; in two sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from taxtui.tui.projection.form_panel import FormPanel
from taxtui.tui.projection.screen import ProjectionScreen
from taxtui.tui.results.screen import ResultsScreen
from tests.support.cost_model.climbing import climbed, law
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import looking_at, until
from tests.taxtui.tui.story import record

SIZES = [(80, 24), (160, 50)]
Compare = Callable[..., bool]
Look = Callable[[Pilot[None]], object]
in_both_sizes = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return record(tmp_path / "story.msgpack", story.run(120))


def failing(tmp_path: Path) -> Path:
    told = [story.header([story.planned("docker", trials=12)]), story.clock(), story.cell(0, "docker", "runc")]
    for key in range(12):
        told += story.trial(
            key, 0, key * 10**9, durations_ns=[], outcome="failed", phase="create", error="Throttled", message="429"
        )
    return record(tmp_path / "failing.msgpack", told)


async def settled(pilot: Pilot[None]) -> None:
    screen = pilot.app.screen
    assert isinstance(screen, ResultsScreen | ProjectionScreen)
    await until(pilot, lambda: screen.settled)
    await pilot.pause(0.1)  # what the answer set in motion: a scrollbar, the head of the table
    await pilot.pause()


def press(*keys: str) -> Look:
    async def look(pilot: Pilot[None]) -> None:
        for key in keys:
            await pilot.press(key)
            await settled(pilot)

    return look


@pytest.mark.parametrize(("table", "size"), [(0, SIZES[0]), (0, SIZES[1]), (3, SIZES[0]), (3, SIZES[1]), (6, SIZES[0])])
def test_results(snap_compare: Compare, path: Path, table: int, size: tuple[int, int]) -> None:
    look = press("3", *["right_square_bracket"] * table, "down")
    assert snap_compare(looking_at(path), terminal_size=size, run_before=look)


def test_results_of_a_ladder(snap_compare: Compare, tmp_path: Path) -> None:
    path = climbed(tmp_path, law(0.5, 0.05, 0.002))
    assert snap_compare(looking_at(path), terminal_size=SIZES[0], run_before=press("3", "left_square_bracket"))


@pytest.mark.parametrize("key", ["3", "4"], ids=["results", "projection"])
def test_of_failures_only(snap_compare: Compare, tmp_path: Path, key: str) -> None:
    assert snap_compare(looking_at(failing(tmp_path)), terminal_size=SIZES[0], run_before=press(key))


@in_both_sizes
def test_projection(snap_compare: Compare, path: Path, size: tuple[int, int]) -> None:
    assert snap_compare(looking_at(path), terminal_size=size, run_before=press("4", "right", "tab", "down"))


@in_both_sizes
def test_projection_with_everything_asked(snap_compare: Compare, path: Path, size: tuple[int, int]) -> None:
    async def look(pilot: Pilot[None]) -> None:
        await pilot.press("4")
        await settled(pilot)
        panel = pilot.app.screen.query_one(FormPanel)
        panel.values |= {"baseline": "local:bwrap", "quota": "100", "batch": "512"}
        panel.values |= {"full_speed": "local:bwrap", "max_attempts": "3", "think": "8s", "include_cleanup": "yes"}
        pilot.app.screen.ask()  # type: ignore[attr-defined]  # ProjectionScreen
        await settled(pilot)
        await press("down")(pilot)

    assert snap_compare(looking_at(path), terminal_size=size, run_before=look)


def test_projection_refused(snap_compare: Compare, path: Path) -> None:
    async def look(pilot: Pilot[None]) -> None:
        await press("4")(pilot)
        pilot.app.screen.query_one(FormPanel).values["train_seconds"] = "60"
        pilot.app.screen.ask()  # type: ignore[attr-defined]  # ProjectionScreen
        await settled(pilot)

    assert snap_compare(looking_at(path), terminal_size=SIZES[0], run_before=look)


@pytest.mark.parametrize("key", ["3", "4"], ids=["results", "projection"])
def test_without_colours(snap_compare: Compare, path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(looking_at(path), terminal_size=(120, 40), run_before=press(key))
