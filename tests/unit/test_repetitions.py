"""What repeats a run: its processes one after the other, what they tell added up, and an end to it at any time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from taxtui.errors import UsageError
from taxtui.plan import scenario
from taxtui.recording import reader
from taxtui.recording.events import Event, Notice, RunFinished, TrialStarted
from taxtui.runner.repetitions import Repetitions
from tests.support import waiting


def repeated(path: Path, cell: dict[str, Any] | None = None, **top: Any) -> Repetitions:
    plain = {"substrates": ["local:isolation=plain"], "tiers": ["T0"], "actions": [1], "trials": 2, "warmup": 0}
    asked = scenario.ScenarioFile
    plan = scenario.plan(msgspec.convert({"cells": [plain | (cell or {})], "repeat": 2, **top}, asked), Path())
    return Repetitions(plan, path, "20260101t000000z-0000abcd", prices=None, software={})


def told(path: Path) -> list[Event]:
    found: list[Event] = []
    assert reader.read(path, found.append).complete
    return found


async def test_runs_follow_one_another_in_one_recording(tmp_path: Path) -> None:
    run = repeated(tmp_path / "r.msgpack")
    await run.execute()
    assert (run.outcome, run.crash, run.write_error, run.cleanup_failed) == ("finished", None, None, False)
    assert (run.progress.planned, run.progress.ended, run.progress.ok) == (4, 4, 4)
    starts = [event for event in told(run.path) if isinstance(event, TrialStarted)]
    assert [(start.trial, start.repetition) for start in starts] == [(0, 0), (1, 0), (2, 1), (3, 1)]


async def test_what_stops_in_a_gap_starts_nothing_more(tmp_path: Path) -> None:
    run = repeated(tmp_path / "r.msgpack", gap="1h")
    going = asyncio.create_task(run.execute())
    await waiting.until(lambda: run.progress.ended == 2 and not run.progress.in_flight, "the gap")
    run.stop("cancelled")
    await going
    assert run.outcome == "cancelled"
    assert told(run.path)[-1] == RunFinished("cancelled", {"ok": 2})


async def test_a_limit_holds_for_all_runs_together(tmp_path: Path) -> None:
    run = repeated(tmp_path / "r.msgpack", repeat=3, until="1%", max_sandboxes=7)
    await run.execute()
    assert run.outcome in ("budget", "finished")
    found = told(run.path)
    assert sum(isinstance(event, TrialStarted) for event in found) <= 7
    assert run.outcome == "finished" or any(isinstance(event, Notice) for event in found)


async def test_what_the_first_run_refuses_is_raised(tmp_path: Path) -> None:
    path = tmp_path / "r.msgpack"
    with pytest.raises(UsageError, match="local has no option 'colour'"):
        await repeated(path, {"substrates": ["local:colour=red"]}).execute()
    path.write_text("precious")
    with pytest.raises(UsageError, match="nothing is overwritten"):
        await repeated(path).execute()
    assert path.read_text() == "precious"
