"""Read the commands of one trajectory, for a tier. No other reader looks at commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from costmodel import open_regular
from taxtui.errors import UsageError
from taxtui.importers.files import document
from taxtui.importers.formats import inspect, mini_swe_agent, swe_agent
from taxtui.importers.formats.harbor import HarborReader
from taxtui.importers.formats.inspect import InspectReader
from taxtui.importers.formats.mini_swe_agent import MiniSweAgentReader
from taxtui.importers.formats.swe_agent import SweAgentReader
from taxtui.importers.protocol import HEAD_BYTES, Unreadable
from taxtui.importers.values import at, instant_ns, integer, items, maps, number, text
from taxtui.workloads.trajectory import Called

KEYS: Final = ("command", "cmd", "keystrokes")
"""Arguments of a tool call that are a command, in ATIF."""


class CommandLog(NamedTuple):
    """One trajectory's commands."""

    source: str  # the tool that wrote it
    called: list[Called]
    image: str
    trials: int  # how many the file holds


def commands_of(path: Path, trial: int = 1) -> CommandLog:
    """The commands of a file's trajectory, or of its ``trial``-th, from 1.

    Raises:
        UsageError: no such file, an unknown format, or fewer trajectories.
        Unreadable: the file is damaged, or has no commands.
    """
    try:
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES) or b""
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if InspectReader().recognises(path, head):
        sample, samples = inspect.sample(path, trial)
        _within(path, trial, samples)
        return CommandLog("inspect_ai", list(_inspect(sample)), "", samples)
    _within(path, trial, 1)
    if MiniSweAgentReader().recognises(path, head):
        told = document(path)
        image = text(at(told, "info", "config", "environment", "image"))
        return CommandLog("mini-swe-agent", list(_mini(told)), image, 1)
    if SweAgentReader().recognises(path, head):
        told = document(path)
        image = text(at(swe_agent.configuration(told), "env", "deployment", "image"))
        return CommandLog("SWE-agent", list(_swe_agent(told)), image, 1)
    if HarborReader().recognises(path, head):
        path = path.parent / "agent" / "trajectory.json"
        if not path.is_file():
            raise UsageError(f"{path} is missing", fix="choose a trial with an ATIF trajectory")
    told = document(path)
    if text(at(told, "schema_version")).startswith("ATIF"):
        return CommandLog("Harbor", list(_atif(told)), "", 1)
    raise UsageError(
        f"{path} is no trajectory that this version knows",
        fix="it reads mini-swe-agent, SWE-agent, inspect_ai and Harbor (ATIF)",
    )


def _within(path: Path, trial: int, trials: int) -> None:
    if not 1 <= trial <= trials:
        raise UsageError(f"{path} holds {trials:,} trajectories: there is no number {trial}")


def _mini(told: object) -> Iterator[Called]:
    if isinstance(told, list) or text(at(told, "trajectory_format")) != mini_swe_agent.FORMAT:
        raise Unreadable(f"the format is not {mini_swe_agent.FORMAT}, the only one with commands and times")
    folder = text(at(told, "info", "config", "environment", "cwd"))
    seen_ns: int | None = None
    for answer, observations in mini_swe_agent.turns(list(maps(told, "messages"))):
        answered_ns = instant_ns(at(answer, "extra", "timestamp"))
        for index, action in enumerate(maps(answer, "extra", "actions")):
            code = integer(at(observations, index, "extra", "returncode"), 255)
            think_s = _gap_s(seen_ns, answered_ns) if index == 0 else None
            yield Called(text(action.get("command")), folder, code, think_s)
        seen_ns = max((instant_ns(at(one, "extra", "timestamp")) or 0 for one in observations), default=None)


def _swe_agent(told: object) -> Iterator[Called]:
    for step, folder in zip(items(told, "trajectory"), swe_agent.working_folders(told), strict=True):
        if (script := text(at(step, "action"))).strip():
            yield Called(script, folder)


def _inspect(sample: object) -> Iterator[Called]:
    acted, thought = inspect.commands(sample)
    acted = [one for one in acted if at(one, "event") == "sandbox"]
    if not acted:
        raise Unreadable("the log has no commands: all tool calls are the harness's own")
    calls = sorted(ends for ends in map(inspect.ends, thought) if None not in ends)
    done_ns: int | None = None
    for one in sorted(acted, key=lambda event: inspect.ends(event)[0] or 0):
        begun_ns, ended_ns = inspect.ends(one)
        between = [
            (end or 0) - (start or 0)
            for start, end in calls
            if done_ns is not None and begun_ns is not None and done_ns <= (start or 0) and (end or 0) <= begun_ns
        ]
        hindrance = "" if at(one, "action") == "exec" else "moves a file, by the harness"
        yield Called(
            text(at(one, "cmd")),
            text(at(one, "options", "cwd")),
            integer(at(one, "result"), 255),
            sum(between) / 1e9 if between else None,
            hindrance,
        )
        done_ns = ended_ns or done_ns


def _atif(told: object) -> Iterator[Called]:
    for step in maps(told, "steps"):
        calls = list(maps(step, "tool_calls")) if text(step.get("source")) == "agent" else []
        wait_ms = number(at(step, "extra", "harbor_llm_wait_msec"))
        for index, call in enumerate(calls):
            arguments = at(call, "arguments")
            key = next((key for key in KEYS if text(at(arguments, key))), "")
            think_s = wait_ms / 1e3 if wait_ms is not None and wait_ms >= 0 and index == 0 else None
            yield Called(text(at(arguments, key)), "", None, think_s, _no_command(call, key, text(at(arguments, key))))


def _no_command(call: dict[str, Any], key: str, script: str) -> str:
    """The reason why a tool call is no command, or never ends; "" for a command."""
    if not key:
        name = re.sub(r"[^\w.-]", "", text(call.get("function_name")), flags=re.ASCII)[:40]
        return f"is a tool of the harness ({name or 'without a name'})"
    if key == "keystrokes" and (not script.endswith("\n") or script.startswith(("C-", "M-")) or not script.strip()):
        return "is keys for a terminal"
    return ""


def _gap_s(before_ns: int | None, after_ns: int | None) -> float | None:
    return (after_ns - before_ns) / 1e9 if before_ns and after_ns and after_ns >= before_ns else None
