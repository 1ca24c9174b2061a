"""Targets of ``make fuzz`` in memory: for each target, a generator of inputs and a check.

A check returns the result as a word, and raises if a promise is broken. The check depends on the input alone: a failed
input becomes a file in ``fuzz_corpus/TARGET``, and a test.
"""

from __future__ import annotations

import base64
import functools
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from costmodel.errors import SourceError
from costmodel.recording import framing
from costmodel.recording.follower import read_events
from taxtui import terminal_text
from taxtui.errors import TaxtuiError
from taxtui.plan import arrivals, durations, notation
from taxtui.runner import redaction
from taxtui.runner.trial import bracket
from taxtui.runner.trial.bracket import Method
from taxtui.sandboxes.kit.shell.frames import STDERR, STDOUT, MergedFrames, SplitFrames
from tests.support.fuzz import hostile

HALVES: Final = ("0123456789abcdef", "fedcba9876543210")
NONCE: Final = "".join(HALVES)
_GOLDEN: Final = hostile.payloads()
_METHODS: Final[tuple[Method, ...]] = ("none", "bash")
_WORDS: Final = (
    *("local", "docker:runtime=runsc", "a:b=c,d=e", "8s", "lognormal:8s,0.6", "open:20/s:poisson", "closed:8", "burst"),
    *("10k", "1e6", "1,000,000", "20-120", "10:3,50:1", "recorded", "120s", "1.5h", "5%", "0.05", "none", "3x2GiB"),
)
_PIECES: Final = (
    *("", "-", "+", ".", ",", ":", "=", "%", "e", "E9", "99999999999999999999", "nan", "inf", "_", " ", "\t"),
    *("\n", "\0", "\x1b[31m", "\u202e", "漢", "e\u0301", "٣", "²", "½", "\ud800", "[red]", "\\", "'", '"'),
    *("x" * 200, "1e400"),
)


def in_memory(data: bytes) -> Path:
    """Path of a regular file in memory with these bytes, until the next call."""
    descriptor = _memory(os.getpid())
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, data, 0)
    return Path(f"/proc/self/fd/{descriptor}")


@functools.cache
def _memory(process: int) -> int:
    """A descriptor for each process: forked processes do not share a descriptor."""
    return os.memfd_create("fuzz")


class Target(NamedTuple):
    """A target; ``share`` is the target's part of all executions."""

    make: Callable[[Random], bytes]
    check: Callable[[bytes], str]
    share: int


def spoilt(data: bytes, source: Random, most: int = 3) -> bytes:
    """The bytes with a few bytes replaced, missing, doubled or moved."""
    for _ in range(source.randint(1, most)):
        at, gone = source.randrange(len(data) + 1), source.choice((0, 1, 1, 2, 5))
        new = source.choice((*hostile.SPLICES[:6], source.randbytes(source.randint(1, 4)), data[at : at + 8]))
        data = data[:at] + new + data[at + gone :]
    return data


def _cut(data: bytes) -> list[bytes]:
    """The bytes in pieces, which depend on the bytes alone."""
    source, pieces, at = Random(zlib.crc32(data)), [], 0
    while at < len(data):
        size = source.choice((1, 2, 7, 64, 4096))
        pieces.append(data[at : at + size])
        at += size
    return pieces


# ---------------------------------------------------------------------------------------------------------- recordings


def _recording(source: Random) -> bytes:
    what = source.random()
    if what < 0.2:
        return spoilt(hostile.sealed(_GOLDEN[: source.randint(1, len(_GOLDEN))]), source)
    if what < 0.3:
        return b"".join(map(framing.frame, source.sample(_GOLDEN, len(_GOLDEN))))
    return hostile.recording(source)


def _decoded(data: bytes) -> str:
    """A file is read, or refused in one line with the byte where the damage begins."""
    try:
        summary = read_events(in_memory(data), lambda event: None)
    except SourceError as error:
        assert "\n" not in str(error), str(error)
        assert error.offset is not None
        assert 0 <= error.offset <= len(data)
        return "refused"
    assert summary.size_bytes == len(data)
    return "taken"


def _framed(source: Random) -> bytes:
    return spoilt(hostile.sealed(_GOLDEN[: source.randint(1, 4)]), source, 2)


def _any_cut(data: bytes) -> str:
    """The cuts of a stream change neither its frames nor its refusal."""

    def parsed(chunks: list[bytes]) -> Any:
        parser, found = framing.FrameParser(), []
        try:
            for chunk in chunks:
                for at, payload in parser.feed(chunk):  # not as a list: those before an error count
                    found.append((at, zlib.crc32(payload)))
            return found, parser.finish()
        except SourceError as error:
            return found, error.offset, "damaged"

    whole, pieces = parsed([data]), parsed(_cut(data))
    assert whole == pieces, f"{whole} is not {pieces}"
    return "refused" if len(whole) == 3 else "taken"


# ----------------------------------------------------------------------------------------------------------- notations


