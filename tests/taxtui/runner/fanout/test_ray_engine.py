"""The engine beside a stand-in for Ray whose actors live in this process; test_ray.py has the real one."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from msgspec.structs import replace

from costmodel.recording.events import Actions, Clock, Event, Notice, TrialEnded, TrialStarted
from taxtui.errors import SubstrateUnavailable, TaxtuiError, UsageError
from taxtui.plan.spec import CellPlan, Plan, Step, SubstrateRef, Tier
from taxtui.runner import run as run_module
from taxtui.runner.cleanup.ledger import TrialShare
from taxtui.runner.fanout import ray_launcher
from taxtui.runner.fanout.messages import Assignment
from taxtui.runner.fanout.ray_launcher import RayConnection, RayLauncher, RayNode, place_workers
from taxtui.runner.fanout.ray_node import NodeRelay
from taxtui.runner.run import Run
from tests.support import paced_fake
from tests.support.command_line import events
from tests.support.recorded import NoWatchdog
from tests.support.waiting import until

RUN_ID = "20260101t000000z-00000000"
TIER = Tier(name="T", title="", cycle=(Step(name="one", run="true"),))
HEAD, ONE, TWO = RayNode("10.0.0.1", "h", 0), RayNode("10.0.0.2", "a", 2), RayNode("10.0.0.3", "b", 1)


class RayError(Exception):
    """As Ray names what all of its errors are."""


class RayActorError(RayError):
    """An actor is gone."""


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
                made = asyncio.ensure_future(call(*values))
                made.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait for it
                return made

        return Method


class FakeRay(ModuleType):
    """What the engine uses of Ray."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.__spec__ = ModuleSpec("ray", None)
        self.exceptions = ModuleType("ray.exceptions")
        for error in (RayError, RayActorError):
            setattr(self.exceptions, error.__name__, error)
        self.handles: list[Handle] = []
        self.killed: set[Handle] = set()
        self.joined = False
        self.struck: Callable[[Handle, str], None] = lambda handle, name: None

    def init(self, **_: Any) -> None:
        self.joined = True

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": node.id, "NodeManagerAddress": node.address, "Resources": {"CPU": node.cores}, "Alive": alive}
            for node, alive in ((RayNode("10.0.0.4", "g", 9), False), (TWO, True), (HEAD, True), (ONE, True))
        ]

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
    monkeypatch.setattr(run_module, "Watchdog", NoWatchdog)
    yield fake
    for handle in fake.handles:  # as the process of an actor ends, and with it what it had started
        await handle.actor.close(0)


def plan(workers: int = 2, **options: str) -> Plan:
    ref = SubstrateRef(name=paced_fake.NAME, options=options)
    cell = CellPlan(substrate=ref, tier=TIER, actions=3, trials=12, warmup=1, concurrency=4)
    return Plan(cells=(cell,), workers=workers, create_timeout_s=1.0, bracket=False)


async def measured(tmp_path: Path, what: Plan, ray: str = "auto") -> list[Event]:
    run = Run(what, tmp_path / "r.msgpack", RUN_ID, ray=ray)
    await run.execute()
    assert run.control.crash is None
    return events(run.path)


def ends(got: list[Event]) -> Counter[str]:
    counted = {event.trial for event in got if isinstance(event, TrialStarted) and not event.warm_up}
    return Counter(event.outcome for event in got if isinstance(event, TrialEnded) and event.trial in counted)


def lose(handle: Handle) -> None:
    """Kill a worker with its node."""
    assert handle.actor._worker is not None
    with contextlib.suppress(ProcessLookupError):
        handle.actor._worker._process.kill()
    raise RayActorError


def test_workers_are_placed_in_turns_where_cores_are_offered() -> None:
    assert place_workers([HEAD, ONE, TWO], 3) == [ONE, TWO, ONE]
    with pytest.raises(UsageError, match=r"4 workers, a core each, find room for 3 \(cores offered: 10\.0\.0\.1: 0"):
        place_workers([HEAD, ONE, TWO], 4)
    with pytest.raises(UsageError, match=r"find room for 0 \(cores offered: none\)"):
        place_workers([], 1)


async def test_a_run_on_two_nodes_is_one_recording(tmp_path: Path, ray: FakeRay) -> None:
    got = await measured(tmp_path, plan(median_s="0.01"))
    assert ends(got) == {"ok": 12}
    assert {event.worker for event in got if isinstance(event, Clock)} == {0, 1, 2}
    assert (len(ray.handles), set(ray.handles), ray.joined) == (2, ray.killed, False)
    for event in got:
        if isinstance(event, Actions):  # each lasted as the fake had drawn it, after ready and ready again
            source = random.Random(f"0:{event.trial}")
            _, _, *drawn_s = [0.01 * source.lognormvariate(0, 0.5) for _ in range(5)]
            pairs = zip(event.duration_ns, drawn_s[event.first :], strict=False)
            assert all(took_ns >= 1e9 * took_s for took_ns, took_s in pairs)


