"""An action's overhead beside that of peers, each pair taking turns in one run: the median of ``true``.

    python tests/benchmarks/bench_peers.py [ACTIONS]

local:plain exec             beside ``execute`` of SWE-ReX's local runtime: the same bash, environment and folder
local:plain exec, unlimited  the same without limits, as SWE-ReX's is; entering them costs a turn where no CPU is idle
local:plain exec, 8 at once  beside as many of its, which hold up the event loop and so take turns
local:plain session          beside its ``run_in_session``
docker exec                  beside ``docker exec`` of the command line
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.limits import Limiter
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local.substrate import LocalSubstrate
from tests.benchmarks.bench_dispatch import PLAIN, _docker_answers, p50s_ms, sandbox_of
from tests.benchmarks.figures import tell

_AT_ONCE = 8


def row(name: str, ours_ms: float, theirs_ms: float, peer: str, *, wanted: str = "≤ 1") -> None:
    """Print a line, and keep it."""
    print(f"{name:28} {ours_ms:8.3f} ms   {ours_ms / theirs_ms:6.2f} x {theirs_ms:8.3f} ms of {peer}")
    tell(name, ours_ms, "ms", theirs_ms, peer, wanted=wanted)


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
        limiter, substrate.limiter = substrate.limiter, Limiter()
        without_limits = await sandbox_of(substrate, "-unlimited")
        substrate.limiter = limiter
        try:
            session = await sandbox.open_session()
            seen = (await sandbox.exec(Command(script="env -0"))).stdout.decode().split("\0")
            variables = dict(line.split("=", 1) for line in seen if line)
            folder = variables.pop("PWD")
            for set_by_bash in ("OLDPWD", "SHLVL", "_"):
                variables.pop(set_by_bash, None)

            async def theirs_once() -> object:
                return await runtime.execute(TheirCommand(command=["bash", "-c", "true"], env=variables, cwd=folder))

            ours, unlimited, theirs = await p50s_ms(
                actions, lambda: sandbox.exec(PLAIN), lambda: without_limits.exec(PLAIN), theirs_once
            )
            row("local:plain exec", ours, theirs, "SWE-ReX execute")
            row("local:plain exec, unlimited", unlimited, theirs, "SWE-ReX execute")
            ours, theirs = await p50s_ms(
                max(20, actions // 5),
                lambda: asyncio.gather(*(sandbox.exec(PLAIN) for _ in range(_AT_ONCE))),
                lambda: asyncio.gather(*(theirs_once() for _ in range(_AT_ONCE))),
            )
            row(
                f"local:plain exec, {_AT_ONCE} at once", ours, theirs, f"SWE-ReX execute, {_AT_ONCE} of them", wanted=""
            )
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
            await without_limits.destroy()
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
