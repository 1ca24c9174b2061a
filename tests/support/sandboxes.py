"""Real sandboxes for integration tests, and the probes that show whether a limit holds."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import AsyncIterator
from typing import Any, Final

from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN, LABEL_TRIAL
from taxtui.sandboxes.protocol import Marks, Sandbox, Substrate

RUN: Final = f"it{os.getpid()}"
_NUMBERS = itertools.count(1)

TIGHT: Final = Limits(cpus=0.5, memory_mib=256, pids=32)
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


def spec(number: int | None = None, **changes: Any) -> SandboxSpec:
    number = next(_NUMBERS) if number is None else number
    given = {
        "name": f"taxtui-{RUN}-{number}",
        "labels": {LABEL_RUN: RUN, LABEL_TRIAL: str(number), LABEL_DEADLINE: "1"},
        "limits": Limits(),
        "ttl_s": 300.0,
    }
    return SandboxSpec(**{**given, **changes})


async def ready(substrate: Substrate, number: int | None = None, marks: Marks | None = None, **changes: Any) -> Any:
    """A sandbox that takes commands; whoever asks for it destroys it."""
    marks = marks or Marks()
    sandbox = await substrate.create(spec(number, **changes), marks)
    await sandbox.wait_ready(marks)
    return sandbox


@contextlib.asynccontextmanager
async def sandbox_of(substrate: Substrate, **changes: Any) -> AsyncIterator[Any]:
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


async def assert_limited(sandbox: Sandbox, mode: str) -> None:
    """That the limits ``TIGHT`` are in force."""
    path = sandbox if mode == "exec" else await sandbox.open_session()
    assert (await path.exec(Command(script=f"{MEMORY_HOG}; exit $?"))).exit_code == 137
    share = float((await path.exec(Command(script=CPU_SHARE))).stdout)
    assert share < 2 * TIGHT.cpus  # three processes on unlimited CPUs have twice that and more
    assert 0 < int((await path.exec(Command(script=FORKS))).stdout) < TIGHT.pids
