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


async def test_a_cancellation_stays_one_with_a_note() -> None:
    running = asyncio.create_task(FramedShell(Stream(None)).exec(Command(script="true")))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


class TestExplained:
    @staticmethod
    async def lost(error: SubstrateError) -> SubstrateError:
        return SandboxLost("the node died")

    @staticmethod
    async def unknown(error: SubstrateError) -> SubstrateError:
        return error

    @pytest.mark.parametrize("breaks", [ExecFailed("broken"), SandboxLost("ended")])
    async def test_the_sandbox_s_own_fate_explains_a_break(self, breaks: SubstrateError) -> None:
        session = FramedShell(Stream(breaks), explain=self.lost)
        with pytest.raises(SandboxLost, match=r"^the node died$") as raised:
            await session.exec(Command(script="true"))
        assert raised.value.__cause__ is breaks

    @pytest.mark.parametrize("breaks", [ExecFailed("broken"), SandboxLost("ended")])
    async def test_an_unexplained_break_stays_the_same_error(self, breaks: SubstrateError) -> None:
        session = FramedShell(Stream(breaks), explain=self.unknown)
        with pytest.raises(type(breaks), match=LEFT) as raised:
            await session.exec(Command(script="true"))
        assert raised.value is breaks

    async def test_a_timeout_needs_no_explanation(self) -> None:
        class Closable(Stream):
            async def close(self) -> None:
                self.closed += 1

        session = FramedShell(Closable(None), explain=self.lost)
        with pytest.raises(ExecTimeout, match="killed after"):
            await session.exec(Command(script="true", timeout_s=0.01))

    async def test_a_session_of_a_lost_sandbox_closes_without_an_error(self) -> None:
        await FramedShell(Stream(None), explain=self.lost).close()
        with pytest.raises(ExecFailed, match=LEFT):
            await FramedShell(Stream(None), explain=self.unknown).close()


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
