"""Try damaged inputs by seed, and count the results: ``python -m tests.support.fuzz.fuzzing --help``.

A target has a generator of inputs and a check. A check returns the result as a word, and raises if a promise is broken.
The check depends on the input alone: a failed input becomes a file in ``fuzz_corpus/TARGET``, and a test.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import sys
import tempfile
import time
import tomllib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import click

import costmodel
from costmodel.errors import CostModelError, SourceError
from costmodel.recording import framing
from costmodel.recording.follower import read_events
from costmodel.recording.reader import read_recording
from taxtui import terminal_text
from taxtui.errors import RecordingError, TaxtuiError
from taxtui.importers import registry
from taxtui.importers.importing import import_files
from taxtui.plan import arrivals, durations, notation, scenario
from taxtui.runner import redaction
from taxtui.runner.trial import bracket
from taxtui.runner.trial.bracket import Method
from taxtui.sandboxes.kit.shell.frames import STDERR, STDOUT, MergedFrames, SplitFrames
from tests.support import importing
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


@contextlib.contextmanager
def written(data: bytes, name: str) -> Iterator[Path]:
    """A file with these bytes, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        yield path


def one_line(error: Exception) -> str:
    """The word for a refusal, which must be one line."""
    assert "\n" not in str(error), str(error)
    return "refused"


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
    with written(data, "recording.msgpack") as path:
        try:
            summary = read_events(path, lambda event: None)
        except SourceError as error:
            assert error.offset is not None
            assert 0 <= error.offset <= len(data)
            return one_line(error)
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
        out = err = b"tone=n=.b%d." % len(err) + base64.b64encode(err) + b"=."
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


_ODD: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 1, 1.5, -0.0, 256, 2**63, -(2**70), 10**400, 1e308, -1e308, 1e-320, math.nan, math.inf),
    *("", "x", "x" * 2000, "NaN", "[red]", "\x1b[31m", "\ud800", "9999999h", "lognormal:8s,nan", "staggered:0s"),
    *("local:x=y", 1795297016.1, 4e9, "1970-01-01T00:00:00Z", "9999-12-31T23:59:59", "2026-11-22T03:13:10"),
    *([], [1], ["a"], [None], [[]], [[[]]], [{}], {}, {"a": 1}, list(range(5000))),
)


def _odd(value: Any, source: Random) -> Any:
    return source.choice(_ODD)


def _log(source: Random) -> bytes:
    name = source.choice(sorted(importing.SOURCES))
    data = importing.SOURCES[name]
    if source.random() < 0.7 and not name.endswith((".eval", ".csv")):
        lines = data.splitlines() if name.endswith(".jsonl") else [data]
        values = [json.loads(line) for line in lines]
        for value in values:
            if source.random() < 0.8:
                hostile.damage(value, source, _odd)
        data = b"\n".join(json.dumps(value).encode() for value in values)
    else:
        data = spoilt(data, source)
    if source.random() < 0.1:
        data = data[: source.randrange(len(data) + 1)]
    return name.encode() + b"\n" + data


def _import(data: bytes) -> str:
    """A recording that can be read, or a refusal in one line."""
    where, _, content = data.partition(b"\n")
    name, _, log = where.decode().partition("/")
    with written(content, log) as path:
        out = path.with_name("out.msgpack")
        try:
            result = import_files(registry.load(name), [path], out)
        except RecordingError as error:
            assert "unexpected" not in str(error), str(error)
            assert not out.exists()
            return one_line(error)
        assert not any("unexpected" in line for line in result.named), result.named
        read_recording(out)  # refuses negative durations, and clocks that do not add up
    return "taken"


def _published(path: Path) -> None:
    costmodel.project([costmodel.load(path)], costmodel.TrainingRun(trajectories=1000, workers=10))


ROOT: Final = Path(__file__).parents[3]
_READERS: Final[dict[str, tuple[Callable[[Path], object], Path]]] = {
    "scenario": (lambda path: scenario.plan(*scenario.load_file(str(path))), ROOT / "scenarios"),
    "tier": (lambda path: scenario.load_tier(str(path)), ROOT / "scenarios" / "tiers"),
    "published": (_published, ROOT / "scenarios" / "published"),
    "facts": (costmodel.load, ROOT / "costmodel" / "providers" / "data" / "published"),
    "prices": (costmodel.load_prices, ROOT / "costmodel" / "pricing" / "data"),
    "profile": (costmodel.load_profile, ROOT / "costmodel" / "providers" / "data" / "limits"),
}
"""What reads a document, and where those are that are shipped."""


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {_toml(one)}' for key, one in value.items())}}}"
    return str(value)  # numbers and dates, as TOML has them


