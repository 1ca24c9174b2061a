"""Whatever a command prints, and however the streams are cut, exactly its bytes arrive."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, FramedShell
from taxtui.sandboxes.kit.shell.frames import STDERR, STDOUT, UNKNOWN, epoch_ns
from taxtui.sandboxes.protocol import ExecResult
from tests.support.scripted_stream import CutStream, shell_process

NOISE = st.binary(max_size=60) | st.sampled_from([b"", b"\n", b"{", b"}0\n", b"}", b"0123456789abcdef" * 2 + b"}0\n"])
CUTS = st.lists(st.integers(1, 40), min_size=1, max_size=20)


class Fake:
    """Answers each frame as the driver would, with given bytes around and between the markers."""

    def __init__(self, before: bytes, out: bytes, err: bytes, code: int, order: Callable[[int], int]) -> None:
        self._before, self._payload, self._code = before, {STDOUT: out, STDERR: err}, code
        self._order = order
        self._chunks: list[tuple[int, bytes]] = []

    async def write(self, data: bytes) -> None:
        begin, end = (
            b"".join(data.rpartition(b"printf '%s%s" + sign)[2].split()[1:3]).strip(b";") for sign in (b"{", b"}")
        )
        for channel, payload in self._payload.items():
            told = self._before + begin + b"{" + payload + end + b"}%d\n" % self._code
            self._chunks += [(channel, told[at : at + 1]) for at in range(len(told))]
        # Each stream in its own order, the two of them interleaved at will.
        streams = {channel: [chunk for chunk in self._chunks if chunk[0] == channel] for channel in self._payload}
        self._chunks = []
        while any(streams.values()):
            channel = STDOUT if not streams[STDERR] or (streams[STDOUT] and self._order(2)) else STDERR
            length = 1 + self._order(9)
            self._chunks.append((channel, b"".join(chunk for _, chunk in streams[channel][:length])))
            del streams[channel][:length]

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
    class Cut(Fake):
        async def write(self, data: bytes) -> None:
            await super().write(data)
            whole = sum(len(chunk) for _, chunk in self._chunks)
            kept = min(cut, whole - 1)
            while (extra := sum(len(chunk) for _, chunk in self._chunks) - kept) > 0:
                channel, chunk = self._chunks.pop()
                if len(chunk) > extra:
                    self._chunks.append((channel, chunk[:-extra]))

    failed = False
    with contextlib.suppress(ConnectionError):
        asyncio.run(FramedShell(Cut(b"", payload, payload, 0, lambda n: n - 1)).exec(Command(script="whatever")))
        failed = True
    assert not failed


@settings(max_examples=15, deadline=None)
@example(commands=[(b"-n", 0), (b"--help\x00", 1), (b"-e \xc3\xa4", 0)], cuts=[7])
@given(commands=st.lists(st.tuples(st.binary(max_size=300), st.integers(0, 255)), min_size=1, max_size=4), cuts=CUTS)
def test_a_real_shell_behind_arbitrary_cuts(commands: list[tuple[bytes, int]], cuts: list[int]) -> None:
    async def run() -> None:
        turns = iter(range(1_000_000))
        shell = await FramedShell.open(CutStream(shell_process(), lambda: cuts[next(turns) % len(cuts)]))
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
