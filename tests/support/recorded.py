"""What the real runner records of a trial against a stand-in, with the watchdog's process left out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from costmodel.recording.events import Event, Mark, Notice, TrialEnded
from costmodel.recording.follower import read_events
from taxtui.plan.spec import CellPlan, Mode, Plan, Step, SubstrateRef, Tier
from taxtui.runner import preflight
from taxtui.runner import run as run_module
from taxtui.runner.cleanup import ledger
from taxtui.runner.journal import Journal
from taxtui.sandboxes.protocol import Substrate


class NoWatchdog:
    """Notes how it was released; the real one guards against the death of the process that runs these tests."""

    released: list[bool] = []

    def __init__(self, entry: ledger.LedgerEntry) -> None:
        self.entry = entry

    async def wait_ready(self) -> None:
        await asyncio.sleep(0)

    async def keep(self, journal: Journal) -> None:
        """It never dies."""
        await asyncio.Event().wait()

    def release(self, *, clean: bool) -> None:
        self.released.append(clean)


class Recorded(NamedTuple):
    """The end of a run's only or last trial, what was said on the way, and the end of each trial."""

    end: TrialEnded
    marks: list[Mark]
    notices: list[str]
    cleanup_failed: bool
    ends: list[TrialEnded]


async def record(
    make: Callable[[], object],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *commands: str,
    mode: Mode = "exec",
    create_timeout_s: float = 20.0,
    timeout_s: float = 20.0,
    trials: int = 1,
    **cell: Any,
) -> Recorded:
    """Measure ``trials`` trials of a tier with these commands; the last one's end."""
    monkeypatch.setattr(preflight, "build", lambda ref: cast(Substrate, make()))
    monkeypatch.setattr(run_module, "Watchdog", NoWatchdog)
    steps = tuple(Step(name=f"step {number}", run=command) for number, command in enumerate(commands or ("true",)))
    tier = Tier(name="T", title="", requires=(), cycle=steps)
    plan = CellPlan(
        substrate=SubstrateRef(name="stand-in"),
        tier=tier,
        actions=len(steps),
        trials=trials,
        mode=mode,
        **{"warmup": 0, **cell},
    )
    whole = Plan(cells=(plan,), create_timeout_s=create_timeout_s, timeout_s=timeout_s)
    run = run_module.Run(whole, folder / "run.msgpack", "20260101t000000z-00000000")
    await run.execute()
    events: list[Event] = []
    read_events(run.path, events.append)
    ends = [event for event in events if isinstance(event, TrialEnded)]
    return Recorded(
        ends[-1],
        [event for event in events if isinstance(event, Mark)],
        [event.text for event in events if isinstance(event, Notice)],
        run.cleanup_failed,
        ends,
    )
