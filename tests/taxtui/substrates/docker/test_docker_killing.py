"""Killing a command in a container where nothing can be run any more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.substrates.docker import sandbox as docker_sandbox
from taxtui.substrates.docker.containers import Image
from taxtui.substrates.docker.exec import Exec
from taxtui.substrates.docker.http import Address, Daemon
from taxtui.substrates.docker.sandbox import DockerSandbox
from tests.support.sandboxes import spec


class Unstartable(Exec):
    """Begins and fails, whatever it is: as in a container that lost its working folder, or its shell."""

    started: list[tuple[list[str], str]]

    async def start(self, argv: list[str], *, stdin: bool, folder: str = "") -> None:
        self.started.append((argv, folder))
        raise ExecFailed("OCI runtime exec failed")

    async def has_begun(self) -> bool:
        return True


async def test_a_killer_that_fails_is_not_killed_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[list[str], str]] = []
    monkeypatch.setattr(Unstartable, "started", started, raising=False)
    monkeypatch.setattr(docker_sandbox, "Exec", Unstartable)
    substrate: Any = SimpleNamespace(daemon=None)
    sandbox = DockerSandbox(substrate, spec(), "container", Image("/work", "/work", home="", name=""))
    with pytest.raises(ExecFailed, match="OCI runtime"):
        await sandbox.exec(Command(script="true"))
    assert [(argv[0], folder) for argv, folder in started] == [("bash", ""), ("sh", "/")]
    assert not sandbox._running


def answer(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


@pytest.mark.parametrize("refuses", [False, True])
async def test_a_start_cancelled_before_the_answer_is_awaited_before_the_kill(refuses: bool, tmp_path: Path) -> None:
    """As dockerd does: one whose client has gone by its answer starts nothing, and never says so."""
    asked, may_answer = asyncio.Event(), asyncio.Event()
    running = False

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal running
        while head := (await reader.read(1 << 16)).partition(b" HTTP")[0]:
            if head == b"POST /exec/e/start":
                asked.set()
                await may_answer.wait()
                running = not refuses and not reader.at_eof()
                writer.write(answer(409, b"{}") if refuses else b"HTTP/1.1 101 UPGRADED\r\n\r\n")
            elif head == b"POST /containers/c/exec":
                writer.write(answer(201, b'{"Id": "e"}'))
            else:
                writer.write(answer(200, b'{"Running": %b, "Pid": %d}' % (str(running).lower().encode(), running)))
        writer.close()

    async with await asyncio.start_unix_server(talk, tmp_path / "d.sock"):
        daemon = Daemon(Address(path=str(tmp_path / "d.sock")))
        command = Exec(daemon, "c")
        starting = asyncio.create_task(command.start(["sleep", "9"], stdin=False))
        await asked.wait()
        starting.cancel()
        await asyncio.wait({starting})
        asyncio.get_running_loop().call_later(0.05, may_answer.set)
        assert await command.has_begun() is not refuses
        command.release()
        await daemon.close()
