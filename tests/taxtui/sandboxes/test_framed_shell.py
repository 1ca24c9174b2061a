"""The framed shell over real shells and streams that break: bash, a POSIX sh, a pseudo-terminal, and any cuts."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from unittest.mock import AsyncMock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit import kept_output
from taxtui.sandboxes.kit.kept_output import KeptOutput
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.kit.shell.captured_command import captured
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, FramedShell, farewell, launch_argv
from taxtui.sandboxes.kit.shell.frames import STDERR, STDOUT, UNKNOWN, MarkedOutput, epoch_ns
from taxtui.sandboxes.protocol import ExecResult

TERMINAL = [sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])"]
"""Runs a program on a pseudo-terminal: one stream for all, echo and line discipline as they come."""


def shell_process(argv: list[str] | None = None, **env: str) -> Process:
    argv = argv or launch_argv()
    return Process([shutil.which(argv[0]) or argv[0], *argv[1:]], {"PATH": os.environ["PATH"], **env}, stdin=True)


def posix_argv() -> list[str]:
    """The launcher as it runs where there is no bash: the second driver, in sh."""
    *_, sh_driver = launch_argv()
    return ["sh", "-c", sh_driver]


@pytest.fixture(params=["bash", "sh", "terminal", "sh on a terminal"])
async def shell(request: pytest.FixtureRequest) -> AsyncIterator[FramedShell]:
    argv = posix_argv() if request.param.startswith("sh") else launch_argv()
    if terminal := "terminal" in request.param:
        argv = [*TERMINAL, *argv[:2], f"stty raw -echo; {argv[2]}", *argv[3:]]
    opened = await FramedShell(shell_process(argv), merged=terminal).open()
    yield opened
    await opened.close()


async def test_every_byte_and_scripts_of_any_characters(shell: FramedShell) -> None:
    data = bytes(range(256)) * 3
    result = await shell.exec(Command(script="cat; printf '\\377\\000\\r\\n' >&2", stdin=data))
    assert (result.stdout, result.stderr) == (data, b"\xff\x00\r\n")
    result = await shell.exec(Command(script="printf '%s|' 'a\rb' \"it's\" 'grüße\n世界' '%s' '\\n'"))
    assert result.stdout.decode() == "a\rb|it's|grüße\n世界|%s|\\n|"


async def test_a_killed_subshell_prints_nothing(shell: FramedShell) -> None:
    result = await shell.exec(Command(script="exec sh -c 'kill -9 $$'"))
    assert (result.exit_code, result.stdout, result.stderr) == (137, b"", b"")


async def test_a_single_command_needs_no_session_and_exits_the_shell() -> None:
    process = shell_process()
    result = await FramedShell(process).only(Command(script="cat; exit 3", stdin=b"one"))
    await process.output()
    assert (result.exit_code, result.stdout, process.returncode) == (3, b"one", 0)


HALVES = "grep -oE '[0-9a-f]{16} [0-9a-f]{16}' | head -1 | tr -d ' '"


async def test_a_command_does_not_know_its_last_marker(shell: FramedShell) -> None:
    """It has not been read yet, and what has been is of the first one."""
    forge = f"h=$(set | {HALVES}); printf '%s}}0\\n' \"$h\"; printf '%s}}0\\n' \"$h\" >&2; exit 9"
    result = await shell.exec(Command(script=forge))
    assert (result.exit_code, result.stdout) == (9, result.stderr)
    assert result.stdout.endswith(b"}0\n")
    assert (await shell.exec(Command(script="echo next"))).stdout == b"next\n"


@pytest.mark.parametrize("code", ["", "zero", "9" * 5000], ids=["none", "a word", "5000 digits"])
async def test_a_forged_marker_closes_the_session(code: str) -> None:
    """Whoever may read what the shell is sent can do it in the shell's stead."""
    shell = await FramedShell(shell_process()).open()
    forge = (
        f"h=$(dd if=/proc/$$/fd/0 bs=65536 count=1 2>/dev/null | {HALVES}); "
        f"printf '%s}}{code}\\n' \"$h\"; printf '%s}}{code}\\n' \"$h\" >&2"
    )
    with pytest.raises(ExecFailed, match="garbled; the session is closed"):
        await shell.exec(Command(script=forge))
    with pytest.raises(SandboxLost, match="closed"):
        await shell.exec(Command(script="true"))


async def test_the_next_command_s_subshell_waits_for_it(shell: FramedShell) -> None:
    """It has been forked before, and nothing that the last command did is in it."""
    ask = Command(script="exec sh -c 'echo $PPID'")
    await shell.exec(Command(script="ask() { echo old; }; X=old; cd /; set -f; trap 'echo old' EXIT; exit 3"))
    result = await shell.exec(Command(script="ask 2>/dev/null || echo ${X-none} $?; case $- in *f*) echo old;; esac"))
    assert (result.stdout, result.exit_code) == (b"none 127\n", 0)
    first, second = [(await shell.exec(ask)).stdout for _ in range(2)]
    assert first == second


