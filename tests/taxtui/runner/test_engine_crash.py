"""A run that something nobody expected ends: it ends as all runs do, and its watchdog looks again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from costmodel.recording.events import CRASHED, Event, Notice, RunFinished, TrialEnded, TrialStarted
from taxtui.plan.spec import Command
from taxtui.runner import health, run_control
from taxtui.runner.run import Run
from taxtui.runner.trial.trial import Trial
from taxtui.sandboxes.fake import FakeSubstrate
from taxtui.sandboxes.protocol import ExecResult
from tests.support.recorded import NoWatchdog
from tests.taxtui.runner.test_engine import execute, executed, fake, of, plan

__all__ = ["fake"]


def bug_in(number: int, monkeypatch: pytest.MonkeyPatch, then: Callable[[], None] = lambda: None) -> None:
    """The trial of this number meets a bug of the runner's own when its trajectory has ended."""
    sound = Trial.flush_columns

    def flush_columns(self: Trial) -> None:
        if self.number == number:
            then()
            raise RuntimeError("what nobody thought of")
        sound(self)

    monkeypatch.setattr(Trial, "flush_columns", flush_columns)


def assert_crashed(run: Run, got: list[Event], fake: FakeSubstrate) -> None:
    """In good order: told, readable, nothing left, and the watchdog not dismissed."""
    assert run.control.crash is not None
    assert run.outcome == CRASHED
    assert isinstance(got[-1], RunFinished)
    assert got[-1].outcome == CRASHED
    assert any(notice.text.startswith(f"crashed: {type(run.control.crash).__name__} ") for notice in of(got, Notice))
    assert fake.alive == {}
    assert NoWatchdog.released == [False]


async def test_siblings_are_abandoned_and_awaited_before_the_sweep(
    tmp_path: Path, fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed, looked = asyncio.Event(), []
    sound = fake.find

    async def launch() -> None:
        if fake.calls[-1].endswith("-1"):
            await crashed.wait()  # the provider takes its time, and makes it after all
            await asyncio.sleep(0)

    async def find(run_id: str | None = None) -> object:
        looked.append(set(fake.alive))
        return await sound(run_id)

    fake.create_hook = launch
    monkeypatch.setattr(fake, "find", find)
    bug_in(0, monkeypatch, crashed.set)
    run, got = await execute(tmp_path, plan(trials=50, concurrency=2, warmup=0))
    assert_crashed(run, got, fake)
    assert str(run.control.crash) == "what nobody thought of"
    assert len(of(got, TrialStarted)) == 2, "nothing is launched any more"
    assert [(end.trial, end.outcome) for end in of(got, TrialEnded)] == [(1, "interrupted")]
    assert "destroy taxtui-20260101t000000z-00000000-0" in fake.calls, "also the trial with the bug has cleaned up"
    assert looked == [set(), set()], "the sweep found that every trial had removed its own"


async def test_a_bug_beside_the_trials(tmp_path: Path, fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch) -> None:
    async def watch(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(health, "watch", watch)
    run, got = await execute(tmp_path, plan(trials=50))
    assert isinstance(run.control.crash, ZeroDivisionError)
    assert_crashed(run, got, fake)


async def test_clean_ups_have_a_deadline(tmp_path: Path, fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(plan(trials=2, concurrency=2, warmup=0), tmp_path / "r.msgpack", "r")

    async def hang() -> None:
        run.control.abandon("interrupted")
        await asyncio.Event().wait()

    fake.destroy_hook = hang
    monkeypatch.setattr(run_control, "CLEANUP_WITHIN_S", 0.05)
    assert_crashed(run, await executed(run), fake)
    assert str(run.control.crash) == "trials did not end within 0.05 s of being abandoned"


async def test_whoever_cancels_the_run_itself_waits_for_its_clean_ups(tmp_path: Path, fake: FakeSubstrate) -> None:
    hanging = asyncio.Event()

    async def hang() -> None:
        hanging.set()
        await asyncio.Event().wait()

    fake.exec_hook = hang
    executing = asyncio.ensure_future(execute(tmp_path, plan(trials=2)))
    await hanging.wait()
    executing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await executing
    assert fake.alive == {}
    assert NoWatchdog.released == [False]


@pytest.mark.parametrize("exit_code", [-1, 256, 10**30])
async def test_an_exit_code_that_cannot_be_fails_its_trial_and_no_more(
    exit_code: int, tmp_path: Path, fake: FakeSubstrate
) -> None:
    def answer(command: Command) -> ExecResult:
        return ExecResult(exit_code if "TAXTUI_NONCE" in command.script else 0, b"", b"")

    fake.answer = answer
    run, got = await execute(tmp_path, plan(trials=2, concurrency=2, warmup=0))
    assert run.control.crash is None
    assert {(end.outcome, end.error, end.message) for end in of(got, TrialEnded)} == {
        ("failed", "ExecFailed", "the answer to a command has no exit code from 0 to 255")
    }
    assert got[-1] == RunFinished("finished", {"failed": 2})
    assert NoWatchdog.released == [True]
