"""The async SDK of an invented provider, for the example substrate.

The shape is common: a client with create, exec, delete and list, tags, and an exception with an HTTP status. A sandbox
is a folder of this machine, and a command is a process in the folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from taxtui.sandboxes.kit.kill import kill_marked

_NOT_FOUND: Final = 404
_VARIABLE: Final = "FAKE_SDK_SANDBOX"


class ApiError(Exception):
    """The provider refused a request."""

    def __init__(self, status: int, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


class Completed(NamedTuple):
    """A program's end."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class RemoteSandbox(NamedTuple):
    """A listed sandbox."""

    id: str
    tags: dict[str, str]


class AsyncClient:
    """A client for one account; ``account`` is the folder of the sandboxes."""

    def __init__(self, account: str = "") -> None:
        self._folder = Path(account or Path(tempfile.gettempdir()) / f"fake-sdk-{os.getuid()}")

    async def close(self) -> None:
        pass

    async def version(self) -> str:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return "1.0"

    async def create(self, *, tags: Mapping[str, str], timeout_s: float) -> RemoteSandbox:
        """A new sandbox. The provider does not enforce ``timeout_s``."""
        sandbox = RemoteSandbox(f"sb-{secrets.token_hex(6)}", dict(tags))
        await asyncio.sleep(0.01)  # a round trip
        folder = self._folder / sandbox.id
        (folder / "work").mkdir(parents=True)
        (folder / "tags.json").write_text(json.dumps(sandbox.tags))
        return sandbox

    async def list(self) -> list[RemoteSandbox]:
        return [
            RemoteSandbox(path.parent.name, json.loads(path.read_text())) for path in self._folder.glob("*/tags.json")
        ]

    async def exec(self, sandbox_id: str, argv: Sequence[str], *, stdin: bytes, timeout_s: float) -> Completed:
        """Run a program to the end. A cancelled request does not stop the program."""
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=self._existing(sandbox_id) / "work",
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": str(self._folder / sandbox_id),
                "LANG": "C.UTF-8",
                _VARIABLE: sandbox_id,
            },
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(timeout_s):
            stdout, stderr = await process.communicate(stdin)
        return Completed(await process.wait(), stdout, stderr)

    async def delete(self, sandbox_id: str) -> None:
        folder = self._existing(sandbox_id)
        (folder / "tags.json").unlink(missing_ok=True)
        await kill_marked(f"{_VARIABLE}={sandbox_id}")
        shutil.rmtree(folder, ignore_errors=True)

    def _existing(self, sandbox_id: str) -> Path:
        folder = self._folder / sandbox_id
        if not (folder / "tags.json").exists():
            raise ApiError(_NOT_FOUND, f"no sandbox {sandbox_id}")
        return folder
