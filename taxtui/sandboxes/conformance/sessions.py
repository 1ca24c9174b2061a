"""Checks of a persistent shell."""

from __future__ import annotations

from taxtui.errors import ExecTimeout, SandboxLost
from taxtui.plan.spec import Mode
from taxtui.sandboxes.conformance.bench import ALL_BEAT, BEAT, Bench, beats_stop, check, equal, raises

SESSION: tuple[Mode, ...] = ("session",)


@check("a killed shell", modes=SESSION)
async def killed_shell(bench: Bench) -> None:
    """A command that kills the session's shell loses the session, not the sandbox."""
    shell = await bench.shell()
    with raises(SandboxLost, subject="kill -9 $$"):
        await shell.run("kill -9 $$; sleep 30")
    with raises(SandboxLost, subject="the command after it"):
        await shell.run("true")
    reopened = await bench.shell(shell.sandbox)
    equal(await reopened.output("echo again"), b"again\n", "a new session in the same sandbox")


@check("a killed shell whose streams are held", modes=SESSION)
async def killed_but_held(bench: Bench) -> None:
    """A killed shell is noticed even while a background process has its streams open."""
    shell = await bench.shell()
    with raises(SandboxLost, ExecTimeout, subject="kill -9 $$"):
        await shell.run("sleep 60 & kill -9 $$; sleep 30", timeout_s=10)
    reopened = await bench.shell(shell.sandbox)
    equal(await reopened.output("echo again"), b"again\n", "a new session in the same sandbox")


@check("closing", modes=SESSION)
async def closing(bench: Bench) -> None:
    """Closing ends the shell and its processes, also a second close; a later command is refused."""
    shell = await bench.shell()
    session = await shell.sandbox.open_session()
    async with beats_stop(shell.sandbox, "after closing"):
        background = BEAT.replace("beat.foreground", "beat.foreground &")
        await type(shell)(shell.sandbox, session).run(f"({background}) >/dev/null 2>&1 </dev/null\n{ALL_BEAT}")
        await session.close()
    await session.close()
    with raises(SandboxLost, subject="a command in a closed session"):
        await type(shell)(shell.sandbox, session).run("true")
    equal(await shell.output("echo other"), b"other\n", "another session in the same sandbox")


@check("two sessions", modes=SESSION)
async def two_sessions(bench: Bench) -> None:
    """Two sessions in one sandbox share only its files."""
    first = await bench.shell()
    second = await bench.shell(first.sandbox)
    await first.output("echo shared > note")
    equal(await second.output("cat note"), b"shared\n", "the file that the other session wrote")