def _shipped(source: Random) -> bytes:
    kind = source.choice(sorted(_READERS))
    data = tomllib.loads(source.choice(sorted(_READERS[kind][1].glob("*.toml"))).read_text(encoding="utf-8"))
    hostile.damage(data, source, _odd)
    lines = "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in data.items())
    return f"{kind}\n{lines}".encode("utf-8", "surrogatepass")


def _document(data: bytes) -> str:
    """A document is read, or refused in one line."""
    kind, _, text = data.partition(b"\n")
    with written(text, "document.toml") as path:
        try:
            _READERS[kind.decode()][0](path)
        except (TaxtuiError, CostModelError) as error:
            return one_line(error)
    return "taken"


def _projected(data: bytes) -> str:
    """A recording is read and projected, or refused in one line."""
    with written(data, "recording.msgpack") as path:
        try:
            _published(path)
        except CostModelError as error:
            return one_line(error)
    return "taken"


TARGETS: Final = {
    "decoders": Target(_recording, _decoded, 240),
    "frames": Target(_framed, _any_cut, 160),
    "notations": Target(_word, _notations, 120),
    "shell": Target(_answer, _shell, 160),
    "brackets": Target(_trailer, _bracket, 80),
    "text": Target(_word, _shown, 60),
    "importers": Target(_log, _import, 10),
    "documents": Target(_shipped, _document, 10),
    "projections": Target(hostile.recording, _projected, 1),
}
CORPUS: Final = Path(__file__).parent / "fuzz_corpus"
AT_ONCE: Final = 2000
"""Executions that are handed to a process together."""
MOST_TOLD: Final = 20
"""Failures of a target that are printed; the rest is counted."""


def made(target: str, seed: int, number: int) -> bytes:
    return TARGETS[target].make(Random(f"{seed}:{target}:{number}"))


def tried(target: str, data: bytes) -> tuple[str, str]:
    """What came of an input in a word, and where that is FAILED what was raised."""
    try:
        return TARGETS[target].check(data), ""
    except Exception as error:
        return "FAILED", f"{type(error).__name__}: {error}"


def corpus() -> Iterator[tuple[str, Path]]:
    for path in sorted(CORPUS.glob("*/*")):
        yield path.parent.name, path


def _one(target: str, seed: int, number: int) -> tuple[str, str]:
    return tried(target, made(target, seed, number))


@click.command()
@click.option("--executions", default=1_000_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--target", "only", type=click.Choice(list(TARGETS)), help="This one alone.")
@click.option("--number", type=int, help="With --target: this execution alone, and its input on stdout.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
def main(executions: int, seed: int, only: str | None, number: int | None, jobs: int) -> None:
    """Print counts by target and what came of each, behind the failures; exit code 1 where there is one."""
    if number is not None:
        if only is None:
            raise click.UsageError("--number counts within one target; add --target")
        data = made(only, seed, number)
        click.echo(data, nl=False)
        click.echo(": ".join(tried(only, data)), err=True)
        return
    began, total, failed = time.time(), 0, 0
    chosen = [only] if only else list(TARGETS)
    shares = sum(TARGETS[name].share for name in chosen)
    with ProcessPoolExecutor(jobs) as pool:
        for name in chosen:
            counts, numbers = Counter[str](), range(-(-executions * TARGETS[name].share // shares))
            for each, (word, why) in enumerate(pool.map(partial(_one, name, seed), numbers, chunksize=AT_ONCE)):
                counts[word] += 1
                if why and counts[word] <= MOST_TOLD:
                    again = f"python -m tests.support.fuzz.fuzzing --target {name} --seed {seed} --number {each}"
                    click.echo(f"FAILED {name}: {why}\n    again: {again}")
            told = ", ".join(f"{word} {count:,}" for word, count in sorted(counts.items()))
            click.echo(f"{name}: {counts.total():,} ({told})")
            total, failed = total + counts.total(), failed + counts["FAILED"]
    took_s = time.time() - began
    click.echo(f"{total:,} executions in {took_s:.0f} s, {total / took_s:,.0f} a second: {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
