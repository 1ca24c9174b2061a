"""One container: its exec path, its sessions, and how what runs in it is killed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command, SandboxSpec
from taxtui.sandboxes.kit.framed_shell import FramedShell, launch_argv, unbroken
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.docker.containers import OUR_FOLDER, SANDBOX_ENV, Containers, Image
from taxtui.substrates.docker.exec import EXEC_ENV, Exec
from taxtui.substrates.docker.failure import NoSuchProgram

_OURS_TIMEOUT_S: Final = 30.0

# Docker cannot end an exec. So each carries a mark in its environment, which all its descendants inherit, whatever
# session or process group they move to; $1 is that mark. With $2 also what has lost the sandbox's own mark.
_KILL: Final = f"""
command -v grep >/dev/null || exit 3
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  found=
  for process in /proc/[0-9]*; do
    pid=${{process#/proc/}}
    if [ "$pid" = 1 ] || [ "$pid" = $$ ]; then continue; fi
    if grep -qs "$1" "$process/environ" ||
      {{ [ -n "$2" ] && grep -qs . "$process/cmdline" && ! grep -qs {SANDBOX_ENV}= "$process/environ"; }}
    then kill -9 "$pid" 2>/dev/null && found=1; fi
  done
  [ -n "$found" ] || exit 0
done
exit 4
"""

# $1 is the folder to restore; the archive on standard input is what the image has there.
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
        """``container``: the daemon's id."""
        self.name = spec.name
        self._labels = spec.labels
        self.container = container
        self._containers = containers
        self._image = image
        self._shell = "bash"
        self._running: set[Exec] = set()

    async def wait_ready(self, marks: Marks) -> None:
        """A started container takes commands; a folder that docker made for a user other than root is opened up."""
        if self._image.folder == OUR_FOLDER and not self._image.root:
            await self._ours(["chmod", "1777", OUR_FOLDER], "prepare its folder", user="0")
            marks("folder prepared")

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``."""
        if command.stdin and not self._containers.daemon.half_closes:
            session = await self.open_session()
            try:
                return await session.exec(command)
            finally:
                await session.close()
        try:
            return await self._run([self._shell, "-c", command.script], command.stdin, command.timeout_s)
        except NoSuchProgram:
            if self._shell == "sh":
                raise
            self._shell = "sh"
            return await self.exec(command)

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``."""
        running = self._exec()
        try:
            await running.start(launch_argv(), stdin=True)
        except BaseException:
            await unbroken(self._end(running))
            raise
        return await FramedShell.open(_Shell(self, running))

    async def reset(self, marks: Marks) -> None:
        """Kill every process but the container's own, and restore the working folder from the image.

        What was changed elsewhere in the image's files stays changed: the runner's check looks for traces.
        """
        await self._ours(["sh", "-c", _KILL, "sh", f"{EXEC_ENV}=", "strays"], "kill its processes")
        marks("processes killed")
        archive = await self._containers.pristine(self._labels)
        await self._ours(["sh", "-c", _RESTORE, "sh", self._image.restored], "restore its folder", archive)
        marks("folder restored")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``."""
        await self._containers.pool.run(lambda: self._containers.remove(self.container))
        for running in tuple(self._running):  # runsc leaves their connections open
            self._release(running)

    def _exec(self) -> Exec:
        running = Exec(self._containers.daemon, self.container)
        self._running.add(running)
        return running

    def _release(self, running: Exec) -> None:
        self._running.discard(running)
        running.release()

    async def _run(
        self, argv: list[str], stdin: bytes, timeout_s: float, user: str = "", folder: str = ""
    ) -> ExecResult:
        running = self._exec()
        try:
            async with asyncio.timeout(timeout_s):
                done = await _completed(running, argv, stdin, user, folder)
        except TimeoutError:
            await unbroken(self._end(running))
            if not await running.container_runs():  # runsc does not end the streams of a container that was OOM-killed
                raise SandboxLost("the container ended while a command ran") from None
            raise ExecTimeout(f"the command was killed after {timeout_s:g} s") from None
        except BaseException:
            with contextlib.suppress(SubstrateError):
                await unbroken(self._end(running))
            raise
        self._release(running)
        return done

    async def _ours(self, argv: list[str], purpose: str, stdin: bytes = b"", user: str = "") -> None:
        """Run something of our own that has to succeed, whatever became of the working folder."""
        self._require(await self._run(argv, stdin, _OURS_TIMEOUT_S, user, "/"), purpose)

    def _require(self, done: ExecResult, purpose: str) -> None:
        if done.exit_code:
            words = (done.stderr or done.stdout).decode(errors="replace").split()
            raise ExecFailed(f"{self.name}: cannot {purpose}: {' '.join(words) or f'exit {done.exit_code}'}")

    async def _end(self, running: Exec) -> None:
        """Kill an exec with all its descendants, also one that the daemon is only about to start.

        A killer that fails is not killed in its turn: what it has left ends with the container.
        """
        self._release(running)
        if not await running.has_begun():
            return
        killer = self._exec()
        try:
            with contextlib.suppress(SandboxLost):
                async with asyncio.timeout(_OURS_TIMEOUT_S):
                    done = await _completed(killer, ["sh", "-c", _KILL, "sh", running.mark, ""], folder="/")
                self._require(done, "kill a command")
        except TimeoutError as error:
            raise ExecFailed(f"{self.name}: cannot kill a command: no end after {_OURS_TIMEOUT_S:g} s") from error
        finally:
            self._release(killer)


async def _completed(
    running: Exec, argv: list[str], stdin: bytes = b"", user: str = "", folder: str = ""
) -> ExecResult:
    """An exec from its start to its exit code; what goes wrong on the way is the caller's."""
    await running.start(argv, stdin=bool(stdin), user=user, folder=folder)
    if stdin:
        running.send(stdin)
    stdout, stderr = await running.output()
    return ExecResult(await running.exit_code(stdout), stdout, stderr)


class _Shell:
    """The exec behind a session, as a ``ByteStream``."""

    def __init__(self, sandbox: DockerSandbox, running: Exec) -> None:
        self._sandbox = sandbox
        self._running: Exec | None = running
        self.read = running.read
        self.write = running.write

    async def close(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await self._sandbox._end(running)
