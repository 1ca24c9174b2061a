"""An action's overhead beside that of peers, each pair taking turns in one run: the median of ``true``.

    python tests/benchmarks/bench_peers.py [ACTIONS]

local:plain exec      beside SWE-ReX's local runtime, ``execute`` of the same bash, which holds nothing to limits
local:plain session   beside SWE-ReX's local runtime, ``run_in_session``
docker exec           beside ``docker exec`` of the command line
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from taxtui.substrates.local.options import LocalOptions
from taxtui.substrates.local.substrate import LocalSubstrate
from tests.benchmarks.bench_dispatch import PLAIN, _docker_answers, p50s_ms, sandbox_of
from tests.benchmarks.figures import tell


def row(name: str, ours_ms: float, theirs_ms: float, peer: str) -> None:
    """Print a line, and keep it."""
    print(f"{name:22} {ours_ms:8.3f} ms   {ours_ms / theirs_ms:6.2f} x {theirs_ms:8.3f} ms of {peer}")
    tell(name, ours_ms, "ms", theirs_ms, peer, wanted="≤ 1")


async def local(actions: int) -> None:
    """Beside SWE-ReX."""
    import pexpect
    from swerex.runtime.abstract import BashAction, CreateBashSessionRequest
    from swerex.runtime.abstract import Command as TheirCommand
    from swerex.runtime.local import LocalRuntime

    runtime = LocalRuntime()
    try:
        await runtime.create_session(CreateBashSessionRequest())
        theirs_lives = True
    except pexpect.TIMEOUT:
        print("SWE-ReX's session did not start: not measured")
        theirs_lives = False
    async with LocalSubstrate(LocalOptions(isolation="plain")) as substrate:
        sandbox = await sandbox_of(substrate)
        try:
            session = await sandbox.open_session()
            ours, theirs = await p50s_ms(
                actions,
                lambda: sandbox.exec(PLAIN),
                lambda: runtime.execute(TheirCommand(command=["bash", "-c", "true"])),
            )
            row("local:plain exec", ours, theirs, "SWE-ReX execute")
            if theirs_lives:
                ours, theirs = await p50s_ms(
                    actions,
                    lambda: session.exec(PLAIN),
                    lambda: runtime.run_in_session(BashAction(command="true")),
                )
                row("local:plain session", ours, theirs, "SWE-ReX run_in_session")
            await session.close()
        finally:
            await sandbox.destroy()
            await runtime.close()


async def docker(actions: int) -> None:
    """Beside the command line."""
    from taxtui.substrates.docker.substrate import DockerSubstrate

    async with DockerSubstrate() as substrate:
        sandbox = await sandbox_of(substrate)
        container: str = sandbox.container  # type: ignore[attr-defined]

        async def by_command_line() -> None:
            subprocess.run(["docker", "exec", container, "true"], check=True)  # noqa: ASYNC221

        try:
            ours, theirs = await p50s_ms(actions, lambda: sandbox.exec(PLAIN), by_command_line)
        finally:
            await sandbox.destroy()
    row("docker exec", ours, theirs, "docker exec (CLI)")


async def main(actions: int) -> None:
    """Whatever can be used here."""
    try:
        await local(actions)
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed: SWE-ReX is not measured")
    if await _docker_answers():
        await docker(max(20, actions // 5))
    else:
        print("docker cannot be used here: not measured")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else 200))
