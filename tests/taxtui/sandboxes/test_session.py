"""Sessions that break: what went wrong first is said, and what went wrong with their end as well."""

from __future__ import annotations

import asyncio

import pytest

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.shell.captured_command import captured
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, FramedShell
from taxtui.sandboxes.kit.shell.frames import STDOUT

LEFT = "a session's processes may still run"


class Stream:
    """Breaks when it is read, and then cannot be closed either."""

    def __init__(self, breaks: BaseException | None, left: SubstrateError | None = None) -> None:
        self.breaks = breaks
        self.left = left or ExecFailed(LEFT)
        self.closed = 0

    async def read(self) -> tuple[int, bytes]:
        if self.breaks is None:
            await asyncio.Event().wait()
        if isinstance(self.breaks, BaseException):
            raise self.breaks
        return ENDED, b""

    async def write(self, data: bytes) -> None:
        pass

    async def close(self) -> None:
        self.closed += 1
        raise self.left


@pytest.mark.parametrize(
    ("breaks", "kind", "words"),
    [
        (ExecFailed("the connection broke"), ExecFailed, f"the connection broke; {LEFT}"),
        (SandboxLost("the pod is gone"), SandboxLost, f"the pod is gone; {LEFT}"),
        (ValueError("no number"), ExecFailed, f"the session's answer is garbled; the session is closed; {LEFT}"),
        (None, ExecFailed, f"the command had no end after 0.01 s; {LEFT}"),
    ],
)
async def test_a_close_that_fails_does_not_hide_why(
    breaks: BaseException | None, kind: type[Exception], words: str
) -> None:
    stream = Stream(breaks)
    with pytest.raises(SubstrateError) as raised:
        await FramedShell(stream).exec(Command(script="true", timeout_s=0.01))
    assert (type(raised.value), str(raised.value), stream.closed) == (kind, words, 1)


async def lost(error: SubstrateError) -> SubstrateError:
    return SandboxLost("the node died")


@pytest.mark.parametrize("breaks", [ExecFailed("broken"), SandboxLost("ended")])
@pytest.mark.parametrize("explained", [True, False])
async def test_the_end_of_the_sandbox_explains_a_break(breaks: SubstrateError, explained: bool) -> None:
    session = FramedShell(Stream(breaks), **({"explain": lost} if explained else {}))
    with pytest.raises(SubstrateError, match=r"^the node died$" if explained else LEFT) as raised:
        await session.exec(Command(script="true"))
    assert breaks in (raised.value, raised.value.__cause__)


@pytest.mark.parametrize(("silent", "kind"), [(False, ExecTimeout), (True, SandboxLost)])
async def test_a_timeout_is_explained_where_the_connection_is_silent(silent: bool, kind: type[Exception]) -> None:
    async def end() -> None:
        await asyncio.sleep(0)

    session = FramedShell(Stream(None), end=end, explain=lost, silent=silent)
    with pytest.raises(kind):
        await session.exec(Command(script="true", timeout_s=0.01))


async def test_a_session_of_a_lost_sandbox_closes_without_an_error() -> None:
    await FramedShell(Stream(None), explain=lost).close()
    with pytest.raises(ExecFailed, match=LEFT):
        await FramedShell(Stream(None)).close()


async def test_another_end_of_the_stream_is_called_once() -> None:
    ended: list[int] = []

    async def end() -> None:
        ended.append(1)

    session = FramedShell(Stream(None), end=end)
    await session.close()
    await session.close()
    assert ended == [1]


class Forged(Stream):
    """Prints a marker that a command has found among the arguments of the program around it, and more."""

    async def read(self) -> tuple[int, bytes]:
        return STDOUT, self.printed

    def __init__(self, printed: bytes) -> None:
        super().__init__(None)
        self.printed = printed


@pytest.mark.parametrize("code", [b"", b"zero", b"9" * 5000])
async def test_a_forged_end_marker_is_no_answer(code: bytes) -> None:
    with pytest.raises(ExecFailed, match="garbled: no exit code follows"):
        await captured(Forged(b"MARKER " + code + b"\n"), b"MARKER ")
