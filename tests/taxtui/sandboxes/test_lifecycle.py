"""Suspensions and copies in a trial: what is recorded, and what is left after a failure or an abandonment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

from costmodel.recording import events
from costmodel.recording.events import Actions, Mark, PhaseEnded
from costmodel.recording.follower import Causality
from taxtui.errors import CreateFailed, ExecFailed, ScenarioError, UsageError
from taxtui.plan import scenario
from taxtui.plan.notation import parse_lifecycle
from taxtui.plan.scenario import CellBlock, ScenarioFile
from taxtui.plan.spec import CellPlan, Command, SandboxSpec, SubstrateRef, ThinkTime
from taxtui.runner.cleanup.ledger import TrialShare, part_of
from taxtui.runner.preflight import require
from taxtui.sandboxes.fake import FakeSandbox, FakeSubstrate
from taxtui.sandboxes.lifecycle import Usage, reference_of
from taxtui.sandboxes.protocol import Availability, Capabilities, ExecResult, Marks
from taxtui.substrates.docker.containers import _labelled
from tests.support import waiting
from tests.taxtui.runner.test_trial import TIER, FakeContext, obey, run, trial_of

MS = 1_000_000
PAUSES = ThinkTime(median_ns=40 * MS, suspend_after_ns=10 * MS)


class Sleeper(FakeSandbox):
    """A fake sandbox with every operation; ``fails`` names the one that raises, ``hangs`` the one without an end."""

    fails = ""
    hangs = ""
    memory_bytes = 7

    async def _call(self, name: str, marks: Marks) -> None:
        self.substrate.calls.append(name)
        if name == self.hangs:
            await asyncio.Event().wait()
        if name == self.fails:
            raise ExecFailed(f"{name} failed")

    suspend = partialmethod(_call, "suspend")
    resume = partialmethod(_call, "resume")

    async def usage(self) -> Usage:
        return Usage(memory_bytes=self.memory_bytes, cpu_ns=5)

    async def snapshot(self, name: str, labels: Mapping[str, str], marks: Marks) -> str:
        await self._call("snapshot", marks)
        self.substrate.alive[name] = labels["taxtui.run"]
        return name


class Sleepers(FakeSubstrate):
    """A fake substrate with every operation."""

    def __init__(self) -> None:
        super().__init__()
        self.capabilities = Capabilities(lifecycle=("suspend", "snapshot", "build"))
        self.answer = obey
        self.kind = type("Kind", (Sleeper,), {})
        self.acquired: list[str] = []

    async def create(self, spec: SandboxSpec, marks: Marks) -> FakeSandbox:
        self.acquired.append(spec.acquire)
        await super().create(spec, marks)
        return self.kind(self, spec.name)

    async def build(self, name: str, dockerfile: str, labels: Mapping[str, str], marks: Marks) -> str:
        self.calls.append("build")
        self.alive[name] = labels["taxtui.run"]
        return name

    def dockerfile(self) -> str:
        return "FROM scratch"


def context_of(*operations: str, **plan: Any) -> tuple[FakeContext, Sleepers]:
    context = FakeContext(**plan)
    substrate = Sleepers()
    context.substrate = substrate
    context.lifecycle = operations  # type: ignore[assignment]
    return context, substrate


async def test_a_suspension_lies_in_the_pause_and_its_resume_in_the_gap() -> None:
    context, substrate = context_of("suspend", actions=3, think=PAUSES)
    await run(context)
    assert (context.ended.outcome, context.ended.message) == ("ok", "")
    assert substrate.calls.count("suspend") == substrate.calls.count("resume") == 2
    phases = [event for event in context.of(PhaseEnded) if event.phase in (events.SUSPEND, events.RESUME)]
    assert [event.phase for event in phases] == [events.SUSPEND, events.RESUME] * 2
    rows = [event for event in context.of(Actions) if event.step == events.ACTION]
    think_ns, gap_ns = ([sum(getattr(row, name)) for row in rows] for name in ("think_ns", "gap_ns"))
    assert sum(think_ns) >= 2 * PAUSES.median_ns
    assert sum(gap_ns) >= sum(event.duration_ns for event in phases if event.phase == events.RESUME)
    marks = [mark for mark in context.of(Mark) if mark.bytes == 7]
    assert [mark.name for mark in marks] == ["suspending", "suspended", "held"] * 2
    assert {mark.cpu_ns for mark in marks} == {5}
    Causality().add(context.events)
    context, substrate = context_of("suspend", think=ThinkTime(median_ns=5 * MS, suspend_after_ns=10 * MS))
    await run(context)
    assert (context.ended.outcome, "suspend" in substrate.calls) == ("ok", False), "a pause below the threshold"


@pytest.mark.parametrize("hangs", [False, True])
@pytest.mark.parametrize("operation", ["suspend", "resume", "snapshot"])
async def test_an_operation_that_fails_or_is_abandoned_ends_the_trial_and_leaves_nothing(
    operation: str, hangs: bool
) -> None:
    context, substrate = context_of("suspend", "snapshot", think=PAUSES, mode="session")
    substrate.kind.hangs, substrate.kind.fails = (operation, "") if hangs else ("", operation)
    trial = trial_of(context)
    running = asyncio.ensure_future(trial.run(0))
    await waiting.until(lambda: operation in substrate.calls, "the call")
    if hangs:
        trial.abandon(events.CANCELLED)
    await running
    outcome = ("cancelled", operation, "") if hangs else ("failed", operation, "ExecFailed")
    assert (context.ended.outcome, context.ended.phase, context.ended.error) == outcome
    assert not substrate.alive
    assert ("close_session" in substrate.calls) == (operation == "snapshot")  # no process of a suspended one is killed


async def test_sessions_that_a_suspension_loses_are_opened_again_within_the_resume() -> None:
    context, substrate = context_of("suspend", actions=2, think=PAUSES, mode="session")
    substrate.capabilities = Capabilities(lifecycle=("suspend",), suspend_loses=("sessions",))
    await run(context)
    assert context.ended.outcome == "ok"
    calls = [call for call in substrate.calls if call in ("open_session", "close_session", "resume")]
    assert calls == ["open_session", "close_session", "resume", "open_session", "close_session"]


async def test_copies_follow_the_last_action_outside_the_occupied_time_and_are_removed() -> None:
    context, substrate = context_of("snapshot", "build")
    await run(context)
    assert context.ended.outcome == "ok"
    assert context.phases()[-4:] == [events.SNAPSHOT, events.FORK, events.BUILD, events.CLEANUP]
    assert substrate.acquired == ["create", "snapshot:taxtui-r-0.snapshot"]
    assert not substrate.alive
    [snapshot] = [event for event in context.of(PhaseEnded) if event.phase == events.SNAPSHOT]
    assert context.ended.end_ns <= snapshot.start_ns
    Causality().add(context.events)


async def test_a_fork_without_an_answer_fails_the_trial_and_its_copies_are_removed() -> None:
    context, substrate = context_of("snapshot")

    def answer(command: Command) -> ExecResult:
        forked = any(name.endswith(".fork") for name in substrate.alive)
        return ExecResult(9, b"", b"") if command.script == "true" and forked else obey(command)

    substrate.answer = answer
    await run(context)
    assert (context.ended.outcome, context.ended.phase) == ("failed", events.FORK)
    assert not substrate.alive


def test_the_notation_of_operations() -> None:
    assert parse_lifecycle("") == ((), None)
    assert parse_lifecycle("suspend:300ms, snapshot,build") == (("suspend", "snapshot", "build"), 300 * MS)
    for text in ("suspend", "fork", "snapshot:5s", "build,build", "suspend:soon"):
        with pytest.raises(UsageError):
            parse_lifecycle(text)
    assert (reference_of("create"), reference_of("snapshot:sha256:1")) == ("", "sha256:1")
    with pytest.raises(CreateFailed):
        reference_of("snapshot:")


def test_a_suspension_is_part_of_a_cells_identity_and_without_a_longer_pause_refused() -> None:
    def planned(think: str) -> str:
        block = CellBlock(substrates=["fake"], tiers=["T0"], actions=[1], think=think)
        [cell] = scenario.plan(ScenarioFile(cells=[block], lifecycle="suspend:5s"), Path()).cells
        return str(cell.think)

    assert planned("8s") == "8s,suspend:5s"
    assert planned("lognormal:4s,0.6") == "lognormal:4s,0.6,suspend:5s"
    for think in ("", "0s", "5s"):
        with pytest.raises(ScenarioError, match="needs pauses between actions longer than 5s") as refused:
            planned(think)
        assert "--think 10s" in refused.value.fix


def test_an_operation_that_a_substrate_lacks_is_refused_before_the_run() -> None:
    cell = CellPlan(substrate=SubstrateRef(name="fake"), tier=TIER, actions=1)
    ready = Availability(ok=True, detail="ready")
    require(cell, Sleepers(), ready, ("suspend", "build"))
    with pytest.raises(UsageError, match="fake has no suspend"):
        require(cell, FakeSubstrate(), ready, ("suspend",))


def test_copies_belong_to_the_worker_of_their_trial() -> None:
    share = TrialShare(worker=1, workers=2)
    assert [share.holds(f"taxtui-r-{name}") for name in ("3.fork", "4.snapshot", "3f2ax5.image")] == [True, False, True]
    assert part_of("taxtui-r-3f2ax5.image") == "3f2a"


def test_every_stage_of_a_dockerfile_begins_with_the_labels() -> None:
    text = _labelled("FROM a AS first\nRUN x\nfrom b\nCOPY --from=first /x /\n", {"run": 'r"1'})
    label = 'LABEL "run"="r\\"1"'
    assert text.splitlines() == ["FROM a AS first", label, "RUN x", "from b", label, "COPY --from=first /x /"]
