"""A run that was cut short is gone on with: each trial once, in the same blocks, by the same plan and environment."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path
from unittest.mock import AsyncMock

import msgspec
import pytest

import costmodel
from costmodel.errors import SourceError
from costmodel.recording.events import FORMAT_VERSION, MAGIC, Cell, Event, Header, TrialEnded, TrialStarted
from taxtui.errors import UsageError
from taxtui.plan.spec import Plan, SandboxSpec
from taxtui.recording.writer import Recorder
from taxtui.runner import identity
from taxtui.runner.cleanup import ledger
from taxtui.runner.cleanup.ledger import LedgerEntry
from taxtui.runner.fanout.resume import ResumeState
from taxtui.runner.run import Run
from taxtui.sandboxes.fake import FakeSubstrate
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Marks
from tests.support.chaos.cases import doubled
from tests.support.command_line import events
from tests.taxtui.runner.test_engine import execute, fake, of, plan

__all__ = ["fake"]
RUN = "20260101t000000z-00000000"


def counted(got: list[Event]) -> Counter[tuple[int, int, int]]:
    """Counted trials that came to their end, by repetition, cell and block."""
    started = {event.trial: event for event in of(got, TrialStarted)}
    ended = [started[event.trial] for event in of(got, TrialEnded) if event.outcome not in ("interrupted", "cancelled")]
    return Counter((event.repetition, event.cell, event.block) for event in ended if not event.warm_up)


async def cut_short(tmp_path: Path, fake: FakeSubstrate, what: Plan, after: int) -> Path:
    """A run that is abandoned when so many trials have ended."""
    run = Run(what, tmp_path / "r.msgpack", RUN)

    async def enough() -> None:
        if run.progress.ended >= after:
            run.control.abandon("interrupted")
            await asyncio.sleep(0)

    fake.exec_hook = enough
    await run.execute()
    fake.exec_hook = AsyncMock()
    assert run.outcome == "interrupted"
    return run.path


async def resumed(path: Path, what: Plan) -> Run:
    unfinished = ResumeState(path, what)
    run = Run(what, path, unfinished.run_id, resumed=unfinished)
    await run.execute()
    return run


@pytest.mark.parametrize("killed", [False, True])
async def test_each_trial_is_done_once(killed: bool, tmp_path: Path, fake: FakeSubstrate) -> None:
    what = plan(trials=11, concurrency=2, warmup=1)
    whole = counted((await execute(tmp_path, what))[1])
    (tmp_path / "r.msgpack").unlink()
    path = await cut_short(tmp_path, fake, what, after=4)
    if killed:  # the last frame, of the end, was written only in part
        os.truncate(path, path.stat().st_size - 7)
    before = counted(events(path)).total()
    assert 4 <= before < 11
    run = await resumed(path, what)
    got = events(path)
    assert counted(got) == whole
    assert len(of(got, Header)) == 1
    assert (run.outcome, run.progress.ended, run.progress.ok) == ("finished", 11, 11)
    assert doubled(got, 11) == []
    recording = costmodel.load(path)
    assert (recording.trials, recording.complete) == (11, True)
    assert fake.alive == {}


async def test_what_has_finished_or_goes_on_is_not_resumed(tmp_path: Path, fake: FakeSubstrate) -> None:
    what = plan(trials=3)
    run, _ = await execute(tmp_path, what)
    with pytest.raises(UsageError, match="the run has finished"):
        ResumeState(run.path, what)
    run.path.unlink()
    path = await cut_short(tmp_path, fake, what, after=1)
    ledger.write(LedgerEntry(run_id=RUN, substrates=(), create_timeout_s=1.0, pid=os.getpid()))
    with pytest.raises(UsageError, match="the run is in progress"):
        ResumeState(path, what)
    ledger.remove(RUN)
    path.write_bytes(path.read_bytes()[:50] + b"x" + path.read_bytes()[51:])
    with pytest.raises(SourceError):
        ResumeState(path, what)


async def test_another_plan_is_refused_with_the_difference(
    tmp_path: Path, fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await cut_short(tmp_path, fake, plan(trials=5), after=1)
    data = path.read_bytes()
    with pytest.raises(UsageError, match=r"of another plan: cells\.0\.trials: 5, now 6; use the scenario"):
        ResumeState(path, plan(trials=6))
    with pytest.raises(UsageError, match=r"of another plan: seed: 0, now 1"):
        ResumeState(path, plan(trials=5, top={"seed": 1}))
    assert path.read_bytes() == data
    path.unlink()
    describe = identity.describe
    with monkeypatch.context() as earlier:
        earlier.setattr(identity, "describe", lambda plan: {**describe(plan), "side_by_side": False})
        path = await cut_short(tmp_path, fake, plan(trials=5), after=1)
    with pytest.raises(UsageError, match=r"begun by an earlier taxtui: its plan has side_by_side; start another run"):
        ResumeState(path, plan(trials=5))


async def test_another_environment_is_refused_and_the_file_stays_as_it_was(tmp_path: Path, fake: FakeSubstrate) -> None:
    path = await cut_short(tmp_path, fake, plan(trials=5), after=1)
    data = path.read_bytes()
    fake.availability = msgspec.structs.replace(fake.availability, version="2.0")
    with pytest.raises(UsageError, match=r"another environment: substrate_version: '', now '2\.0'; start another run"):
        await resumed(path, plan(trials=5))
    assert path.read_bytes() == data


def only_header(path: Path, run_id: str, what: Plan) -> Path:
    """A recording that anybody can write: the beginning of this plan's, and of no trial."""
    with Recorder(path) as recorder:
        recorder.add(Header(MAGIC, FORMAT_VERSION, run_id, identity.describe(what), {}))
    return path


