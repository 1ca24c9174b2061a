"""One trial against a substrate that fails where the test says so."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from typing import Any, TypeVar
from unittest.mock import AsyncMock

import pytest

from costmodel.recording import events
from costmodel.recording.events import UNKNOWN, Actions, Event, Mark, Notice, PhaseEnded, TrialEnded, TrialStarted
from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, ExecTimeout, SandboxLost, Throttled
from taxtui.plan.spec import CellPlan, Command, Limits, SandboxSpec, Step, SubstrateRef, ThinkTime, Tier
from taxtui.recording import digest
from taxtui.runner.trial import trajectory as trajectory_module
from taxtui.runner.trial.bracket import Method
from taxtui.runner.trial.cell import CellRun
from taxtui.runner.trial.trial import Trial
from taxtui.sandboxes.fake import FakeOptions, FakeSandbox, FakeSession, FakeSubstrate
from taxtui.sandboxes.lifecycle import Usage
from taxtui.sandboxes.protocol import ExecResult, Marks
from tests.support import waiting

E = TypeVar("E", bound=Event)

TIMES = "0m0.001s 0m0.000s\n0m0.000s 0m0.000s\n"
TIER = Tier(
    name="T",
    title="",
    preload="load",
    setup=(Step(name="clone", run="clone"), Step(name="fails first", run="test", expect_exit=1)),
    cycle=(Step(name="say", run="say", expect_stdout="nonce {nonce}"), Step(name="two", run="two")),
)


def obey(command: Command) -> ExecResult:
    """What TIER's commands are expected to do."""
    nonce = command.script.partition("TAXTUI_NONCE=")[2].partition("\n")[0]
    script = command.script.splitlines()[-1]
    return ExecResult(1 if script == "test" else 0, f"nonce {nonce}".encode() if script == "say" else b"", b"warn")


class FakeContext(CellRun):
    """A cell without a run around it: collects events."""

    def __init__(self, **plan: Any) -> None:
        self.substrate = FakeSubstrate()
        self.substrate.answer = obey
        self.plan = CellPlan(substrate=SubstrateRef(name="fake"), tier=TIER, **({"actions": 5} | plan))
        self.cell = 0
        self.method: Method = "none"
        self.preload = False
        self.timeout_s = 5.0
        self.create_timeout_s = 5.0
        self.seed = 0
        self.lifecycle = ()
        self.repetition = 0
        self.image_bytes = 296_000_000
        self.anchor_ns = time.monotonic_ns()
        self.events: list[Event] = []

    def now(self) -> int:
        return time.monotonic_ns() - self.anchor_ns

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def ended(self) -> TrialEnded:
        [ended] = self.of(TrialEnded)
        return ended

    def phases(self) -> list[str]:
        return [event.phase for event in self.of(PhaseEnded)]


def trial_of(context: FakeContext, **kwargs: Any) -> Trial:
    labels = {"taxtui.run": "r", "taxtui.trial": "0", "taxtui.deadline": "0"}
    spec = SandboxSpec(name="taxtui-r-0", labels=labels, limits=Limits(), ttl_s=60)
    return Trial(context, 0, spec, **({"warm_up": False, "block": 0} | kwargs))


async def run(context: FakeContext, **kwargs: Any) -> Trial:
    trial = trial_of(context, **kwargs)
    await trial.run(0)
    return trial


def failing(error: Exception) -> Any:
    return AsyncMock(side_effect=error)


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_a_good_trial_passes_through_every_phase_in_order() -> None:
    context = FakeContext()
    context.preload = True
    create = context.substrate.create

    async def on_a_node(spec: SandboxSpec, marks: Marks) -> FakeSandbox:
        marks.on("ip-10-0-0-7.internal")
        marks("pulled", moved_bytes=2 << 30)
        return await create(spec, marks)

    context.substrate.create = on_a_node  # type: ignore[method-assign]
    await run(context)
    expected = [events.CREATE, events.READY, events.READY_AGAIN, events.PRELOAD, events.SETUP, events.CLEANUP]
    assert context.phases() == expected
    assert isinstance(context.events[0], TrialStarted)
    assert context.events[0].image_bytes == 296_000_000
    assert isinstance(context.events[-1], TrialEnded)
    assert (context.ended.outcome, context.ended.error, context.ended.phase) == ("ok", "", "")
    assert context.ended.node == digest("ip-10-0-0-7.internal")
    marks = [(mark.name, mark.bytes) for mark in context.of(Mark)]
    assert marks == [("pulled", 2 << 30), ("accepted", UNKNOWN), ("running", UNKNOWN)]
    setup, actions = context.of(Actions)
    assert (setup.step, len(setup.duration_ns), setup.exit_code) == (events.SETUP, 2, [0, 1])
    assert (actions.step, actions.first, len(actions.duration_ns)) == (events.ACTION, 0, 5)
    scripts = [command.script.splitlines()[-1] for command in context.substrate.commands[-5:]]
    assert scripts == ["say", "two", "say", "two", "say"]
    assert actions.stderr_bytes == [4] * 5
    assert context.substrate.alive == {}


