"""A substrate from three methods: create a sandbox, run a program, delete the sandbox.

:class:`SimpleSubstrate` fits every SDK with ``create``, ``exec`` and ``delete``, and adds the rest: complete output,
exact bytes, standard input, timeouts, kill, cancellation, removal, search by label, sessions.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Self

import msgspec

from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable
from taxtui.plan.spec import Command, SandboxSpec
from taxtui.sandboxes.kit import labels, retry
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, kill_then_timeout, undo_if_cancelled, with_cleanup
from taxtui.sandboxes.kit.kill import MARK, kill_script, kill_until_done, new_mark, require_killed
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.removal import remove
from taxtui.sandboxes.kit.shell.framed_shell import ByteStream, ExplainedSession, FramedShell, OwnedStream, launch_argv
from taxtui.sandboxes.kit.text_command import TextCommand, read, wrap
from taxtui.sandboxes.protocol import Availability, Capabilities, ExecResult, Found, Marks, Session

Ran = tuple[int, bytes, bytes]
"""Exit code, standard output, standard error."""

LABEL_NAME: Final = "taxtui.name"
LABEL_CREATED: Final = "taxtui.created"
"""Labels added by ``SimpleSubstrate``: the sandbox's name, and the creation in Unix seconds."""

_GRACE_S: Final = 30.0  # a provider's own timeout comes after ours: ours kills the command first
_KILL_S: Final = 30.0
_KILL_AGAIN_S: Final = 1.0
_LOOK_S: Final = 0.2  # between the first two looks at a slow deletion
_ARGUMENT_BYTES: Final = 90_000  # Linux takes no argument beyond 128 KiB
_PIECE: Final = 30_000  # characters, of up to three bytes each
_SIGNALLED: Final = 128


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For a substrate without options."""


class SimpleSubstrate(ABC):
    """Base class of a substrate. Write ``create_sandbox``, ``run`` and ``delete``; further hooks are optional.

    Hooks may raise anything: ``error_of`` maps an SDK's exceptions to taxtui's errors.
    """

    name: ClassVar[str]
    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    capabilities: Capabilities = Capabilities(idempotent_create=False, modes=("exec",))
    variant: str = ""
    provenance: Literal["measured", "stand_in"] = "measured"
    shell: ClassVar[Literal["bash", "sh"]] = "bash"
    """The shell of every sandbox; with ``sh``, set ``Capabilities(bash=False)`` too."""
    takes_stdin: ClassVar[bool] = True
    """Whether ``run`` can send standard input. If not, taxtui sends long scripts in several commands."""

    def __init__(self, options: Any = None) -> None:
        self.options: Any = options if options is not None else self.Options()
        self._created: dict[str, dict[str, str]] = {}
        self._connected = False

    # -------------------------------------------------------------------------------------------- the three hooks

    @abstractmethod
    async def create_sandbox(self, spec: SandboxSpec) -> str:
        """Make a sandbox with ``spec.labels``, ``spec.limits`` and ``spec.ttl_s``; return the provider's id."""

    @abstractmethod
    async def run(self, handle: str, argv: Sequence[str], stdin: bytes, timeout_s: float) -> Ran:
        """Run a program in the sandbox's working folder until it exits; return exit code, stdout, stderr."""

    @abstractmethod
    async def delete(self, handle: str) -> None:
        """Request the end of a sandbox. ``SandboxLost``: the sandbox is gone already."""

    # ---------------------------------------------------------------------------------------------- optional hooks

    async def connect(self) -> None:  # noqa: B027
        """Open clients."""

    async def disconnect(self) -> None:  # noqa: B027
        """Close clients."""

    async def ping(self) -> str:
        """Ask whether the provider answers, without side effects. Returns one line, for ``taxtui doctor``."""
        return "ready"

    async def list(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of every existing sandbox, by id.

        The default lists only the sandboxes of this process: sandboxes of a killed run stay.
        """
        return self._created

    async def start(self, handle: str, argv: Sequence[str]) -> ByteStream:
        """Start a program with its streams attached. Declare the mode ``session`` in ``capabilities`` too."""
        raise NotImplementedError

    def error_of(self, error: Exception) -> SubstrateError | None:
        """taxtui's error for an SDK's exception, say ``Throttled`` or ``SandboxLost``; None for a plain failure."""
        return None

    # ------------------------------------------------------------------------------------- the protocol, from hooks

    async def __aenter__(self) -> Self:
        try:
            await self.connect()
        except Exception as error:
            raise self.translate(error, SubstrateUnavailable, "connect") from error
        self._connected = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._connected = False
        await self.disconnect()

    async def check(self) -> Availability:
        try:
            if self._connected:
                return Availability(ok=True, detail=await self.ping())
            async with type(self)(self.options) as opened:
                return Availability(ok=True, detail=await opened.ping())
        except Exception as error:
            return Availability.refused(self.translate(error, SubstrateUnavailable, "check"))

    async def create(self, spec: SandboxSpec, marks: Marks) -> SimpleSandbox:
        """As ``Substrate.create``. A cancelled create runs to the end, and the sandbox is removed."""
        own_labels = {LABEL_NAME: spec.name, LABEL_CREATED: str(int(time.time()))}
        spec = msgspec.structs.replace(spec, labels={**spec.labels, **own_labels})
        try:
            handle = await undo_if_cancelled(self.create_sandbox(spec), lambda handle: self.remove(handle, spec.name))
        except Exception as error:
            raise self.translate(error, CreateFailed, f"create {spec.name}") from error
        self._created[handle] = spec.labels
        return SimpleSandbox(self, spec, handle)

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        return [
            labels.found(
                labels_of,
                name=labels_of.get(LABEL_NAME, handle),
                handle=handle,
                age_s=time.time() - (labels.unix_s(labels_of.get(LABEL_CREATED, "")) or time.time()),
            )
            for handle, labels_of in (await retry.find(self._list)).items()
            if LABEL_RUN in labels_of and run_id in (None, labels_of[LABEL_RUN])
        ]

    async def _list(self) -> Mapping[str, Mapping[str, str]]:
        try:
            return await self.list()
        except Exception as error:
            raise self.translate(error, SubstrateUnavailable, "list sandboxes") from error

    async def reap(self, entry: Found) -> None:
        await self.remove(entry.handle, entry.name)

    async def remove(self, handle: str, name: str) -> None:
        """Delete a sandbox, and wait until ``list`` lacks it. Raises ``CleanupFailed``."""

        async def ask() -> bool:
            try:
                await self.delete(handle)
            except Exception as error:
                problem = self.translate(error, CleanupFailed, "delete")
                if not isinstance(problem, SandboxLost):
                    raise problem from error
                self._created.pop(handle, None)
                return False
            self._created.pop(handle, None)
            return not await gone()  # most providers have completed the deletion by now

        async def gone() -> bool:
            return handle not in await self._list()

        await remove(f"sandbox {name}", ask, gone, look_s=_LOOK_S)

    def translate(self, error: Exception, otherwise: type[SubstrateError], doing: str) -> SubstrateError:
        """The error for a hook's exception: taxtui's own, else ``error_of``'s, else ``otherwise``."""
        if isinstance(error, SubstrateError):
            return error
        words = " ".join(str(error).split()) or type(error).__name__
        return self.error_of(error) or otherwise(f"{self.name}: cannot {doing}: {words}")


class SimpleSandbox:
    """A sandbox of a ``SimpleSubstrate``."""

    def __init__(self, substrate: SimpleSubstrate, spec: SandboxSpec, handle: str) -> None:
        self.name = spec.name
        self._substrate = substrate
        self._handle = handle
        self._env = dict(spec.env)
        self._removed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait_ready(self, marks: Marks) -> None:
        pass

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: a single ``run``."""
        self._require_existing()
        wrapped = wrap(command, self._substrate.shell, self._env)
        # Not awaited directly: many providers continue the command of a cancelled caller.
        running = asyncio.ensure_future(self._send(wrapped, command.timeout_s + _GRACE_S))
        try:
            either: set[asyncio.Future[Any]] = {running, self._removed}
            await asyncio.wait(either, timeout=command.timeout_s, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as cancelled:
            await with_cleanup(self._end(running, wrapped.mark), cancelled)
            raise
        if not running.done():
            if self._removed.done():
                await _abandon(running)
                raise SandboxLost(f"{self.name} was removed")
            raise await kill_then_timeout(self._end(running, wrapped.mark), command.timeout_s)
        try:
            code, out, _ = running.result()
        except (Exception, asyncio.CancelledError) as error:  # cancelled within the SDK: this command is not
            cut = error if isinstance(error, Exception) else ExecFailed(f"{self.name}: the SDK cancelled a request")
            failure = self._substrate.translate(cut, ExecFailed, "run a command")
            if isinstance(failure, ExecFailed):  # the command may still run
                await with_cleanup(self._kill(wrapped.mark), failure)
            raise failure from error
        return read(out.decode(errors="replace"), wrapped.nonce) or await self._without_answer(code)

    async def open_session(self) -> Session:
        self._require_existing()
        mark = new_mark()
        environment = [f"{key}={value}" for key, value in {**self._env, MARK: mark}.items()]
        starting = self._substrate.start(self._handle, ["env", *environment, *launch_argv()])
        try:
            stream = await undo_if_cancelled(starting, lambda started: started.close())
        except Exception as error:
            raise self._substrate.translate(error, ExecFailed, "open a session") from error

        async def end() -> None:
            try:
                await self._kill(mark)
            finally:
                await stream.close()

        return ExplainedSession(await FramedShell.open(OwnedStream(stream, end)), self._explain)

    async def reset(self, marks: Marks) -> None:
        raise ExecFailed(f"{self.name}: {self._substrate.name} cannot reset a sandbox")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``. Commands that still run fail at once."""
        await self._substrate.remove(self._handle, self.name)
        if not self._removed.done():
            self._removed.set_result(None)

    # ------------------------------------------------------------------------------------------------ one command

    def _require_existing(self) -> None:
        if self._removed.done():
            raise SandboxLost(f"{self.name} was removed")

    async def _send(self, wrapped: TextCommand, timeout_s: float) -> Ran:
        """Run a wrapped command; a script too long for an argument is sent by standard input or by a file."""
        run, shell, script = self._substrate.run, self._substrate.shell, wrapped.script.encode()
        if len(script) <= _ARGUMENT_BYTES:
            return await run(self._handle, [shell, "-c", wrapped.script], b"", timeout_s)
        if self._substrate.takes_stdin:
            return await run(self._handle, [shell, "-c", 'eval "$(cat)"'], script, timeout_s)
        file = f"/tmp/.taxtui-{wrapped.mark}.sh"
        for at in range(0, len(wrapped.script), _PIECE):
            piece = wrapped.script[at : at + _PIECE]
            await run(self._handle, [shell, "-c", 'printf %s "$1" >>"$2"', shell, piece, file], b"", timeout_s)
        return await run(self._handle, [shell, "-c", f'. {file}; _r=$?; rm -f {file}; exit "$_r"'], b"", timeout_s)

    async def _without_answer(self, code: int) -> ExecResult:
        """The result of a command without an answer, by the exit code; ``SandboxLost`` if the sandbox has ended."""
        code = _SIGNALLED - code if code < 0 else code
        lost = await self._explain(ExecFailed(f"{self.name}: no {self._substrate.shell} was started: exit code {code}"))
        if code <= _SIGNALLED or isinstance(lost, SandboxLost):
            raise lost
        return ExecResult(code, b"", b"")

    async def _explain(self, error: SubstrateError) -> SubstrateError:
        """``SandboxLost`` if the sandbox is gone, else ``error``."""
        if self._removed.done():
            return SandboxLost(f"{self.name} was removed")
        try:
            await self._substrate.run(self._handle, ["true"], b"", _KILL_S)
        except Exception as refused:
            failure = self._substrate.translate(refused, ExecFailed, "run a command")
            return failure if isinstance(failure, SandboxLost) else error
        return error

    async def _end(self, running: asyncio.Future[Ran], mark: str) -> None:
        try:
            await kill_until_done(lambda: self._kill(mark), running, within_s=_KILL_S, again_s=_KILL_AGAIN_S)
        finally:
            await _abandon(running)

    async def _kill(self, mark: str) -> None:
        """Kill every process with this mark. A removed sandbox has none. Raises ``ExecFailed``."""
        try:
            argv = ["sh", "-c", kill_script(mark)]
            code, out, err = await self._substrate.run(self._handle, argv, b"", _KILL_S)
        except Exception as error:
            failure = self._substrate.translate(error, ExecFailed, "kill a command")
            if isinstance(failure, SandboxLost):
                return
            raise failure from error
        require_killed(code, err or out)


async def _abandon(running: asyncio.Future[Ran]) -> None:
    """Cancel a request, and retrieve the result: asyncio reports unretrieved errors."""
    running.cancel()
    await finish_despite_cancel(_settled(running))


async def _settled(running: asyncio.Future[Ran]) -> None:
    await asyncio.wait({running})
    if not running.cancelled():
        running.exception()
