"""What each screen looks like. ``make snapshots`` draws the pictures again; look at them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from costmodel.recording import events
from taxtui.tui.live.replay import Feed
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import until
from tests.taxtui.tui.feeds import StoryRun, app
from tests.taxtui.tui.shelf import text

SIZES = [(80, 24), (160, 50)]
Compare = Callable[..., bool]


def waiting() -> Feed:
    return StoryRun([*story.run(20)[:5], events.TrialStarted(0, 1, "taxtui-7f3a-0", 0, 0, 0, True)])


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


def many_cells() -> Feed:
    told: list[events.Event] = [
        story.header(
            [
                story.planned(name, tier, actions, 40)
                for name in ("local", "docker")
                for tier in ("T0", "T1", "T2")
                for actions in (10, 50, 150)
            ]
        ),
        story.clock(),
    ]
    for key in range(18):
        told += story.trial(key, key, key * 10**9, create_ns=(key + 1) * 30_000_000)
    return StoryRun(told)


def refused() -> Feed:
    return StoryRun(
        [], exit_code=3, complaint=("taxtui: docker: cannot connect to /var/run/docker.sock; start dockerd",)
    )


STATES = {
    "nothing": lambda: None,
    "waiting": waiting,
    "running": running,
    "failing": failing,
    "finished": finished,
    "many_cells": many_cells,
    "refused": refused,
}


@pytest.mark.parametrize(
    ("state", "size"), [*((state, SIZES[0]) for state in STATES), ("running", SIZES[1]), ("finished", SIZES[1])]
)
def test_live(snap_compare: Compare, state: str, size: tuple[int, int]) -> None:
    async def look(pilot: Pilot[None]) -> None:
        await pilot.press("2")
        await pilot.pause()

    assert snap_compare(app(STATES[state]()), terminal_size=size, run_before=look)


@pytest.mark.parametrize("keys", [("question_mark",)], ids=["help"])
def test_dialogs(snap_compare: Compare, keys: tuple[str, ...]) -> None:
    assert snap_compare(app(running()), terminal_size=(80, 24), press=keys)


@pytest.mark.parametrize("theme", ["textual-light"])
def test_themes(snap_compare: Compare, theme: str) -> None:
    async def look(pilot: Pilot[None]) -> None:
        pilot.app.theme = theme
        await pilot.pause(0.3)

    assert snap_compare(app(running()), terminal_size=(120, 40), run_before=look)


def test_no_color(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(app(running()), terminal_size=(80, 24))


@pytest.mark.parametrize("key", ["1", "2", "3", "4", "5"])
async def test_a_terminal_that_is_too_small_shows_the_size_that_is_needed_and_nothing_else(key: str) -> None:
    async with app(running()).run_test(size=(80, 24)) as pilot:
        await pilot.press(key)
        await pilot.pause()
        for width, height in ((60, 18), (79, 24), (80, 23)):
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            await until(pilot, lambda: text(pilot).split() == words(width, height))  # noqa: B023  # awaited at once
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "Setup" in text(pilot) or "1" in text(pilot))


def words(width: int, height: int) -> list[str]:
    return f"taxtui needs 80x24; this terminal is {width}x{height}".split()