async def test_phases_actions_and_gaps_add_up_to_held() -> None:
    while True:
        context = FakeContext()
        context.substrate.exec_hook = context.substrate.create_hook = lambda: asyncio.sleep(0.002)
        await run(context)
        [started] = context.of(TrialStarted)
        held = context.ended.end_ns - started.start_ns
        phases = {event.phase: event.duration_ns for event in context.of(PhaseEnded)}
        actions = context.of(Actions)[1]
        parts = sum(phases[name] for name in (events.CREATE, events.READY, events.READY_AGAIN, events.SETUP))
        harness = held - parts - sum(actions.duration_ns)
        assert harness >= sum(actions.gap_ns) > 0
        if harness < held / 10:
            return
        waiting.still("a trial that the machine does not hold up between its parts")


async def test_session_mode_opens_its_shell_within_ready_and_closes_it() -> None:
    context = FakeContext(mode="session")
    await run(context)
    assert context.substrate.calls == ["create taxtui-r-0", "open_session", "close_session", "destroy taxtui-r-0"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ExecResult(2, b"", b""), "action 0 (say): exit 2, expected 0"),
        (ExecResult(0, b"secret", b""), "action 0 (say): the expected output is missing"),
    ],
)
async def test_an_action_that_does_not_prove_its_work_fails_the_trial(answer: ExecResult, message: str) -> None:
    context = FakeContext()
    context.substrate.answer = lambda command: answer if command.script.endswith("say") else obey(command)
    await run(context)
    ended = context.ended
    assert (ended.outcome, ended.phase, ended.error, ended.message) == ("failed", "action", "WrongResult", message)
    assert context.of(Actions)[1].duration_ns, "what was measured before the failure is recorded"
    assert context.substrate.alive == {}


@pytest.mark.parametrize(
    ("where", "hook", "phase", "outcome"),
    [
        ("create_hook", failing(CreateFailed("no")), "create", "failed"),
        ("created_hook", failing(CreateFailed("made, then refused")), "create", "failed"),
        ("created_hook", for_ever, "create", "timeout"),
        ("ready_hook", failing(SandboxLost("gone")), "ready", "failed"),
        ("exec_hook", failing(SandboxLost("gone")), "ready", "failed"),
        ("exec_hook", failing(ExecTimeout("slow")), "ready", "timeout"),
        ("create_hook", failing(RuntimeError("a bug of the adapter")), "create", "failed"),
    ],
)
async def test_whatever_an_adapter_does_is_the_outcome_and_nothing_is_left_but_of_other_trials(
    where: str, hook: Any, phase: str, outcome: str
) -> None:
    context = FakeContext()
    context.substrate.alive["taxtui-r-1"] = "r"
    setattr(context.substrate, where, hook)
    context.create_timeout_s = 0.2
    await run(context)
    ended = context.ended
    assert (ended.outcome, ended.phase) == (outcome, phase)
    assert context.substrate.alive == {"taxtui-r-1": "r"}
    assert ("reap taxtui-r-0" in context.substrate.calls) == (where == "created_hook")


async def test_never_ready_is_a_timeout_in_ready() -> None:
    context = FakeContext()
    context.create_timeout_s = 0.4
    context.substrate.options = FakeOptions(create_s=0.3)  # create and ready share one time limit
    context.substrate.exec_hook = failing(ExecFailed("not yet"))
    await run(context)
    assert (context.ended.outcome, context.ended.phase, context.ended.error) == ("timeout", "ready", "ReadyTimeout")
    assert context.ended.message == "no command answered within 0.4 s of create; at last: not yet"


async def test_an_ended_trial_is_freed_without_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        trial = trial_of(FakeContext())
        await trial.run(0)
        freed = weakref.ref(trial)
        del trial
        assert freed() is None
    finally:
        gc.enable()


