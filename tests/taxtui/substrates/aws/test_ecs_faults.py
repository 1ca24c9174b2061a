"""Commands through a data channel whose network misbehaves, and whose agent does what real ones do."""

from __future__ import annotations

import pytest

from taxtui.errors import SandboxLost, SubstrateUnavailable
from taxtui.plan.spec import Command
from taxtui.substrates.aws.ecs.protocol import SessionCut
from tests.support.standins.ecs_peer_pty import Behaviour
from tests.support.standins.ecs_standin import EcsStandin
from tests.support.standins.ecs_standin_setup import sandbox

pytestmark = pytest.mark.processes


def quick(**changed: object) -> Behaviour:
    return Behaviour(first_output_s=0.0, chunk_s=0.0, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "behaviour",
    [
        quick(terminal_after_s=0.5),
        quick(handshake="plain", drop=0.1, seed=5),
    ],
    ids=lambda behaviour: " ".join(f"{k}={v}" for k, v in vars(behaviour).items() if v and k != "seed"),
)
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


async def test_a_long_line_of_input_survives_the_terminal(ecs: EcsStandin) -> None:
    async with sandbox(ecs) as made:
        result = await made.exec(Command(script="wc -c; : " + "x" * 6000, stdin=b"y" * 100_000))
    assert result.stdout.strip() == b"100000"


async def test_a_session_cut_in_the_middle_is_its_own_outcome(ecs: EcsStandin) -> None:
    ecs.behaviour = quick(cut_after=25)
    async with sandbox(ecs) as made:
        session = await made.open_session()
        with pytest.raises(SessionCut, match="cut"):
            await session.exec(Command(script="for i in $(seq 200); do echo $i; sleep 0.02; done", stdin=b"x" * 50_000))
        with pytest.raises(SandboxLost):
            await session.exec(Command(script="true"))
        ecs.behaviour = quick()
        assert (await made.exec(Command(script="true"))).exit_code == 0  # the container is still there


async def test_kms_is_refused_with_what_to_change(ecs: EcsStandin) -> None:
    ecs.behaviour = quick(handshake="kms")
    async with sandbox(ecs) as made:
        for _ in range(2):
            with pytest.raises(SubstrateUnavailable, match="kmsKeyId"):
                await made.exec(Command(script="true"))
