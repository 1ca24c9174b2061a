"""ATIF, the trajectories of Harbor's agents: a time for each step, and ends of tool calls where an agent adds them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from taxtui.importers.files import Unreadable, document
from taxtui.importers.protocol import Quantity, Unknown
from taxtui.importers.values import at, duration_ns, instant_ns, items, maps, text

INVENTED: Final = ("mini-swe-agent", "swe-agent")
"""Agents whose converters stamped every step with the time of the conversion."""
SLACK_NS: Final = 2 * 10**9
"""Largest difference of clocks inside and outside a sandbox."""


class AgentSpan(NamedTuple):
    """A command, or model time before a command."""

    start_ns: int
    end_ns: int
    action: bool


class AgentTimes(NamedTuple):
    """The times in a trajectory. Without spans ``unknown`` has the reason."""

    spans: list[AgentSpan]
    unknown: list[Unknown]


def read(path: Path, agent: str, start_ns: int, end_ns: int) -> AgentTimes:
    """Return the commands between the agent's start and end, Unix ns."""
    if not path.is_file():
        return AgentTimes([], [])
    try:
        trajectory = document(path)
    except Unreadable as error:
        return _no_times(f"trajectory.json: {error}")
    steps = [step for step in maps(trajectory, "steps") if text(step.get("source")) == "agent"]
    durations = _durations(steps)
    if durations is not None:
        unknown = Unknown(Quantity.GAPS, "the harness's time is known as a sum, before the first command")
        return AgentTimes(consecutive(durations, start_ns, end_ns), [unknown])
    name = text(at(trajectory, "agent", "name")) or agent
    if name in INVENTED:
        return _no_times(f"refused: {name} stamps steps at the conversion, and harbor_llm_wait_msec is missing")
    calls = list(_calls(steps))
    if calls:
        unknown = Unknown(Quantity.GAPS, "the harness's time is part of think")
        return AgentTimes(_with_think(calls, start_ns), [unknown])
    return _turns(steps, start_ns, end_ns)


def _no_times(why: str) -> AgentTimes:
    return AgentTimes([], [Unknown(Quantity.ACTIONS, why)])


def _durations(steps: list[dict[str, Any]]) -> list[tuple[int, int]] | None:
    """Return model and tool time of each step by Harbor's patch of the agent; None if a step lacks a time."""
    durations = []
    for step in steps:
        wait_ns, tool_ns = (_extra_ns(step, key) for key in ("harbor_llm_wait_msec", "harbor_tool_exec_msec"))
        if wait_ns is None:
            return None
        if tool_ns is not None:
            durations.append((wait_ns, tool_ns))
        elif items(step, "tool_calls"):
            return None
    return durations or None


def _extra_ns(step: dict[str, Any], key: str) -> int | None:
    """Return a duration in ms from any ``extra`` of a step, in ns."""
    holders = [step, at(step, "metrics"), *maps(step, "observation", "results")]
    durations = (duration_ns(at(holder, "extra", key), 10**6) for holder in holders)
    return next((duration for duration in durations if duration is not None), None)


def consecutive(durations: list[tuple[int, int]], start_ns: int, end_ns: int) -> list[AgentSpan]:
    """Place consecutive pairs of model and tool time, so that the last pair ends with the agent."""
    cursor_ns = max(start_ns, end_ns - sum(think + tool for think, tool in durations))
    spans = []
    for think_ns, tool_ns in durations:
        spans.append(AgentSpan(cursor_ns, cursor_ns + think_ns, action=False))
        cursor_ns += think_ns
        spans.append(AgentSpan(cursor_ns, cursor_ns + tool_ns, action=True))
        cursor_ns += tool_ns
    return spans


def _calls(steps: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Yield start and end of every tool call with both."""
    for step in steps:
        results = {text(at(result, "source_call_id")): result for result in maps(step, "observation", "results")}
        for call in maps(step, "tool_calls"):
            result = results.get(text(call.get("tool_call_id")))
            start_ns = instant_ns(at(call, "extra", "started_at") or at(result, "extra", "started_at"))
            stamps = (at(holder, "extra", key) for holder in (result, call) for key in ("completed_at", "ended_at"))
            end_ns = next((ns for stamp in stamps if stamp and (ns := instant_ns(stamp)) is not None), None)
            took_ns = duration_ns(at(call, "extra", "duration_ms") or at(result, "extra", "duration_ms"), 10**6)
            if start_ns is not None and end_ns is None and took_ns is not None:
                end_ns = start_ns + took_ns
            if start_ns is not None and end_ns is not None and start_ns <= end_ns:
                yield start_ns, end_ns


def _with_think(calls: list[tuple[int, int]], start_ns: int) -> list[AgentSpan]:
    """Return the calls, and the time between two calls as model time."""
    spans = []
    cursor_ns = start_ns
    for call_start_ns, call_end_ns in sorted(calls):
        if call_start_ns > cursor_ns:
            spans.append(AgentSpan(cursor_ns, call_start_ns, action=False))
        spans.append(AgentSpan(call_start_ns, call_end_ns, action=True))
        cursor_ns = max(cursor_ns, call_end_ns)
    return spans


def _turns(steps: list[dict[str, Any]], start_ns: int, end_ns: int) -> AgentTimes:
    """Return the turns: from one step's time to the next step's, tool and model together."""
    stamps = [instant_ns(step.get("timestamp")) for step in steps]
    starts = [stamp for stamp in stamps if stamp is not None]
    if not steps:
        return AgentTimes([], [])
    if len(starts) < len(stamps):
        return _no_times("the steps have no times")
    if starts != sorted(starts) or starts[0] < start_ns - SLACK_NS or starts[-1] > end_ns + SLACK_NS:
        return _no_times("refused: the steps' times do not lie within the agent's")
    ends = [*starts[1:], max(end_ns, starts[-1])]
    spans = [
        AgentSpan(max(turn_start_ns, start_ns), max(turn_end_ns, start_ns), action=True)
        for step, turn_start_ns, turn_end_ns in zip(steps, starts, ends, strict=True)
        if items(step, "tool_calls")
    ]
    why = "a step has a single time: the model's next answer is part of a command"
    return AgentTimes(spans, [Unknown(Quantity.ACTIONS, why), Unknown(Quantity.THINK, why)])