def _word(source: Random) -> bytes:
    text = source.choice(_WORDS)
    for _ in range(source.randint(1, 3)):
        at = source.randrange(len(text) + 1)
        text = text[:at] + source.choice(_PIECES) + text[at + source.choice((0, 0, 1, 3)) :]
    return text.encode("utf-8", "surrogatepass")


_PARSERS: Final[tuple[Callable[[str], object], ...]] = (
    *(notation.parse_substrate, notation.parse_count, notation.parse_length, notation.parse_think),
    *(durations.parse_duration_ns, arrivals.parse),
)


def _notations(data: bytes) -> str:
    """Each notation takes a text, or raises an error of taxtui."""
    text, taken = data.decode("utf-8", "surrogatepass"), 0
    for parse in _PARSERS:
        try:
            parse(text)
            taken += 1
        except TaxtuiError:
            pass
    return "taken" if taken else "refused"


# ------------------------------------------------------------------------------------------------ what sandboxes print


def _answer(source: Random) -> bytes:
    out, err = (source.randbytes(source.choice((0, 3, 40))) for _ in range(2))
    nonce, code = (
        NONCE.encode(),
        b"%d" % source.choice((0, 1, 255, 256, -1, 10**30)) + source.choice((b"", b":17.000001")),
    )
    if source.random() < 0.3:  # as one stream that carries both
        out = err = b"tone=n=.b" + base64.b64encode(err) + b"=."
    whole = b"".join(b"noise" + nonce + b"{" + each + nonce + b"}" + code + b"\n" for each in (out, err))
    return whole if source.random() < 0.2 else spoilt(whole, source)


def _shell(data: bytes) -> str:
    """A command's answer is whole, not there yet, or garbled, however it is cut; the merged one as well."""
    told = "unfinished"
    for kind, channels in ((SplitFrames, (STDOUT, STDERR)), (MergedFrames, (STDOUT,))):
        results = []
        for chunks in ([data], _cut(data)):
            shell = kind(NONCE, NONCE)
            try:
                for at in channels:
                    for chunk in chunks:
                        shell.feed(at, chunk)
                results.append(shell.result() if shell.complete else None)
            except ValueError:
                results.append(None)
        if results[0] is not None and results[1] is not None:
            assert results[0] == results[1], "cut otherwise it is another answer"
            told = "taken"
    return told


def _trailer(source: Random) -> bytes:
    times = b"0m0.004s 0m0.001s\n0m0.000s 0m0.000s\n"
    at = source.choice((b"1700000000.123456", b"1,7", b"-5", b"9" * 40, b"x", b"0"))
    ended = source.choice((at, b"1700000001.500000", b"0"))
    entered = source.choice((b"", b" 1700000000.023456", b" x", b" 0"))
    line = b"\n%b %b %b%b\n" % (NONCE.encode(), at, ended, entered)
    whole = times + b"words" + line + times + source.choice((b"", b"1700000001.600000\n"))
    return whole if source.random() < 0.1 else spoilt(whole, source)


def _bracket(data: bytes) -> str:
    """No more than was printed is left of stderr, and a run is within the whole command, or unknown."""
    within = 5_000_000_000
    known = False
    for method in _METHODS:
        stderr, run_ns, cpu_ns, wrapper_ns = bracket.unwrap(data, NONCE, method, within, 1_700_000_001_000_000_000)
        assert len(stderr) <= len(data)
        assert -1 <= run_ns <= within, f"{method}: {run_ns}"
        assert cpu_ns >= -1, f"{method}: {cpu_ns}"
        assert -1 <= wrapper_ns <= within - max(0, run_ns), f"{method}: {wrapper_ns}"
        known |= run_ns >= 0
    return "taken" if known else "unknown"


def _shown(data: bytes) -> str:
    """Nothing steers a terminal, nothing is wider than its column, and a message has no names."""
    text = data.decode("utf-8", "surrogatepass")
    columns = zlib.crc32(data) % 30
    clean = terminal_text.clean(text)
    assert not terminal_text.UNPRINTABLE.search(clean)
    assert terminal_text.width(terminal_text.cut(clean, columns)) <= columns
    assert terminal_text.width(terminal_text.fit(clean, columns)) == columns
    assert all(terminal_text.width(line) <= columns + 2 for line in terminal_text.wrap(clean, columns + 2))
    scrubbed = redaction.scrub(text)
    assert not terminal_text.UNPRINTABLE.search(scrubbed)
    assert len(scrubbed) <= redaction.MAX_CHARACTERS
    return "shown"


IN_MEMORY: Final = {
    "decoders": Target(_recording, _decoded, 240),
    "frames": Target(_framed, _any_cut, 160),
    "notations": Target(_word, _notations, 120),
    "shell": Target(_answer, _shell, 160),
    "brackets": Target(_trailer, _bracket, 80),
    "text": Target(_word, _shown, 60),
}
"""All that need no file."""
