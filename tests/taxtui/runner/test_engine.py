"""A whole run against a substrate without sandboxes: what it writes and refuses, how it ends and how it crashes."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import msgspec
import pytest

from costmodel.errors import PriceError
from costmodel.pricing.sheet import load_prices
from costmodel.recording.events import (
    CRASHED,
    Cell,
    Event,
    Header,
    Health,
    Notice,
    RunFinished,
    TrialEnded,
    TrialStarted,
)
from costmodel.recording.follower import read_events
from taxtui.errors import CreateFailed, ExecFailed, SubstrateError, SubstrateUnavailable, UsageError
from taxtui.plan.spec import CellPlan, Limits, Plan, Step, SubstrateRef, Tier
from taxtui.recording import writer
from taxtui.recording.writer import Recorder
from taxtui.runner import health, preflight, run_control
from taxtui.runner import run as run_module
from taxtui.runner.cleanup import ledger
from taxtui.runner.fanout import worker_program
from taxtui.runner.journal import Journal
from taxtui.runner.run import Run
from taxtui.runner.run_control import read_commands
from taxtui.runner.trial.trial import Trial
from taxtui.sandboxes.fake import FakeSubstrate
from taxtui.sandboxes.kit.kept_output import TAIL_BYTES, KeptOutput
from taxtui.sandboxes.protocol import Availability, Effective, ExecResult
from tests.support.command_line import events
from tests.support.recorded import NoWatchdog

TIER = Tier(name="T", title="", requires=("bash", "git"), cycle=(Step(name="one", run="true"),))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeSubstrate:
    substrate = FakeSubstrate()
    monkeypatch.setattr(preflight, "build", lambda ref: substrate)
    for module in (run_module, worker_program):
        monkeypatch.setattr(module, "Watchdog", NoWatchdog)
    monkeypatch.setattr(NoWatchdog, "released", [])
    return substrate


def plan(*, top: dict[str, Any] | None = None, **cell: Any) -> Plan:
    chosen = {"substrate": SubstrateRef(name="fake"), "actions": 2, "trials": 3, "warmup": 1} | cell
    return Plan(cells=(CellPlan(tier=TIER, **chosen),), **(top or {}))


async def executed(run: Run) -> list[Event]:
    await run.execute()
    return events(run.path)


async def execute(tmp_path: Path, what: Plan) -> tuple[Run, list[Event]]:
    run = Run(what, tmp_path / "r.msgpack", "20260101t000000z-00000000")
    return run, await executed(run)


def of(got: list[Event], kind: type) -> list[Any]:
    return [event for event in got if isinstance(event, kind)]


def creates(fake: FakeSubstrate) -> int:
    return sum(call.startswith("create") for call in fake.calls)


async def test_a_run_writes_a_complete_recording_and_leaves_nothing(tmp_path: Path, fake: FakeSubstrate) -> None:
    run, got = await execute(tmp_path, plan())
    assert isinstance(got[0], Header)
    assert got[-1] == RunFinished("finished", {"ok": 3})
    starts = of(got, TrialStarted)
    assert [start.warm_up for start in starts] == [True, False, False, False]
    assert [start.sandbox for start in starts] == [f"taxtui-{run.run_id}-{k}" for k in range(4)]
    assert of(got, Health)[0].floor_ns > 0
    assert {(cell.id, cell.provenance, cell.cycle) for cell in of(got, Cell)} == {(0, "stand_in", 1)}
    assert fake.alive == {}
    assert (run.unmeasured, run.cleanup_failed, run.outcome) == ([], False, "finished")
    assert NoWatchdog.released == [True]


async def test_a_substrate_is_prepared_once_before_the_first_trial(
    tmp_path: Path, fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prepare(run_id: str, limits: Limits) -> None:
        fake.calls.append(f"prepare {run_id} {limits.memory_mib}")
        raise CreateFailed("no subnet")  # it is still measured

    monkeypatch.setattr(fake, "prepare", prepare, raising=False)
    run, got = await execute(tmp_path, plan(top={"limits": Limits(memory_mib=64)}))
    assert [call for call in fake.calls if "prepare" in call] == fake.calls[:1] == [f"prepare {run.run_id} 64"]
    assert run.progress.counts == {"ok": 3}
    assert [notice.text for notice in of(got, Notice)] == [
        "fake: not prepared: CreateFailed no subnet; the first create includes it"
    ]


@pytest.mark.parametrize(("limit", "refused"), [(35, True), (36, False), (resource.RLIM_INFINITY, False)])
async def test_a_limit_of_open_files_that_is_too_low_is_refused_with_the_number_needed(
    limit: int, refused: bool, tmp_path: Path, fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    if not refused:
        await execute(tmp_path, plan(concurrency=10, substrate=SubstrateRef(name="local")))
        return
    with pytest.raises(UsageError, match="35 open files is too low: concurrency 10 needs 36; ulimit -n 36"):
        await execute(tmp_path, plan(concurrency=10, substrate=SubstrateRef(name="local")))
    assert fake.calls == []
    await execute(tmp_path, plan(concurrency=10))  # not on this machine: its connections may be shared


async def test_an_unavailable_substrate_is_refused_before_anything_exists(
    tmp_path: Path, fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.availability = Availability(ok=False, detail="no daemon", fix="start it")
    with pytest.raises(SubstrateUnavailable, match="fake: no daemon; start it"):
        await execute(tmp_path, plan())
    monkeypatch.setattr(fake, "check", AsyncMock(side_effect=KeyError("secret")))  # against the protocol
    with pytest.raises(SubstrateError, match=r"^fake: unexpected KeyError \(mock.py:\d+\); report it") as raised:
        await execute(tmp_path, plan())
    assert raised.value.exit_code == 1
    assert list(tmp_path.iterdir()) == []
    assert fake.calls == ["closed"] * 2


async def test_what_a_substrate_cannot_do_is_refused(tmp_path: Path, fake: FakeSubstrate) -> None:
    with pytest.raises(UsageError, match="cannot acquire sandboxes by 'snapshot'; it can: create, reset"):
        await execute(tmp_path, plan(acquire="snapshot:x"))
    fake.capabilities = msgspec.structs.replace(fake.capabilities, max_concurrency=2)
    with pytest.raises(UsageError, match="at most 2 sandboxes at once, not 3"):
        await execute(tmp_path, plan(concurrency=3))
    fake.availability = Availability(ok=True, detail="", tools=frozenset({"bash"}))
    with pytest.raises(SubstrateUnavailable, match="lacks git, which tier T needs"):
        await execute(tmp_path, plan())
    assert list(tmp_path.iterdir()) == []


async def test_stopping_finishes_what_runs_and_launches_nothing_more(tmp_path: Path, fake: FakeSubstrate) -> None:
    run = Run(plan(trials=50), tmp_path / "r.msgpack", "r")

    async def stop_in_the_third() -> None:
        if len(fake.calls) >= 4:
            run.control.stop("interrupted")

    fake.create_hook = stop_in_the_third
    got = await executed(run)
    assert [end.outcome for end in of(got, TrialEnded)] == ["ok"] * 3
    assert got[-1] == RunFinished("interrupted", {"ok": 2})
    assert fake.alive == {}


async def test_abandoning_ends_trials_in_flight_and_cleans_up(tmp_path: Path, fake: FakeSubstrate) -> None:
    run = Run(plan(trials=4, concurrency=4, warmup=0), tmp_path / "r.msgpack", "r")

    async def hang() -> None:
        if len(fake.commands) >= 4:
            asyncio.get_running_loop().call_soon(run.control.abandon, "cancelled")
        await asyncio.Event().wait()

    fake.exec_hook = hang
    got = await executed(run)
    assert [end.outcome for end in of(got, TrialEnded)] == ["cancelled"] * 4
    assert got[-1] == RunFinished("cancelled", {"cancelled": 4})
    assert fake.alive == {}
    assert run.unmeasured


async def test_pausing_holds_launches_back(tmp_path: Path, fake: FakeSubstrate) -> None:
    run = Run(plan(trials=3, warmup=0), tmp_path / "r.msgpack", "r")

    async def pause_at_first() -> None:
        run.control.pause(True)

    fake.create_hook = pause_at_first
    executing = asyncio.ensure_future(run.execute())
    while run.progress.ended < 1:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    assert len(fake.calls) == 2, "one create, one destroy, and no more while paused"
    fake.create_hook = fake.ready_hook
    run.control.pause(False)
    await executing
    assert run.progress.ended == 3


@pytest.mark.parametrize("concurrency", [1, 3, 8])
async def test_never_more_sandboxes_than_allowed(concurrency: int, tmp_path: Path, fake: FakeSubstrate) -> None:
    _, got = await execute(tmp_path, plan(trials=10, concurrency=concurrency, top={"max_sandboxes": 4}))
    assert creates(fake) == 4
    assert any("--max-sandboxes 4" in notice.text for notice in of(got, Notice))


async def test_dollars_end_a_run_in_good_order(tmp_path: Path, fake: FakeSubstrate) -> None:
    sheet = tmp_path / "prices.toml"
    sheet.write_text(
        'date = 2026-01-01\n[[sandbox]]\nsubstrate = "fake"\nusd_per_hour = 60\n'
        'minimum_s = 60\nincrement_s = 60\nsource = "a test"\n'
    )
    fake.capabilities = msgspec.structs.replace(fake.capabilities, paid=True)
    limited = plan(trials=50, top={"max_cost_usd": 5.0})
    run = Run(limited, tmp_path / "r.msgpack", "r", prices=load_prices(sheet))
    await run.execute()
    assert creates(fake) == 5, "a dollar each"
    assert run.outcome == "budget"
    effective = Effective(cpus=4.0)
    sheet.write_text(sheet.read_text().replace("usd_per_hour = 60", "usd_per_vcpu_hour = 60"))
    fake.availability = msgspec.structs.replace(fake.availability, effective=effective)
    bigger = Run(limited, tmp_path / "b.msgpack", "b", prices=load_prices(sheet))
    await bigger.execute()
    assert creates(fake) == 5 + 1, "four dollars each, for four CPUs instead of the one that was asked"
    with pytest.raises(PriceError, match='substrate = "fake"'):
        await Run(limited, tmp_path / "s.msgpack", "s", prices=load_prices("aws-fargate")).execute()
    assert not (tmp_path / "s.msgpack").exists()


@pytest.mark.parametrize("stuck", [False, True])
async def test_what_a_trial_could_not_remove_the_last_sweep_does_or_names(
    stuck: bool, tmp_path: Path, fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.destroy_hook = AsyncMock(side_effect=RuntimeError("the API is down"))
    if stuck:
        monkeypatch.setattr(fake, "reap", AsyncMock())
    run, got = await execute(tmp_path, plan(trials=1, warmup=0))
    assert run.cleanup_failed == bool(fake.alive) == stuck, "exit 1 is for what is left"
    assert any("may still exist" in notice.text for notice in of(got, Notice))
    assert any("is left; taxtui clean --run" in notice.text for notice in of(got, Notice)) == stuck
    assert NoWatchdog.released == [not stuck]


async def test_reset_makes_one_sandbox_and_uses_it_for_all(tmp_path: Path, fake: FakeSubstrate) -> None:
    _, got = await execute(tmp_path, plan(acquire="reset", trials=3, warmup=0))
    assert creates(fake) == 1
    assert sum(call.startswith("reset") for call in fake.calls) == 3
    assert [start.warm_up for start in of(got, TrialStarted)] == [True, False, False, False]
    assert got[-1] == RunFinished("finished", {"ok": 3})
    assert fake.alive == {}
    assert of(got, TrialStarted)[1].scheduled_ns >= of(got, TrialEnded)[0].end_ns, "the first waits for no reset"
    fake.fail("create", CreateFailed("no room"), times=2)
    (tmp_path / "refused").mkdir()
    limited = plan(acquire="reset", trials=5, warmup=0, top={"max_sandboxes": 4})
    _, got = await execute(tmp_path / "refused", limited)
    assert got[-1] == RunFinished("budget", {"failed": 2, "ok": 2}), "what cannot be reset has failed"
    assert [(end.phase, end.error) for end in of(got, TrialEnded)][:4] == [("create", "CreateFailed")] * 4


async def test_after_a_pause_no_two_trials_reset_one_sandbox(tmp_path: Path, fake: FakeSubstrate) -> None:
    run = Run(plan(acquire="reset", trials=8, concurrency=2, warmup=0), tmp_path / "r.msgpack", "r")

    async def fail_and_pause() -> None:
        fake.reset_hook = fake.ready_hook
        run.control.pause(True)
        asyncio.get_running_loop().call_later(0.2, run.control.pause, False)
        raise ExecFailed("it is gone")

    fake.reset_hook, fake.destroy_hook = fail_and_pause, lambda: asyncio.sleep(0.1)
    await run.execute()
    assert (run.control.crash, run.progress.counts) == (None, {"ok": 7, "failed": 1})


async def test_a_full_disk_stops_the_run_and_still_cleans_up(
    tmp_path: Path, fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, full = writer.os.write, False

    def write(fd: int, data: bytes) -> int:
        if full:
            raise OSError(28, "No space left on device")
        return real(fd, data)

    async def fill_in_the_third() -> None:
        nonlocal full
        full = len(fake.calls) >= 5

    monkeypatch.setattr(writer.os, "write", write)
    fake.create_hook = fill_in_the_third
    run, _ = await execute(tmp_path, plan(trials=50))
    assert "No space left" in str(run.control.write_error)
    assert fake.alive == {}
    assert not read_events(run.path, lambda event: None).complete
    assert creates(fake) < 10


async def test_a_substrates_facts_are_recorded_and_no_name_out_of_its_options(
    tmp_path: Path, fake: FakeSubstrate
) -> None:
    fake.availability = msgspec.structs.replace(fake.availability, facts={"server": "1.2"}, latency_ns=31)
    fake.fail("create", CreateFailed("there is no room in acmecorp"), times=4)
    ref = SubstrateRef(name="fake", options={"endpoint": "http://secret.example", "namespace": "acmecorp"})
    run, got = await execute(tmp_path, plan(substrate=ref))
    [header] = of(got, Header)
    assert (header.software["fake.server"], header.software["fake.latency_ns"]) == ("1.2", "31")
    assert {end.message for end in of(got, TrialEnded)} == {"there is no room in <name>"}
    for name in (b"secret.example", b"acmecorp"):
        assert name not in run.path.read_bytes()


async def test_what_earlier_runs_left_is_said_at_the_start(tmp_path: Path, fake: FakeSubstrate) -> None:
    died = ledger.LedgerEntry(run_id="20250101t000000z-00000000", substrates=(), create_timeout_s=1.0)
    ledger.write(died)
    _, got = await execute(tmp_path, plan(trials=1))
    assert [notice.text for notice in of(got, Notice)] == [
        "1 earlier runs of this machine were not cleaned; taxtui clean lists the leftovers"
    ]
    ledger.remove(died.run_id)
    (tmp_path / "r.msgpack").unlink()
    _, got = await execute(tmp_path, plan(trials=1))
    assert of(got, Notice) == []


async def test_a_run_may_keep_less(tmp_path: Path, fake: FakeSubstrate) -> None:
    kept: set[tuple[int, int]] = set()

    async def look() -> None:
        output = KeptOutput()
        output.add(bytes(3 << 20))
        kept.add((len(output.kept), output.length))

    fake.exec_hook = look
    await execute(tmp_path, plan(trials=1, warmup=0, top={"limits": Limits(output_mib=2)}))
    assert kept == {((2 << 20) + TAIL_BYTES, 3 << 20)}


async def test_clients_that_do_not_close_do_not_hold_the_run(
    tmp_path: Path, fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "CLOSING_S", 0.01)
    monkeypatch.setattr(FakeSubstrate, "__aexit__", lambda *_: asyncio.Event().wait())
    run, _ = await execute(tmp_path, plan(trials=1))
    assert run.outcome == "finished"


async def test_each_line_is_done_in_turn_and_what_is_none_is_said_and_ends_nothing() -> None:
    own, (theirs, ours) = os.dup(0), os.pipe()
    os.dup2(theirs, 0)
    os.close(theirs)
    ended, told = asyncio.Event(), list[str]()
    commands = {"pause": lambda: told.append("paused"), "cancel": lambda: told.append("cancelled")}
    try:
        read_commands(commands, ended.set, told.append)
        lines = (b'{"op": "pause"}', b"[]", b"{", b'{"op": "dance"}', b"\xff", b'{"op": "cancel"}')
        os.write(ours, b"\n".join(lines) + b"\n")
        os.close(ours)
        await ended.wait()
    finally:
        os.dup2(own, 0)
        os.close(own)
    assert [one for one in told if one[0] != "b"] == ["paused", "cancelled"]
    assert [one for one in told if one[0] == "b"] == [repr(line + b"\n") for line in lines[1:-1]]


def test_after_the_end_of_the_run_nothing_is_written(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.msgpack")
    journal = Journal(recorder, lambda failure: None)
    told: list[Event] = [Header("taxtui", 1, "r", {}, {}), RunFinished("crashed", {})]
    for event in (*told, Notice(1, "error", "from a trial that could not be stopped")):
        journal.emit(event)
    recorder.close()
    assert events(recorder.path) == told


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
    monkeypatch.setattr(health, "watch", AsyncMock(side_effect=ZeroDivisionError))
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
    fake.answer = lambda command: ExecResult(exit_code if "TAXTUI_NONCE" in command.script else 0, b"", b"")
    run, got = await execute(tmp_path, plan(trials=2, concurrency=2, warmup=0))
    assert run.control.crash is None
    assert {(end.outcome, end.error, end.message) for end in of(got, TrialEnded)} == {
        ("failed", "ExecFailed", "the answer to a command has no exit code from 0 to 255")
    }
    assert got[-1] == RunFinished("finished", {"failed": 2})
    assert NoWatchdog.released == [True]
