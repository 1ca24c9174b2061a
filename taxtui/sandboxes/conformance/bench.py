"""A check, and the environment: a substrate, a run id, and temporary sandboxes."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, NamedTuple

from taxtui.errors import SubstrateError
from taxtui.plan.spec import Command, Limits, Mode, SandboxSpec
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.protocol import ExecResult, Marks, Sandbox, Session, Substrate

Factory = Callable[[], Substrate]

COMMAND_TIMEOUT_S: Final = 60.0
CHECK_TIMEOUT_S: Final = 600.0
GONE_WITHIN_S: Final = 60.0
SPEC_TTL_S: Final = 900.0
_POLL_S: Final = 0.05


class Violation(AssertionError):
    """The substrate breaks a promise; the message has the expected and the actual value."""


class NotApplicable(Exception):
    """The substrate does not promise this."""


class Check(NamedTuple):
    """A promise, for a mode if the mode matters."""

    name: str
    promise: str
    mode: Mode | None
    run: Callable[[Bench], Awaitable[None]]

    def __str__(self) -> str:
        return f"{self.mode}: {self.name}" if self.mode else self.name

    async def __call__(
        self,
        factory: Factory,
        *,
        short_ttl_s: float | None = None,
        timeout_s: float = CHECK_TIMEOUT_S,
        acquire: str = "create",
    ) -> None:
        """Run the check on a new substrate; a remaining sandbox is a violation.

        ``short_ttl_s``: the shortest time to live of the provider; by default no deadline is awaited.
        ``acquire``: a value of ``--acquire``.

        Raises:
            Violation, NotApplicable: see there. Any other exception is a violation of the documented errors.
        """
        async with asyncio.timeout(timeout_s), Bench(factory, self.mode or "exec", short_ttl_s, acquire) as bench:
            await self.run(bench)


_CHECKS: Final[list[Check]] = []
_MODULES: Final = ("commands", "lifecycle", "operations", "cancellation")


def check(
    name: str, *, modes: tuple[Mode, ...] = ()
) -> Callable[[Callable[[Bench], Awaitable[None]]], Callable[[Bench], Awaitable[None]]]:
    """Register a check, once for each of ``modes`` or without a mode; the docstring is the promise."""

    def register(run: Callable[[Bench], Awaitable[None]]) -> Callable[[Bench], Awaitable[None]]:
        promise = (run.__doc__ or "").strip().splitlines()[0]
        _CHECKS.extend(Check(name, promise, mode, run) for mode in modes or (None,))
        return run

    return register


def checks() -> list[Check]:
    """All checks in reading order."""
    for module in _MODULES:
        importlib.import_module(f"taxtui.sandboxes.conformance.{module}")
    return list(_CHECKS)


def expect(truth: object, complaint: str) -> None:
    """Raise ``Violation`` unless ``truth``."""
    if not truth:
        raise Violation(complaint)


def equal(came: object, expected: object, subject: str) -> None:
    """Raise ``Violation`` with both values, shortened, unless they are equal."""
    if came != expected:
        raise Violation(f"{subject}: expected {_short(expected)}, got {_short(came)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:80]}… ({len(value) if isinstance(value, bytes) else len(text)} long)"


@contextlib.contextmanager
def raises(*kinds: type[BaseException], subject: str) -> Iterator[None]:
    """Raise ``Violation`` unless the body raises any of ``kinds``."""
    names = " or ".join(kind.__name__ for kind in kinds)
    try:
        yield
    except kinds:
        return
    except Exception as error:
        raise Violation(f"{subject}: expected {names}, got {type(error).__name__}: {error}") from error
    raise Violation(f"{subject}: expected {names}, nothing was raised")


class Bench:
    """An open substrate with a new run id. The async context manager removes every sandbox."""

    def __init__(self, factory: Factory, mode: Mode, short_ttl_s: float | None, acquire: str = "create") -> None:
        self.factory = factory
        self.substrate = factory()
        self.capabilities = self.substrate.capabilities
        self.mode = mode
        self.short_ttl_s = short_ttl_s
        self.acquire = acquire
        self.run_id = f"c{secrets.token_hex(5)}"
        self._numbers = itertools.count(1)
        self._sessions: list[Session] = []

    async def __aenter__(self) -> Bench:
        """Open the substrate. Raises ``NotApplicable`` without the mode."""
        if self.mode not in self.capabilities.modes:
            raise NotApplicable(f"the substrate has no {self.mode} mode")
        await self.substrate.__aenter__()
        self.capabilities = self.substrate.capabilities
        return self

    async def __aexit__(self, kind: type[BaseException] | None, complaint: BaseException | None, *exc: object) -> None:
        """Close sessions, remove sandboxes, close the substrate; a remaining sandbox is a violation."""
        try:
            for session in self._sessions:
                with contextlib.suppress(SubstrateError):
                    await session.close()
            await self.eventually_gone(reap=True)
        except Exception as error:
            if complaint is None:  # else the check's own complaint is shown
                raise
            complaint.add_note(f"and then, cleaning up: {error}")
        finally:
            await self.substrate.__aexit__(None, None, None)

    # -- sandboxes ----------------------------------------------------------------------------------------------

    def spec(self, *, ttl_s: float = SPEC_TTL_S, acquire: str = "") -> SandboxSpec:
        """The spec of a new sandbox, with the runner's labels; by default acquired as all of this bench."""
        number = next(self._numbers)
        return SandboxSpec(
            name=f"taxtui-{self.run_id}-{number}",
            labels=labels.of_trial(self.run_id, number, ttl_s),
            limits=Limits(),
            ttl_s=ttl_s,
            acquire=acquire or self.acquire,
            env={"TAXTUI_CONFORMANCE": "a value with 'quotes' and spaces"},
        )

    def requires(self, promised: bool, reason: str) -> None:
        """Raise ``NotApplicable`` unless ``promised``."""
        if not promised:
            raise NotApplicable(reason)

    async def create(self, spec: SandboxSpec | None = None) -> Sandbox:
        sandbox = await self.substrate.create(spec or self.spec(), Marks())
        await sandbox.wait_ready(Marks())
        return sandbox

    async def shell(self, sandbox: Sandbox | None = None) -> Shell:
        """The command path of this mode, by default in a new sandbox."""
        sandbox = sandbox or await self.create()
        if self.mode == "exec":
            return Shell(sandbox, sandbox)
        session = await sandbox.open_session()
        self._sessions.append(session)
        return Shell(sandbox, session)

    async def names(self) -> set[str]:
        return {listed.name for listed in await self.substrate.find(self.run_id)}

    async def only_own(self) -> None:
        """Raise ``Violation`` if ``find`` lists a name that no spec of this bench has."""
        listed = await self.names()
        expect(all(name.startswith(f"taxtui-{self.run_id}-") for name in listed), f"unknown names: {listed}")

    async def eventually_gone(self, *names: str, reap: bool = False) -> None:
        """Wait until ``find`` lists none of ``names``, or nothing of this run; ``reap`` all meanwhile."""
        give_up = time.monotonic() + GONE_WITHIN_S
        while True:
            found = await self.substrate.find(self.run_id)
            listed = {entry.name: entry for entry in found if not names or entry.name in names}
            if not listed:
                return
            if time.monotonic() > give_up:
                raise Violation(f"still there after {GONE_WITHIN_S:g} s: {', '.join(listed)}")
            for entry in found if reap else ():
                await self.substrate.reap(entry)
            await asyncio.sleep(_POLL_S)


