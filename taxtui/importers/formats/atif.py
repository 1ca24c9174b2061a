"""ATIF, the trajectories of Harbor's agents: one timestamp a step, and ends of tool calls where an agent adds them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from taxtui.importers.files import document
from taxtui.importers.protocol import ACTIONS, THINK, Unknown, Unreadable
from taxtui.importers.values import at, duration_ns, instant_ns, items, maps, text

INVENTED: Final = ("mini-swe-agent", "swe-agent")
"""Agents whose converters stamped every step with the time of the conversion."""
SLACK_NS: Final = 2 * 10**9
"""Largest difference of clocks inside and outside a sandbox."""


class AgentSpan(NamedTuple):
    """A command, or what the model took before one."""

    start_ns: int
    end_ns: int
    action: bool


class Told(NamedTuple):
    """The contents of a trajectory; without spans it tells nothing, and ``unknown`` says why."""

    spans: list[AgentSpan]
    unknown: list[Unknown]


def read(path: Path, agent: str, start_ns: int, end_ns: int) -> Told:
    """The agent's commands within its own time, Unix ns."""
    if not path.is_file():
        return Told([], [])
    try:
        trajectory = document(path)
    except Unreadable as error:
        return Told([], [Unknown(ACTIONS, f"trajectory.json: {error}")])
    steps = [step for step in maps(trajectory, "steps") if text(step.get("source")) == "agent"]
    waits = _waits(steps)
    if waits is not None:
        return _laid(waits, start_ns, end_ns)
    name = text(at(trajectory, "agent", "name")) or agent
    if name in INVENTED:
        why = f"refused: {name} stamps its steps when it converts them, and harbor_llm_wait_msec is not there"
        return Told([], [Unknown(ACTIONS, why)])
    calls = list(_calls(steps))
    if calls:
        return Told(_with_think(calls, start_ns), [Unknown("gaps", "the harness's own time is part of think")])
    return _turns(steps, start_ns, end_ns)


def _waits(steps: list[dict[str, Any]]) -> list[tuple[int, int]] | None:
    """Think and tool time of each step, where Harbor's patch of the agent measured both; None where it did not."""
    found = []
    for step in steps:
        wait_ns, tool_ns = (_extra(step, key) for key in ("harbor_llm_wait_msec", "harbor_tool_exec_msec"))
        if wait_ns is None:
            return None
        if tool_ns is not None:
            found.append((wait_ns, tool_ns))
        elif items(step, "tool_calls"):
            return None
    return found or None


def _extra(step: dict[str, Any], key: str) -> int | None:
    """A duration in ms from whichever ``extra`` of a step has it, in ns."""
    holders = [step, at(step, "metrics"), *maps(step, "observation", "results")]
    for holder in holders:
        found = duration_ns(at(holder, "extra", key), 10**6)
        if found is not None:
            return found
    return None


def _laid(waits: list[tuple[int, int]], start_ns: int, end_ns: int) -> Told:
    """Durations without instants, one behind the other up to the agent's end."""
    cursor_ns = max(start_ns, end_ns - sum(think + tool for think, tool in waits))
    spans = []
    for think_ns, tool_ns in waits:
        spans.append(AgentSpan(cursor_ns, cursor_ns + think_ns, action=False))
        cursor_ns += think_ns
        spans.append(AgentSpan(cursor_ns, cursor_ns + tool_ns, action=True))
        cursor_ns += tool_ns
    return Told(spans, [Unknown("gaps", "the harness's own time is known as a sum, before the first command")])


def _calls(steps: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Start and end of every tool call that has both."""
    for step in steps:
        results = {text(at(result, "source_call_id")): result for result in maps(step, "observation", "results")}
        for call in maps(step, "tool_calls"):
            result = results.get(text(call.get("tool_call_id")))
            start_ns = instant_ns(at(call, "extra", "started_at") or at(result, "extra", "started_at"))
            stamps = (at(holder, "extra", key) for holder in (result, call) for key in ("completed_at", "ended_at"))
            end_ns = next((found for stamp in stamps if stamp and (found := instant_ns(stamp)) is not None), None)
            took_ns = duration_ns(at(call, "extra", "duration_ms") or at(result, "extra", "duration_ms"), 10**6)
            if start_ns is not None and end_ns is None and took_ns is not None:
                end_ns = start_ns + took_ns
            if start_ns is not None and end_ns is not None and start_ns <= end_ns:
                yield start_ns, end_ns


def _with_think(calls: list[tuple[int, int]], start_ns: int) -> list[AgentSpan]:
    """Calls, and between them the model."""
    spans = []
    cursor_ns = start_ns
    for begun_ns, done_ns in sorted(calls):
        if begun_ns > cursor_ns:
            spans.append(AgentSpan(cursor_ns, begun_ns, action=False))
        spans.append(AgentSpan(begun_ns, done_ns, action=True))
        cursor_ns = max(cursor_ns, done_ns)
    return spans


def _turns(steps: list[dict[str, Any]], start_ns: int, end_ns: int) -> Told:
    """From one step's timestamp to the next one's: a turn, whose tool and next answer of the model are one."""
    stamps = [instant_ns(step.get("timestamp")) for step in steps]
    known = [stamp for stamp in stamps if stamp is not None]
    if not steps or len(known) < len(stamps):
        return Told([], [Unknown(ACTIONS, "its steps have no times")] if steps else [])
    if known != sorted(known) or known[0] < start_ns - SLACK_NS or known[-1] > end_ns + SLACK_NS:
        return Told([], [Unknown(ACTIONS, "refused: the steps' times do not lie within the agent's")])
    ends = [*known[1:], max(end_ns, known[-1])]
    spans = [
        AgentSpan(max(begun_ns, start_ns), max(done_ns, start_ns), action=True)
        for step, begun_ns, done_ns in zip(steps, known, ends, strict=True)
        if items(step, "tool_calls")
    ]
    why = "a step has one time: a command and the model's next answer are one"
    return Told(spans, [Unknown(ACTIONS, why), Unknown(THINK, why)])
