"""A container: commands, sessions, and the kill of processes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final

from taxtui.errors import ExecFailed, SandboxLost
from taxtui.plan.spec import Command, SandboxSpec
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, kill_then_timeout, with_cleanup
from taxtui.sandboxes.kit.kept_output import exec_result
from taxtui.sandboxes.kit.kill import MARK, kill_script
from taxtui.sandboxes.kit.limits import SANDBOX_ENV
from taxtui.sandboxes.kit.shell.framed_shell import FramedShell, launch_argv, outputs
from taxtui.sandboxes.lifecycle import Usage
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.docker.containers import Containers, Image
from taxtui.substrates.docker.exec import Exec
from taxtui.substrates.docker.failure import NoSuchProgram

_OURS_TIMEOUT_S: Final = 30.0

# $1 is the folder to restore; the archive on standard input has the image's files.
_RESTORE: Final = """
cd /
set -- "$1" /tmp /var/tmp /dev/shm
chmod -R u+rwX "$@" 2>/dev/null
find "$@" -mindepth 1 -user "$(id -u)" -delete 2>/dev/null
if [ -n "$(find "$1" -mindepth 1 -maxdepth 1)" ]; then echo "something in $1 cannot be deleted" >&2; exit 1; fi
cd "$1" && tar -xpf - --strip-components=1
"""


class DockerSandbox:
    """A running container."""

    def __init__(self, containers: Containers, spec: SandboxSpec, container: str, image: Image) -> None:
        self.name = spec.name
        self._labels = spec.labels
        self.container = container
        self._containers = containers
        self._image = image
        self._shell = "bash"
        self._running: set[Exec] = set()

    async def wait_ready(self, marks: Marks) -> None:
        """A started container takes commands."""

    async def exec(self, command: Command) -> ExecResult:
        try:
            return await self._run([self._shell, "-c", command.script], command.stdin, command.timeout_s)
        except NoSuchProgram:
            if self._shell == "sh":
                raise
            self._shell = "sh"
            return await self.exec(command)

    async def open_session(self) -> Session:
        running = self._exec()
        try:
            await running.start(launch_argv(), stdin=True)
        except BaseException as error:
            await with_cleanup(self._end(running), error)
            raise
        return await FramedShell(running, end=lambda: self._end(running)).open()

    async def reset(self, marks: Marks) -> None:
        """Kill every process but the container's own, and restore the working folder from the image.

        Changes of files elsewhere stay: the runner's check looks for traces.
        """
        killer = kill_script(f"{MARK}=", carried_by_all=SANDBOX_ENV)
        await self._ours(["sh", "-c", killer], "kill its processes")
        marks("processes killed")
        archive = await self._containers.pristine(self.name, self._labels)
        await self._ours(["sh", "-c", _RESTORE, "sh", self._image.restored], "restore its folder", archive)
        marks("folder restored")

    async def suspend(self, marks: Marks) -> None:
        """Pause the container: the daemon's cgroup freezer stops every process, and memory stays in use."""
        await finish_despite_cancel(self._containers.pause(self.container, "pause"))

    async def resume(self, marks: Marks) -> None:
        await finish_despite_cancel(self._containers.pause(self.container, "unpause"))

    async def usage(self) -> Usage:
        return await self._containers.usage(self.container)

    async def snapshot(self, name: str, labels: Mapping[str, str], marks: Marks) -> str:
        """Commit the container; the daemon pauses the container meanwhile."""
        return await finish_despite_cancel(self._containers.commit(self.container, name, labels))

    async def destroy(self) -> None:
        await self._containers.remove(self.container)
        for running in tuple(self._running):  # runsc leaves their connections open
            self._release(running)

    def _exec(self) -> Exec:
        running = Exec(self._containers.daemon, self.container)
        self._running.add(running)
        return running

    def _release(self, running: Exec) -> None:
        self._running.discard(running)
        running.release()

    async def _run(self, argv: list[str], stdin: bytes, timeout_s: float, folder: str = "") -> ExecResult:
        running = self._exec()
        try:
            async with asyncio.timeout(timeout_s):
                result = await _completed(running, argv, stdin, folder)
        except TimeoutError:
            error = await kill_then_timeout(self._end(running), timeout_s)
            if not await running.container_runs():  # runsc does not end the streams of an OOM-killed container
                raise SandboxLost("the container ended while a command ran") from None
            raise error from None
        except BaseException as broken:
            await with_cleanup(self._end(running), broken)
            raise
        self._release(running)
        return result

    async def _ours(self, argv: list[str], purpose: str, stdin: bytes = b"") -> None:
        """Run a command of taxtui's, even without a working folder. Raises ``ExecFailed`` after a failure."""
        self._require(await self._run(argv, stdin, _OURS_TIMEOUT_S, "/"), purpose)

    def _require(self, result: ExecResult, purpose: str) -> None:
        if result.exit_code:
            words = (result.stderr or result.stdout).decode(errors="replace").split()
            raise ExecFailed(f"{self.name}: cannot {purpose}: {' '.join(words) or f'exit {result.exit_code}'}")

    async def _end(self, running: Exec) -> None:
        """Kill an exec with all descendants, also an exec about to start.

        A failed killer is not killed: the processes end with the container.
        """
        try:
            if not await running.has_begun():
                return
        finally:
            self._release(running)
        killer = self._exec()
        try:
            with contextlib.suppress(SandboxLost):
                async with asyncio.timeout(_OURS_TIMEOUT_S):
                    result = await _completed(killer, ["sh", "-c", kill_script(running.mark)], folder="/")
                self._require(result, "kill a command")
        except TimeoutError as error:
            raise ExecFailed(f"{self.name}: cannot kill a command: no end after {_OURS_TIMEOUT_S:g} s") from error
        finally:
            self._release(killer)


async def _completed(running: Exec, argv: list[str], stdin: bytes = b"", folder: str = "") -> ExecResult:
    """An exec from start to exit code; the caller handles errors."""
    await running.start(argv, stdin=bool(stdin), folder=folder)
    if stdin:
        running.send(stdin)
    stdout, stderr = await outputs(running)
    code = await running.exit_code(stdout.kept)
    return exec_result(code, stdout, stderr)