async def test_an_abandoned_run_ends_on_every_node(tmp_path: Path, ray: FakeRay) -> None:
    run = Run(plan(median_s="60"), tmp_path / "r.msgpack", RUN_ID, ray="auto")
    going = asyncio.ensure_future(run.execute())
    await until(lambda: run.progress.in_flight, "a trial")
    run.control.abandon("interrupted")
    await going
    assert (run.outcome, run.clean, set(ray.handles), ray.joined) == ("interrupted", True, ray.killed, False)


async def test_a_node_that_is_lost_costs_no_trial(tmp_path: Path, ray: FakeRay) -> None:
    def struck(handle: Handle, name: str) -> None:
        path = tmp_path / "r.msgpack"
        if name == "read" and handle is ray.handles[1] and path.exists() and ends(events(path)).total() >= 3:
            lose(handle)

    ray.struck = struck
    got = await measured(tmp_path, plan(median_s="0.1"))
    assert ends(got)["ok"] == 12
    assert sum("worker 1 was lost" in event.text for event in got if isinstance(event, Notice)) == 1
    await asyncio.gather(*(handle.actor.close(0.0) for handle in ray.handles))


async def test_a_limit_counts_what_a_lost_worker_may_have_made_unseen(tmp_path: Path, ray: FakeRay) -> None:
    assigned = set[Handle]()

    def struck(handle: Handle, name: str) -> None:
        if name == "write":
            assigned.add(handle)
        elif name == "read" and handle is ray.handles[1] and handle in assigned:  # with the starts of its two trials
            lose(handle)

    ray.struck = struck
    what = plan(median_s="0.2")
    cells = tuple(replace(cell, warmup=0) for cell in what.cells)
    got = await measured(tmp_path, replace(what, cells=cells, max_sandboxes=8))
    assert sum(isinstance(event, TrialStarted) for event in got) == 6


async def test_lines_arrive_in_order_though_calls_may_overtake_each_other() -> None:
    arrived = b""

    async def write(lines: bytes) -> None:
        nonlocal arrived
        await asyncio.sleep(0.02 if lines == b"1" else 0)
        arrived += lines

    relay = Mock(write=Mock(remote=write), close=Mock(remote=AsyncMock()))
    assignment = Assignment(plan=plan(), run_id=RUN_ID, share=TrialShare(0, 1), clock=1)
    connection = RayConnection(FakeRay(), relay, ONE, assignment)
    for number in range(1, 5):
        connection.write(b"%d" % number)
        await asyncio.sleep(0)
    await until(lambda: len(arrived) == 4, "all have arrived")
    assert arrived == b"1234"
    await connection.close(0)


async def test_an_actor_that_dies_or_gets_no_core_is_said_in_a_line(
    tmp_path: Path, ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray.struck = Mock(side_effect=RayActorError("The actor died.\n\nModuleNotFoundError: No module named 'taxtui'\n"))
    with pytest.raises(TaxtuiError, match=r"worker \d could not begin on 10\.0\.0\.\d: ModuleNotFoundError: No module"):
        await measured(tmp_path, plan())

    monkeypatch.setattr(NodeRelay, "begin", lambda *_: asyncio.Event().wait())
    monkeypatch.setattr(ray_launcher, "PLACED_WITHIN_S", 0.01)
    with pytest.raises(UsageError, match=r"worker \d got no core of 10"):
        await measured(tmp_path, plan())


async def test_without_ray_or_a_cluster_there_is_one_line(
    tmp_path: Path, ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"no cluster at --ray 127\.0\.0\.1:1: "):
        await measured(tmp_path, plan(), ray="127.0.0.1:1")

    refused = ConnectionError("Could not find any running Ray instance.\nmore")
    monkeypatch.setattr(ray, "init", Mock(side_effect=refused))
    with pytest.raises(UsageError, match=r"no cluster at --ray auto: Could not find any running Ray instance"):
        await measured(tmp_path, plan())
    over = threading.Event()
    monkeypatch.setattr(ray, "init", lambda **_: over.wait(60))  # Ray retries for minutes
    monkeypatch.setattr(ray_launcher, "REACHED_WITHIN_S", 0.05)
    with pytest.raises(UsageError, match=r"no cluster at --ray auto: no answer within 0\.05 s"):
        await measured(tmp_path, plan())
    over.set()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SubstrateUnavailable, match="the module 'ray' is not installed"):
        RayLauncher("auto", 2)
