"""A session's action beside the same command over the bare channel of its substrate, the two taking turns in one run.

    python -m tests.benchmarks.bench_layers [ACTIONS] [NAME[:key=value,…] …]

By default nspawn, runsc and uml, and ssh against a private sshd; what cannot be used here is said and left out. The
bare channel is a ``bash`` in the same sandbox, started in the same way, that reads one line and prints an exit code:
pipes and blocking calls for nspawn and runsc, a channel of the same SSH connection, a serial line of the same kernel.
It keeps no streams apart, finds no end of its own and knows no deadline. Commands are programs; what is promised is of
``/bin/true``. For ``true``, which the shell is itself, there is nothing but the fork that keeps commands apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from taxtui.errors import TaxtuiError
from taxtui.plan.notation import parse_substrate
from taxtui.plan.spec import Command
from taxtui.sandboxes import registry
from taxtui.sandboxes.kit.framed_shell import ENDED
from taxtui.sandboxes.kit.kill import new_mark
from taxtui.sandboxes.kit.over_ssh import OverSsh
from taxtui.sandboxes.protocol import Sandbox
from taxtui.substrates.machine.entered import EnteredSandbox
from taxtui.substrates.machine.uml.sandbox import UmlSandbox
from tests.benchmarks.bench_dispatch import Step, p50s_ms, sandbox_of
from tests.benchmarks.figures import tell
from tests.support.private_sshd import ssh_box

PROGRAM: Final = "/bin/true"
BUILTIN: Final = "true"
SHELL: Final = "exec bash --norc --noprofile"
PROMISED: Final = 1.3
REST_S: Final = 0.02
"""Before each command: a session forks for the next one once it has answered, and the bare channel must not pay."""

Bare = Callable[[bytes], Awaitable[None]]


def line(script: str) -> bytes:
    """What the bare shell is sent: the command is kept apart from the shell and its input, as in a session."""
    return f"( {script} ) </dev/null; echo $?\n".encode()


@contextlib.asynccontextmanager
async def bare(sandbox: Sandbox) -> AsyncIterator[Bare]:
    """One line there, one line back."""
    if isinstance(sandbox, EnteredSandbox):
        argv = sandbox.enter(["bash", "--norc", "--noprofile"], sandbox.env)
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as shell:  # noqa: ASYNC220
            assert shell.stdin is not None
            assert shell.stdout is not None
            sent, answered = shell.stdin, shell.stdout

            async def by_pipes(line: bytes) -> None:
                sent.write(line)
                assert answered.readline() == b"0\n"

            yield by_pipes
            sent.close()
    elif isinstance(sandbox, OverSsh):
        assert sandbox.connection is not None
        async with sandbox.connection.create_process(SHELL, encoding=None) as channel:

            async def by_channel(line: bytes) -> None:
                channel.stdin.write(line)
                assert await channel.stdout.readline() == b"0\n"

            yield by_channel
            channel.stdin.write_eof()
    else:
        assert isinstance(sandbox, UmlSandbox)
        pair = await sandbox._taken(new_mark(), 60.0)
        await pair.write(b": %09d %09d\n%s\n" % (len(SHELL) + 1, 1, SHELL.encode()))  # instead of the session's program

        async def by_serial_line(line: bytes) -> None:
            await pair.write(line)
            answer = b""
            while not answer.endswith(b"0\n"):
                channel, chunk = await pair.read()
                assert channel != ENDED
                answer += chunk

        yield by_serial_line
        await pair.write(b"exit\n")


async def beside(place: str, actions: int) -> bool:
    """Whether the promise was kept there."""
    async with registry.build(parse_substrate(place)) as substrate:
        found = await substrate.check()
        if not found.ok:
            print(f"{place} cannot be used here: {found.detail}; not measured")
            return True
        sandbox = await sandbox_of(substrate)
        try:
            session = await sandbox.open_session()
            async with bare(sandbox) as step:
                steps: list[Step] = []
                for script in (PROGRAM, BUILTIN):
                    steps += [partial(step, line(script)), partial(session.exec, Command(script=script))]
                floor, ours, least, shell = await p50s_ms(actions, *steps, rest_s=REST_S)
            await session.close()
        finally:
            await sandbox.destroy()
    name, kept = place.partition(":")[0], ours / floor <= PROMISED
    for what, value, base, wanted in (
        (f"{name} session", ours, floor, f"≤ {PROMISED:.2f}"),
        (f"{name} session, no program", shell, least, ""),
    ):
        print(f"{what:28} {value:8.3f} ms   {value / base:6.2f} × {base:7.3f} ms   {wanted}")
        tell(what, value, "ms", base, "the bare channel", wanted=wanted)
    return kept


def main(actions: int, places: Sequence[str]) -> bool:
    """Measure each."""
    with contextlib.ExitStack() as stack:
        chosen = list(places) or ["nspawn", "runsc", "uml", stack.enter_context(ssh_box()).named()]
        kept = True
        for place in chosen:
            try:
                kept &= asyncio.run(beside(place, actions))
            except TaxtuiError as error:
                print(f"{place} cannot be used here: {error}; not measured")
        return kept


if __name__ == "__main__":
    words = sys.argv[1:]
    many = int(words.pop(0)) if words and words[0].isdigit() else 300
    sys.exit(0 if main(many, words) else 1)
