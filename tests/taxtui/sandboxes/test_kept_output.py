"""How much of an output is kept, however it arrives, and that its length is the true one."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxtui.plan.spec import Command
from taxtui.sandboxes.kit import kept_output
from taxtui.sandboxes.kit.kept_output import KeptOutput
from taxtui.sandboxes.kit.shell.framed_shell import FramedShell
from taxtui.sandboxes.kit.shell.frames import MarkedOutput
from tests.taxtui.sandboxes.test_shell import shell_process


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_output, "HEAD_BYTES", 1000)
    monkeypatch.setattr(kept_output, "TAIL_BYTES", 100)


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=300), max_size=12))
def test_beginning_and_end_are_kept_however_it_is_cut(chunks: list[bytes]) -> None:
    output, whole = KeptOutput(), b"".join(chunks)
    for chunk in chunks:
        output.add(chunk)
    assert output.kept == whole[:1000] + whole[1000:][-100:]
    assert output.length == len(whole) == len(output.kept) + output.dropped


@pytest.mark.parametrize("merged", [False, True])
async def test_a_session_keeps_beginning_end_and_length_of_both_streams(merged: bool) -> None:
    shell = await FramedShell.open(shell_process(), merged=merged)
    script = "echo first; head -c 200000 /dev/zero; echo last; head -c 5000 /dev/zero >&2; echo end >&2; exit 9"
    result = await shell.exec(Command(script=script))
    assert (result.exit_code, len(result.stdout), len(result.stderr)) == (9, 1100, 1100)
    assert (result.stdout[:6], result.stdout[-5:], result.stderr[-4:]) == (b"first\n", b"last\n", b"end\n")
    assert (len(result.stdout) + result.stdout_dropped, len(result.stderr) + result.stderr_dropped) == (200_011, 5004)
    assert (await shell.exec(Command(script="echo on"))).stdout == b"on\n"
    await shell.close()


def test_a_captured_stream_is_not_held_as_a_whole() -> None:
    stream = MarkedOutput(b"", b"\1NONCE ")
    for _ in range(500):
        stream.feed(b"x" * 1000)
        assert len(stream._buffer) <= 1007
    stream.feed(b"last\1NON")
    stream.feed(b"CE 4\n")
    output = stream.output()
    assert (stream.exit_code, output.length, output.kept[-4:]) == (4, 500_004, b"last")


@pytest.mark.parametrize("size", [0, 1, 16_384, 16_385, 300_000])
async def test_input_that_follows_its_frame_arrives_whole(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"z" * (size % 256)
    shell = await FramedShell.open(shell_process(), merged=True)
    result = await shell.exec(Command(script="base64 -w0; exit 6", stdin=data))
    assert (result.exit_code, len(result.stdout) + result.stdout_dropped) == (6, len(base64.b64encode(data)))
    part = await shell.exec(Command(script="head -c 3; exit 7", stdin=data))
    assert (part.exit_code, part.stdout) == (7, data[:3])
    assert (await shell.exec(Command(script="echo on"))).stdout == b"on\n"
    await shell.close()
