"""A stand-in in a process of its own, so that its work does not show up as ours."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def serving(module: str) -> AsyncIterator[str]:
    """Run ``python -m module`` until the block ends; yields the line that it prints once it serves."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, stdin=PIPE, stdout=PIPE, cwd=ROOT, env={**os.environ, "PYTHONWARNINGS": "ignore"}
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await process.wait()


def serve(standin: AbstractAsyncContextManager[Any], address: str) -> None:
    """Serve in this process until the end of standard input; prints the attribute ``address`` of the stand-in."""

    async def run() -> None:
        async with standin as running:
            print(getattr(running, address), flush=True)
            await asyncio.to_thread(sys.stdin.read)

    asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())
