"""Read the commands of a trajectory, for a tier. Other readers read no commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from costmodel import open_regular
from taxtui.errors import UsageError
from taxtui.importers.files import Unreadable, document
from taxtui.importers.formats import inspect, mini_swe_agent, swe_agent
from taxtui.importers.formats.harbor import HarborReader
from taxtui.importers.protocol import HEAD_BYTES
from taxtui.importers.values import at, instant_ns, integer, items, maps, number, text
from taxtui.workloads.trajectory import Called

KEYS: Final = ("command", "cmd", "keystrokes")
"""Arguments of a tool call with a command, in ATIF."""


class CommandLog(NamedTuple):
    """The commands of a trajectory."""

    source: str  # the tool that wrote the file
    called: list[Called]
    image: str
    trials: int  # trajectories in the file


def commands_of(path: Path, trial: int = 1) -> CommandLog:
    """Return the commands of a file's ``trial``-th trajectory, from 1.

    Raises:
        UsageError: no such file, an unknown format, or fewer trajectories.
        Unreadable: the file is damaged, or has no commands.
    """
    try:
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES) or b""
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if inspect.InspectReader().recognises(path, head):
        sample, samples = inspect.sample(path, trial)
        _require_number(path, trial, samples)
        return CommandLog("inspect_ai", list(_of_inspect(sample)), "", samples)
    _require_number(path, trial, 1)
    if mini_swe_agent.MiniSweAgentReader().recognises(path, head):
        trajectory = document(path)
        image = text(at(trajectory, "info", "config", "environment", "image"))
        return CommandLog("mini-swe-agent", list(_of_mini_swe_agent(trajectory)), image, 1)
    if swe_agent.SweAgentReader().recognises(path, head):
        trajectory = document(path)
        image = text(at(swe_agent.configuration(trajectory), "env", "deployment", "image"))
        return CommandLog("SWE-agent", list(_of_swe_agent(trajectory)), image, 1)
    if HarborReader().recognises(path, head):
        path = path.parent / "agent" / "trajectory.json"
        if not path.is_file():
            raise UsageError(f"{path} is missing", fix="choose a trial with an ATIF trajectory")
    trajectory = document(path)
    if text(at(trajectory, "schema_version")).startswith("ATIF"):
        return CommandLog("Harbor", list(_of_atif(trajectory)), "", 1)
    raise UsageError(
        f"{path} is a trajectory of an unknown format",
        fix="supported: mini-swe-agent, SWE-agent, inspect_ai and Harbor (ATIF)",
    )


def _require_number(path: Path, trial: int, trials: int) -> None:
    if not 1 <= trial <= trials:
        raise UsageError(f"{path} holds {trials:,} trajectories: there is no number {trial}")


def _of_mini_swe_agent(trajectory: object) -> Iterator[Called]:
    if text(at(trajectory, "trajectory_format")) != mini_swe_agent.FORMAT:
        raise Unreadable(f"the format is not {mini_swe_agent.FORMAT}, the only format with commands and times")
    folder = text(at(trajectory, "info", "config", "environment", "cwd"))
    observed_ns: int | None = None
    for answer, observations in mini_swe_agent.turns(list(maps(trajectory, "messages"))):
        answered_ns = instant_ns(at(answer, "extra", "timestamp"))
        for index, action in enumerate(maps(answer, "extra", "actions")):
            code = integer(at(observations, index, "extra", "returncode"), 255)
            think_s = _between_s(observed_ns, answered_ns) if index == 0 else None
            yield Called(text(action.get("command")), folder, code, think_s)
        observed_ns = max((instant_ns(at(item, "extra", "timestamp")) or 0 for item in observations), default=None)


def _of_swe_agent(trajectory: object) -> Iterator[Called]:
    for step, folder in zip(items(trajectory, "trajectory"), swe_agent.working_folders(trajectory), strict=True):
        if (script := text(at(step, "action"))).strip():
            yield Called(script, folder)


def _of_inspect(sample: object) -> Iterator[Called]:
    tools, models = inspect.commands(sample)
    commands = [event for event in tools if at(event, "event") == "sandbox"]
    if not commands:
        raise Unreadable("the log has no commands: all tool calls are the harness's own")
    calls = sorted(ends for ends in map(inspect.ends, models) if None not in ends)
    ended_ns: int | None = None
    for event in sorted(commands, key=lambda event: inspect.ends(event)[0] or 0):
        started_ns, next_ended_ns = inspect.ends(event)
        thinks_ns = [
            (end or 0) - (start or 0)
            for start, end in calls
            if ended_ns is not None and started_ns is not None and ended_ns <= (start or 0) and (end or 0) <= started_ns
        ]
        yield Called(
            text(at(event, "cmd")),
            text(at(event, "options", "cwd")),
            integer(at(event, "result"), 255),
            sum(thinks_ns) / 1e9 if thinks_ns else None,
            "" if at(event, "action") == "exec" else "moves a file, by the harness",
        )
        ended_ns = next_ended_ns or ended_ns


def _of_atif(trajectory: object) -> Iterator[Called]:
    for step in maps(trajectory, "steps"):
        calls = list(maps(step, "tool_calls")) if text(step.get("source")) == "agent" else []
        wait_ms = number(at(step, "extra", "harbor_llm_wait_msec"))
        for index, call in enumerate(calls):
            arguments = at(call, "arguments")
            key = next((key for key in KEYS if text(at(arguments, key))), "")
            script = text(at(arguments, key))
            think_s = wait_ms / 1e3 if wait_ms is not None and wait_ms >= 0 and index == 0 else None
            yield Called(script, "", None, think_s, _no_command(call, key, script))


def _no_command(call: dict[str, Any], key: str, script: str) -> str:
    """Return the reason why a tool call is no command, or never ends; "" for a command."""
    if not key:
        name = re.sub(r"[^\w.-]", "", text(call.get("function_name")), flags=re.ASCII)[:40]
        return f"is a tool of the harness ({name or 'without a name'})"
    if key == "keystrokes" and (not script.endswith("\n") or script.startswith(("C-", "M-")) or not script.strip()):
        return "is keys for a terminal"
    return ""


def _between_s(before_ns: int | None, after_ns: int | None) -> float | None:
    return (after_ns - before_ns) / 1e9 if before_ns and after_ns and after_ns >= before_ns else None
