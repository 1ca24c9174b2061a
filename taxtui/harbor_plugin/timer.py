"""In-sandbox timer for an agent's commands: a line of shell in front, a line of output behind.

The runner's own timer sets variables and measures CPU time too. An agent's command must see an unchanged shell: same
line numbers, variables, exit code and output. The text in front therefore stands on the command's first line and
contains the start time as a literal, and :func:`unwrap` removes the line of output. A command without the line (after
``exec``, or with an EXIT trap) has an unknown in-sandbox time.
"""

from __future__ import annotations

import re
import secrets
from typing import Final, NamedTuple

from costmodel import events
from taxtui.sandboxes.kit.shell.frames import epoch_ns

_BEGIN: Final = r"""trap "printf '\n%s %s %s\n' @NONCE@ ${EPOCHREALTIME-} \"\${EPOCHREALTIME-}\" >&2" EXIT; """


class TimedCommand(NamedTuple):
    """A command with the timer in front."""

    script: str
    prefix: str
    nonce: str


def wrap(script: str) -> TimedCommand:
    """Put the timer in front of a command for bash or sh. In sh, without a clock, in-sandbox time stays unknown."""
    nonce = f"taxtui{secrets.token_hex(8)}"
    prefix = _BEGIN.replace("@NONCE@", nonce)
    return TimedCommand(prefix + script, prefix, nonce)


def unwrap(text: str, timed: TimedCommand) -> tuple[str, int]:
    """Remove the timer's text from output; return the rest, and the in-sandbox time in ns or ``UNKNOWN``."""
    if timed.nonce not in text:
        return text, events.UNKNOWN
    run_ns = events.UNKNOWN
    last = None
    for last in re.finditer(rf"(?:\r?\n)?{timed.nonce} ([\d.,]*) ([\d.,]*)(?:\r?\n)?", text):
        began_ns, ended_ns = (epoch_ns(part.encode()) for part in last.groups())
        if events.UNKNOWN not in (began_ns, ended_ns) and ended_ns >= began_ns:
            run_ns = ended_ns - began_ns
    if last is not None:
        text = text[: last.start()] + text[last.end() :]
    # A syntax error quotes the command's first line, and set -x prints the trap.
    text = text.replace(timed.prefix, "")
    return re.sub(rf"[^\n]*{timed.nonce}[^\n]*\n?", "", text), run_ns
