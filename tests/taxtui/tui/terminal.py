"""A real terminal for a test: tmux, driven by keys and read as text."""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support import waiting

BETWEEN_LOOKS_S: Final = 0.1
"""A screen that changes all the time is not looked at more often."""

AT_LEAST_S: Final = 1.0
"""One that does not change is looked at this often all the same."""

SDKS: Final = ("aiohttp", "asyncssh", "boto3", "inspect_ai", "kubernetes", "swerex")
WITHOUT_SDKS: Final = f"import sys; sys.modules.update(dict.fromkeys({SDKS}))\n"
"""A ``sitecustomize``: as if these had not been installed. Setup asks every substrate, and to import all SDKs for that
takes longer than all else that the app does."""


class Terminal:
    """``taxtui`` in a tmux pane of its own server, in ``folder``; each of its interpreters begins with ``site``.

    One client in control mode takes every command and is told whenever the program writes: nothing is started to look.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        width: int = 80,
        height: int = 24,
        site: str = "",
        **env: str,
    ) -> None:
        self.socket = f"taxtui-{uuid.uuid4().hex[:8]}"
        self._folder, self._size = folder, (width, height)
        command = shlex.join([sys.executable, "-m", "taxtui", *arguments])
        settings: Mapping[str, str] = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "XDG_DATA_HOME": str(folder), **env}
        first = folder / "first"
        first.mkdir()
        (first / "sitecustomize.py").write_text(WITHOUT_SDKS + site)
        settings = {**settings, "PYTHONPATH": str(first)}
        self._line = f"{shlex.join(['env', *(f'{k}={v}' for k, v in settings.items())])} {command}; echo EXIT=$?; cat"
        self._client: subprocess.Popen[bytes]
        self._heard = b""  # what tmux has told and nobody has looked at

    def __enter__(self) -> Self:
        width, height = map(str, self._size)
        tmux, env = ["tmux", "-L", self.socket, "-f", "/dev/null"], {**os.environ, "LANG": "C.UTF-8"}
        subprocess.run(
            [*tmux, "new-session", "-d", "-s", "s", "-x", width, "-y", height, "-c", str(self._folder), self._line],
            check=True, env=env,
        )  # fmt: skip
        self._client = subprocess.Popen(
            [*tmux, "-C", "attach-session", "-t", "s"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env,
        )  # fmt: skip
        self._answer()  # to the attaching itself
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self._client.communicate()

    def end(self) -> None:
        """Take the terminal away from whatever runs in it."""
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True, check=False)

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "s", *keys)

    def resize(self, width: int, height: int) -> None:
        self.tmux("resize-window", "-t", "s", "-x", str(width), "-y", str(height))

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "s")

    def until(self, pattern: str) -> re.Match[str]:
        """Wait until the screen shows this; fail with what it shows instead."""
        while True:
            looked_s = time.monotonic()
            shown = self.screen()
            if found := re.search(pattern, shown):
                return found
            assert "EXIT=" in pattern or "Traceback" not in shown, shown
            waiting.still(f"/{pattern}/ on\n{shown}")
            self._written()
            time.sleep(max(0.0, looked_s + BETWEEN_LOOKS_S - time.monotonic()))

    def tmux(self, *words: str) -> str:
        """What a command of tmux's answers."""
        assert self._client.stdin
        self._client.stdin.write(f"{shlex.join(words)}\n".encode())
        self._client.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        """The lines between ``%begin`` and the ``%end`` with the same numbers."""
        while not (begun := self._told()).startswith(b"%begin "):
            pass
        ends = [word + begun.removeprefix(b"%begin") for word in (b"%end", b"%error")]
        lines = []
        while (line := self._told()) not in ends:
            lines.append(line)
        answer = b"".join(lines).decode()
        assert line == ends[0], answer
        return answer

    def _told(self) -> bytes:
        """The next line that tmux tells."""
        while (end := self._heard.find(b"\n") + 1) == 0:
            self._hear()
        line, self._heard = self._heard[:end], self._heard[end:]
        return line

    def _hear(self) -> None:
        assert self._client.stdout
        more = os.read(self._client.stdout.fileno(), 1 << 16)
        assert more, "tmux has ended"
        self._heard += more

    def _written(self) -> None:
        """Wait until the program has written something since the last answer; but look again now and then."""
        assert self._client.stdout
        if b"%output " not in self._heard and select.select([self._client.stdout], [], [], AT_LEAST_S)[0]:
            self._hear()
        self._heard = self._heard[self._heard.rfind(b"\n") + 1 :]
