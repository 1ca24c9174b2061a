"""Where a stand-in's sandbox really runs its commands: a temporary folder, and process groups of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Mapping, Sequence
from pathlib import Path


class Place:
    """One sandbox's folder and whatever runs in it. A process goes on until it ends or somebody kills it."""

    def __init__(self, prefix: str, volume: Path | None = None) -> None:
        """``volume`` is a folder that outlives the place; temporary files do not."""
        self._volume = volume
        self.folder = volume or Path(tempfile.mkdtemp(prefix=prefix))
        self.temporary = self.folder / ".tmp"
        self.temporary.mkdir(exist_ok=True)
        self.processes: list[Process] = []
        self._removed = False
        self.path = os.environ["PATH"]

    def begun(self) -> bool:
        """Whether a command has made the file of this name, as one does that a test waits for."""
        return (self.folder / "begun").exists()

    async def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        stdin: bool,
        merged: bool = False,
        quiet: bool = False,
    ) -> Process:
        """Start a program as the leader of a session and process group of its own. Raises ``OSError``."""
        self._must_exist()
        out = DEVNULL if quiet else PIPE
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=PIPE if stdin else DEVNULL,
            stdout=out,
            stderr=STDOUT if merged else out,
            cwd=self.folder,
            env={"PATH": self.path, "HOME": str(self.folder), "TMPDIR": str(self.temporary), "LANG": "C.UTF-8", **env},
            start_new_session=True,
        )
        self.processes.append(process)
        if self._removed:  # while it began, so that nobody has killed it
            await self.remove()
        self._must_exist()
        return process

    def _must_exist(self) -> None:
        if self._removed:
            raise ProcessLookupError("its place is gone")

    def kill(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def alive(self) -> int:
        """How many process groups that were started here still have a member that is not a zombie."""
        return len(living_groups().intersection(process.pid for process in self.processes))

    async def remove(self) -> None:
        """Kill everything and delete the folder; what is just beginning is killed too."""
        self._removed = True
        self.kill()
        for process in self.processes:
            await process.wait()
        self.processes.clear()
        shutil.rmtree(self.temporary if self._volume else self.folder, ignore_errors=True)


def living_groups() -> set[int]:
    """Process groups of this machine that have a member which is not a zombie."""
    groups = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, _, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if state != "Z":
                    groups.add(int(group))
    return groups


def descendants(pid: int) -> list[int]:
    """Processes below one, parents before their children."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = children.get(pid, [])
    for child in found:
        found.extend(children.get(child, []))
    return found
