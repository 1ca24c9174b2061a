"""Logging in to an instance."""

from __future__ import annotations

import asyncio

import asyncssh
import pytest

from taxtui.substrates.aws.ec2.sandbox import connect, new_key


async def test_a_login_that_is_cancelled_the_moment_it_is_done_goes_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connected(*_: object) -> None:
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(task.cancel)

    async def log_in() -> None:
        await connect("127.0.0.1", 22, "", client, host)
        await asyncio.sleep(0)

    monkeypatch.setattr(asyncssh.connection, "_connect", connected)
    (client, _), (host, _) = new_key(), new_key()
    task = asyncio.create_task(log_in())
    await asyncio.wait({task})
    assert task.cancelled()
