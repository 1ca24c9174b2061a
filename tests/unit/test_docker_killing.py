"""Killing a command in a container where nothing can be run any more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.substrates.docker import sandbox as docker_sandbox
from taxtui.substrates.docker.containers import Image
from taxtui.substrates.docker.exec import Exec
from taxtui.substrates.docker.sandbox import DockerSandbox
from tests.support.sandboxes import spec


class Unstartable(Exec):
    """Begins and fails, whatever it is: as in a container that lost its working folder, or its shell."""

    started: list[tuple[list[str], str]]

    async def start(self, argv: list[str], *, stdin: bool, user: str = "", folder: str = "") -> None:
        self.started.append((argv, folder))
        raise ExecFailed("OCI runtime exec failed")

    async def has_begun(self) -> bool:
        return True


async def test_a_killer_that_fails_is_not_killed_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[list[str], str]] = []
    monkeypatch.setattr(Unstartable, "started", started, raising=False)
    monkeypatch.setattr(docker_sandbox, "Exec", Unstartable)
    substrate: Any = SimpleNamespace(daemon=SimpleNamespace(half_closes=True))
    sandbox = DockerSandbox(substrate, spec(), "container", Image(folder="/work", restored="/work", home="", root=True))
    with pytest.raises(ExecFailed, match="OCI runtime"):
        await sandbox.exec(Command(script="true"))
    assert [(argv[0], folder) for argv, folder in started] == [("bash", ""), ("sh", "/")]
    assert not sandbox._running
