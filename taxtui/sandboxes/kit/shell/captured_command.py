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

# Quiet, or bash would comment on death by a signal; the command itself gets the real stderr.
_PROGRAM: Final = r"""@BEGIN@; exec 3>&2 2>/dev/null; export @MARK@="$1"; _a=$1; _b=$2; shift 2
@BODY@ 2>&3 3>&-
_r=$?; printf '\1%s%s %d:%s\n' "$_a" "$_b" "$_r" "@NOW@" >&3; printf '\1%s%s %d:%s\n' "$_a" "$_b" "$_r" "@NOW@"; @END@
""".replace("@BEGIN@", BEGIN).replace("@NOW@", NOW)
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
    return _wrapped(shell, body, 'exit "$_r"', [script], stdin)


def wrap_program(argv: Sequence[str]) -> CapturedProgram:
    """The program around a persistent shell: all processes end with the shell."""
    return _wrapped("sh", '"$@"', "@KILL@; kill -KILL 0", argv, b"")


def _wrapped(shell: str, body: str, end: str, argv: Sequence[str], stdin: bytes) -> CapturedProgram:
    # The nonce has a second half besides the mark: a list of the shell's variables contains no marker.
    first_half, second_half = new_mark(), new_mark()
    program = _PROGRAM.replace("@MARK@", MARK).replace("@BODY@", body).replace("@END@", end)
    program = program.replace("@KILL@", kill_script(first_half))
    return CapturedProgram(
        [shell, "-c", program, shell, first_half, second_half, *argv],
        stdin,
        f"\1{first_half}{second_half} ".encode(),
        first_half,
    )


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
