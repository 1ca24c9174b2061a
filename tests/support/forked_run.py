"""``taxtui`` forked from a process that has read its modules: killed while it works, not while it reads."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.support.command_line import Home

PRELOADED: Final = [
    *("taxtui.cli", "taxtui.commands.run", "taxtui.commands.run_output", "taxtui.plan.scenario", "taxtui.runner.run"),
    *("taxtui.substrates.docker.substrate", "taxtui.substrates.local.substrate", "taxtui.substrates.ssh.substrate"),
    *("taxtui.workloads.fixtures", "tests.support.forked_run"),
]
"""Modules that ``taxtui run`` imports until its first trial."""


class ForkedRun:
    """As ``Home.start`` gives one, with nobody to hear it; whoever starts it kills it."""

    def __init__(self, home: Home, *args: str) -> None:
        forks = multiprocessing.get_context("forkserver")
        forks.set_forkserver_preload(PRELOADED)
        self._process = forks.Process(target=_taxtui, args=(args, home.cwd, home.env), daemon=True)
        self._process.start()

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> None:
        self._process.join()


def _taxtui(args: tuple[str, ...], folder: Path, environment: dict[str, str]) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # its own, not that of whoever has read the modules
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    sys.argv = ["taxtui", *args]
    from taxtui.__main__ import main

    main()
