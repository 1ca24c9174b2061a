"""The shell program around each command, and the reader of the output.

The program prints the exit code last, on both streams: a provider delays the exit status of an exec while any process,
for example in the background, has the streams open. The command's mark is among the arguments and in the environment of
all processes of the command, for the kill.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.kill import MARK, kill_script, new_mark
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, Streams
from taxtui.sandboxes.kit.shell.frames import BEGIN, NOW, STDERR, STDOUT, MarkedOutput

_LAST_LINE: Final = r"""printf '\1%s%s %d:%s\n' "$_a" "$_b" "$_r" """ + f'"{NOW}"'
_URL_SCRIPT: Final = 4096  # a longer script goes through stdin: proxies limit the request line, often to 8 KiB


class CapturedProgram(NamedTuple):
    """The program to start, the standard input, and the marker at the beginning of both streams' last line."""

    argv: list[str]
    stdin: bytes
    marker: bytes
    mark: str  # for kit.kill


def wrap_command(command: Command, shell: str) -> CapturedProgram:
    """The program around a command. Before v5 the API cannot announce the end of input: ``head`` counts the bytes."""
    script, stdin = command.script, command.stdin
    if stdin:
        body = f'head -c {len(stdin)} | ( eval "$1" )'
    elif len(script) > _URL_SCRIPT:
        script, stdin = "", script.encode()
        if shell == "bash":  # bash reads without a process; LC_ALL counts bytes
            body = f'IFS= LC_ALL=C read -rN {len(stdin)} _s; ( eval "$_s" ) </dev/null'
        else:
            body = f'( eval "$(head -c {len(stdin)})" </dev/null )'
    else:
        body = '( eval "$1" )'
    return _wrapped(new_mark(), shell, body, 'exit "$_r"', [script], stdin)


def wrap_program(argv: Sequence[str]) -> CapturedProgram:
    """The program around a persistent shell: all processes end with the shell."""
    mark = new_mark()
    return _wrapped(mark, "sh", '"$@"', f"{kill_script(mark)}; kill -KILL 0", argv, b"")


def _wrapped(mark: str, shell: str, body: str, end: str, argv: Sequence[str], stdin: bytes) -> CapturedProgram:
    # Quiet, or bash would comment on death by a signal; the command itself gets the real stderr.
    program = (
        f'{BEGIN}; exec 3>&2 2>/dev/null; export {MARK}="$1"; _a=$1; _b=$2; shift 2\n'
        f"{body} 2>&3 3>&-\n"
        f"_r=$?; {_LAST_LINE} >&3; {_LAST_LINE}; {end}\n"
    )
    half = new_mark()  # a list of the shell's variables contains no marker: the marker has two halves
    argv = [shell, "-c", program, shell, mark, half, *argv]
    return CapturedProgram(argv, stdin, f"\1{mark}{half} ".encode(), mark)


async def captured(stream: Streams, marker: bytes) -> tuple[MarkedOutput, MarkedOutput]:
    """Stdout and stderr up to their end markers, even while background processes have the streams open.

    Without a marker up to the streams' end: the command has killed the wrapper shell, or the sandbox is gone.

    Raises:
        ExecFailed: no number follows the marker; a command can find the marker and print it.
    """
    streams = {channel: MarkedOutput(b"", marker) for channel in (STDOUT, STDERR)}
    while not all(output.complete for output in streams.values()):
        channel, chunk = await stream.read()
        if channel == ENDED:
            break
        try:
            streams[channel].feed(chunk)
        except ValueError:
            raise ExecFailed("the command's answer is garbled: no exit code follows its end marker") from None
    return streams[STDOUT], streams[STDERR]
