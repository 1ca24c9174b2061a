"""The bracket against real shells, and wrapper time on every path that a command takes.

What they measure, what they leave alone, and when they say that they do not know.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from costmodel.recording.events import UNKNOWN
from taxtui.plan.spec import Command
from taxtui.runner.trial.bracket import Method, Unwrapped, unwrap, wrap
from taxtui.sandboxes.kit import text_sandbox
from taxtui.sandboxes.kit.kept_output import exec_result
from taxtui.sandboxes.kit.shell.captured_command import wrap_command
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, FramedShell, farewell, launch_argv
from taxtui.sandboxes.kit.shell.frames import LAST_LINE, MarkedOutput
from taxtui.sandboxes.protocol import ExecResult
from tests.taxtui.sandboxes.test_framed_shell import posix_argv, shell_process

NONCE: Final = "0123456789abcdef"
HOUR_NS: Final = 3_600_000_000_000


def bracketed(script: str, method: Method = "bash") -> tuple[int, bytes, bytes, int, int]:
    done = subprocess.run(["bash", "-c", wrap(script, NONCE, method)], capture_output=True, check=False)
    return done.returncode, done.stdout, *unwrap(done.stderr, NONCE, method, HOUR_NS)[:3]


def test_streams_and_exit_code_pass_through_untouched() -> None:
    code, out, err, run_ns, cpu_ns = bracketed("printf out; printf err >&2; exit 3")
    assert (code, out, err) == (3, b"out", b"err")
    assert min(run_ns, cpu_ns) >= 0
    assert bracketed("echo err >&2", "none") == (0, b"", b"err\n", UNKNOWN, UNKNOWN)


def test_output_that_looks_like_a_trailer_is_left_alone() -> None:
    _, _, err, run_ns, _ = bracketed(f"printf '\\n{NONCE} 1.000000 9.000000\\n' >&2; printf more >&2")
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
    *_, run_ns, cpu_ns = bracketed(f"{BUSY}; sh -c '{BUSY}'; printf err >&2")
    assert 10_000_000 <= cpu_ns <= run_ns + 20_000_000
    *_, run_ns, cpu_ns = bracketed("sleep 0.2")
    assert 0 <= cpu_ns < run_ns / 2


@pytest.mark.parametrize("script", ["exec true", "trap - EXIT; true", "kill -9 $$"])
def test_without_a_trailer_the_cpu_time_is_unknown_and_the_stream_clean(script: str) -> None:
    _, _, err, run_ns, cpu_ns = bracketed(f"echo mine >&2; {script}")
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


BEGAN, STOPPED = b"10.000005", b"10.000025"  # a run of 20 µs


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
    stderr = b"%berr\n%b %b %b%b\n%b%b" % (ZERO * 2, NONCE.encode(), BEGAN, STOPPED, entered, ZERO * 2, last)
    assert unwrap(stderr, NONCE, "bash", 100_000, outer) == (b"err", 20_000, 0, wrapper_ns)


CommandPath = Callable[[str, str], Awaitable[ExecResult]]


NOBODY: Final = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
"""Runs a program as a user who is not root."""


def run(argv: list[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(argv, input=stdin, capture_output=True, check=False)


async def plain(script: str, shell: str) -> ExecResult:
    done = run([shell, "-c", script])
    return ExecResult(done.returncode, done.stdout, done.stderr)


async def captured(script: str, shell: str) -> ExecResult:
    wrapped = wrap_command(Command(script=script), shell)
    done = run(wrapped.argv, wrapped.stdin)
    streams = MarkedOutput(b"", wrapped.marker), MarkedOutput(b"", wrapped.marker)
    for stream, data in zip(streams, (done.stdout, done.stderr), strict=True):
        stream.feed(data)
    out, err = streams
    assert out.exit_code is not None
    return exec_result(out.exit_code, out.output(), err.output(), out.wrapper_ended_ns)


def as_text(command: Command, shell: str, user: Sequence[str] = (), *, within: bool = False) -> ExecResult:
    wrapped = text_sandbox.wrap(command, shell, {}, inside=within)
    done = run([*user, shell if within else "sh", "-s"], wrapped.script.encode())
    result = text_sandbox.read(done.stdout.decode(), wrapped.nonce)
    assert result is not None
    return result


async def text(script: str, shell: str, user: Sequence[str] = ()) -> ExecResult:
    return as_text(Command(script=script), shell, user)


async def inside(script: str, shell: str, user: Sequence[str] = ()) -> ExecResult:
    return as_text(Command(script=script), shell, user, within=True)


async def session(script: str, shell: str, *, merged: bool = False) -> ExecResult:
    process = shell_process(posix_argv() if shell == "sh" else None, TMPDIR=os.environ.get("TMPDIR", "/tmp"))
    opened = await FramedShell(process, merged=merged).open()
    await opened.exec(Command(script="echo before"))
    result = await opened.exec(Command(script=script))
    await process.write(farewell("exit"))
    while (await process.read())[0] != ENDED:
        pass
    await opened.close()
    return result


async def merged(script: str, shell: str) -> ExecResult:
    return await session(script, shell, merged=True)


PATHS: Final[tuple[CommandPath, ...]] = (plain, captured, text, inside, session, merged)


def timed(result: ExecResult) -> Unwrapped:
    return unwrap(result.stderr, NONCE, "bash", HOUR_NS, result.wrapper_ended_ns)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("more", ["", "#" * 5000], ids=["short", "long"])
async def test_every_path_measures_its_wrapper(path: CommandPath, more: str) -> None:
    result = await path(wrap(f"echo a=b; echo 'x\ty' >&2; sleep 0.05; exit 3 {more}", NONCE, "bash"), "bash")
    stderr, run_ns, _, wrapper_ns = timed(result)
    assert (result.exit_code, result.stdout, stderr) == (3, b"a=b\n", b"x\ty\n")
    assert run_ns >= 50_000_000
    assert 0 < wrapper_ns < HOUR_NS


@pytest.mark.parametrize("path", PATHS)
async def test_what_comes_between_the_wrapper_and_the_command_is_wrapper_time(path: CommandPath) -> None:
    before, after = ("times >&2\n", "times >&2; sleep 0.05\n") if path is plain else ("trap '", "sleep 0.05; trap '")
    script = wrap("true", NONCE, "bash").replace(before, after, 1)
    _, run_ns, _, wrapper_ns = timed(await path(script, "bash"))
    assert wrapper_ns >= 50_000_000
    assert run_ns < wrapper_ns


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("script", ["exec true", "trap - EXIT; true"])
async def test_a_command_that_replaces_its_shell_has_no_wrapper_time(path: CommandPath, script: str) -> None:
    assert timed(await path(wrap(script, NONCE, "bash"), "bash"))[1:] == (UNKNOWN, UNKNOWN, UNKNOWN)


@pytest.mark.parametrize("path", PATHS)
async def test_a_shell_without_a_clock_has_no_wrapper_time(path: CommandPath) -> None:
    result = await path("echo out; exit 4", "sh")
    assert (result.exit_code, result.stdout, result.stderr, result.wrapper_ended_ns) == (4, b"out\n", b"", UNKNOWN)


@pytest.mark.parametrize("path", [text, inside, merged])
@pytest.mark.parametrize("shell", ["bash", "sh"])
@pytest.mark.parametrize("script", ["echo out", "printf 'a\\0\\377'", "head -c 100000 /dev/zero >&2", "true"])
async def test_nothing_is_left_in_the_temporary_folder(
    path: CommandPath, shell: str, script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    await path(script, shell)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def everybodys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files in which every user may write."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("path", [text, inside])
async def test_a_user_who_is_not_root_leaves_nothing_either(
    path: Callable[..., Awaitable[ExecResult]], everybodys: Path
) -> None:
    """Whose files need names: nobody but root may write to what bash has unlinked."""
    result = await path(wrap("echo out; echo err >&2; exit 5", NONCE, "bash"), "bash", NOBODY)
    assert list(everybodys.iterdir()) == []
    stderr, run_ns, _, wrapper_ns = timed(result)
    assert (result.exit_code, result.stdout, stderr) == (5, b"out\n", b"err\n")
    assert run_ns >= 0
    assert wrapper_ns > 0


async def test_named_files_of_a_session_do_not_pile_up(everybodys: Path) -> None:
    opened = await FramedShell(shell_process([*NOBODY, *launch_argv()], TMPDIR=str(everybodys)), merged=True).open()
    try:
        late = f"(while [ ! -e {everybodys}/go ]; do sleep 0.01; done; echo late) &"
        assert (await opened.exec(Command(script=f"echo before; {late}"))).stdout == b"before\n"
        assert (await opened.exec(Command(script=f"echo after; : >{everybodys}/go; sleep 0.2"))).stdout == b"after\n"
        for number in range(120):
            result = await opened.exec(Command(script=f"echo {number}"))
            assert (result.exit_code, result.stdout, result.stderr) == (0, b"%d\n" % number, b"")
        assert len(list(everybodys.rglob("[oe]*"))) <= 100
    finally:
        await opened.close()


TEXTS: Final = (
    *(b"", b"=", b"==.=e=n=t=.", b"t\n\tb\n\n", b"\\n%s$x`~", b"\x7f", b"\xff\x00"),
    *(b"x" * 8191, b"x" * 8192, b"=\n" * 5000),
)


@pytest.mark.parametrize("user", [[], NOBODY], ids=["this user", "nobody"])
@pytest.mark.parametrize("shell", ["bash", "sh"])
async def test_output_in_every_form(shell: str, user: list[str]) -> None:
    argv = [*user, *(posix_argv() if shell == "sh" else launch_argv())]
    opened = await FramedShell(shell_process(argv), merged=True).open()
    for out, err in zip(TEXTS, reversed(TEXTS), strict=True):
        octal = "".join(f"\\{byte:03o}" for byte in err)
        command = Command(script=f"cat; printf '{octal}' >&2", stdin=out)
        result = await opened.exec(command)
        assert (result.stdout, result.stderr) == (out, err)
        read = as_text(command, shell, user)
        assert (read.stdout, read.stderr) == (out, err)
    await opened.close()


@pytest.mark.parametrize("shell", ["bash", "sh"])
@pytest.mark.parametrize("within", [True, False])
def test_a_text_carries_standard_input_and_long_scripts(shell: str, within: bool) -> None:
    data = bytes(range(256)) * 3
    result = as_text(Command(script=f"cat; exit 7 {'#' * 70_000}", stdin=data), shell, within=within)
    assert (result.exit_code, result.stdout, result.stderr) == (7, data, b"")


@pytest.mark.parametrize("path", [captured, text, inside, session, merged])
@pytest.mark.parametrize("script", ["echo a=b; echo 'x\ty' >&2", "echo long #" + "#" * 5000], ids=["short", "long"])
async def test_printable_output_takes_no_program(
    path: CommandPath, script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no program but the shells, no path needs wc, head, cat, base64, mktemp or rm."""
    for shell in ("bash", "sh"):
        (tmp_path / shell).symlink_to(f"/bin/{shell}")
    monkeypatch.setenv("PATH", str(tmp_path))
    result = await path(script, "bash")
    assert (result.exit_code, len(result.stderr)) == (0, 4 if "#" not in script else 0)
    assert result.stdout in (b"a=b\n", b"long\n")


def test_a_forged_end_marker_is_not_searched_for_its_line_end() -> None:
    """A command may print the marker and then digits for ever: nothing of them is kept."""
    stream = MarkedOutput(b"", b"\1NONCE ")
    stream.feed(b"\1NONCE " + b"1" * LAST_LINE)
    with pytest.raises(ValueError, match="no exit code"):
        stream.feed(b"1")
