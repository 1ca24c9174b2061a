"""What is particular to machines of user-mode Linux: pipes for their commands, and an end at their time to live."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from taxtui.errors import SandboxLost
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit.kill import new_mark
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.machine.uml.sandbox import UmlSandbox
from taxtui.substrates.machine.uml.substrate import UmlSubstrate
from tests.support.waiting import until

pytestmark = [pytest.mark.uml, pytest.mark.asyncio(loop_scope="module")]  # they share a machine, but for the last


def _spec(ttl_s: float) -> SandboxSpec:
    return SandboxSpec(name=f"taxtui-{new_mark()}-0", labels={}, limits=Limits(), ttl_s=ttl_s)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def substrate() -> AsyncIterator[UmlSubstrate]:
    async with UmlSubstrate() as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(substrate: UmlSubstrate) -> AsyncIterator[UmlSandbox]:
    one = substrate.sandbox((spec := _spec(600)).name)
    try:
        await one.begin(spec, Marks())
        yield one
    finally:
        await one.destroy()


async def _printed(sandbox: UmlSandbox, script: str) -> tuple[bytes, bytes]:
    """By a command of its own, and the same by a session's."""
    alone = await sandbox.exec(Command(script=script))
    session = await sandbox.open_session()
    carried = await session.exec(Command(script=script))
    await session.close()
    assert (alone.stdout, alone.stderr) == (carried.stdout, carried.stderr)
    return alone.stdout, alone.stderr


async def test_commands_have_no_terminal(sandbox: UmlSandbox) -> None:
    said = await _printed(
        sandbox, "for n in 0 1 2; do test -t $n || echo $n; done; cd /bin && ls cat ls; echo e >/dev/stderr"
    )
    assert said == (b"0\n1\n2\ncat\nls\n", b"e\n")


async def test_commands_have_no_variables_of_the_kernel_or_of_its_shells(sandbox: UmlSandbox) -> None:
    out, _ = await _printed(sandbox, "env | cut -d= -f1 | grep -v -e _LAUNCH -e ^_ | sort")
    ours = {"LANG", "HOME", "PATH", "PWD", "SHLVL", "GLIBC_TUNABLES", "OPENSSL_ia32cap", "TAXTUI_SANDBOX"}
    assert set(out.decode().split()) - set(sandbox.env) <= ours


async def test_what_a_command_leaves_behind_holds_no_line(sandbox: UmlSandbox) -> None:
    for _ in range(10):  # more than there are pairs
        left = await sandbox.exec(Command(script="(while :; do sleep 0.1; echo late; echo late >&2; done) & echo now"))
        assert left.stdout.startswith(b"now\n")
    assert (await sandbox.exec(Command(script="echo e >&2"))).stderr == b"e\n"


async def test_its_time_to_live_ends_it_though_nobody_asks(substrate: UmlSubstrate) -> None:
    sandbox = substrate.sandbox((spec := _spec(15)).name)
    try:
        await sandbox.begin(spec, Marks())
        await sandbox.exec(Command(script="setsid sh -c 'while :; do sleep 1000; done' & true"))
        assert sandbox._process is not None
        process = sandbox._process
        await until(lambda: process.returncode is not None, "the end at the time to live")
        with pytest.raises(SandboxLost):
            await sandbox.exec(Command(script="true"))
        await until(lambda: not _of(spec.name), "the end of all that the kernel has started")
    finally:
        await sandbox.destroy()


def _of(name: str) -> list[Path]:
    return [each for each in Path("/proc").glob("[0-9]*") if _carries(each, name.encode())]


def _carries(process: Path, name: bytes) -> bool:
    try:
        return b"linux.uml" in (process / "cmdline").read_bytes() and name in (process / "environ").read_bytes()
    except OSError:
        return False
