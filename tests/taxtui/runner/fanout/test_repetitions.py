"""What repeats a run: its processes one after the other, what they tell added up, and an end to it at any time."""

from __future__ import annotations

import asyncio
import os
import signal
import zlib
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import msgspec
import pytest

import costmodel
from costmodel.recording.events import Clock, TrialStarted
from taxtui.errors import UsageError
from taxtui.plan import scenario
from taxtui.plan.spec import Plan
from taxtui.runner import run as run_module
from taxtui.runner.fanout.child_process import WorkerProcess
from taxtui.runner.fanout.resume import ResumeState
from taxtui.runner.run import Run, repetition_of
from tests.support import waiting
from tests.support.chaos.cases import doubled
from tests.support.command_line import events
from tests.support.recorded import NoWatchdog
from tests.taxtui.runner.fanout.test_resuming import counted


def asked(cell: dict[str, Any] | None = None, **top: Any) -> Plan:
    plain = {"substrates": ["local:isolation=plain"], "tiers": ["T0"], "actions": [1], "trials": 2, "warmup": 0}
    file = {"cells": [plain | (cell or {})], "repeat": 2, **top}
    return scenario.plan(msgspec.convert(file, scenario.ScenarioFile), Path())


def repeated(path: Path, cell: dict[str, Any] | None = None, **top: Any) -> Run:
    run_id = f"20260101t000000z-{zlib.crc32(bytes(path)):08x}"  # runs at the same time would share sandboxes by one
    return Run(asked(cell, **top), path, run_id)


def resumed(path: Path, plan: Plan) -> Run:
    unfinished = ResumeState(path, plan)
    return Run(plan, path, unfinished.run_id, resumed=unfinished)


def kill_workers(run: Run) -> None:
    assert run._dispatcher is not None
    for worker in run._dispatcher._workers:
        assert isinstance(worker.connection, WorkerProcess)
        os.kill(worker.connection.pid, signal.SIGKILL)


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_limit_holds_for_all_runs_and_workers_together(workers: int, tmp_path: Path) -> None:
    cell = {"trials": 3, "concurrency": 2}
    run = repeated(tmp_path / "r.msgpack", cell, repeat=3, workers=workers, max_sandboxes=7)
    await run.execute()
    assert run.outcome == "budget"
    assert sum(isinstance(event, TrialStarted) for event in events(run.path)) == 7


async def test_runs_follow_one_another_in_one_recording(tmp_path: Path) -> None:
    run = repeated(tmp_path / "r.msgpack")
    await run.execute()
    assert (run.outcome, run.control.crash, run.cleanup_failed) == ("finished", None, False)
    assert (run.progress.planned, run.progress.ended, run.progress.ok) == (4, 4, 4)
    starts = [event for event in events(run.path) if isinstance(event, TrialStarted)]
    assert [(start.trial, start.repetition) for start in starts] == [(0, 0), (1, 0), (2, 1), (3, 1)]


async def test_a_sweep_that_fails_ends_no_repetition_but_the_exit_code_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "conclude_cleanup", AsyncMock(side_effect=[False, True]))
    run = repeated(tmp_path / "r.msgpack")
    await run.execute()
    assert (run.outcome, run.cleanup_failed, run.progress.ended) == ("finished", True, 4)


async def test_what_the_first_run_refuses_is_raised(tmp_path: Path) -> None:
    path = tmp_path / "r.msgpack"
    with pytest.raises(UsageError, match="local has no option 'colour'"):
        await repeated(path, {"substrates": ["local:colour=red"]}).execute()
    path.write_text("precious")
    with pytest.raises(UsageError, match="nothing is overwritten"):
        await repeated(path).execute()
    assert path.read_text() == "precious"


@pytest.mark.parametrize(("how", "workers"), [("abandoned", 1), ("killed", 2)])
async def test_a_repeated_run_goes_on_in_the_repetition_that_was_cut_short(
    how: str, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "killed":  # a real one would go on looking after this process has crashed
        monkeypatch.setattr(run_module, "Watchdog", NoWatchdog)
    shape = {"actions": [5], "trials": 6, "concurrency": [workers], "arrival": "closed", "think": "50ms"}
    top = {"repeat": 3, "workers": workers}
    path = tmp_path / "r.msgpack"
    run = repeated(path, shape, **top)
    going = asyncio.create_task(run.execute())
    await waiting.until(lambda: run.progress.ended > 6 and run._dispatcher is not None, "a repetition after the first")
    if how == "killed":
        kill_workers(run)
    else:
        run.control.abandon("interrupted")
    await going
    assert run.outcome == ("crashed" if how == "killed" else "interrupted")

    with pytest.raises(UsageError, match="of another plan: seed: 0, now 5"):
        resumed(path, asked(shape, **top, seed=5))
    plan = asked(shape, **top)
    again = resumed(path, plan)
    await again.execute()
    assert (again.outcome, again.control.crash, again.unmeasured) == ("finished", None, [])
    assert (again.progress.ended, again.progress.ok, again.progress.planned) == (18, 18, 18)
    found = events(path)
    whole = counted(found)
    assert whole.total() == 18
    assert set(Counter(repetition for repetition, _, _ in whole.elements()).values()) == {6}
    clocks = {(event.worker, event.monotonic_ns) for event in found if isinstance(event, Clock)}
    assert len({worker for worker, _ in clocks}) == len(clocks), "a number is one process's"
    assert doubled(found, 18) == []
    assert costmodel.load(path).complete  # type: ignore[union-attr]  # the end counts what there is
    with pytest.raises(UsageError, match="the run has finished"):
        ResumeState(path, plan)


def test_every_repetition_has_a_seed_of_its_own() -> None:
    plan = asked(seed=7)
    assert repetition_of(plan, 0) == plan
    assert len({repetition_of(plan, repetition).seed for repetition in range(50)}) == 50


async def test_repetitions_share_the_rest_of_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares_s, sound = [], Run._measure

    async def measure(self: Run, state: Any, budget_s: float | None) -> None:
        shares_s.append(budget_s)
        await sound(self, state, 0.0)

    monkeypatch.setattr(Run, "_measure", measure)
    run = repeated(tmp_path / "r.msgpack", {"trials": 2000}, budget="1000s")
    await run.execute()
    first_s, second_s = shares_s
    assert first_s
    assert second_s
    assert first_s <= 500 < second_s <= 1000
    assert (run.outcome, run.progress.ended < 4000) == ("budget", True)
