"""The bracket: how long a command itself ran inside the sandbox, taken there and sent back in a trailer.

The wrapped script notes the time, sets an EXIT trap and runs the command in the same shell, so that the bracket
costs no process. The trailer is the last line of standard error and carries the trial's nonce, so that output which
looks like one is left alone. A command that replaces its shell (``exec``) or its EXIT trap, or is killed, sends no
trailer: its run is unknown, never guessed.
"""

from __future__ import annotations

from typing import Final, Literal

from taxtui.recording.events import UNKNOWN

Method = Literal["bash", "date", "none"]

NONCE_ENV: Final = "TAXTUI_NONCE"
_NOW: Final = {"bash": "$EPOCHREALTIME", "date": "$(date +%s%N)"}
_UNIT_NS: Final = {"bash": 1000, "date": 1}  # EPOCHREALTIME has microseconds


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
    trap = f"""trap 'printf "\\n{nonce} %s %s\\n" "$_taxtui_began" "{now}" >&2' EXIT\n"""
    return f"{head}{trap}_taxtui_began={now}\n{script}"


def unwrap(stderr: bytes, nonce: str, method: Method, within_ns: int) -> tuple[bytes, int]:
    """Standard error without the trailer, and the run in nanoseconds, or ``UNKNOWN``.

    The clock inside is a wall clock, and the trailer is the sandbox's word: a run that ends before it begins, or is
    longer than ``within_ns``, which the whole command took, is unknown too.
    """
    if method == "none":
        return stderr, UNKNOWN
    # The last one counts: what the command itself printed comes before the trap's line.
    start = stderr.rfind(b"\n%b " % nonce.encode())
    end = stderr.find(b"\n", start + 1)
    if start < 0 or end < 0:
        return stderr, UNKNOWN
    try:
        began, ended = (_nanoseconds(text, method) for text in stderr[start + 1 : end].split()[1:])
    except ValueError:
        return stderr, UNKNOWN
    run_ns = ended - began
    return stderr[:start] + stderr[end + 1 :], run_ns if 0 <= run_ns <= within_ns else UNKNOWN


def _nanoseconds(text: bytes, method: Method) -> int:
    """EPOCHREALTIME's decimal point follows the locale, so it is dropped instead of read."""
    return int(text.replace(b".", b"").replace(b",", b"")) * _UNIT_NS[method]
