"""Real sandboxes for integration tests, and the probes that show whether a limit holds."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import AsyncIterator
from typing import Final

from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN
from taxtui.sandboxes.protocol import Marks, Sandbox, Substrate

_NUMBERS = itertools.count(1)

MEMORY_HOG: Final = "python3 -c 'x = b\"x\" * (700 << 20); print(len(x))'"

BUSY_S: Final = 0.8
CPU_SHARE: Final = f"""python3 - <<'END'
import os, resource, time
began = time.monotonic()
for _ in range(3):
    if os.fork() == 0:
        while time.monotonic() - began < {BUSY_S}: pass
        os._exit(0)
for _ in range(3): os.wait()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print((used.ru_utime + used.ru_stime) / (time.monotonic() - began))
END"""
"""Three busy processes for a while; prints how many CPUs they had on average."""

FORKS: Final = """python3 - <<'END'
import os, time
children = []
try:
    while len(children) < 60:
        if (child := os.fork()) == 0:
            time.sleep(2)
            os._exit(0)
        children.append(child)
except BlockingIOError:
    pass
print(len(children))
END"""
"""Prints how many children of sixty could be had at once."""


def spec(**changes: object) -> SandboxSpec:
    number = next(_NUMBERS)
    run = f"it{os.getpid()}"
    given = {
        "name": f"taxtui-{run}-{number}",
        "labels": {LABEL_RUN: run, LABEL_DEADLINE: "1"},
        "limits": Limits(),
        "ttl_s": 300.0,
    }
    return SandboxSpec(**{**given, **changes})  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def sandbox_of(substrate: Substrate, **changes: object) -> AsyncIterator[Sandbox]:
    async with substrate:
        sandbox = await substrate.create(spec(**changes), Marks())
        try:
            await sandbox.wait_ready(Marks())
            yield sandbox
        finally:
            await sandbox.destroy()


async def output(sandbox: Sandbox, script: str) -> str:
    result = await sandbox.exec(Command(script=script, timeout_s=25))
    assert result.exit_code == 0, result.stderr.decode(errors="replace")
    return result.stdout.decode()
