"""The watchdog: its sweep, its conversation with the runner, and the real process; the ledger; who else sweeps."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import signal
import stat
import subprocess
import sys
import tempfile
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import msgspec
import pytest
from click.testing import CliRunner

from taxtui import folders
from taxtui.commands import clean as sweep_command
from taxtui.errors import CleanupFailed, SubstrateUnavailable, TaxtuiError
from taxtui.plan.spec import Limits, SandboxSpec, SubstrateRef
from taxtui.runner.cleanup import ledger, watchdog
from taxtui.runner.cleanup.ledger import LedgerEntry, TrialShare
from taxtui.runner.cleanup.reaping import reap_all
from taxtui.runner.cleanup.watchdog import DONE, READY, Watchdog, sweep
from taxtui.sandboxes.fake import FakeSubstrate
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Found, Marks
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local.substrate import LocalSubstrate

RUN = "20260101t000000z-00000000"
FAKE = LedgerEntry(run_id=RUN, substrates=(SubstrateRef(name="fake"),), create_timeout_s=0.3)


@pytest.fixture
def fake() -> FakeSubstrate:
    return FakeSubstrate()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "FIRST_PAUSE_S", 0.01)


# ------------------------------------------------------------------------------------------------------- the sweep


async def test_a_sweep_reaps_what_carries_the_runs_label_or_comes_late_and_forgets_the_run(fake: FakeSubstrate) -> None:
    ledger.write(FAKE)
    fake.alive = {"ours-1": RUN, "ours-2": RUN, "theirs": "another run"}
    asyncio.get_running_loop().call_later(0.15, fake.alive.update, {"late": RUN})
    await sweep(FAKE, [fake])
    assert fake.alive == {"theirs": "another run"}
    assert fake.calls[-1] == "reap late", "of a create that was under way"
    assert ledger.entries() == []


async def test_a_run_that_is_resumed_takes_over(fake: FakeSubstrate) -> None:
    """What it makes has the label of the run that was killed, whose watchdog still looks for late creates."""
    killed = msgspec.structs.replace(FAKE, create_timeout_s=60.0)
    resumed = msgspec.structs.replace(killed, pid=os.getpid())
    ledger.write(killed)
    sweeping = asyncio.create_task(sweep(killed, [fake]))
    await asyncio.sleep(0.05)
    assert not sweeping.done()
    ledger.write(resumed)
    fake.alive = {"of-the-resumed": RUN}
    async with asyncio.timeout(30):
        await sweeping
    assert fake.alive == {"of-the-resumed": RUN}
    assert ledger.entries() == [resumed]
    assert not ledger.taken_over(resumed)
    resumed.path.write_bytes(b"{")
    assert ledger.taken_over(resumed), "it is being written"
    ledger.remove(RUN)
    assert not ledger.taken_over(resumed)


@pytest.mark.parametrize("error", [SubstrateUnavailable("the API is down"), FileNotFoundError("a bug of the adapter")])
async def test_a_provider_that_fails_is_asked_again_and_the_others_are_swept(
    fake: FakeSubstrate, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = FakeSubstrate()
    fake.alive, broken.alive = {"here": RUN}, {"there": RUN}
    there = await broken.find(RUN)
    monkeypatch.setattr(broken, "find", AsyncMock(side_effect=chain([error] * 3, [there], repeat([]))))
    ledger.write(FAKE)
    await sweep(FAKE, [broken, fake])
    assert (fake.alive, broken.alive, ledger.entries()) == ({}, {}, [])


async def test_neither_finds_nor_errors_make_a_watchdog_stay_longer_than_one_create_timeout(
    fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, yielding = 0.0, asyncio.sleep

    async def sleep(pause_s: float) -> None:
        nonlocal now_s
        now_s += pause_s
        await yielding(0)

    real = fake.find

    async def find(run_id: str | None = None) -> Any:
        if now_s < 250.0:
            raise SubstrateUnavailable("the API is down")
        if now_s < 290.0:
            fake.alive["late"] = RUN
        return await real(run_id)

    monkeypatch.setattr(watchdog, "FIRST_PAUSE_S", 1.0)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=lambda: now_s))
    monkeypatch.setattr(fake, "find", find)
    entry = msgspec.structs.replace(FAKE, create_timeout_s=300.0)
    ledger.write(entry)
    await sweep(entry, [fake])
    assert (fake.alive, ledger.entries()) == ({}, [])
    assert 300.0 <= now_s <= 300.0 + 2 * watchdog.LONGEST_PAUSE_S


async def test_a_sweep_that_gives_up_leaves_the_entry_for_a_person(
    fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = AsyncMock()
    monkeypatch.setattr(fake, "reap", stuck)
    monkeypatch.setattr(watchdog, "GIVE_UP_AFTER_S", 0.1)
    fake.alive = {"forever": RUN}
    ledger.write(FAKE)
    await sweep(FAKE, [fake])
    assert [entry.run_id for entry in ledger.entries()] == [RUN]
    assert stuck.await_count > 1


# ---------------------------------------------------------------------------- its end of the conversation, in here


class Conversation:
    """Standard streams of a watchdog that runs in this process: all that the runner will have said, and its ear."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
        ear, self._mouth = os.pipe()
        self._ear = os.fdopen(ear, "rb")
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(said)))
        monkeypatch.setattr("sys.stdout", SimpleNamespace(fileno=lambda: self._mouth))

    def hang_up(self) -> None:
        self._ear.close()

    def heard(self) -> bytes | None:
        """All that it has answered; None after the runner has died."""
        os.close(self._mouth)
        if self._ear.closed:
            return None
        with self._ear:
            return self._ear.read()