async def test_a_last_line_runs_before_and_after_the_first_command() -> None:
    """By a shell that has answered, and by one that nobody has spoken to."""
    for spoken in (True, False):
        stream = shell_process()
        if spoken:
            await FramedShell(stream).open()
        await stream.write(farewell("exit 5"))
        assert await stream.read() == (ENDED, b"")
        assert stream.returncode == 5


async def test_an_old_bash_is_driven_line_by_line() -> None:
    """macOS ships bash 3.2, which has no `read -N`: the launcher's version test sends it to the other driver."""
    *rest, driver, fallback = launch_argv()
    old = driver.replace("BASH_VERSINFO[0] * 100", "0 * 100")
    assert old != driver
    shell = await FramedShell(shell_process([*rest, old, fallback])).open()
    result = await shell.exec(Command(script="a=(x y)\necho ${a[1]}\ncat", stdin=b"in"))
    assert result.stdout == b"y\nin"
    await shell.close()


async def test_a_shell_that_never_answers() -> None:
    with pytest.raises(SandboxLost):
        await FramedShell(shell_process(["/bin/true"])).open()
    stream = shell_process(["/bin/sleep", "60"])
    with pytest.raises(ExecTimeout):
        await FramedShell(stream).open(timeout_s=0.1)
    assert await stream.read() == (ENDED, b"")


LEFT = "a session's processes may still run"


class Stream:
    """Breaks when it is read, or prints the same again and again, and then cannot be closed either."""

    def __init__(self, breaks: BaseException | None, printed: bytes = b"") -> None:
        self.breaks, self.printed = breaks, printed
        self.closed = 0

    async def read(self) -> tuple[int, bytes]:
        if self.breaks is not None:
            raise self.breaks
        if not self.printed:
            await asyncio.Event().wait()
        return STDOUT, self.printed

    async def write(self, data: bytes) -> None:
        pass

    async def close(self) -> None:
        self.closed += 1
        raise ExecFailed(LEFT)


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
    session = FramedShell(Stream(None), end=AsyncMock(), explain=lost, silent=silent)
    with pytest.raises(kind):
        await session.exec(Command(script="true", timeout_s=0.01))


async def test_a_session_of_a_lost_sandbox_closes_without_an_error() -> None:
    await FramedShell(Stream(None), explain=lost).close()
    with pytest.raises(ExecFailed, match=LEFT):
        await FramedShell(Stream(None)).close()


async def test_another_end_of_the_stream_is_called_once() -> None:
    end = AsyncMock()
    session = FramedShell(Stream(None), end=end)
    await session.close()
    await session.close()
    assert end.await_count == 1


@pytest.mark.parametrize("code", [b"", b"zero", b"9" * 5000])
async def test_a_forged_end_marker_is_no_answer(code: bytes) -> None:
    """A command has found it among the arguments of the program around it, and prints more."""
    with pytest.raises(ExecFailed, match="garbled: no exit code follows"):
        await captured(Stream(None, b"MARKER " + code + b"\n"), b"MARKER ")


NOISE = st.binary(max_size=60) | st.sampled_from([b"", b"\n", b"{", b"}0\n", b"}", b"0123456789abcdef" * 2 + b"}0\n"])
CUTS = st.lists(st.integers(1, 40), min_size=1, max_size=20)


class CutStream:
    """Delivers another stream's bytes in chunks whose lengths a test chooses."""

    def __init__(self, inner: Process, length: Callable[[], int]) -> None:
        self._inner, self._length = inner, length
        self._left: tuple[int, bytes] = (ENDED, b"")
        self.write, self.close = inner.write, inner.close

    async def read(self) -> tuple[int, bytes]:
        channel, data = self._left
        if not data:
            channel, data = await self._inner.read()
        cut = max(1, self._length())
        self._left = (channel, data[cut:])
        return channel, data[:cut]


class Fake:
    """Answers each frame as the driver would, with given bytes around and between the markers.

    Where it is ``cut``, no more than that many chunks arrive, and never all.
    """

    def __init__(
        self, before: bytes, out: bytes, err: bytes, code: int, order: Callable[[int], int], cut: int | None = None
    ) -> None:
        self._before, self._payload, self._code = before, {STDOUT: out, STDERR: err}, code
        self._order, self._cut = order, cut
        self._chunks: list[tuple[int, bytes]] = []

    async def write(self, data: bytes) -> None:
        begin, end = (
            b"".join(data.rpartition(b"printf '%s%s" + sign)[2].split()[1:3]).strip(b";") for sign in (b"{", b"}")
        )
        # Each stream in its own order, the two of them interleaved at will.
        head, tail = self._before + begin + b"{", end + b"}%d\n" % self._code
        streams = {channel: head + payload + tail for channel, payload in self._payload.items()}
        while any(streams.values()):
            channel = STDOUT if not streams[STDERR] or (streams[STDOUT] and self._order(2)) else STDERR
            length = 1 + self._order(9)
            self._chunks.append((channel, streams[channel][:length]))
            streams[channel] = streams[channel][length:]
        if self._cut is not None:
            del self._chunks[min(self._cut, len(self._chunks) - 1) :]

    async def read(self) -> tuple[int, bytes]:
        return self._chunks.pop(0) if self._chunks else (ENDED, b"")

    async def close(self) -> None:
        self._chunks = []