async def test_waits_for_a_throttle_are_not_part_of_the_time_limit_and_never_latency() -> None:
    context = FakeContext(actions=1)
    context.create_timeout_s = 0.3
    context.substrate.fail("create", Throttled("slow down", 0.2), times=2)
    context.substrate.fail("ready", Throttled("slow down", 0.2), times=2)
    left = iter([Throttled("slow down", 0.2)])

    def answer(command: Command) -> ExecResult:
        if command.script.endswith("say"):
            for error in left:
                raise error
        return obey(command)

    context.substrate.answer = answer
    began_ns = time.monotonic_ns()
    await run(context)
    assert context.ended.outcome == "ok"
    assert context.ended.queued_ns >= 1_000_000_000
    create = context.of(PhaseEnded)[0]
    assert create.phase == events.CREATE
    assert create.start_ns >= 400_000_000, "a refused request is no latency"
    [duration_ns] = context.of(Actions)[1].duration_ns
    assert context.ended.queued_ns + duration_ns <= time.monotonic_ns() - began_ns
    assert [notice.level for notice in context.of(Notice)] == ["warning"] * 5


async def test_a_throttle_while_it_boots_does_not_take_what_had_passed_from_the_cold_start() -> None:
    context = FakeContext()
    refusals = iter([Throttled("slow down", 0.05)])

    async def boot() -> None:
        if (refusal := next(refusals, None)) is not None:
            await asyncio.sleep(0.2)
            raise refusal

    context.substrate.ready_hook = boot
    await run(context)
    [ready] = [event for event in context.of(PhaseEnded) if event.phase == events.READY]
    assert ready.duration_ns >= 190_000_000  # it booted all the while
    assert context.ended.queued_ns >= 50_000_000  # the wait, and that alone


