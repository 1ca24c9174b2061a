"""The bracket against real shells: what it measures, what it leaves alone, and when it says that it does not know."""

from __future__ import annotations

import subprocess
from typing import Final

import pytest

from costmodel.recording.events import UNKNOWN
from taxtui.runner.trial.bracket import Method, unwrap, wrap

NONCE = "0123456789abcdef"
HOUR_NS = 3_600_000_000_000


def run(script: str, method: Method = "bash") -> tuple[int, bytes, bytes, int, int]:
    done = subprocess.run(["bash", "-c", wrap(script, NONCE, method)], capture_output=True, check=False)
    return done.returncode, done.stdout, *unwrap(done.stderr, NONCE, method, HOUR_NS)[:3]


def test_streams_and_exit_code_pass_through_untouched() -> None:
    code, out, err, run_ns, cpu_ns = run("printf out; printf err >&2; exit 3")
    assert (code, out, err) == (3, b"out", b"err")
    assert min(run_ns, cpu_ns) >= 0
    assert run("echo err >&2", "none") == (0, b"", b"err\n", UNKNOWN, UNKNOWN)


def test_output_that_looks_like_a_trailer_is_left_alone() -> None:
    _, _, err, run_ns, _ = run(f"printf '\\n{NONCE} 1.000000 9.000000\\n' >&2; printf more >&2")
    assert err == f"\n{NONCE} 1.000000 9.000000\nmore".encode()
    assert run_ns < 8_000_000_000


@pytest.mark.parametrize(
    ("trailer", "run_ns"),
    [
        (b"\n%b 10.000001 10.000003\n", 2000),
        (b"\n%b 10,000001 10,000003\n", 2000),
        (b"\n%b 10.000003 10.000001\n", UNKNOWN),  # the wall clock stepped back
        (b"\n%b 10.000001 10.003001\n", 3_000_000),
        (b"\n%b 10.000001 10.003002\n", UNKNOWN),  # longer than the command took: forged, or the clock was set
        (b"\n%b 0 99999999999999999999999999\n", UNKNOWN),
        pytest.param(b"\n%b 0 " + b"9" * 5000 + b"\n", UNKNOWN, id="more digits than Python takes"),
        (b"\n%b 10.000001\n", UNKNOWN),
        (b"\n%b 10.000001 garbage\n", UNKNOWN),
        (b"\n%b 10.000001 10.0000", UNKNOWN),  # cut off
    ],
)
def test_trailers(trailer: bytes, run_ns: int) -> None:
    assert unwrap(b"err" + trailer % NONCE.encode(), NONCE, "bash", 3_000_000)[1] == run_ns


BUSY: Final = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"


def test_cpu_time_is_that_of_the_command_and_what_it_waited_for() -> None:
    *_, run_ns, cpu_ns = run(f"{BUSY}; sh -c '{BUSY}'; printf err >&2")
    assert 10_000_000 <= cpu_ns <= run_ns + 20_000_000
    *_, run_ns, cpu_ns = run("sleep 0.2")
    assert 0 <= cpu_ns < run_ns / 2


@pytest.mark.parametrize("script", ["exec true", "trap - EXIT; true", "kill -9 $$"])
def test_without_a_trailer_the_cpu_time_is_unknown_and_the_stream_clean(script: str) -> None:
    _, _, err, run_ns, cpu_ns = run(f"echo mine >&2; {script}")
    assert (err, run_ns, cpu_ns) == (b"mine\n", UNKNOWN, UNKNOWN)


ZERO: Final = b"0m0.000s 0m0.000s\n"
AFTER: Final = b"1m2.500s 0m0,004s\n0m1.000000s 0m0.00s\n"


@pytest.mark.parametrize(
    ("stderr", "left", "cpu_ns"),
    [
        (ZERO * 2 + b"err\n%b 1.000000 2.000000\n" + AFTER, b"err", 63_504_000_000),
        (b"warning\n" + ZERO * 2 + b"\n%b 1.000000 2.000000\n" + AFTER, b"warning\n", 63_504_000_000),
        (AFTER + b"\n%b 1.000000 2.000000\n" + ZERO * 2, b"", UNKNOWN),  # less than before: forged
        (b"\n%b 1.000000 2.000000\n" + AFTER, b"", UNKNOWN),
        (ZERO * 2 + b"\n%b 1.000000 2.000000\n", b"", UNKNOWN),
        (ZERO * 2 + b"\n%b 1.000000 2.000000\n" + ZERO, ZERO, UNKNOWN),
        (ZERO * 2 + b"err\n%b 2.000000 1.000000\n" + AFTER, b"err", UNKNOWN),
        (ZERO * 2 + ZERO * 2 + b"\n%b 1.000000 2.000000\n" + AFTER, ZERO * 2, 63_504_000_000),
    ],
)
def test_cpu_times(stderr: bytes, left: bytes, cpu_ns: int) -> None:
    found = unwrap(stderr.replace(b"%b", NONCE.encode()), NONCE, "bash", HOUR_NS)
    assert (found.stderr, found.cpu_ns) == (left, cpu_ns)


BEGAN, ENDED = b"10.000005", b"10.000025"  # a run of 20 µs


@pytest.mark.parametrize(
    ("entered", "last", "outer", "wrapper_ns"),
    [
        (b" 10.000001", b"10.000031\n", UNKNOWN, 10_000),  # the timer is outermost: 4 before the run, 6 after it
        (b" 10.000001", b"10.000031\n", 10_000_035_000, 14_000),  # the end of the wrapper around it
        (b" 10,000001", b"10,000031\n", UNKNOWN, 10_000),
        (b"", b"10.000031\n", UNKNOWN, UNKNOWN),  # as older versions wrote it
        (b" 10.000001", b"", UNKNOWN, UNKNOWN),
        (b" 10.000006", b"10.000031\n", UNKNOWN, UNKNOWN),  # begins after the run: the wall clock was set, or forged
        (b" 10.000001", b"10.000031\n", 10_000_024_000, UNKNOWN),  # ends before it
        (b" 9.999000", b"10.000031\n", UNKNOWN, UNKNOWN),  # with the run longer than the whole command
        (b" x", b"10.000031\n", UNKNOWN, UNKNOWN),
    ],
)
def test_wrapper_time(entered: bytes, last: bytes, outer: int, wrapper_ns: int) -> None:
    stderr = b"%berr\n%b %b %b%b\n%b%b" % (ZERO * 2, NONCE.encode(), BEGAN, ENDED, entered, ZERO * 2, last)
    assert unwrap(stderr, NONCE, "bash", 100_000, outer) == (b"err", 20_000, 0, wrapper_ns)
