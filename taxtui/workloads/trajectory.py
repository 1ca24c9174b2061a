"""A tier from one trajectory: its commands in their order, what they returned, and the time between them as a law.

This is the one place where taxtui keeps what somebody's agent ran, because it is asked to. Nothing that the commands
printed is kept: a step proves itself by its exit code.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

from costmodel.workload.characterization import lognormal
from taxtui.errors import UsageError
from taxtui.plan.notation import MAX_SIGMA
from taxtui.plan.spec import Step, Tier
from taxtui.workloads import credentials, replaying

MIN_GAPS: Final = 3
"""With fewer the tier has a constant think time or none."""
NO_SUCH_FOLDER: Final = 97
MOST_NAMED: Final = 10


class Called(NamedTuple):
    """One command of a trajectory."""

    script: str
    folder: str = ""  # where it ran; "": the sandbox's own
    exit_code: int | None = None
    think_s: float | None = None  # between the end of the one before and this one's begin; None: not told
    hindrance: str = ""  # why it is no command that can be run again, where its log says so


class Made(NamedTuple):
    """The tier, and what to know about it."""

    tier: Tier
    remarks: dict[int, str]  # by step of the cycle: what the log told of it
    left_out: list[str]  # commands that cannot be run again, each with its reason
    notes: list[str]


def tier_of(name: str, called: Sequence[Called], image: str = "", *, redact: bool = False) -> Made:
    """The tier whose cycle is the whole trajectory.

    Raises:
        UsageError: a command holds what looks like a credential, and ``redact`` is not set; or none can be run again.
    """
    kept: list[tuple[int, Called]] = []
    left_out: list[str] = []
    for number, one in enumerate(called, 1):
        if why := one.hindrance or _hindrance(one.script):
            left_out.append(f"command {number} {why}")
        else:
            kept.append((number, one))
    if not kept:
        reasons = "; ".join(left_out[:MOST_NAMED]) or "it has none"
        raise UsageError(f"no command of the trajectory can be run again: {reasons}")
    notes = [f"left out: {one}" for one in left_out[:MOST_NAMED]]
    notes += [f"left out: {len(left_out) - MOST_NAMED:,} more"] * (len(left_out) > MOST_NAMED)
    secrets = {number: found for number, one in kept if (found := credentials.kinds(_script(one)))}
    if secrets:
        told = "; ".join(f"command {number} holds {' and '.join(found)}" for number, found in secrets.items())
        if not redact:
            raise UsageError(told, fix="--redact writes REDACTED in its place, where the command may then fail")
        notes.append(f"redacted: {told}")
    scripts = [credentials.redacted(_script(one)) if number in secrets else _script(one) for number, one in kept]
    network = any(map(replaying.needs_network, scripts))
    notes += ["some commands fetch something: the tier has a network"] * network
    think, said = _think(called)
    notes += said
    if folders := list(dict.fromkeys(path for script in scripts for path in replaying.folders_needed(script))):
        where = f"the image {image}" if image else "the image that it ran in"
        notes.append(f"needs {', '.join(folders[:MOST_NAMED])}: measure it with {where}")
    untold = sum(one.exit_code is None for _, one in kept)
    if untold:
        notes.append(f"{untold:,} of {len(kept):,} commands have no exit code in the log: any will do")
    steps = tuple(
        Step(name=f"{number} {_program(one.script)}", run=script, expect_exit=one.exit_code or 0)
        for (number, one), script in zip(kept, scripts, strict=True)
    )
    remarks = {
        index: f"{one.think_s:.3f} s after the one before"
        for index, (_, one) in enumerate(kept)
        if one.think_s is not None
    }
    tier = Tier(name=name, title=f"{len(kept):,} commands of one trajectory", network=network, think=think, cycle=steps)
    return Made(tier, remarks, left_out, notes)


def _hindrance(script: str) -> str:
    """As ``replaying.hindrance``, also of what a shell is handed with -c."""
    if why := replaying.hindrance(script):
        return why
    try:
        words = shlex.split(script)
    except ValueError:
        return ""
    inner = words[-1] if len(words) > 2 and words[-2] in ("-c", "-lc", "-ic") else ""
    return replaying.hindrance(inner) if inner and words[0].rpartition("/")[2] in ("sh", "bash") else ""


def _script(one: Called) -> str:
    script = one.script.rstrip("\n")
    if one.exit_code is None:
        script = f"(\n{script}\n)\ntrue"
    return f"cd {shlex.quote(one.folder)} || exit {NO_SUCH_FOLDER}\n{script}" if one.folder else script


def _program(script: str) -> str:
    """A name for a step, of the first word that could be a program's."""
    found = re.match(r"\s*(?:cd\s+\S+\s*(?:&&|;)\s*)?([\w./-]+)", script, re.ASCII)
    return found[1].rpartition("/")[2][:30] if found else "command"


def _think(called: Sequence[Called]) -> tuple[str, list[str]]:
    """The law of the gaps as ``--think`` takes it, and what to say of it."""
    gaps_s = [one.think_s for one in called if one.think_s is not None and one.think_s > 0]
    if not gaps_s:
        return "", ["the log tells no time between commands: without think time"]
    median_s, sigma = lognormal(gaps_s)
    if f"{median_s:.6f}" == f"{0:.6f}":
        return "", ["less than a microsecond lies between commands: without think time"]
    if len(gaps_s) < MIN_GAPS or sigma < 0.005:
        return f"{median_s:.6f}s", [
            f"the median of {len(gaps_s)} gaps is the think time: too few, or too alike, for a law"
        ]
    together = sum(one.think_s is None for one in called[1:])
    said = [f"{together:,} commands have no time of their own before them: the law holds there too"] if together else []
    return f"lognormal:{median_s:.6f}s,{min(sigma, MAX_SIGMA):.2f}", said