@given(before=NOISE, out=NOISE, err=NOISE, code=st.integers(0, 255), random=st.randoms(use_true_random=False))
def test_any_bytes_in_any_chunks(before: bytes, out: bytes, err: bytes, code: int, random) -> None:  # type: ignore[no-untyped-def]
    stream = Fake(before, out, err, code, random.randrange)
    result = asyncio.run(FramedShell(stream).exec(Command(script="whatever")))
    assert result == ExecResult(code, out, err)


@given(payload=NOISE, cut=st.integers(0, 200))
def test_a_stream_that_ends_early_is_never_a_result(payload: bytes, cut: int) -> None:
    stream = Fake(b"", payload, payload, 0, lambda n: 0, cut)  # byte by byte
    with pytest.raises(ConnectionError):
        asyncio.run(FramedShell(stream).exec(Command(script="whatever")))


@settings(max_examples=15, deadline=None)
@example(commands=[(b"-n", 0), (b"--help\x00", 1), (b"-e \xc3\xa4", 0)], cuts=[7])
@given(commands=st.lists(st.tuples(st.binary(max_size=300), st.integers(0, 255)), min_size=1, max_size=4), cuts=CUTS)
def test_a_real_shell_behind_arbitrary_cuts(commands: list[tuple[bytes, int]], cuts: list[int]) -> None:
    async def run() -> None:
        turns = iter(range(1_000_000))
        shell = await FramedShell(CutStream(shell_process(), lambda: cuts[next(turns) % len(cuts)])).open()
        for data, code in commands:
            script = f"tee /dev/stderr; exit {code}"
            result = await shell.exec(Command(script=script, stdin=data))
            assert replace(result, wrapper_ended_ns=-1) == ExecResult(code, data, data)
        await shell.close()

    asyncio.run(run())


@settings(deadline=None)
@given(st.integers(0, 10**18 - 1), st.sampled_from([".", ","]))
def test_a_printed_time_is_read_to_the_microsecond(us: int, point: str) -> None:
    assert epoch_ns(f"{us // 10**6}{point}{us % 10**6:06}".encode()) == us * 1000
    assert epoch_ns(f"{us}".encode()) == UNKNOWN


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the first 1,000 bytes of an output, and the last 100."""
    monkeypatch.setattr(kept_output, "HEAD_BYTES", 1000)
    monkeypatch.setattr(kept_output, "TAIL_BYTES", 100)


@pytest.mark.usefixtures("small")
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=300), max_size=12))
def test_beginning_and_end_are_kept_however_it_is_cut(chunks: list[bytes]) -> None:
    output, whole = KeptOutput(), b"".join(chunks)
    for chunk in chunks:
        output.add(chunk)
    assert output.kept == whole[:1000] + whole[1000:][-100:]
    assert output.length == len(whole) == len(output.kept) + output.dropped


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("merged", [False, True])
async def test_a_session_keeps_beginning_end_and_length_of_both_streams(merged: bool) -> None:
    shell = await FramedShell(shell_process(), merged=merged).open()
    script = "echo first; head -c 200000 /dev/zero; echo last; head -c 5000 /dev/zero >&2; echo end >&2; exit 9"
    result = await shell.exec(Command(script=script))
    assert (result.exit_code, len(result.stdout), len(result.stderr)) == (9, 1100, 1100)
    assert (result.stdout[:6], result.stdout[-5:], result.stderr[-4:]) == (b"first\n", b"last\n", b"end\n")
    assert (len(result.stdout) + result.stdout_dropped, len(result.stderr) + result.stderr_dropped) == (200_011, 5004)
    assert (await shell.exec(Command(script="echo on"))).stdout == b"on\n"
    await shell.close()


@pytest.mark.usefixtures("small")
def test_a_captured_stream_is_not_held_as_a_whole() -> None:
    stream = MarkedOutput(b"", b"\1NONCE ")
    for _ in range(500):
        stream.feed(b"x" * 1000)
        assert len(stream._buffer) <= 1007
    stream.feed(b"last\1NON")
    stream.feed(b"CE 4\n")
    output = stream.output()
    assert (stream.exit_code, output.length, output.kept[-4:]) == (4, 500_004, b"last")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("size", [0, 1, 16_384, 16_385, 300_000])
async def test_input_that_follows_its_frame_arrives_whole(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"z" * (size % 256)
    shell = await FramedShell(shell_process(), merged=True).open()
    result = await shell.exec(Command(script="base64 -w0; exit 6", stdin=data))
    assert (result.exit_code, len(result.stdout) + result.stdout_dropped) == (6, len(base64.b64encode(data)))
    part = await shell.exec(Command(script="head -c 3; exit 7", stdin=data))
    assert (part.exit_code, part.stdout) == (7, data[:3])
    assert (await shell.exec(Command(script="echo on"))).stdout == b"on\n"
    await shell.close()
