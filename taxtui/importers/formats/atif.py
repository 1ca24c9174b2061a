"""ATIF, the trajectories of Harbor's agents: a time for each step, and ends of tool calls where an agent adds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from costmodel import events
from taxtui.importers.files import Unreadable, document
from taxtui.importers.timeline import Timeline
from taxtui.importers.trial import Quantity
from taxtui.importers.values import MILLISECOND_NS, at, duration_ns, instant_ns, items, maps, text

INVENTED: Final = ("mini-swe-agent", "swe-agent")
"""Agents whose converters stamped every step with the time of the conversion."""
FINISHED: Final = ("terminus-2", "computer-1")
"""Agents that stamp a step after its commands; others stamp the model's answer."""
SLACK_NS: Final = 2 * 10**9
"""Largest difference of clocks inside and outside a sandbox."""


def add(timeline: Timeline, path: Path, agent: str, start_ns: int, end_ns: int, answers_ns: Sequence[int]) -> bool:
    """Add the commands between the agent's start and end, Unix ns; return whether there is one.

    ``answers_ns``: time of each answer of the model, where the result has them.
    """
    if not path.is_file():
        return False
    try:
        trajectory = document(path)
    except (Unreadable, OSError) as error:
        why = error if isinstance(error, Unreadable) else error.strerror
        timeline.lacks(Quantity.ACTIONS, f"trajectory.json is not readable: {why}")
        return False
    steps = [step for step in maps(trajectory, "steps") if text(step.get("source")) == "agent"]
    durations, last_wait_ns = _durations(steps)
    if durations:
        add_consecutive(timeline, durations, start_ns, end_ns - last_wait_ns)
        return True
    name = text(at(trajectory, "agent", "name")) or agent
    if name in INVENTED:
        why = f"refused: {name} stamps steps at the conversion, and harbor_llm_wait_msec is missing"
        timeline.lacks(Quantity.ACTIONS, why)
        return False
    if calls := list(_calls(steps)):
        timeline.lacks(Quantity.GAPS, "the harness's time is part of think")
        if len(calls) < sum(len(items(step, "tool_calls")) for step in steps):
            timeline.lacks(Quantity.ACTIONS, "some tool calls have no ends", partly=True)
            timeline.lacks(Quantity.THINK, "the time of tool calls without ends is part of think", partly=True)
        timeline.calls(calls, start_ns)
        return True
    if text(at(trajectory, "continued_trajectory_ref")):
        timeline.lacks(Quantity.ACTIONS, "the trajectory continues in another file")
        return False
    return _add_turns(timeline, steps, start_ns, end_ns, answers_ns if name in FINISHED else None)


def _durations(steps: list[dict[str, Any]]) -> tuple[list[tuple[int, int]], int]:
    """Return model and tool time of each command, and the model time after the last, by Harbor's patch of the agent.

    The model time of a step without a tool call belongs to the next command. Without a step's time there is no command.
    """
    durations = []
    waited_ns = 0
    for step in steps:
        holders = [step, at(step, "metrics"), *maps(step, "observation", "results")]
        wait_ns = _extra(_milliseconds, holders, "harbor_llm_wait_msec")
        tool_ns = _extra(_milliseconds, holders, "harbor_tool_exec_msec")
        if wait_ns is None or (tool_ns is None and items(step, "tool_calls")):
            return [], 0
        waited_ns += wait_ns
        if tool_ns is not None:
            durations.append((waited_ns, tool_ns))
            waited_ns = 0
    return durations, waited_ns


def _extra(read: Callable[[object], int | None], holders: Iterable[object], *keys: str) -> int | None:
    """Return the first valid value of the keys in any ``extra``, in ns."""
    values = (read(at(holder, "extra", key)) for holder in holders for key in keys)
    return next((value for value in values if value is not None), None)


def _milliseconds(value: object) -> int | None:
    return duration_ns(value, MILLISECOND_NS)


def add_consecutive(timeline: Timeline, durations: Sequence[tuple[int, int]], start_ns: int, end_ns: int) -> None:
    """Add consecutive pairs of model and tool time, so that the last pair ends with the agent."""
    timeline.lacks(Quantity.GAPS, "the harness's time is known as a sum, before the first command")
    cursor_ns = max(start_ns, end_ns - sum(think + tool for think, tool in durations))
    for think_ns, tool_ns in durations:
        timeline.add(Quantity.THINK, cursor_ns, cursor_ns + think_ns)
        cursor_ns += think_ns
        timeline.add(events.ACTION, cursor_ns, cursor_ns + tool_ns)
        cursor_ns += tool_ns


def _calls(steps: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Yield start and end of every tool call with both."""
    for step in steps:
        results = {text(at(result, "source_call_id")): result for result in maps(step, "observation", "results")}
        for call in maps(step, "tool_calls"):
            result = results.get(text(call.get("tool_call_id")))
            start_ns = _extra(instant_ns, (call, result), "started_at")
            end_ns = _extra(instant_ns, (result, call), "completed_at", "ended_at")
            took_ns = _extra(_milliseconds, (call, result), "duration_ms")
            if start_ns is not None and end_ns is None and took_ns is not None:
                end_ns = start_ns + took_ns
            if start_ns is not None and end_ns is not None and start_ns <= end_ns:
                yield start_ns, end_ns


def _add_turns(
    timeline: Timeline,
    steps: list[dict[str, Any]],
    start_ns: int,
    end_ns: int,
    answers_ns: Sequence[int] | None,
) -> bool:
    """Add the turns between the steps' times. ``answers_ns``: model times, of an agent that stamps a finished step."""
    if not any(items(step, "tool_calls") for step in steps):
        return False
    stamps = [stamp for step in steps if (stamp := instant_ns(step.get("timestamp"))) is not None]
    if len(stamps) < len(steps):
        timeline.lacks(Quantity.ACTIONS, "the steps have no times")
        return False
    if stamps != sorted(stamps) or stamps[0] < start_ns - SLACK_NS or stamps[-1] > end_ns + SLACK_NS:
        timeline.lacks(Quantity.ACTIONS, "refused: the steps' times do not lie within the agent's")
        return False
    bounds, which = [*stamps, max(end_ns, stamps[-1])], "next answer"
    if answers_ns is not None:
        bounds, which = [start_ns, *stamps], "answer"
        timeline.ended(end_ns)
    # The model may have answered once more, before a command that the agent's limit ended.
    known_ns = answers_ns[: len(steps)] if answers_ns and 0 <= len(answers_ns) - len(steps) <= 1 else None
    if known_ns:
        timeline.lacks(Quantity.GAPS, "the harness's time is part of the command")
    else:
        for quantity in (Quantity.ACTIONS, Quantity.THINK):
            timeline.lacks(quantity, f"a step has a single time: the model's {which} is part of a command")
    for step, turn, think_ns in zip(steps, pairwise(bounds), known_ns or [0] * len(steps), strict=True):
        begin_ns, until_ns = (max(bound_ns, start_ns) for bound_ns in turn)
        answered_ns = min(begin_ns + think_ns, until_ns)
        timeline.add(Quantity.THINK, begin_ns, answered_ns)
        if items(step, "tool_calls"):
            timeline.add(events.ACTION, answered_ns, until_ns)
    return True