ENTRY_LINE = msgspec.json.encode(FAKE) + b"\n"


@pytest.fixture
def opened(fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch) -> FakeSubstrate:
    monkeypatch.setattr(watchdog, "build", lambda ref: fake)
    fake.alive = {"ours": RUN}
    return fake


@pytest.mark.parametrize(
    ("said", "answer", "calls"),
    [
        (ENTRY_LINE + DONE, READY, ["closed"]),
        (ENTRY_LINE, READY, ["reap ours", "closed"]),
        (ENTRY_LINE, None, ["reap ours", "closed"]),  # a runner that died before the answer
        (b"", b"", []),  # a runner that died before its first word had made nothing
    ],
)
async def test_it_sweeps_unless_the_runner_says_done(
    said: bytes, answer: bytes | None, calls: list[str], opened: FakeSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = Conversation(monkeypatch, said)
    if answer is None:
        conversation.hang_up()
    await watchdog._main()
    assert (conversation.heard(), opened.calls) == (answer, calls)
    assert bool(ledger.entries()) == (said == ENTRY_LINE + DONE)


EARLIER = msgspec.structs.replace(FAKE, create_timeout_s=60.0, pid=1)
"""The entry of a run that is about to be resumed."""


def half_written_entry() -> Path:
    path = ledger.workers_folder(RUN) / "1.json.new"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half written")
    return path


@pytest.mark.parametrize("before", [FAKE, EARLIER, None], ids=["replaced", "resumed", "a first start"])
async def test_an_unreachable_provider_costs_no_earlier_entry_and_no_half_written_entry_of_a_worker(
    before: LedgerEntry | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if before is not None:
        ledger.write(before)
    half_written = half_written_entry()
    monkeypatch.setattr(watchdog, "build", Mock(side_effect=SubstrateUnavailable("fake: no daemon")))
    conversation = Conversation(monkeypatch, ENTRY_LINE)
    await watchdog._main()
    assert conversation.heard() == b"fake: no daemon\n"
    assert ledger.entries() == ([before] if before else [])
    assert half_written.read_bytes() == b"half written"


# --------------------------------------------------------------------------------------------- the process itself


def local(isolation: str = "plain", **options: str) -> LedgerEntry:
    ref = SubstrateRef(name="local", options={"isolation": isolation, **options})
    return LedgerEntry(run_id=RUN, substrates=(ref,), create_timeout_s=0.2)


async def gone(dog: Watchdog) -> None:
    while dog._process.poll() is None:
        await asyncio.sleep(0.01)


async def test_it_guards_from_ready_to_release() -> None:
    dog = Watchdog(local())
    await dog.wait_ready()
    assert ledger.entries() == [local()]
    assert os.getsid(dog._process.pid) == dog._process.pid, "what ends our session or terminal spares it"
    dog.release(clean=True)
    assert dog._process.returncode == 0
    assert ledger.entries() == []


async def test_what_the_runner_could_not_remove_it_goes_on_to_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dog = Watchdog(local())
    await dog.wait_ready()
    async with LocalSubstrate(LocalOptions(isolation="plain")) as substrate:
        spec = SandboxSpec(name=f"taxtui-{RUN}-0", labels={LABEL_RUN: RUN}, limits=Limits(), ttl_s=60)
        await substrate.create(spec, Marks())
        assert await substrate.find(RUN)
        dog.release(clean=False)
        await gone(dog)
        assert not await substrate.find(RUN)
    assert ledger.entries() == []


NO_FIXTURES = local(fixtures="/proc/nothing")


@pytest.mark.parametrize("before", [None, msgspec.structs.replace(NO_FIXTURES, pid=1)], ids=["new", "resumed"])
async def test_without_it_there_is_no_run_and_an_earlier_one_is_still_known_to_a_sweep(
    before: LedgerEntry | None,
) -> None:
    if before is not None:
        ledger.write(before)
    half_written = half_written_entry()
    dog = Watchdog(msgspec.structs.replace(NO_FIXTURES, parts=("3f2a", "")) if before else NO_FIXTURES)
    with pytest.raises(
        TaxtuiError, match=r"no watchdog to clean up after a crash: .*fixtures=/proc/nothing is not a folder"
    ):
        await dog.wait_ready()
    dog.release(clean=True)
    assert ledger.entries() == ([before] if before else [])
    assert half_written.exists()  # a worker's own watchdog guards the worker's part


@pytest.mark.parametrize(
    ("executable", "state", "words"),
    [("/bin/false", "", "the process died"), ("", "/proc/nothing", "cannot write /proc/nothing/.*set XDG_STATE_HOME")],
)
async def test_one_that_dies_at_once_is_noticed(
    executable: str, state: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", executable or sys.executable)
    monkeypatch.setenv("XDG_STATE_HOME", state or os.environ["XDG_STATE_HOME"])
    dog = Watchdog(local())
    with pytest.raises(TaxtuiError, match=words):
        await dog.wait_ready()
    dog.release(clean=True)


async def test_where_there_is_no_room_for_it_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    no_process = Mock(side_effect=BlockingIOError(11, "Resource temporarily unavailable"))
    no_thread = Mock(side_effect=RuntimeError("can't start new thread"))
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", no_process)
        with pytest.raises(TaxtuiError, match=r"no watchdog to clean up after a crash: .*unavailable; make room"):
            Watchdog(local())
    dog = Watchdog(local())
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "to_thread", no_thread)
        with pytest.raises(TaxtuiError, match="crash: can't start new thread; make room"):
            await dog.wait_ready()
    await dog.wait_ready()
    dog.release(clean=True)


async def test_one_that_died_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "LOOK_S", 0.01)
    dog, replaced = Watchdog(local()), asyncio.Event()
    await dog.wait_ready()
    first = dog._process
    keeping = asyncio.ensure_future(dog.keep(Mock(emit=lambda _: replaced.set())))
    first.kill()
    await replaced.wait()
    keeping.cancel()
    assert dog._process.pid != first.pid
    assert dog._process.poll() is None
    assert ledger.entries() == [local()]
    dog.release(clean=True)
    assert dog._process.returncode == 0
    assert ledger.entries() == []


@pytest.mark.parametrize("ready", [True, False])
async def test_one_that_somebody_stopped_does_not_hold_the_run(ready: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "DISMISSED_WITHIN_S", 0.05)
    dog = Watchdog(local())
    if ready:
        await dog.wait_ready()
    dog._process.send_signal(signal.SIGSTOP)
    if not ready:
        monkeypatch.setattr(watchdog, "OPENED_WITHIN_S", 0.05)
        with pytest.raises(TaxtuiError, match="did not answer"):
            await dog.wait_ready()
    dog.release(clean=True)
    assert dog._process.returncode == -signal.SIGKILL


# -- one that cannot be removed keeps no other from being tried -----------------------------------------------------


@pytest.fixture(params=[CleanupFailed("it is stuck"), KeyError("a bug of the adapter")], ids=["refused", "bug"])
def stuck(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FakeSubstrate:
    """Ten sandboxes, of which the first cannot be removed."""
    fake = FakeSubstrate()
    fake.alive = {f"taxtui-{RUN}-{number}": RUN for number in range(10)}
    real = fake.reap

    async def reap(found: Found) -> None:
        if found.name.endswith("-0"):
            raise request.param
        await real(found)

    monkeypatch.setattr(fake, "reap", reap)
    return fake


async def test_all_are_tried_and_what_is_left_is_told(stuck: FakeSubstrate) -> None:
    gone: list[Found] = []
    left = await reap_all(stuck, await stuck.find(RUN), reaped=gone.append)
    assert [each.sandbox.name for each in left] == list(stuck.alive) == [f"taxtui-{RUN}-0"]
    assert isinstance(left[0].error, CleanupFailed | KeyError)
    assert {found.name for found in gone} == {f"taxtui-{RUN}-{number}" for number in range(1, 10)}


def test_clean_tries_all_and_names_what_is_left(stuck: FakeSubstrate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taxtui.sandboxes.registry.build", lambda reference: stuck)
    done = CliRunner().invoke(sweep_command.command, ["-s", "local", "--run", RUN, "--force"])
    assert done.exit_code == 1
    assert list(stuck.alive) == [f"taxtui-{RUN}-0"]
    assert done.stdout.count("removed fake") == 9
    assert f"may still exist: fake taxtui-{RUN}-0" in done.stderr


def test_a_substrate_that_cannot_be_used_keeps_no_other_from_being_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, broken = FakeSubstrate(), FakeSubstrate()
    fake.alive = {"here": RUN}

    monkeypatch.setattr(broken, "find", AsyncMock(side_effect=SubstrateUnavailable("the API is down")))
    built = [broken, fake]
    monkeypatch.setattr("taxtui.sandboxes.registry.build", lambda reference: built.pop(0))
    done = CliRunner().invoke(sweep_command.command, ["-s", "docker", "-s", "local", "--run", RUN, "--force"])
    assert isinstance(done.exception, SubstrateUnavailable)
    assert fake.alive == {}


def test_an_id_that_nothing_is_found_of_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a slip of the pen, which would look like success."""
    fake = FakeSubstrate()
    monkeypatch.setattr("taxtui.sandboxes.registry.build", lambda reference: fake)
    done = CliRunner().invoke(sweep_command.command, ["-s", "local", "--run", "unknown", "--force"])
    assert done.exit_code == 0
    assert "no sandbox of run 'unknown' was found, and this user's ledger knows no such run" in done.stderr
    assert CliRunner().invoke(sweep_command.command, ["-s", "local"]).stderr == "taxtui: no sandbox was found\n"


def test_ctrl_c_is_held_back_while_the_watchdog_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the process has left our session, Ctrl-C would end it, and the run with it."""
    masks: list[set[int]] = []

    def popen(*_: object, **__: object) -> None:
        masks.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(watchdog.subprocess, "Popen", popen)
    entry = LedgerEntry(run_id=RUN, substrates=(), create_timeout_s=1.0)
    with pytest.raises(TaxtuiError):
        Watchdog(entry)
    assert [signal.SIGINT in mask for mask in masks] == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def entry(run_id: str = "r1") -> LedgerEntry:
    ref = SubstrateRef(name="ecs", options={"cluster": "arn:aws:ecs:eu-west-1:123456789012:cluster/x"})
    return LedgerEntry(run_id=run_id, substrates=(ref,), create_timeout_s=300.0)


def test_what_is_written_is_read_by_its_owner_only(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ledger.write(entry())
    assert ledger.read(path) == entry()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    with pytest.raises(TaxtuiError, match=r"cannot write /dev/null/.*: Not a directory; set XDG_STATE_HOME"):
        ledger.write(entry())


def test_entries_come_oldest_first_and_damaged_ones_are_passed_over() -> None:
    for run_id in ("20260102t0", "20260101t0", "r"):
        path = ledger.write(entry(run_id))
    (folders.ledger() / "half.json").write_bytes(b'{"run_id": "x"')
    (folders.ledger() / "folder.json").mkdir()
    path.with_name("x.json").write_bytes(path.read_bytes().replace(b'"r"', b'"../../x"'))  # names something else
    assert [found.run_id for found in ledger.entries()] == ["20260101t0", "20260102t0", "r"]


def test_forgetting_a_run_twice_is_fine_and_one_that_cannot_be_deleted_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ledger.write(entry())
    with monkeypatch.context() as read_only:
        read_only.setattr(Path, "unlink", Mock(side_effect=OSError(errno.EROFS, os.strerror(errno.EROFS))))
        ledger.remove("r1")
    assert [found.run_id for found in ledger.entries()] == ["r1"], "for a later sweep"
    ledger.remove("r1")
    ledger.remove("r1")
    assert not path.exists()
    assert ledger.entries() == []
    with pytest.raises(OSError, match="No such file"):
        ledger.read(path)
    path.write_text("[]")
    with pytest.raises(msgspec.DecodeError):
        ledger.read(path)


def test_a_run_is_going_on_as_long_as_its_runner_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    for run_id, pid in (("alive", os.getpid()), ("ended", ended.pid), ("of-an-old-version", 0)):
        ledger.write(msgspec.structs.replace(entry(run_id), pid=pid))
    assert ledger.live_runs() == {"alive": os.getpid()}

    monkeypatch.setattr("os.kill", Mock(side_effect=PermissionError))  # another user's
    assert ledger.live_runs() == {"alive": os.getpid(), "ended": ended.pid}


@pytest.mark.skipif(not ledger.born(os.getpid()), reason="this machine does not tell when a process was born")
def test_a_process_id_that_was_used_again_is_not_the_runner() -> None:
    ours = ledger.born(os.getpid())
    for run_id, born in (("ours", ours), ("before-us", f"{ours}0"), ("of-an-old-version", "")):
        ledger.write(msgspec.structs.replace(entry(run_id), pid=os.getpid(), born=born))
    assert set(ledger.live_runs()) == {"ours", "of-an-old-version"}
    assert ledger.unswept_runs("ours") == ["before-us"]
    assert ledger.unswept_runs("before-us") == []


def test_an_entry_covers_the_sandboxes_of_its_own_parts_of_the_run() -> None:
    first, copy = entry(), msgspec.structs.replace(entry(), parts=("3f2a",))
    resumed = msgspec.structs.replace(entry(), parts=("b00c", ""))
    names = [ledger.sandbox_name("r1", part, 17) for part in ("", "3f2a", "b00c")]
    assert names == ["taxtui-r1-17", "taxtui-r1-3f2ax17", "taxtui-r1-b00cx17"]
    assert [list(map(each.covers, names)) for each in (first, copy, resumed)] == [
        [True, False, False],
        [False, True, False],
        [True, False, True],
    ]
    share = msgspec.structs.replace(copy, share=TrialShare(1, 2))
    assert [share.covers(ledger.sandbox_name("r1", "3f2a", trial)) for trial in (16, 17)] == [False, True]
    assert first.covers("a name of another form"), "as before there were parts"
