"""A tier from one trajectory: commands in order, exit codes, and a distribution of think time.

Only here taxtui keeps an agent's commands, on request. Output of the commands
is never kept: a step is checked by the exit code.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

from costmodel import characterization
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
    folder: str = ""  # working directory; "": the sandbox's default
    exit_code: int | None = None
    think_s: float | None = None  # since the end of the previous command; None: unknown
    hindrance: str = ""  # a reason in the log against running the command again


class ConvertedTier(NamedTuple):
    """The tier, with remarks."""

    tier: Tier
    remarks: dict[int, str]  # by step of the cycle, from the log
    left_out: list[str]  # commands not to run again, with reasons
    notes: list[str]


def tier_of(name: str, called: Sequence[Called], image: str = "", *, redact: bool = False) -> ConvertedTier:
    """Return the tier with the whole trajectory as cycle.

    Raises:
        UsageError: an apparent credential without ``redact``, or no command can be run again.
    """
    commands: list[tuple[int, Called]] = []
    left_out: list[str] = []
    for number, command in enumerate(called, 1):
        if why := command.hindrance or _hindrance(command.script):
            left_out.append(f"command {number} {why}")
        else:
            commands.append((number, command))
    if not commands:
        reasons = "; ".join(left_out[:MOST_NAMED]) or "it has none"
        raise UsageError(f"no command of the trajectory can be run again: {reasons}")
    notes = [f"left out: {command}" for command in left_out[:MOST_NAMED]]
    notes += [f"left out: {len(left_out) - MOST_NAMED:,} more"] * (len(left_out) > MOST_NAMED)
    secrets = {number: kinds for number, command in commands if (kinds := credentials.kinds(_script(command)))}
    if secrets:
        secrets_text = "; ".join(f"command {number} holds {' and '.join(kinds)}" for number, kinds in secrets.items())
        if not redact:
            raise UsageError(secrets_text, fix="--redact writes REDACTED instead; the command may then fail")
        notes.append(f"redacted: {secrets_text}")
    scripts = [
        credentials.redacted(_script(command)) if number in secrets else _script(command)
        for number, command in commands
    ]
    network = any(map(replaying.needs_network, scripts))
    notes += ["some commands fetch something: the tier has a network"] * network
    think, think_notes = _think(called)
    notes += think_notes
    if folders := list(dict.fromkeys(path for script in scripts for path in replaying.folders_needed(script))):
        where = f"the image {image}" if image else "the trajectory's image"
        notes.append(f"needs {', '.join(folders[:MOST_NAMED])}: measure it with {where}")
    without_code = sum(command.exit_code is None for _, command in commands)
    if without_code:
        notes.append(f"{without_code:,} of {len(commands):,} commands have no exit code in the log: any will do")
    steps = tuple(
        Step(name=f"{number} {_program(command.script)}", run=script, expect_exit=command.exit_code or 0)
        for (number, command), script in zip(commands, scripts, strict=True)
    )
    remarks = {
        index: f"{command.think_s:.3f} s after the one before"
        for index, (_, command) in enumerate(commands)
        if command.think_s is not None
    }
    tier = Tier(
        name=name, title=f"{len(commands):,} commands of one trajectory", network=network, think=think, cycle=steps
    )
    return ConvertedTier(tier, remarks, left_out, notes)


def _hindrance(script: str) -> str:
    """As ``replaying.hindrance``, also for a shell's -c."""
    if why := replaying.hindrance(script):
        return why
    try:
        words = shlex.split(script)
    except ValueError:
        return ""
    inner = words[-1] if len(words) > 2 and words[-2] in ("-c", "-lc", "-ic") else ""
    return replaying.hindrance(inner) if inner and words[0].rpartition("/")[2] in ("sh", "bash") else ""


def _script(command: Called) -> str:
    script = command.script.rstrip("\n")
    if command.exit_code is None:
        script = f"(\n{script}\n)\ntrue"
    return f"cd {shlex.quote(command.folder)} || exit {NO_SUCH_FOLDER}\n{script}" if command.folder else script


def _program(script: str) -> str:
    """Return a name for a step: the first word like a program's."""
    match = re.match(r"\s*(?:cd\s+\S+\s*(?:&&|;)\s*)?([\w./-]+)", script, re.ASCII)
    return match[1].rpartition("/")[2][:30] if match else "command"


def _think(called: Sequence[Called]) -> tuple[str, list[str]]:
    """Return the distribution of gaps for ``--think``, and notes."""
    gaps_s = [command.think_s for command in called if command.think_s is not None and command.think_s > 0]
    if not gaps_s:
        return "", ["the log has no time between commands: no think time"]
    median_s, sigma = characterization.lognormal(gaps_s)
    if f"{median_s:.6f}" == f"{0:.6f}":
        return "", ["less than a microsecond lies between commands: without think time"]
    if len(gaps_s) < MIN_GAPS or sigma < 0.005:
        return f"{median_s:.6f}s", [
            f"the median of {len(gaps_s)} gaps is the think time: too few, or too alike, for a law"
        ]
    undivided = sum(command.think_s is None for command in called[1:])
    notes = (
        [f"{undivided:,} commands have no time of their own before them: the law holds there too"] if undivided else []
    )
    return f"lognormal:{median_s:.6f}s,{min(sigma, MAX_SIGMA):.2f}", notes
