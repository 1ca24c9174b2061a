"""The bracket against real shells: what it measures, what it leaves alone, and when it says that it does not know."""

from __future__ import annotations

import subprocess

import pytest

from taxtui.recording.events import UNKNOWN
from taxtui.runner.bracket import Method, method_for, unwrap, wrap

NONCE = "0123456789abcdef"
HOUR_NS = 3_600_000_000_000


def run(script: str, method: Method = "bash", shell: str = "bash") -> tuple[int, bytes, bytes, int]:
    done = subprocess.run([shell, "-c", wrap(script, NONCE, method)], capture_output=True, check=False)
    return done.returncode, done.stdout, *unwrap(done.stderr, NONCE, method, HOUR_NS)


@pytest.mark.parametrize(("method", "shell"), [("bash", "bash"), ("date", "sh")])
def test_streams_and_exit_code_pass_through_untouched(method: Method, shell: str) -> None:
    code, out, err, run_ns = run("printf out; printf err >&2; exit 3", method, shell)
    assert (code, out, err) == (3, b"out", b"err")
    assert run_ns >= 0


def test_the_run_is_that_of_the_command() -> None:
    assert run("sleep 0.05")[3] >= 50_000_000


def test_the_nonce_is_in_the_environment() -> None:
    assert run("echo $TAXTUI_NONCE")[1] == NONCE.encode() + b"\n"
    assert run("echo $TAXTUI_NONCE", "none")[1] == NONCE.encode() + b"\n"


def test_without_a_bracket_nothing_is_known() -> None:
    assert run("echo err >&2", "none") == (0, b"", b"err\n", UNKNOWN)


@pytest.mark.parametrize("script", ["exec true", "trap - EXIT; true", "kill -9 $$"])
def test_a_command_that_takes_the_shell_away_has_an_unknown_run(script: str) -> None:
    assert run(script)[3] == UNKNOWN


def test_output_that_looks_like_a_trailer_is_left_alone() -> None:
    _, _, err, run_ns = run(f"printf '\\n{NONCE} 1.000000 9.000000\\n' >&2; printf more >&2")
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


def test_which_method() -> None:
    assert method_for(bash=True, mode="exec", wanted=True) == "bash"
    assert method_for(bash=True, mode="session", wanted=True) == "bash"
    assert method_for(bash=False, mode="exec", wanted=True) == "date"
    assert method_for(bash=False, mode="session", wanted=True) == "none"
    assert method_for(bash=True, mode="exec", wanted=False) == "none"