class Shell(NamedTuple):
    """A sandbox and the command path in the mode under test."""

    sandbox: Sandbox
    path: Sandbox | Session

    async def run(self, script: str, *, stdin: bytes = b"", timeout_s: float = COMMAND_TIMEOUT_S) -> ExecResult:
        return await self.path.exec(Command(script=script, stdin=stdin, timeout_s=timeout_s))

    async def output(self, script: str, *, stdin: bytes = b"") -> bytes:
        return await output_of(self.path, script, stdin)


async def output_of(path: Sandbox | Session, script: str, stdin: bytes = b"") -> bytes:
    """Standard output of a successful command."""
    result = await path.exec(Command(script=script, stdin=stdin, timeout_s=COMMAND_TIMEOUT_S))
    equal(result.exit_code, 0, f"exit code of {_short(script)} ({result.stderr.decode(errors='replace')[:200]})")
    return result.stdout


async def works(path: Sandbox | Session) -> None:
    """Raise ``Violation`` unless the sandbox or the session still takes commands."""
    equal(await output_of(path, "echo works"), b"works\n", "a command after the check")


BEAT: Final = """
beat='while :; do echo x >> "$0"; if test -e beat.fast; then sleep 0.05; else sleep 0.2; fi; done'
sh -c "$beat" beat.background </dev/null >/dev/null 2>&1 &
sh -c "$beat" beat.talkative &
if command -v setsid >/dev/null; then setsid sh -c "$beat" beat.fled </dev/null >/dev/null 2>&1 & fi
sh -c "$beat" beat.foreground
"""
"""An endless command. Each process appends to a file; the last process has left group and session.

The processes append slowly, because each beat is a process, and fast while a check counts the bytes.
"""

BEATEN: Final = """
test -s beat.background && test -s beat.talkative && test -s beat.foreground &&
    { test -s beat.fled || ! command -v setsid >/dev/null; }
"""
"""Whether all processes have begun: an earlier kill proves nothing."""

ALL_BEAT: Final = f"until {{ {BEATEN.strip()}; }}; do sleep 0.05; done"


_LISTEN: Final = "rm -f beat.*; : > beat.fast; sleep 0.6; cat beat.* | wc -c; rm -f beat.*"
"""Number of bytes written meanwhile; earlier beats are forgotten."""


async def no_beats(sandbox: Sandbox, subject: str) -> None:
    """Raise ``Violation`` unless every :data:`BEAT` process has ended in ``sandbox``."""
    written = int(await Shell(sandbox, sandbox).output(_LISTEN))
    equal(written, 0, f"{subject}: bytes written by processes that should be dead")
