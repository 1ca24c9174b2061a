"""What the Setup screen looks like. Regenerate with ``--snapshot-update``, and look."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from taxtui.report.plan_cost import CheckedSubstrate
from taxtui.tui.app import TaxtuiApp
from taxtui.tui.fields import PickList
from taxtui.tui.setup.screen import SetupScreen
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import focus, until
from tests.taxtui.tui.earlier import only_here
from tests.taxtui.tui.feeds import ANSWERS
from tests.taxtui.tui.story import record

SIZES = [(80, 24), (160, 50)]
Compare = Callable[..., bool]
Look = Callable[[Pilot[None]], Awaitable[None]]

PRICED = {
    **ANSWERS,
    "ecs": CheckedSubstrate(
        name="ecs", ok=True, variant="fargate", capabilities={"paid": True},
        latency_ns=31_000_000, prices="aws-fargate",
        detail="ready as ci in us-east-1, cluster default on Fargate; 0.049 USD per sandbox-hour, 60 s at least: "
        "--prices aws-fargate",
    ),
}  # fmt: skip


async def priced(refs: Sequence[str]) -> Mapping[str, CheckedSubstrate]:
    return PRICED


@pytest.fixture(autouse=True)
def earlier(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two recordings: of local and docker, and of ecs."""
    record(tmp_path / "earlier.msgpack")
    told = [story.header([story.planned("ecs", trials=3)]), story.clock(), story.cell(0, "ecs", "fargate")]
    trials = [event for key in range(3) for event in story.trial(key, 0, key * 10**12, create_ns=80 * 10**9)]
    record(tmp_path / "fargate.msgpack", [*told, *trials])
    only_here(tmp_path, monkeypatch)


def pick(pilot: Pilot[None], **picked: Sequence[str]) -> None:
    for key, values in picked.items():
        pilot.app.screen.query_one(f"#{key}", PickList).pick(values)
    screen = pilot.app.screen
    assert isinstance(screen, SetupScreen)
    screen.edited()


async def ready(pilot: Pilot[None]) -> None:
    screen = pilot.app.screen
    assert isinstance(screen, SetupScreen)
    await until(pilot, lambda: screen.history is not None)


async def both(pilot: Pilot[None]) -> None:
    await ready(pilot)
    pick(pilot, substrates=["docker", "local"], tiers=["T0", "T1"])
    await pilot.pause()


async def nothing(pilot: Pilot[None]) -> None:
    await ready(pilot)
    pick(pilot, substrates=[])
    await pilot.pause()


async def failed(pilot: Pilot[None]) -> None:
    await ready(pilot)
    pilot.app.screen.query_one("#substrates", PickList).highlighted = 2
    await pilot.pause()


async def paid(pilot: Pilot[None]) -> None:
    await ready(pilot)
    pick(pilot, substrates=["docker", "ecs"])
    await pilot.press("end")
    await pilot.pause()


async def confirmed(pilot: Pilot[None]) -> None:
    await paid(pilot)
    await pilot.press("ctrl+r")
    pilot.app.screen.query_one("Input").can_focus = False  # its cursor blinks
    pilot.app.screen.set_focus(None)
    await pilot.pause()


async def crowded(pilot: Pilot[None]) -> None:
    await ready(pilot)
    everything = ["daytona", "docker", "ec2", "ecs", "local"]
    pick(pilot, substrates=everything, tiers=["T0", "T1", "T2"])
    pilot.app.screen.query_one("#actions", Input).value = "10, 50, 150"
    pilot.app.screen.query_one("#arrival", Input).value = "open:20/s"
    pilot.app.screen.query_one("#substrates", PickList).highlighted = 2
    await pilot.pause()


async def refused(pilot: Pilot[None]) -> None:
    await ready(pilot)
    pilot.app.screen.query_one("#concurrency", Input).value = "14"
    pilot.app.screen.query_one("#arrival", Input).value = "sequential"
    await pilot.pause()


STATES: Mapping[str, Look] = {
    "nothing": nothing,
    "ready": both,
    "failed": failed,
    "paid": paid,
    "confirmed": confirmed,
    "crowded": crowded,
    "refused": refused,
}


@pytest.mark.parametrize(
    ("state", "size"), [*((state, SIZES[0]) for state in STATES), ("ready", SIZES[1]), ("crowded", SIZES[1])]
)
def test_setup(snap_compare: Compare, state: str, size: tuple[int, int]) -> None:
    assert snap_compare(TaxtuiApp(None, priced), terminal_size=size, run_before=STATES[state])


def test_setup_without_colours(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def look(pilot: Pilot[None]) -> None:
        await failed(pilot)
        await focus(pilot, pilot.app.screen.query_one("#arrival"))
        await pilot.pause()

    assert snap_compare(TaxtuiApp(None, priced), terminal_size=(80, 24), run_before=look)
