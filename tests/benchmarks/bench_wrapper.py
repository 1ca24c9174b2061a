"""Each path of a command beside a bare ``bash -c`` of the same command, taking turns in one run, on this machine.

    python -m tests.benchmarks.bench_wrapper [ACTIONS]      exit 1 where a ratio is above the limit
plain      the script of a local or docker exec: the in-sandbox timer alone
captured   kubernetes, ssh and ec2
inside     harnesses: a text for the bash that a harness starts
text       Daytona: a text for the provider's shell, beside `bash -c` in such a shell
split      a session of local, docker, kubernetes, ssh or ec2
merged     a session of ECS or Daytona
The scripts are those of a run, with the timer in them; only the baseline is bare. A figure is taxtui's own share.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from functools import partial
from typing import Final

from taxtui.plan.spec import Command
from taxtui.runner.trial import bracket
from taxtui.sandboxes.kit import text_sandbox
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.kit.shell.captured_command import captured, wrap_command
from taxtui.sandboxes.kit.shell.framed_shell import FramedShell, launch_argv
from tests.benchmarks.bench_dispatch import Step, p50s_ms

SCRIPTS: Final = {"true": "true", "a line": "echo hello", "4 kB": "seq 1000"}
LIMIT: Final = 1.5
NONCE: Final = "0123456789abcdef"
UNLIMITED: Final = ("inside", "text")
"""Paths that need two files for a command, which cost more than the fork: their ratio is only reported."""
ENV: Final = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def started(argv: list[str], *, stdin: bool = False) -> Process:
    return Process([shutil.which(argv[0]) or argv[0], *argv[1:]], ENV, stdin=stdin)


async def ended(argv: list[str]) -> str:
    """Standard output of a program, read to its end."""
    process = started(argv)
    out, _ = await process.output()
    await process.close()
    return out.kept.decode()


async def by_capture(script: str) -> None:
    """As kubernetes, ssh and ec2 run a command."""
    wrapped = wrap_command(Command(script=script), "bash")
    process = started(wrapped.argv)
    out, _ = await captured(process, wrapped.marker)
    assert out.exit_code == 0
    await process.close()


async def by_text(script: str, *, inside: bool) -> None:
    """As harnesses (``inside``) and Daytona run a command."""
    wrapped = text_sandbox.wrap(Command(script=script), "bash", {}, inside=inside)
    answer = await ended(["bash" if inside else "sh", "-c", wrapped.script])
    assert text_sandbox.read(answer, wrapped.nonce) is not None


async def beside(script: str, actions: int) -> dict[str, tuple[float, float]]:
    """The median of each path, and of its baseline, in ms."""
    timed = bracket.wrap(script, NONCE, "bash")
    sessions = [await FramedShell(started(launch_argv(), stdin=True), merged=merged).open() for merged in (False, True)]
    in_a_shell = f"bash -c {shlex.quote(script)}\n:"  # the last line keeps sh from becoming bash
    steps: list[Step] = [
        partial(ended, ["bash", "-c", script]),
        partial(ended, ["sh", "-c", in_a_shell]),
        partial(ended, ["bash", "-c", timed]),
        partial(by_capture, timed),
        partial(by_text, timed, inside=True),
        partial(by_text, timed, inside=False),
        *(partial(session.exec, Command(script=timed)) for session in sessions),
    ]
    bare, provider, plain, capture, inside, text, split, merged = await p50s_ms(actions, *steps)
    for session in sessions:
        await session.close()
    return {
        "plain": (plain, bare),
        "captured": (capture, bare),
        "inside": (inside, bare),
        "text": (text, provider),
        "split session": (split, bare),
        "merged session": (merged, bare),
    }


def main(actions: int) -> bool:
    """Measure all; whether every ratio is within the limit."""
    kept = True
    for name, script in SCRIPTS.items():
        for path, (ours, bare) in asyncio.run(beside(script, actions)).items():
            against = "bash -c in the provider's sh" if path == "text" else "bash -c"
            print(f"{path:16} {name:8} {ours:8.3f} ms   {ours / bare:6.2f} × {bare:7.3f} ms {against}")
            kept &= path in UNLIMITED or ours / bare <= LIMIT
    return kept


if __name__ == "__main__":
    sys.exit(0 if main(int(sys.argv[1]) if sys.argv[1:] else 300) else 1)