@pytest.mark.parametrize("name", ["/ABSOLUTE", "../../victim", "", ".", "..", "*", "a/b", "x" * 41, "a\n"])
def test_a_run_id_of_a_file_names_nothing_else(name: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "thesis.txt").write_text("thesis")
    victim.with_suffix(".json").write_text("{}")
    name = name.replace("/ABSOLUTE", str(victim))
    path = only_header(tmp_path / "r.msgpack", name, plan())
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"r\.msgpack: the run id is not valid"):
        ResumeState(path, plan())
    entry = LedgerEntry(run_id=name, substrates=(), create_timeout_s=1.0)
    for act in (lambda: entry.path, lambda: ledger.write(entry), lambda: ledger.remove(name)):
        with pytest.raises(UsageError, match="the run id is not valid"):
            act()
    assert (victim / "thesis.txt").read_text() == "thesis"
    assert victim.with_suffix(".json").read_text() == "{}"
    assert path.read_bytes() == before


async def test_a_run_without_its_cells_is_not_resumed(tmp_path: Path, fake: FakeSubstrate) -> None:
    path = only_header(tmp_path / "r.msgpack", RUN, plan())
    before = path.read_bytes()
    with pytest.raises(UsageError, match="ends before its cells are described"):
        await resumed(path, plan())
    assert path.read_bytes() == before
    assert not of(events(path), Cell)
    assert fake.alive == {}


@pytest.mark.parametrize("here", [False, True])
async def test_a_resumed_copy_and_the_run_that_continues_elsewhere_spare_each_other(
    here: bool, tmp_path: Path, fake: FakeSubstrate
) -> None:
    """The first part of a run whose state folder is ours is not spared: neither its runner nor its watchdog lives."""
    what = plan(trials=6, warmup=0)
    path = await cut_short(tmp_path, fake, what, after=2)
    left = SandboxSpec(name=f"taxtui-{RUN}-5", labels={LABEL_RUN: RUN}, limits=what.limits, ttl_s=60.0)
    await fake.create(left, Marks())
    if here:
        ledger.write(LedgerEntry(run_id=RUN, substrates=(), create_timeout_s=1.0))
    run = await resumed(path, what)
    assert (run.outcome, run.progress.ok, run.clean) == ("finished", 6, True)
    assert list(fake.alive) == ([] if here else [left.name])
    names = [event.sandbox for event in of(events(path), TrialStarted)]
    assert len(set(names)) == len(names)
    assert here or left.name not in names
    ledger.remove(RUN)
