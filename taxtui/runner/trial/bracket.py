"""The in-sandbox timer: how long a command itself ran, its CPU time, and what taxtui's shell wrappers took around it.

The script that a sandbox is given notes the time, sets an EXIT trap and runs the command in the same shell, so that
the timer starts no process. The trap's lines are the last of standard error and carry the trial's nonce, so that output
which looks like them is left alone. A command that replaces its shell (``exec``) or its EXIT trap, or is killed,
prints none: its in-sandbox time and its wrapper time are unknown, never guessed.

CPU time is the shell's own ``times``, before and after: user and system time of the shell and of all that it waited
for, to 1 ms. Processes that a command leaves in the background are not in it.

Wrapper time is the time from the first statement of the outermost wrapper to its last output, without the in-sandbox
time. If no other wrapper encloses the timer, the timer's own lines are the wrapper.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from costmodel import MAX_INT, events
from taxtui.sandboxes.kit.shell.frames import BEGAN, NOW, epoch_ns

Method = Literal["bash", "none"]

NONCE_ENV: Final = "TAXTUI_NONCE"

# ``times`` prints minutes and seconds of user and system time, of the shell and then of the children.
_CLOCK: Final = rb"(\d{1,6})m(\d{1,2})[.,](\d{2,9})s"
_CLOCKS: Final = rb"%b %b\n%b %b\n" % ((_CLOCK,) * 4)
_TIMES: Final = re.compile(b"^" + _CLOCKS, re.MULTILINE)
_TIMES_AT_END: Final = re.compile(_CLOCKS + rb"(?:(\d{1,12}[.,]\d{6})\n)?")


def method_for(*, bash: bool, wanted: bool) -> Method:
    """Return the timer's method: only bash has a built-in clock."""
    return "bash" if wanted and bash else "none"


def wrap(script: str, nonce: str, method: Method) -> str:
    """Return the script for the sandbox: with the nonce in its environment, and the timer where there is a method."""
    head = f"export {NONCE_ENV}={nonce}\n"
    if method == "none":
        return head + script
    # The trap prints the three times so far, the CPU time, and the time after both.
    stamps = f'printf "\\n{nonce} %s %s %s\\n" "$_taxtui_began" "{NOW}" "${BEGAN}"'
    trap = f'trap \'{{ {stamps}; times; printf "%s\\n" "{NOW}"; }} >&2\' EXIT'
    return f"{BEGAN}=${{{BEGAN}-{NOW}}}; {head}{trap}\ntimes >&2\n_taxtui_began={NOW}\n{script}"


class Unwrapped(NamedTuple):
    """Standard error of a timed command, and the times from the timer."""

    stderr: bytes
    run_ns: int = events.UNKNOWN  # in-sandbox time
    cpu_ns: int = events.UNKNOWN  # user and system time of the run
    wrapper_ns: int = events.UNKNOWN


def unwrap(
    stderr: bytes, nonce: str, method: Method, within_ns: int, wrapper_ended_ns: int = events.UNKNOWN
) -> Unwrapped:
    """Remove the timer's lines from standard error; return the rest, with in-sandbox, CPU and wrapper time.

    ``wrapper_ended_ns``: as in ``ExecResult``. The clock inside is a wall clock, and the sandbox may forge it: a run
    that ends before it begins, or is longer than the whole command, which took ``within_ns``, is unknown. Wrapper time
    is unknown where it is negative, or where it and the run are longer than the whole command.
    """
    if method == "none":
        return Unwrapped(stderr)
    before = _TIMES.search(stderr)  # the first: written before the command could print anything
    if before is not None:
        stderr = stderr[: before.start()] + stderr[before.end() :]
    # The last line counts: the command's output comes before the trap's lines.
    start = stderr.rfind(b"\n%b " % nonce.encode())
    end = stderr.find(b"\n", start + 1)
    if start < 0 or end < 0:
        return Unwrapped(stderr)
    times = [epoch_ns(text) for text in stderr[start + 1 : end].split()[1:]]
    if len(times) not in (2, 3) or events.UNKNOWN in times[:2]:
        return Unwrapped(stderr)
    began, ended, entered = (*times, events.UNKNOWN)[:3]
    head, tail = stderr[:start], stderr[end + 1 :]
    if (after := _TIMES_AT_END.match(tail)) is not None:
        tail = tail[after.end() :]
        if wrapper_ended_ns == events.UNKNOWN and after[13]:
            wrapper_ended_ns = epoch_ns(after[13])
    run_ns = ended - began
    if not 0 <= run_ns <= within_ns:
        return Unwrapped(head + tail)
    cpu_ns = _cpu_ns(after) - _cpu_ns(before) if before and after else events.UNKNOWN
    wrapper_ns = events.UNKNOWN
    if events.UNKNOWN < entered <= began and ended <= wrapper_ended_ns:
        wrapper_ns = wrapper_ended_ns - entered - run_ns
    return Unwrapped(
        head + tail,
        run_ns,
        cpu_ns if 0 <= cpu_ns <= MAX_INT else events.UNKNOWN,
        wrapper_ns if run_ns + wrapper_ns <= within_ns else events.UNKNOWN,
    )


def _cpu_ns(times: re.Match[bytes]) -> int:
    """Return user and system time of a shell and its children."""
    clocks = (times.groups()[place : place + 3] for place in range(0, 12, 3))
    return sum((int(m) * 60 + int(s)) * 10**9 + int(fraction.ljust(9, b"0")) for m, s, fraction in clocks)
