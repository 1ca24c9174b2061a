"""The framed shell over real shells: bash, a POSIX sh, and a pseudo-terminal."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, FramedShell, farewell, launch_argv
from tests.support.scripted_stream import TerminalStream, posix_argv, shell_process

KINDS = ("bash", "sh", "terminal", "sh on a terminal")


@pytest.fixture(params=KINDS)
async def shell(request: pytest.FixtureRequest) -> AsyncIterator[FramedShell]:
    terminal = "terminal" in request.param
    if terminal:
        argv = posix_argv() if request.param.startswith("sh") else launch_argv()
        argv = [*argv[:2], f"stty raw -echo; {argv[2]}", *argv[3:]]
        opened = await FramedShell.open(TerminalStream(argv), merged=True)
    else:
        opened = await FramedShell.open(shell_process(posix_argv() if request.param == "sh" else None))
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
    shell = await FramedShell.open(shell_process())
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
            await FramedShell.open(stream)
        await stream.write(farewell("exit 5"))
        assert await stream.read() == (ENDED, b"")
        assert stream.returncode == 5


async def test_an_old_bash_is_driven_line_by_line() -> None:
    """macOS ships bash 3.2, which has no `read -N`: the launcher's version test sends it to the other driver."""
    *rest, driver, fallback = launch_argv()
    old = driver.replace("BASH_VERSINFO[0] * 100", "0 * 100")
    assert old != driver
    shell = await FramedShell.open(shell_process([*rest, old, fallback]))
    result = await shell.exec(Command(script="a=(x y)\necho ${a[1]}\ncat", stdin=b"in"))
    assert result.stdout == b"y\nin"
    await shell.close()


async def test_a_shell_that_never_answers() -> None:
    with pytest.raises(SandboxLost):
        await FramedShell.open(shell_process(["/bin/true"]))
    stream = shell_process(["/bin/sleep", "60"])
    with pytest.raises(ExecTimeout):
        await FramedShell.open(stream, timeout_s=0.1)
    assert await stream.read() == (ENDED, b"")
