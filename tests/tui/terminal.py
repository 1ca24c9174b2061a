"""A real terminal for a test: tmux, driven by keys and read as text."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support import waiting


class Terminal:
    """``taxtui`` in a tmux pane of its own server, in ``folder``."""

    def __init__(self, folder: Path, *arguments: str, width: int = 80, height: int = 24, **env: str) -> None:
        self.socket = f"taxtui-{uuid.uuid4().hex[:8]}"
        self._folder, self._size = folder, (width, height)
        command = shlex.join([sys.executable, "-m", "taxtui", *arguments])
        settings: Mapping[str, str] = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "XDG_DATA_HOME": str(folder), **env}
        self._line = f"{shlex.join(['env', *(f'{k}={v}' for k, v in settings.items())])} {command}; echo EXIT=$?; cat"

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self.socket, "-f", "/dev/null", *words],
            capture_output=True, text=True, check=True, env={**os.environ, "LANG": "C.UTF-8"},
        )  # fmt: skip
        return done.stdout

    def __enter__(self) -> Self:
        width, height = map(str, self._size)
        self._tmux("new-session", "-d", "-s", "s", "-x", width, "-y", height, "-c", str(self._folder), self._line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True, check=False)

    def keys(self, *keys: str) -> None:
        self._tmux("send-keys", "-t", "s", *keys)

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-t", "s", "-x", str(width), "-y", str(height))

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p", "-t", "s")

    def until(self, pattern: str) -> re.Match[str]:
        """Wait until the screen shows this; fail with what it shows instead."""
        while True:
            shown = self.screen()
            if found := re.search(pattern, shown):
                return found
            assert "EXIT=" in pattern or "Traceback" not in shown, shown
            waiting.still(f"/{pattern}/ on\n{shown}")
            time.sleep(0.1)
