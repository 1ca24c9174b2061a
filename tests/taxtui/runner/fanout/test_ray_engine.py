"""The engine beside a stand-in for Ray whose actors live in this process; test_ray.py has the real one."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from costmodel.recording.events import Clock, Event, Notice, TrialEnded, TrialStarted
from costmodel.recording.follower import read_events
from taxtui.errors import SubstrateUnavailable, TaxtuiError, UsageError
from taxtui.plan.spec import CellPlan, Plan, Step, SubstrateRef, Tier
from taxtui.runner import run as run_module
from taxtui.runner.cleanup.ledger import TrialShare
from taxtui.runner.fanout import ray_launcher
from taxtui.runner.fanout.messages import Assignment, WorkerCommand, line
from taxtui.runner.fanout.ray_launcher import (
    RayLauncher,
    RayNode,
    RayOptions,
    RayTransport,
    nodes_of,
    place_workers,
)
from taxtui.runner.fanout.ray_node import NodeRelay, OrderedInbox
from taxtui.runner.run import Run
from tests.support import paced_fake, waiting
from tests.taxtui.runner.test_engine import QuietWatchdog

RUN_ID = "20260101t000000z-00000000"
TIER = Tier(name="T", title="", cycle=(Step(name="one", run="true"),))
HEAD, ONE, TWO = RayNode("h", "10.0.0.1", 0), RayNode("a", "10.0.0.2", 2), RayNode("b", "10.0.0.3", 1)


class RayError(Exception):
    """As Ray names what all of its errors are."""


class RayActorError(RayError):
    """An actor is gone."""


class ActorUnavailableError(RayActorError):
    """An actor cannot be reached, for now or for ever."""


class Handle:
    """An actor of this process. ``strikes`` are called with a method's name behind each call, and may raise."""

    def __init__(self, actor: NodeRelay, ray: FakeRay) -> None:
        self.actor, self.ray = actor, ray

    def __getattr__(self, name: str) -> Any:
        async def call(*values: Any) -> Any:
            if self in self.ray.killed:
                raise RayActorError
            answer = await getattr(self.actor, name)(*values)
            self.ray.struck(self, name)
            return answer

        class Method:
            @staticmethod
            def remote(*values: Any) -> Awaitable[Any]:
                return asyncio.ensure_future(call(*values))

        return Method


