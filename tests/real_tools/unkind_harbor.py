"""An environment of Harbor's that runs commands in a folder of this machine, and is unkind where it is told to be.

``FolderEnvironment`` as Harbor's ``import_path``, its faults as keyword arguments, each a list of calls from 1 on:
``start_fails``, ``start_throttled``, ``exec_fails``, ``exec_throttled``, ``stop_fails``; ``slow_s`` before each.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

SECRET = "sk-canary-0123456789abcdef"


class TooManyRequestsError(Exception):
    """As SDKs call it."""

    status_code = 429


class FolderEnvironment(BaseEnvironment):
    """One folder."""

    calls: Counter = Counter()

    def __init__(self, *args, slow_s=0.0, **kwargs):
        faults = ("start_fails", "start_throttled", "exec_fails", "exec_throttled", "stop_fails")
        self._faults = {name: kwargs.pop(name, ()) for name in faults}
        self._slow_s = slow_s
        super().__init__(*args, **kwargs)
        self._folder = self.trial_paths.trial_dir.parent / f"{self.session_id}-sandbox"

    @staticmethod
    def type():
        return "folder"

    @property
    def capabilities(self):
        return EnvironmentCapabilities(mounted=True)

    def _validate_definition(self):
        if not self.task_env_config.docker_image:
            raise ValueError("FolderEnvironment wants an image.")

    def _fault(self, call):
        FolderEnvironment.calls[call] += 1
        if FolderEnvironment.calls[call] in self._faults.get(f"{call}_throttled", ()):
            raise TooManyRequestsError(f"slow down, {SECRET}")
        if FolderEnvironment.calls[call] in self._faults.get(f"{call}_fails", ()):
            raise RuntimeError(f"the provider's {call} failed, {SECRET}")

    async def start(self, force_build):
        await asyncio.sleep(self._slow_s)
        self._fault("start")
        for name in ("work", "home", "tmp"):
            (self._folder / name).mkdir(parents=True)

    async def stop(self, delete):
        await asyncio.sleep(self._slow_s)
        self._fault("stop")
        mark = f"TAXTUI_FOLDER={self._folder}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:
                continue
        shutil.rmtree(self._folder, ignore_errors=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        await asyncio.sleep(self._slow_s)
        self._fault("exec")
        if not self._folder.is_dir():
            raise RuntimeError("there is no such sandbox")
        around = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder / "home"),
            "TMPDIR": str(self._folder / "tmp"),
            "TAXTUI_FOLDER": str(self._folder),
            **(self._merge_env(env) or {}),
        }
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or self._folder / "work",
            env=around,
            start_new_session=True,
        )
        out, err = await process.communicate()
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=code)

    async def upload_file(self, source_path, target_path):
        await asyncio.to_thread(shutil.copy, source_path, target_path)

    async def upload_dir(self, source_dir, target_dir):
        raise NotImplementedError

    async def download_file(self, source_path, target_path):
        await asyncio.to_thread(shutil.copy, source_path, target_path)

    async def download_dir(self, source_dir, target_dir):
        raise NotImplementedError
