"""Many trials at once through the real runner, and how well its event loop kept up."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from costmodel.recording.events import Event, Health, TrialEnded
from costmodel.recording.follower import read_events
from taxtui.plan.arrivals import Arrival
from taxtui.plan.spec import CellPlan, Plan, Step, SubstrateRef, Tier
from taxtui.runner import preflight
from taxtui.runner import run as run_module
from tests.support.recorded import NoWatchdog


class Crowd(NamedTuple):
    """What came of a run."""

    trials: int
    failures: list[tuple[str, str, str, str]]
    worst_lag_p99_ms: float
    worst_cpu_permille: int
    took_s: float


async def crowd(build: Any, folder: Path, concurrency: int, *, actions: int = 10) -> Crowd:
    """``concurrency`` trials, all started at once, each ``actions`` times ``true``; ``build`` makes the substrate."""
    tier = Tier(name="T", title="", requires=(), cycle=(Step(name="true", run="true"),))
    cell = CellPlan(
        substrate=SubstrateRef(name="stand-in"),
        tier=tier,
        actions=actions,
        trials=concurrency,
        concurrency=concurrency,
        arrival=Arrival(kind="burst"),
        warmup=1,
    )
    run = run_module.Run(Plan(cells=(cell,)), folder / f"crowd{concurrency}.msgpack", "20260101t000000z-00000000")
    began = time.monotonic()
    with patch.object(preflight, "build", build), patch.object(run_module, "Watchdog", NoWatchdog):
        await run.execute()
    took_s = time.monotonic() - began
    events: list[Event] = []
    read_events(run.path, events.append)
    ends = [event for event in events if isinstance(event, TrialEnded)]
    health = [event for event in events if isinstance(event, Health) and event.in_flight > 1]
    return Crowd(
        len(ends),
        [(end.outcome, end.phase, end.error, end.message) for end in ends if end.outcome != "ok"],
        max((event.lag_p99_ns for event in health), default=0) / 1e6,
        max((event.cpu_permille for event in health), default=0),
        took_s,
    )
