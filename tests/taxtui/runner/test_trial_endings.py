"""How a trial ends when its beginning, its reset or its session go wrong."""

from __future__ import annotations

import pytest

from costmodel.recording import events
from costmodel.recording.events import Notice, PhaseEnded
from taxtui.errors import CreateFailed, ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.fake import FakeSession
from taxtui.sandboxes.protocol import ExecResult
from tests.taxtui.runner.test_trial import FakeContext, failing, obey, run, trial_of


async def test_a_trial_abandoned_before_it_begins_makes_nothing() -> None:
    context = FakeContext()
    trial = trial_of(context)
    trial.abandon(events.INTERRUPTED)
    await trial.run(0)
    assert context.ended.outcome == events.INTERRUPTED
    assert context.substrate.calls == []
    assert context.substrate.alive == {}


async def test_a_no_op_that_fails_is_asked_again_until_it_returns_0() -> None:
    context = FakeContext()
    refusals = [ExecResult(127, b"", b"not yet")] * 2

    def answer(command: Command) -> ExecResult:
        return refusals.pop() if refusals else obey(command)

    context.substrate.answer = answer
    await run(context)
    assert context.ended.outcome == events.OK
    (ready,) = [event for event in context.of(PhaseEnded) if event.phase == events.READY]
    assert ready.duration_ns > 0
    assert [command.script for command in context.substrate.commands[:4]] == ["true"] * 4, "three for ready, one again"


async def test_a_reset_that_takes_too_long_is_a_timeout() -> None:
    context = FakeContext(acquire="reset")
    first = await run(context, warm_up=True)
    context.substrate.reset_hook = failing(TimeoutError())
    context.events.clear()
    await run(context, reuse=first.reusable)
    assert (context.ended.outcome, context.ended.phase) == (events.TIMEOUT, events.RESET)
    assert context.substrate.alive == {}


async def test_cleaning_up_after_a_failed_create_spares_other_trials_sandboxes() -> None:
    context = FakeContext()
    context.substrate.alive["taxtui-r-1"] = "r"
    context.substrate.created_hook = failing(CreateFailed("it was made and the answer got lost"))
    await run(context)
    assert context.ended.outcome == events.FAILED
    assert context.substrate.calls[-1] == "reap taxtui-r-0"
    assert set(context.substrate.alive) == {"taxtui-r-1"}


async def test_a_session_that_will_not_close_is_worth_a_notice_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: FakeSession) -> None:
        raise ExecFailed("the shell is stuck")

    monkeypatch.setattr(FakeSession, "close", refuse)
    context = FakeContext(mode="session")
    await run(context)
    assert context.ended.outcome == events.OK
    assert [notice.text for notice in context.of(Notice)] == ["closing a session: ExecFailed the shell is stuck"]
    assert context.substrate.alive == {}
