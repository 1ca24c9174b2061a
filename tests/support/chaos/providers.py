"""A case within this process: the real engine and adapter, and a provider whose API is made to fail."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import botocore.config
import pytest

from taxtui.errors import TaxtuiError
from taxtui.plan.spec import CellPlan, Plan, Step, SubstrateRef, Tier
from taxtui.runner import preflight
from taxtui.runner import run as run_module
from taxtui.runner.cleanup import watchdog
from taxtui.runner.cleanup.ledger import LedgerEntry
from taxtui.runner.run import Run
from taxtui.substrates.docker import DockerOptions
from taxtui.substrates.docker.substrate import DockerSubstrate
from tests.support.chaos import nonsense, places
from tests.support.chaos.cases import HANG_S, HANGS, LEFT, UNDOCUMENTED, Case, Verdict, judged
from tests.support.command_line import containers
from tests.support.recorded import NoWatchdog
from tests.support.standins import aws_setup
from tests.support.standins.api_faults import DAYTONA, KUBERNETES, Provider
from tests.support.standins.daytona_standin import KEY

SHORTER: Final = {
    "REQUEST_S": 3.0,
    "REMOVE_S": 12.0,
    "SETTLING_S": 1.0,
    "INSIST_S": (0.0, 0.2, 0.5, 1.0),
    "FIND_S": 10.0,
    "DOUBT_S": 1.0,
    "KILL_S": 3.0,
    "SERVER_GRACE_S": 3.0,
    "HANDSHAKE_S": 3.0,
    "OPEN_S": 3.0,
    "TERMINATE_S": 1.0,
    "LEAVING_S": 0.5,
    "CANCELLED_WITHIN_S": 0.5,
    "_REPLY_TIMEOUT_S": 5.0,
    "_TIMEOUT_S": 5,
    "_OURS_TIMEOUT_S": 5.0,
    "TIMEOUT_GRACE_S": 6.0,
}
"""Deadlines of adapters and runner that are made shorter, so that a case does not last as long as they do."""
READ_TIMEOUT_S: Final = 3
TRIALS: Final = 4
COMMAND: Final = "(sleep 300 & setsid sleep 300 &) >/dev/null 2>&1 </dev/null; sleep 0.02; echo done"
ENTRY_S: Final = 1.0
"""How long the sweep at the end has to find nothing."""


class Struck(NamedTuple):
    """A provider with a fault arranged."""

    substrate: Callable[[], Any]
    mend: Callable[[], None]
    struck: Callable[[], int]
    left: Callable[[], list[str]]


Arranged = Callable[[Case], contextlib.AbstractAsyncContextManager[Struck]]
_connects: dict[str, Callable[[], Any]] = {}


@contextlib.contextmanager
def _patched() -> Any:
    """Shorter deadlines, no process for a watchdog, and substrates that are asked for by their case."""
    config = botocore.config.Config

    def quick(**how: Any) -> Any:
        return config(**{**how, "read_timeout": READ_TIMEOUT_S})

    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("taxtui."):
                for deadline, value in SHORTER.items():
                    if isinstance(getattr(module, deadline, None), float | int | tuple):
                        patch.setattr(module, deadline, value)
        patch.setattr(botocore.config, "Config", quick)
        patch.setattr(preflight, "build", lambda ref: _connects[ref.name]())
        patch.setattr(run_module, "Watchdog", NoWatchdog)
        for key, text in {**aws_setup.CREDENTIALS, "DAYTONA_API_KEY": KEY}.items():
            patch.setenv(key, text)
        yield


async def struck(case: Case) -> Verdict:
    """One case, until nothing of it is left, or what is."""
    try:
        async with GROUPS[case.group](case) as provider:
            with tempfile.TemporaryDirectory() as folder:
                return await _struck(case, provider, Path(folder) / "run.msgpack")
    finally:
        _connects.pop(case.run_id, None)


async def _struck(case: Case, provider: Struck, path: Path) -> Verdict:
    _connects[case.run_id] = provider.substrate
    run = Run(_plan(case), path, case.run_id)
    going = asyncio.ensure_future(run.execute())
    problems: list[tuple[str, str]] = []
    ending = ""
    abandoned_s = case.source.uniform(0, 4.0) if case.source.random() < 0.2 else HANG_S
    done, _ = await asyncio.wait({going}, timeout=abandoned_s)
    if not done:
        run.control.abandon("interrupted")
        done, _ = await asyncio.wait({going}, timeout=HANG_S)
    if not done:
        going.cancel()
        await asyncio.wait({going}, timeout=HANG_S)
        return Verdict(case, [(HANGS, "its run does not end")], "hangs")
    try:
        going.result()
        ending = run.outcome
    except TaxtuiError as error:
        ending = type(error).__name__
    except Exception as error:  # what a person would get a traceback of
        problems.append((UNDOCUMENTED, f"{type(error).__name__}: {error}"))
    if run.control.crash is not None:
        problems.append((UNDOCUMENTED, f"crashed: {type(run.control.crash).__name__}: {run.control.crash}"))
    problems += judged(path)[0]
    provider.mend()
    if not run.clean:  # a watchdog, or a person, sweeps
        async with provider.substrate() as substrate:
            entry = LedgerEntry(run_id=case.run_id, substrates=(), create_timeout_s=ENTRY_S)
            await asyncio.wait_for(watchdog.sweep(entry, [substrate]), HANG_S)
    give_up = time.monotonic() + 20.0  # processes that have been killed are gone a little later
    while (left := await asyncio.to_thread(provider.left)) and time.monotonic() < give_up:
        await asyncio.sleep(0.05)
    if left:
        problems.append((LEFT, f"{'' if run.clean else 'after a sweep: '}{left}"))
    hit = "" if provider.struck() else "not struck: "
    return Verdict(case, problems, f"{hit}{ending}{'' if run.clean else ', swept'}")


def _plan(case: Case) -> Plan:
    tier = Tier(name="C", title="", requires=(), cycle=(Step(name="one", run=COMMAND, expect_stdout="done"),))
    cell = CellPlan(
        substrate=SubstrateRef(name=case.run_id),
        tier=tier,
        actions=3,
        trials=TRIALS,
        mode=case.source.choice(("exec", "session")),
        concurrency=2,
        warmup=case.source.randint(0, 1),
    )
    return Plan(cells=(cell,), create_timeout_s=15.0, timeout_s=10.0)


def _often(source: Random) -> dict[str, Any]:
    return {"times": source.choice((1, 1, 2, 6)), "skip": source.choice((0, 0, 1, 3))}


_HOWS: Final[dict[str, dict[str, Any]]] = {
    "500": {"status": 500},
    "429": {"status": 429, "retry_after_s": 1},
    "403": {"status": 403},
    "broken before": {"reset": "before"},
    "broken after": {"reset": "after"},
    "unanswered before": {"hang": "before"},
    "unanswered after": {"hang": "after"},
}


@contextlib.asynccontextmanager
async def _of_standin(case: Case, provider: Provider) -> AsyncIterator[Struck]:
    on, _, how = case.kind.partition(": ")
    async with provider.standin() as standin:

        def left() -> list[str]:
            sandboxes, groups = standin.left()
            return [f"{sandboxes} sandboxes, {groups} process groups"] if sandboxes or groups else []

        standin.fail(on, **_HOWS[how], **_often(case.source))
        yield Struck(lambda: provider.substrate(standin), standin.faults.clear, lambda: standin.faults.struck, left)


@contextlib.asynccontextmanager
async def _of_aws(case: Case, service: str) -> AsyncIterator[Struck]:
    operation, _, how = case.kind.partition(": ")
    with aws_setup.standin(service) as running:

        def left() -> list[str]:
            return [f"{kind}: {names}" for kind, names in running.leftovers().items() if names]

        faults, fault = running.faults, _HOWS.get(how, {"code": how})
        if how == "fails after":
            fault = {"code": "InternalError", "reset": "after"}
        faults.add(operation, **fault, **_often(case.source))
        yield Struck(lambda: aws_setup.substrate(running), faults.clear, lambda: faults.struck, left)


@contextlib.asynccontextmanager
async def _docker(case: Case) -> AsyncIterator[Struck]:
    about, _, manner = case.kind.partition(": ")
    with tempfile.TemporaryDirectory() as folder:
        liar = nonsense.Liar(Path(folder) / "d.sock", case.source)
        liar.about, liar.manner = about, manner
        liar.times, liar.skip = _often(case.source).values()

        def mend() -> None:
            liar.times = 0

        def connect() -> DockerSubstrate:
            return DockerSubstrate(DockerOptions(host=f"unix://{liar.path}"))

        async with liar.listening():
            yield Struck(connect, mend, lambda: liar.struck, lambda: containers(case.run_id))


GROUPS: Final[dict[str, Arranged]] = {
    "docker's daemon": _docker,
    "kubernetes": partial(_of_standin, provider=KUBERNETES),
    "daytona": partial(_of_standin, provider=DAYTONA),
    "ecs": partial(_of_aws, service="ecs"),
    "ec2": partial(_of_aws, service="ec2"),
}
_COMMON: Final = ("create", "get", "list", "delete", "exec")
_ECS_REFUSALS: Final = ("ThrottlingException", "ServerException", "AccessDeniedException")
_ECS_HOWS: Final = (*_ECS_REFUSALS, "broken before", "broken after", "unanswered before", "unanswered after")
_EC2_HOWS: Final = ("RequestLimitExceeded", "InternalError", "UnauthorizedOperation", "fails after")
_ECS_OPERATIONS: Final = ("RunTask", "DescribeTasks", "ListTasks", "ExecuteCommand", "StopTask", "TerminateSession")
_EC2_OPERATIONS: Final = ("RunInstances", "DescribeInstances", "TerminateInstances")
KINDS: Final = {
    "docker's daemon": nonsense.KINDS,
    "kubernetes": [f"{on}: {how}" for on in (*_COMMON, "watch") for how in _HOWS],
    "daytona": [f"{on}: {how}" for on in (*_COMMON, "pty", "connect") for how in _HOWS],
    "ecs": [f"{on}: {how}" for on in _ECS_OPERATIONS for how in _ECS_HOWS],
    "ec2": [f"{on}: {how}" for on in _EC2_OPERATIONS for how in _EC2_HOWS],
}
"""By group: what of its API fails, and how."""


def skipped(group: str) -> str:
    """What this machine lacks for a group; "" where nothing."""
    if group == "docker's daemon":
        return places.complaint("docker")
    return places.no_sshd() if group == "ec2" else ""


async def tried(chosen: list[Case]) -> AsyncIterator[Verdict]:
    """Groups side by side, the cases of a group one after the other."""
    turns = {case.group: asyncio.Lock() for case in chosen}

    async def one(case: Case) -> Verdict:
        async with turns[case.group]:
            try:
                why = await asyncio.to_thread(skipped, case.group)
                return Verdict(case, skipped=why) if why else await struck(case)
            except Exception as error:
                return Verdict(case, [(UNDOCUMENTED, f"{type(error).__name__}: {error}")])

    with _patched():
        for ready in asyncio.as_completed([one(case) for case in chosen]):
            yield await ready
