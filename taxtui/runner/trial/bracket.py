"""The bracket: how long a command itself ran inside the sandbox and what CPU time it used, taken there, sent back.

The wrapped script notes the time, sets an EXIT trap and runs the command in the same shell, so that the bracket
costs no process. The trailer is the last line of standard error and carries the trial's nonce, so that output which
looks like one is left alone. A command that replaces its shell (``exec``) or its EXIT trap, or is killed, sends no
trailer: its run is unknown, never guessed.

CPU time is the shell's own ``times``, before and after: user and system time of the shell and of all that it waited
for, to 1 ms in bash and to a clock tick elsewhere. What a command leaves running in the background is not in it.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from taxtui.recording.events import MAX_INT, UNKNOWN

Method = Literal["bash", "date", "none"]

NONCE_ENV: Final = "TAXTUI_NONCE"
_NOW: Final = {"bash": "$EPOCHREALTIME", "date": "$(date +%s%N)"}
_UNIT_NS: Final = {"bash": 1000, "date": 1}  # EPOCHREALTIME has microseconds

# What ``times`` prints: minutes and seconds of user and of system time, of the shell and then of its children.
_CLOCK: Final = rb"(\d{1,6})m(\d{1,2})[.,](\d{2,9})s"
_TIMES: Final = re.compile(rb"^%b %b\n%b %b\n" % ((_CLOCK,) * 4), re.MULTILINE)
_TIMES_AT_END: Final = re.compile(rb"\n%b %b\n%b %b\n\Z" % ((_CLOCK,) * 4))


def method_for(*, bash: bool, mode: str, wanted: bool) -> Method:
    """Bash wherever there is one; ``date`` costs two processes and is only worth it where a command has its own."""
    if not wanted:
        return "none"
    if bash:
        return "bash"
    return "date" if mode == "exec" else "none"


def wrap(script: str, nonce: str, method: Method) -> str:
    """The script that a sandbox is given: the nonce in its environment, bracketed where there is a method."""
    head = f"export {NONCE_ENV}={nonce}\n"
    if method == "none":
        return head + script
    now = _NOW[method]
    trailer = f"""printf "\\n{nonce} %s %s\\n" "$_taxtui_began" "{now}" >&2"""
    if method == "date":  # whose processes would be the command's, were the CPU time taken outside of it
        return f"{head}trap 'echo >&2; times >&2; {trailer}' EXIT\n_taxtui_began={now}\ntimes >&2\n{script}"
    return f"{head}trap '{trailer}; times >&2' EXIT\ntimes >&2\n_taxtui_began={now}\n{script}"


class Unwrapped(NamedTuple):
    """What a bracketed command sent on standard error, and what the bracket says of it."""

    stderr: bytes
    run_ns: int  # or UNKNOWN
    cpu_ns: int  # user and system time of the run, or UNKNOWN


def unwrap(stderr: bytes, nonce: str, method: Method, within_ns: int) -> Unwrapped:
    """Standard error without what the bracket wrote, and the run and its CPU time in nanoseconds, or ``UNKNOWN``.

    The clock inside is a wall clock, and the trailer is the sandbox's word: a run that ends before it begins, or is
    longer than ``within_ns``, which the whole command took, is unknown too; and so is what no clock of CPU time says.
    """
    if method == "none":
        return Unwrapped(stderr, UNKNOWN, UNKNOWN)
    before = _TIMES.search(stderr)  # the first: written before the command could print anything
    if before is not None:
        stderr = stderr[: before.start()] + stderr[before.end() :]
    # The last one counts: what the command itself printed comes before the trap's line.
    start = stderr.rfind(b"\n%b " % nonce.encode())
    end = stderr.find(b"\n", start + 1)
    if start < 0 or end < 0:
        return Unwrapped(stderr, UNKNOWN, UNKNOWN)
    try:
        began, ended = (_nanoseconds(text, method) for text in stderr[start + 1 : end].split()[1:])
    except ValueError:
        return Unwrapped(stderr, UNKNOWN, UNKNOWN)
    head, tail, after = stderr[:start], stderr[end + 1 :], None
    if method == "date":
        if (after := _TIMES_AT_END.search(head)) is not None:
            head = head[: after.start()]
    elif (after := _TIMES.match(tail)) is not None:
        tail = tail[after.end() :]
    run_ns = ended - began
    known = 0 <= run_ns <= within_ns
    cpu_ns = _cpu_ns(after) - _cpu_ns(before) if known and before and after else UNKNOWN
    return Unwrapped(head + tail, run_ns if known else UNKNOWN, cpu_ns if 0 <= cpu_ns <= MAX_INT else UNKNOWN)


def _cpu_ns(times: re.Match[bytes]) -> int:
    """User and system time of a shell and of its children."""
    told = times.groups()
    clocks = (told[place : place + 3] for place in range(0, len(told), 3))
    return sum((int(m) * 60 + int(s)) * 10**9 + int(fraction.ljust(9, b"0")) for m, s, fraction in clocks)


def _nanoseconds(text: bytes, method: Method) -> int:
    """EPOCHREALTIME's decimal point follows the locale, so it is dropped instead of read."""
    return int(text.replace(b".", b"").replace(b",", b"")) * _UNIT_NS[method]
