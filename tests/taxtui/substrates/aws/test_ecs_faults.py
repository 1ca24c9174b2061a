"""A data channel whose network misbehaves, and what nobody tells: a container or an agent that dies, a lost session."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from taxtui.errors import ExecTimeout, SandboxLost, SubstrateError, SubstrateUnavailable
from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import ExecResult, Session
from taxtui.substrates.aws.ecs import sandbox as ecs_sandbox
from taxtui.substrates.aws.ecs.protocol import SessionCut
from taxtui.substrates.aws.ecs.sandbox import EcsSandbox
from tests.support.standins.aws_setup import sandbox
from tests.support.standins.ecs_peer import Behaviour
from tests.support.standins.ecs_standin import EcsStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes

TRUE = Command(script="true")
LATER_S = 600.0  # no timeout ends it: a command whose sandbox died is told so long before


@pytest.fixture(autouse=True)
def _quick_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ecs_sandbox, "LEAVING_S", 0.1)


async def run(made: EcsSandbox, mode: str, command: Command) -> ExecResult:
    if mode == "exec":
        return await made.exec(command)
    session = await made.open_session()
    result = await session.exec(command)
    await session.close()
    return result


@pytest.mark.parametrize("mode", ["exec", "session"])
@pytest.mark.parametrize("dead", ["container", "agent"])
async def test_a_silent_death_under_a_command_is_a_lost_sandbox_long_before_its_timeout(
    ecs: EcsStandin, tmp_path: Path, mode: str, dead: str
) -> None:
    async with sandbox(ecs) as made:
        command = Command(script=f"touch {tmp_path}/begun; sleep 600", timeout_s=LATER_S)
        running = asyncio.ensure_future(run(made, mode, command))
        await until((tmp_path / "begun").exists, "the command runs")
        ecs.refuse("DescribeTasks", "AccessDeniedException", "not now", times=2)  # a refused look is made again
        [task] = ecs.running()
        if dead == "agent":
            ecs.kill_agent(task)
        else:
            ecs.stop(task, "EssentialContainerExited", "OutOfMemoryError: container killed")
        with pytest.raises(SandboxLost, match=r"OutOfMemoryError|session agent has stopped"):
            await running
        ecs.faults.clear()  # beside a busy machine a refused look may still be due
        with pytest.raises(SandboxLost):
            await made.exec(TRUE)


async def test_the_time_to_open_a_session_is_a_part_of_the_timeout(ecs: EcsStandin) -> None:
    async with sandbox(ecs, sessions=1) as made:
        first = await made.open_session()
        running = asyncio.ensure_future(made.exec(Command(script="sleep 600", timeout_s=3.0)))
        await asyncio.sleep(2.0)
        await first.close()
        with pytest.raises(ExecTimeout, match=r"(0\.\d|1|1\.0) s"):
            await running


CHATTER = Command(script="for i in $(seq 200); do echo $i; sleep 0.02; done", stdin=b"x" * 50_000, timeout_s=LATER_S)


async def cut(path: EcsSandbox | Session, ecs: EcsStandin) -> None:
    """A command whose connection is lost."""
    ecs.behaviour.cut_after = 25
    with pytest.raises(SessionCut, match="cut"):
        await path.exec(CHATTER)
    ecs.behaviour = Behaviour()


def held(ecs: EcsStandin) -> int:
    """Slots of the agent's."""
    return sum(session.begun and not session.over for session in ecs.sessions())


@pytest.mark.parametrize("right", [True, False])
async def test_lost_connections_hold_no_slot_of_the_agent(ecs: EcsStandin, right: bool) -> None:
    """Without the right to end a session its stale shell is killed through another."""
    if not right:
        denied = "not authorized to perform: ssm:TerminateSession"
        ecs.refuse("TerminateSession", "AccessDeniedException", denied, times=9)
    async with sandbox(ecs) as made:
        for _ in range(3):
            await cut(made, ecs)
            await until(lambda: held(ecs) == 0, "the agent has let go")
        assert ecs.calls["TerminateSession"] == 3
        first = await made.open_session()
        assert (await made.exec(TRUE)).exit_code == 0
        await first.close()


async def test_a_kill_that_is_not_answered_is_said(ecs: EcsStandin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ecs_sandbox, "KILL_S", 0.3)
    ecs.sessions_limit = 1
    async with sandbox(ecs) as made:
        first = await made.open_session()  # takes the only slot that there really is
        with pytest.raises(SubstrateError, match="may still run"):
            await made.exec(Command(script="true", timeout_s=0.3))
        await first.close()


@pytest.fixture(scope="module")
def applets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    busybox = shutil.which("busybox")
    assert busybox is not None
    folder = tmp_path_factory.mktemp("applets")
    subprocess.run([busybox, "--install", "-s", folder], check=True)
    return folder


@pytest.mark.busybox
@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_a_busybox_image(ecs: EcsStandin, applets: Path, mode: str) -> None:
    ecs.behaviour = Behaviour(applets=str(applets))
    async with sandbox(ecs) as made:
        script = "head -c 3000; echo x >&2; exit 5"
        result = await run(made, mode, Command(script=script, stdin=bytes(range(256)) * 20, timeout_s=LATER_S))
        assert (result.exit_code, result.stdout, result.stderr) == (5, (bytes(range(256)) * 20)[:3000], b"x\n")
        with pytest.raises(ExecTimeout):
            await run(made, mode, Command(script="sleep 600", timeout_s=0.5))


@pytest.mark.parametrize("behaviour", [Behaviour(terminal_after_s=0.5), Behaviour(handshake="plain", drop=0.1)])
async def test_every_command_arrives_once_and_whole(ecs: EcsStandin, behaviour: Behaviour) -> None:
    ecs.behaviour = behaviour
    async with sandbox(ecs) as made:
        session = await made.open_session()
        for number in range(15):
            result = await session.exec(Command(script=f"echo {number}; echo {number} >>log; exit {number}"))
            assert (result.exit_code, result.stdout) == (number, b"%d\n" % number)
        lines = (await session.exec(Command(script="cat log"))).stdout.split()
        assert lines == [b"%d" % number for number in range(15)]
        await session.close()


async def test_what_the_agents_loop_over_characters_damages_arrives_all_the_same(ecs: EcsStandin) -> None:
    script = r"printf '\357\277\275 \357\277\275\357 \342\202'; printf '\357\277\275\303' >&2"
    async with sandbox(ecs) as made:
        result = await made.exec(Command(script=script))
    assert result.stdout == b"\xef\xbf\xbd \xef\xbf\xbd\xef \xe2\x82"
    assert result.stderr == b"\xef\xbf\xbd\xc3"


async def test_a_session_cut_in_the_middle_is_its_own_outcome(ecs: EcsStandin) -> None:
    async with sandbox(ecs) as made:
        session = await made.open_session()
        await cut(session, ecs)
        with pytest.raises(SandboxLost):
            await session.exec(TRUE)
        assert (await made.exec(TRUE)).exit_code == 0  # the container is still there


async def test_kms_is_refused_with_what_to_change(ecs: EcsStandin) -> None:
    ecs.behaviour = Behaviour(handshake="kms")
    async with sandbox(ecs) as made:
        for _ in range(2):
            with pytest.raises(SubstrateUnavailable, match="kmsKeyId"):
                await made.exec(TRUE)
        assert ecs.calls["TerminateSession"] == 2  # the agent still waits for the end of its handshake