class FakeRay(ModuleType):
    """What the engine uses of Ray."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.__spec__ = ModuleSpec("ray", None)
        self.exceptions = ModuleType("ray.exceptions")
        for error in (RayError, RayActorError, ActorUnavailableError):
            setattr(self.exceptions, error.__name__, error)
        self.handles: list[Handle] = []
        self.killed: set[Handle] = set()
        self.joined = False
        self.struck: Callable[[Handle, str], None] = lambda handle, name: None

    def init(self, **_: Any) -> None:
        self.joined = True

    def shutdown(self) -> None:
        self.joined = False

    def remote(self, actor: type[NodeRelay]) -> Any:
        ray = self

        class Waiting:
            @staticmethod
            def options(**_: Any) -> Any:
                return Waiting

            @staticmethod
            def remote() -> Handle:
                ray.handles.append(Handle(actor(), ray))
                return ray.handles[-1]

        return Waiting

    def kill(self, handle: Handle) -> None:
        self.killed.add(handle)


@pytest.fixture
async def ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[FakeRay]:
    """Ray with the nodes of this file, and workers that find the paced fake."""
    fake, strategies = FakeRay(), ModuleType("ray.util.scheduling_strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda node, soft: node  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    for name, value in paced_fake.environment(tmp_path / "fake").items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(tmp_path / "fake"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(run_module, "Watchdog", QuietWatchdog)
    monkeypatch.setattr(ray_launcher, "RETRY_S", 0.0)

    async def found(address: str) -> list[RayNode]:
        return [HEAD, ONE, TWO]

    monkeypatch.setattr(ray_launcher, "nodes_of", found)
    yield fake
    for handle in fake.handles:  # as the process of an actor ends, and with it what it had started
        await handle.actor.close(0)


def plan(workers: int = 2, **options: str) -> Plan:
    ref = SubstrateRef(name=paced_fake.NAME, options=options)
    cell = CellPlan(substrate=ref, tier=TIER, actions=3, trials=12, warmup=1, concurrency=4)
    return Plan(cells=(cell,), workers=workers, create_timeout_s=1.0, bracket=False)


async def measured(tmp_path: Path, what: Plan) -> list[Event]:
    run = Run(what, tmp_path / "r.msgpack", RUN_ID, ray=RayOptions())
    await run.execute()
    assert run.control.crash is None
    return written(tmp_path)


def written(tmp_path: Path) -> list[Event]:
    got: list[Event] = []
    if (path := tmp_path / "r.msgpack").exists():
        read_events(path, got.append)
    return got


def ends(got: list[Event]) -> Counter[str]:
    counted = {event.trial for event in got if isinstance(event, TrialStarted) and not event.warm_up}
    return Counter(event.outcome for event in got if isinstance(event, TrialEnded) and event.trial in counted)


def test_workers_are_placed_in_turns_where_cores_are_offered() -> None:
    assert place_workers([HEAD, ONE, TWO], 3, None) == [ONE, TWO, ONE]
    assert place_workers([HEAD, ONE, TWO], 2, 1) == [ONE, TWO]
    with pytest.raises(
        UsageError, match=r"3 workers, a core each and at most 1 on a node, find room for 2 \(cores offe"
    ):
        place_workers([HEAD, ONE, TWO], 3, 1)
    with pytest.raises(UsageError, match=r"find room for 0 \(cores offered: none\)"):
        place_workers([], 1, None)


def test_packets_are_passed_on_in_order_and_once() -> None:
    inbox = OrderedInbox()
    assert inbox.add(1, b"b") == b""
    assert inbox.add(0, b"a") == b"ab"
    assert inbox.add(0, b"a") == inbox.add(1, b"b") == b""
    assert inbox.add(2, b"c") == b"c"


async def test_a_run_on_two_nodes_is_one_recording(tmp_path: Path, ray: FakeRay) -> None:
    got = await measured(tmp_path, plan())
    assert ends(got) == {"ok": 12}
    assert {event.worker for event in got if isinstance(event, Clock)} == {0, 1, 2}
    assert (len(ray.handles), set(ray.handles), ray.joined) == (2, ray.killed, False)


async def test_what_seems_lost_on_the_way_is_asked_for_again_and_taken_once(tmp_path: Path, ray: FakeRay) -> None:
    calls: Counter[str] = Counter()

    def struck(handle: Handle, name: str) -> None:
        calls[name] += 1
        if calls[name] % 2:
            raise ActorUnavailableError

    ray.struck = struck
    got = await measured(tmp_path, plan())
    assert ends(got) == {"ok": 12}
    assert len({event.trial for event in got if isinstance(event, TrialStarted)}) == 12 + 2
    assert calls["poll"] > 2


async def test_a_node_that_is_lost_costs_no_trial(tmp_path: Path, ray: FakeRay) -> None:
    def struck(handle: Handle, name: str) -> None:
        if name == "poll" and handle is ray.handles[1] and sum(ends(written(tmp_path)).values()) >= 3:
            worker = handle.actor._worker
            assert worker is not None
            with contextlib.suppress(ProcessLookupError):
                worker._process.kill()
            raise RayActorError

    ray.struck = struck
    got = await measured(tmp_path, plan(median_s="0.2"))
    counted = ends(got)
    assert counted["ok"] == 12
    assert sum("worker 1 was lost" in event.text for event in got if isinstance(event, Notice)) == 1
    await asyncio.gather(*(handle.actor.close(0.0) for handle in ray.handles))


async def test_what_an_actor_dies_of_is_said_in_a_line(tmp_path: Path, ray: FakeRay) -> None:
    def struck(handle: Handle, name: str) -> None:
        raise RayActorError("The actor died.\n\nModuleNotFoundError: No module named 'taxtui'\n")

    ray.struck = struck
    with pytest.raises(TaxtuiError, match=r"worker \d could not begin on 10\.0\.0\.\d: ModuleNotFoundError: No module"):
        await measured(tmp_path, plan())


async def test_who_waits_in_vain_for_a_core_says_so(
    tmp_path: Path, ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def begin(self: NodeRelay, request: bytes) -> bytes:
        await asyncio.Event().wait()
        return b""

    monkeypatch.setattr(NodeRelay, "begin", begin)
    monkeypatch.setattr(ray_launcher, "PLACED_WITHIN_S", 0.01)
    with pytest.raises(UsageError, match=r"worker \d got no core of 10"):
        await measured(tmp_path, plan())


async def test_who_cannot_be_reached_for_long_is_lost(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_launcher, "UNAVAILABLE_FOR_S", -1.0)

    def struck(handle: Handle, name: str) -> None:
        if name in ("write", "poll"):
            raise ActorUnavailableError

    ray.struck = struck
    handle = Handle(NodeRelay(), ray)
    assignment = Assignment(plan=plan(), run_id=RUN_ID, share=TrialShare(0, 1), clock=1, repetition=0)
    place = RayTransport(ray, handle, ONE, assignment)
    reading = asyncio.ensure_future(place.read())
    await waiting.until(lambda: place._polling, "a poll")
    place.write(line(WorkerCommand("cancel")))
    assert (await reading).closed
    assert (await place.read()).closed
    place.write(line(WorkerCommand("finish")))
    await place.close(0.0)
    await handle.actor.close(waiting.left_s() or 60.0)


async def test_without_ray_or_a_cluster_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SubstrateUnavailable, match="the module 'ray' is not installed"):
        RayLauncher(RayOptions(), 2)
    with pytest.raises(UsageError, match=r"no cluster at --ray 127\.0\.0\.1:1: "):
        await nodes_of("127.0.0.1:1")
    monkeypatch.setattr(sys, "executable", "/bin/true")
    with pytest.raises(UsageError, match="Ray ended with code 0"):
        await nodes_of("auto")
    monkeypatch.setattr(sys, "executable", "/bin/echo")
    with pytest.raises(UsageError, match="Ray ended with code 0"):
        await nodes_of("auto")


async def test_who_does_not_answer_in_time_is_no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "silent"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(ray_launcher, "REACHED_WITHIN_S", 0.05)
    with pytest.raises(UsageError, match=r"no answer within 0\.05 s"):
        await nodes_of("auto")


@pytest.mark.parametrize("said", [[ONE, TWO], "no such cluster"])
async def test_nodes_are_what_a_process_says_of_them(
    said: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "telling"
    program.write_text(f"#!/bin/sh\necho noise\necho '{msgspec.json.encode(said).decode()}'\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    if isinstance(said, list):
        assert await nodes_of("auto") == said
    else:
        with pytest.raises(UsageError, match="no cluster at --ray auto: no such cluster"):
            await nodes_of("auto")
