"""A substrate from three methods: create a sandbox, run a program, delete the sandbox.

:class:`SimpleSubstrate` fits every SDK with ``create``, ``exec`` and ``delete``, and adds the rest: complete output,
exact bytes, standard input, timeouts, kill, cancellation, removal, search by label, sessions.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Self

import msgspec

from taxtui.errors import (
    CleanupFailed,
    CreateFailed,
    ExecFailed,
    QuotaExceeded,
    SandboxLost,
    SubstrateError,
    SubstrateUnavailable,
    Throttled,
)
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit import labels, retry
from taxtui.sandboxes.kit.cancellation import undo_if_cancelled
from taxtui.sandboxes.kit.kill import MARK, kill_script, new_mark, require_killed
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.removal import remove
from taxtui.sandboxes.kit.shell.framed_shell import ByteStream, FramedShell, launch_argv
from taxtui.sandboxes.kit.text_sandbox import TextAnswer, TextCommand, TextSandbox
from taxtui.sandboxes.protocol import Availability, Capabilities, Effective, Found, Marks, Session

__all__ = [
    "Availability",
    "ByteStream",
    "Capabilities",
    "CleanupFailed",
    "CreateFailed",
    "Effective",
    "ExecFailed",
    "Found",
    "Limits",
    "Marks",
    "QuotaExceeded",
    "Ran",
    "SandboxLost",
    "SandboxSpec",
    "SimpleSubstrate",
    "SubstrateError",
    "SubstrateUnavailable",
    "Throttled",
]
"""The names for authors; no other module of taxtui is needed."""

Ran = tuple[int, bytes, bytes]
"""Exit code, standard output, standard error."""

LABEL_NAME: Final = "taxtui.name"
LABEL_CREATED: Final = "taxtui.created"
"""Labels added by ``SimpleSubstrate``: the sandbox's name, and the creation in Unix seconds."""

_GRACE_S: Final = 30.0  # a provider's own timeout comes after ours: ours kills the command first
_KILL_S: Final = 30.0
_LOOK_S: Final = 0.2  # between the first two looks at a slow deletion
_ARGUMENT_BYTES: Final = 90_000  # Linux takes no argument beyond 128 KiB
_PIECE: Final = 30_000  # characters, of up to three bytes each


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


class SimpleSandbox(TextSandbox):
    """A sandbox of a ``SimpleSubstrate``."""

    def __init__(self, substrate: SimpleSubstrate, spec: SandboxSpec, handle: str) -> None:
        super().__init__(spec.name, substrate.shell, dict(spec.env))
        self._substrate = substrate
        self._handle = handle

    async def wait_ready(self, marks: Marks) -> None:
        pass

    async def open_session(self) -> Session:
        self.require_existing()
        mark = new_mark()
        environment = [f"{key}={value}" for key, value in {**self._env, MARK: mark}.items()]
        starting = self._substrate.start(self._handle, ["env", *environment, *launch_argv()])
        try:
            stream = await undo_if_cancelled(starting, lambda started: started.close())
        except Exception as error:
            raise self._substrate.translate(error, ExecFailed, "open a session") from error

        async def end() -> None:
            try:
                await self.kill(mark)
            finally:
                await stream.close()

        return await FramedShell(stream, end=end, explain=self.explained).open()

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``. Commands that still run fail at once."""
        await self._substrate.remove(self._handle, self.name)
        self.forget()

    async def send(self, wrapped: TextCommand, timeout_s: float) -> TextAnswer:
        """A script too long for an argument is sent by standard input or by a file."""
        shell, script, within_s = self.shell, wrapped.script.encode(), timeout_s + _GRACE_S
        if len(script) <= _ARGUMENT_BYTES:
            argv, stdin = [shell, "-c", wrapped.script], b""
        elif self._substrate.takes_stdin:
            argv, stdin = [shell, "-c", 'eval "$(cat)"'], script
        else:
            file = f"/tmp/.taxtui-{wrapped.mark}.sh"
            for at in range(0, len(wrapped.script), _PIECE):
                piece = wrapped.script[at : at + _PIECE]
                await self._run([shell, "-c", 'printf %s "$1" >>"$2"', shell, piece, file], b"", within_s)
            argv, stdin = [shell, "-c", f'. {file}; _r=$?; rm -f {file}; exit "$_r"'], b""
        code, out, _ = await self._run(argv, stdin, within_s)
        return TextAnswer(out.decode(errors="replace"), code)

    async def kill(self, mark: str) -> None:
        try:
            code, out, err = await self._run(["sh", "-c", kill_script(mark)], b"", _KILL_S, "kill a command")
        except SandboxLost:
            return
        require_killed(code, err or out)

    async def lost(self) -> str:
        try:
            await self._run(["true"], b"", _KILL_S)
        except SubstrateError as refused:
            return str(refused) if isinstance(refused, SandboxLost) else ""
        return ""

    async def _run(self, argv: Sequence[str], stdin: bytes, timeout_s: float, doing: str = "run a command") -> Ran:
        try:
            return await self._substrate.run(self._handle, argv, stdin, timeout_s)
        except Exception as error:
            raise self._substrate.translate(error, ExecFailed, doing) from error
