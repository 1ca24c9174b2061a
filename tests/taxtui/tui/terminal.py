"""A real terminal for a test: tmux, driven by keys and read as text."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Final, Self

from tests.support import waiting

BETWEEN_LOOKS_S: Final = 0.2
SDKS: Final = ("aiohttp", "asyncssh", "boto3", "inspect_ai", "kubernetes", "swerex")
WITHOUT_SDKS: Final = f"import sys; sys.modules.update(dict.fromkeys({SDKS}))\n"
"""A ``sitecustomize``: Setup asks every substrate, and importing all SDKs takes longer than everything else."""


class Terminal:
    """``taxtui`` in a tmux pane of its own server, in ``folder``; each of its interpreters begins with ``site``."""

    def __init__(
        self, folder: Path, *arguments: str, width: int = 80, height: int = 24, site: str = "", **env: str
    ) -> None:
        self._tmux = ["tmux", "-L", f"taxtui-{uuid.uuid4().hex[:8]}", "-f", "/dev/null"]
        self._folder, self._size = folder, (str(width), str(height))
        first = folder / "first"
        first.mkdir()
        (first / "sitecustomize.py").write_text(WITHOUT_SDKS + site)
        settings = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "XDG_DATA_HOME": str(folder), **env}
        variables = [f"{name}={value}" for name, value in {**settings, "PYTHONPATH": str(first)}.items()]
        command = shlex.join(["env", *variables, sys.executable, "-m", "taxtui", *arguments])
        self._line = f"{command}; echo EXIT=$?; cat"

    def __enter__(self) -> Self:
        width, height = self._size
        self.tmux("new-session", "-d", "-s", "s", "-x", width, "-y", height, "-c", str(self._folder), self._line)
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """Take the terminal away from whatever runs in it."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "s", *keys)

    def resize(self, width: int, height: int) -> None:
        self.tmux("resize-window", "-t", "s", "-x", str(width), "-y", str(height))

    def until(self, pattern: str) -> re.Match[str]:
        """Wait until the screen shows this; fail with what it shows instead."""
        while True:
            shown = self.tmux("capture-pane", "-p", "-t", "s")
            if found := re.search(pattern, shown):
                return found
            assert "EXIT=" in pattern or "Traceback" not in shown, shown
            waiting.still(f"/{pattern}/ on\n{shown}")
            time.sleep(BETWEEN_LOOKS_S)

    def tmux(self, *words: str) -> str:
        """Run a command of tmux's and return its output."""
        return subprocess.run(
            [*self._tmux, *words], env={**os.environ, "LANG": "C.UTF-8"}, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
