"""In-sandbox time of a command that an agent sends: one line in front of it, one line of output behind it.

The runner's own timer sets a variable, starts no process and measures more; its commands are taxtui's own. An agent's
command must see the shell that it would have had: same line numbers, variables, exit code and output. So the text in
front stands on the first line of the command, holds the beginning as a literal, and the line of output is taken out
again. A command that replaces its shell or its EXIT trap prints no such line, and its in-sandbox time is unknown.
"""

from __future__ import annotations

import re
import secrets
from typing import Final, NamedTuple

from taxtui.recording.events import UNKNOWN
from taxtui.sandboxes.kit.wrapper_clock import epoch_ns

_BEGIN: Final = r"""trap "printf '\n%s %s %s\n' @NONCE@ ${EPOCHREALTIME-} \"\${EPOCHREALTIME-}\" >&2" EXIT; """


class TimedCommand(NamedTuple):
    """A command with the timer in front."""

    script: str
    prefix: str
    nonce: str


def wrap(script: str) -> TimedCommand:
    """The command for bash or sh; sh has no clock, so its in-sandbox time stays unknown."""
    nonce = f"taxtui{secrets.token_hex(8)}"
    prefix = _BEGIN.replace("@NONCE@", nonce)
    return TimedCommand(prefix + script, prefix, nonce)


def unwrap(text: str, timed: TimedCommand) -> tuple[str, int]:
    """Output without what the timer adds, and the in-sandbox time in ns or ``UNKNOWN``."""
    if timed.nonce not in text:
        return text, UNKNOWN
    run_ns = UNKNOWN
    last = None
    for last in re.finditer(rf"\n?{timed.nonce} ([\d.,]*) ([\d.,]*)\n?", text):
        began_ns, ended_ns = (epoch_ns(part.encode()) for part in last.groups())
        if UNKNOWN not in (began_ns, ended_ns) and ended_ns >= began_ns:
            run_ns = ended_ns - began_ns
    if last is not None:
        text = text[: last.start()] + text[last.end() :]
    # A syntax error quotes the command's first line, and set -x prints the trap.
    text = text.replace(timed.prefix, "")
    return re.sub(rf"[^\n]*{timed.nonce}[^\n]*\n?", "", text), run_ns
