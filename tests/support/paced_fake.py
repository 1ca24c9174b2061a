"""The shipped fake with latencies that a seed decides, as a substrate that worker processes find by its name."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import ClassVar, Final

import msgspec

from taxtui.plan.spec import Command, SandboxSpec
from taxtui.sandboxes.fake import FakeOptions, FakeSandbox, FakeSubstrate
from taxtui.sandboxes.protocol import ExecResult, Marks

ROOT: Final = Path(__file__).parents[2]
NAME: Final = "paced"


class PacedOptions(FakeOptions, frozen=True, forbid_unknown_fields=True):
    """Each command takes a lognormal time around ``median_s``; 0: none."""

    median_s: float = 0.0
    sigma: float = 0.5
    seed: int = 0


class PacedSubstrate(FakeSubstrate):
    """What a command takes depends on the seed, its sandbox and its turn there, and on nothing else."""

    name: ClassVar[str] = NAME
    Options: ClassVar[type[msgspec.Struct]] = PacedOptions

    def __init__(self, options: PacedOptions | None = None) -> None:
        self.paced = options or PacedOptions()
        super().__init__(self.paced)

    async def create(self, spec: SandboxSpec, marks: Marks) -> FakeSandbox:
        sandbox = await super().create(spec, marks)
        return _Paced(self, sandbox.name)


class _Paced(FakeSandbox):
    def __init__(self, substrate: PacedSubstrate, name: str) -> None:
        super().__init__(substrate, name)
        self._paced = substrate
        self._source = random.Random(f"{substrate.paced.seed}:{name.rpartition('-')[2]}")

    async def destroy(self) -> None:
        await super().destroy()
        self._paced.commands.clear()  # a million commands are no leak
        self._paced.calls.clear()

    async def exec(self, command: Command) -> ExecResult:
        options = self._paced.paced
        if options.median_s:
            await asyncio.sleep(options.median_s * self._source.lognormvariate(0, options.sigma))
        return await super().exec(command)


def tier(folder: Path) -> Path:
    """A tier of one command; what it takes is the fake's."""
    path = folder / "one.toml"
    path.write_text('name = "one"\ntitle = ""\n[[cycle]]\nname = "one"\nrun = "true"\n')
    return path


def environment(folder: Path) -> dict[str, str]:
    """The variables with which a process finds it; ``folder`` holds its entry point."""
    installed = folder / "paced-0.dist-info"
    installed.mkdir(parents=True, exist_ok=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: paced\nVersion: 0\n")
    (installed / "entry_points.txt").write_text(f"[taxtui.substrates]\n{NAME} = {__name__}:PacedSubstrate\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