async def test_throttled_waits_are_no_gap_no_model_time_and_use_up_no_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a suspension, of a resume, and of a command of an SDK with timestamps; limits are shorter than the waits."""
    monkeypatch.setattr(trajectory_module, "TIMEOUT_GRACE_S", 0.05)
    think = ThinkTime(median_ns=300_000_000, suspend_after_ns=0)
    context = FakeContext(actions=2, think=think)
    context.timeout_s, context.substrate.options = 0.5, FakeOptions(exec_s=0.02)
    fake = context.substrate

    class Suspending(FakeSandbox):
        async def suspend(self, marks: Marks) -> None:
            await fake.passes("reset", 0.0)

        async def resume(self, marks: Marks) -> None:
            await fake.passes("created", 0.0)

        async def usage(self) -> Usage:
            return Usage()

        async def exec(self, command: Command) -> ExecResult:
            if command.script.endswith("two"):
                await fake.passes("reap", 0.0)
            began_ns, result = time.monotonic_ns(), await super().exec(command)
            return ExecResult(result.exit_code, result.stdout, result.stderr, began_ns, time.monotonic_ns())

    async def create(spec: SandboxSpec, marks: Marks) -> FakeSandbox:
        fake.alive[spec.name] = "r"
        return Suspending(fake, spec.name)

    for call in ("reset", "created", "reap"):
        fake.fail(call, Throttled("slow down", 0.6))
    fake.create = create  # type: ignore[method-assign]
    await run(context)
    assert context.ended.outcome == events.OK
    assert context.ended.queued_ns >= 1_800_000_000
    actions, held_ns = context.of(Actions)[1], context.ended.end_ns - context.of(TrialStarted)[0].start_ns
    assert context.ended.queued_ns + sum(actions.think_ns + actions.gap_ns + actions.duration_ns) <= held_ns


async def test_a_session_that_breaks_before_the_first_answer_is_opened_again() -> None:
    context = FakeContext(mode="session")
    context.substrate.exec_hook = AsyncMock(side_effect=[ExecFailed("it closed"), *[None] * 20])
    await run(context)
    assert context.ended.outcome == events.OK
    assert context.substrate.calls.count("open_session") == 2


async def test_think_time_is_recorded_and_not_latency() -> None:
    context = FakeContext(actions=3, think=ThinkTime(median_ns=50_000_000))
    began_ns = time.monotonic_ns()
    await run(context)
    took_ns = time.monotonic_ns() - began_ns
    actions = context.of(Actions)[1]
    assert actions.think_ns[0] == 0
    assert all(think >= 50_000_000 for think in actions.think_ns[1:])
    assert sum(actions.think_ns + actions.gap_ns + actions.duration_ns) <= took_ns  # no part of it is counted twice


async def test_timestamps_of_a_thread_are_used_as_they_are() -> None:
    context = FakeContext(actions=1)

    def answer(command: Command) -> ExecResult:
        plain = obey(command)
        now = time.monotonic_ns()
        return ExecResult(plain.exit_code, plain.stdout, plain.stderr, now - 777, now)

    context.substrate.answer = answer
    await run(context)
    assert context.of(Actions)[1].duration_ns == [777]


async def test_wrapper_time_is_recorded_beside_the_run() -> None:
    context = FakeContext(actions=2)
    context.method = "bash"
    ended = iter((UNKNOWN, 10_000_900_000))  # the wrapper around the second one has no clock of its own

    def answer(command: Command) -> ExecResult:
        nonce = command.script.partition("TAXTUI_NONCE=")[2].partition("\n")[0]
        script = command.script.splitlines()[-1]
        told = script in ("say", "two")
        trailer = f"{TIMES}\n{nonce} 10.000200 10.000700 10.000100\n{TIMES}10.000800\n" if told else ""
        code, out = (1 if script == "test" else 0), (f"nonce {nonce}".encode() if script == "say" else b"")
        time.sleep(0.001)
        return ExecResult(code, out, trailer.encode(), wrapper_ended_ns=next(ended) if told else UNKNOWN)

    context.substrate.answer = answer
    await run(context)
    setup, actions = context.of(Actions)
    assert setup.wrapper_ns == []  # none is known
    assert (actions.run_ns, actions.wrapper_ns) == ([500_000] * 2, [200_000, 300_000])


@pytest.mark.parametrize("hook", ["", "create_hook", "created_hook", "ready_hook", "exec_hook"])
async def test_abandoning_anywhere_still_cleans_up_and_before_the_beginning_nothing_is_made(hook: str) -> None:
    context = FakeContext()
    entered = asyncio.Event()

    async def hold() -> None:
        entered.set()
        await asyncio.sleep(0.05)

    setattr(context.substrate, hook or "create_hook", hold)
    trial = trial_of(context)
    running = asyncio.ensure_future(trial.run(0))
    if hook:
        await entered.wait()
    trial.abandon("interrupted")
    trial.abandon("cancelled")  # the first word counts
    await running
    assert context.ended.outcome == "interrupted"
    assert context.substrate.alive == {}
    if hook:
        assert context.phases()[-1] == events.CLEANUP
    else:
        assert context.substrate.calls == []


async def test_a_clean_up_that_fails_is_said_loudly() -> None:
    context = FakeContext()
    context.substrate.destroy_hook = failing(CleanupFailed("still there"))
    await run(context)
    assert context.ended.outcome == "ok", "the measurement itself is good"
    [notice] = context.of(Notice)
    assert notice.level == "error"
    assert "may still exist" in notice.text
    assert events.CLEANUP not in context.phases()


async def test_reset_hands_the_sandbox_on_and_checks_that_it_is_clean() -> None:
    context = FakeContext(acquire="reset")
    first = await run(context)
    assert first.reusable
    assert context.substrate.alive, "kept for the next trial"
    assert events.CLEANUP not in context.phases()
    context.events.clear()
    await run(context, reuse=first.reusable)
    assert context.phases()[0] == events.RESET
    assert context.ended.outcome == "ok"

    context.events.clear()
    context.substrate.answer = lambda command: ExecResult(91 if "canary" in command.script else 0, b"", b"")
    third = await run(context, reuse=first.reusable)
    assert (context.ended.outcome, context.ended.phase) == ("failed", events.READY_AGAIN)
    assert "left something behind" in context.ended.message
    assert not third.reusable
    assert context.substrate.alive == {}

    context.events.clear()
    context.substrate.answer = lambda command: 1 / 0 if "canary" in command.script else obey(command)  # type: ignore
    assert not (await run(context)).reusable, "without a check it is removed"
    assert context.ended.outcome == events.OK
    assert "no check of a reset" in context.of(Notice)[0].text
    assert context.substrate.alive == {}


async def test_a_reset_that_takes_too_long_is_a_timeout() -> None:
    context = FakeContext(acquire="reset")
    first = await run(context, warm_up=True)
    context.substrate.reset_hook = failing(TimeoutError())
    context.events.clear()
    await run(context, reuse=first.reusable)
    assert (context.ended.outcome, context.ended.phase) == (events.TIMEOUT, events.RESET)
    assert context.substrate.alive == {}


async def test_an_adapter_that_ignores_a_timeout_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trajectory_module, "TIMEOUT_GRACE_S", 0.05)
    context = FakeContext()
    context.timeout_s = 0.05

    async def hang_after_ready() -> None:
        if len(context.substrate.commands) > 2:
            await for_ever()

    context.substrate.exec_hook = hang_after_ready
    await run(context)
    assert (context.ended.outcome, context.ended.error) == ("timeout", "ExecTimeout")
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


async def test_a_session_that_will_not_close_is_worth_a_notice_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeSession, "close", failing(ExecFailed("the shell is stuck")))
    context = FakeContext(mode="session")
    await run(context)
    assert context.ended.outcome == events.OK
    assert [notice.text for notice in context.of(Notice)] == ["closing a session: ExecFailed the shell is stuck"]
    assert context.substrate.alive == {}
