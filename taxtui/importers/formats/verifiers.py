"""verifiers and prime-rl: ``traces.jsonl`` with an episode a line, and ``results.jsonl`` of versions before 1.

The time between two answers of the model is an action: harness and command are undivided.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from costmodel import events
from taxtui.importers.files import Unreadable, decoded, lines
from taxtui.importers.protocol import Reader, Skipped, trial_or_skipped
from taxtui.importers.timeline import Timeline
from taxtui.importers.trial import AGENT_LIMITS, Failure, ImportedTrial, Quantity, failed_phase, failure_of
from taxtui.importers.values import (
    LONGEST_NS,
    at,
    duration_ns,
    instant_ns,
    integer,
    is_name,
    items,
    maps,
    number,
    span_ns,
    text,
)

SPANS: Final = {"boot": events.CREATE, "setup": events.PRELOAD, "agent": events.ACTION}
"""Span of a rollout → phase, in the order of a rollout."""


class VerifiersReader(Reader):
    """Runs of ``vf-eval`` and of prime-rl, with a folder per training step."""

    name: ClassVar[str] = "verifiers"
    file_names: ClassVar[tuple[str, ...]] = ("traces.jsonl", "results.jsonl")

    def files(self, folder: Path) -> Iterator[Path]:
        """Yield files of rollouts. prime-rl writes two views of a step: ``effective`` counts only without ``all``."""
        for path in super().files(folder):
            if path.parent.name != "effective" or not (path.parent.with_name("all") / path.name).exists():
                yield path

    def recognises(self, path: Path, head: bytes) -> bool:
        first = head.partition(b"\n")[0].replace(b" ", b"")
        episode = b'"env":{' in first and b'"task":{' in first
        return episode or (b'"timing":{' in first and b'"example_id"' in first)

    def trials(self, path: Path) -> Iterator[ImportedTrial | Skipped]:
        """Yield a trial per trace of each episode."""
        for line_number, line in lines(path):
            where = f"line {line_number}"
            try:
                row = decoded(line)
            except Unreadable as error:
                yield Skipped(where, str(error))
                continue
            traces = list(maps(row, "traces"))
            if at(row, "timing") is not None:
                yield trial_or_skipped(where, _legacy, row)
            elif not traces:
                yield Skipped(where, "the episode has no trace")
            else:
                for number_, trace in enumerate(traces, 1):
                    part = f"{where}, trace {number_}" if len(traces) > 1 else where
                    yield trial_or_skipped(part, _trial, row, trace)


def _trial(episode: dict[str, Any], trace: dict[str, Any]) -> ImportedTrial:
    timing = at(trace, "timing")
    start_ns = instant_ns(at(timing, "boot", "start")) or instant_ns(at(timing, "start"))
    if start_ns is None:
        raise Unreadable("the start of a trace is missing")
    timeline = Timeline(start_ns)
    timeline.lacks(Quantity.RUN, "dispatch, command time and the harness between two answers are undivided")
    timeline.lacks(Quantity.EXIT, "traces hold none")
    limit = _limit(episode, trace)
    ok = at(trace, "ok") if at(trace, "ok") is not None else at(episode, "ok")
    failed = ok is False and not limit
    # The sandbox of the rollout, else the requested sandbox.
    runtime = at(trace, "agent", "runtime") or at(trace, "agent", "config", "runtime")
    borrowed = at(runtime, "borrowed") is True
    if borrowed:
        timeline.lacks(Quantity.CREATE, "the sandbox is another rollout's")
    elif timeline.add(events.CREATE, *_ends(at(timing, "boot"))):
        timeline.lacks(Quantity.READY, "boot holds create and ready")
    elif not failed:
        timeline.lacks(Quantity.CREATE, "boot has no ends")
    timeline.add(events.PRELOAD, *_ends(at(timing, "setup")))
    last_ns = _add_agent(timeline, trace)
    for key in ("finalize", "scoring"):
        timeline.add(events.VERIFY, *_ends(at(timing, key)))
    if failed:
        if last_ns is None:
            timeline.lacks(Quantity.HELD, "a rollout failed at an unknown time")
        timeline.ended(last_ns)
    cached = at(runtime, "image_cached")
    task = at(trace, "task") or at(episode, "task")
    group = text(at(episode, "group", "id"))
    if not group:
        timeline.lacks(Quantity.GROUP, "episodes name none")
    step = integer(at(episode, "run", "work", "step"))
    workload = (at(episode, "env", "id"), at(trace, "agent", "name"), at(trace, "calls", 0, "model"))
    return ImportedTrial(
        **timeline.times(),
        failure=_failure(episode, trace) if failed else None,
        limit=limit,
        image_cached=cached if isinstance(cached, bool) and not borrowed else None,
        borrowed=borrowed,
        substrate=text(at(runtime, "type")),
        cpu_milli=_scaled(at(runtime, "cpu"), 1000),
        memory_mib=_scaled(at(runtime, "memory"), 1024),
        workload=tuple(map(text, workload)),
        task=text(at(task, "key")) or text(at(task, "hash")),
        image=text(at(task, "data", "image")) or text(at(runtime, "image")),
        group=group,
        training_step=events.UNKNOWN if step is None else step,
    )


def _ends(holder: object) -> tuple[int | None, int | None]:
    return span_ns(holder, "start", "end")


def _add_agent(timeline: Timeline, trace: dict[str, Any]) -> int | None:
    """Add the model's calls and the time between calls; return the last known instant."""
    span = at(trace, "timing", "agent")
    start_ns, end_ns = _ends(span)
    all_calls = [(*_ends(at(call, "time")), at(call, "error") is not None) for call in maps(trace, "calls")]
    timed = [(start, end, failed) for start, end, failed in all_calls if start is not None]
    calls = sorted(timed, key=lambda call: call[0])
    if any(None in call for call in all_calls):
        timeline.lacks(Quantity.THINK, "a call has no ends", partly=True)
        timeline.lacks(Quantity.ACTIONS, "a call has no ends: the command after the call has no start", partly=True)
    if all(end is None for _, end, _ in calls):
        if start_ns is None or end_ns is None:
            timeline.lacks(Quantity.ACTIONS, "the agent has no ends")
        else:
            timeline.add_undivided(start_ns, end_ns, think_ns=duration_ns(at(span, "model", "duration")))
            timeline.lacks(Quantity.THINK, "no call of the model has a time")
        return end_ns
    cursor_ns: int | None = None  # the start of the next command; None: unknown
    for call_start_ns, call_end_ns, failed in calls:
        if cursor_ns is not None and call_start_ns > cursor_ns:
            timeline.add(events.ACTION, cursor_ns, call_start_ns)
        timeline.add(Quantity.THINK, call_start_ns, call_end_ns)
        if call_end_ns is None or (failed and call_end_ns >= (cursor_ns or 0)):
            cursor_ns = None  # a failed call leads to no command: the next call repeats it
        elif call_end_ns >= call_start_ns:
            cursor_ns = max(call_end_ns, cursor_ns or 0)
    if cursor_ns is not None and (end_ns is None or end_ns > cursor_ns):
        timeline.add(events.ACTION, cursor_ns, end_ns, "the agent has no end: the last action has none")
    return max(filter(None, (cursor_ns, end_ns, calls[-1][0])))


def _limit(episode: dict[str, Any], trace: dict[str, Any]) -> str:
    """Return the limit at the end of the agent's span, or "".

    verifiers records no error of a rollout at the agent's deadline, and scores the trajectory until then.
    """
    errors = {text(at(error, "type")) for holder in (trace, episode) for error in maps(holder, "errors")}
    started = instant_ns(at(trace, "timing", "agent", "start")) is not None
    if _timed_out(episode, trace) and started and not errors:
        return "AgentTimeoutError"
    return min(errors) if errors and errors <= AGENT_LIMITS else ""


def _timed_out(episode: dict[str, Any], trace: dict[str, Any]) -> bool:
    return at(trace, "is_timeout") is True or at(episode, "is_timeout") is True


def _failure(episode: dict[str, Any], trace: dict[str, Any]) -> Failure:
    error = text(at(trace, "errors", -1, "type")) or text(at(episode, "errors", -1, "type")) or "RolloutError"
    spans = {phase: _ends(at(trace, "timing", key)) for key, phase in SPANS.items()}
    failure = failure_of(error, failed_phase(spans, events.CREATE))
    return failure._replace(outcome=events.TIMEOUT) if _timed_out(episode, trace) else failure


def _legacy(row: dict[str, Any]) -> ImportedTrial:
    """Return the trial of a result before version 1. Results before #1182 have sums in milliseconds and no spans."""
    timing = at(row, "timing")
    if isinstance(timing, dict) and any(str(key).endswith("_ms") for key in timing):
        raise Unreadable("times are sums in milliseconds: results have spans since verifiers #1182")
    start_ns = instant_ns(at(timing, "generation", "start")) or instant_ns(at(timing, "start_time"))
    if start_ns is None:
        raise Unreadable("the start of a result is missing")
    timeline = Timeline(start_ns)
    timeline.lacks(Quantity.RUN, "dispatch and command time are undivided")
    timeline.lacks(Quantity.EXIT, "results hold none")
    timeline.lacks(Quantity.CREATE, "a sandbox is made within setup")
    if not timeline.add(events.PRELOAD, *_ends(at(timing, "setup"))):
        timeline.lacks(Quantity.SETUP, "setup has no ends")
    for key, kind in (("model", Quantity.THINK), ("env", events.ACTION)):
        for span in maps(timing, key, "spans"):
            timeline.add(kind, *_ends(span), "a span has no ends")
    if not items(timing, "env", "spans"):
        timeline.lacks(Quantity.ACTIONS, "no span of the environment")
    timeline.add(events.VERIFY, *_ends(at(timing, "scoring")))
    error = at(row, "error")
    word = text(at(error, "error") or error).partition("(")[0].partition(":")[0].strip()
    if error:
        timeline.ended(instant_ns(at(timing, "generation", "end")))
    task, example = text(at(row, "task")), at(row, "example_id")
    name = f"{task}:{example}" if is_name(example) else ""
    return ImportedTrial(
        **timeline.times(),
        failure=Failure(word if word.isidentifier() else "RolloutError", events.ACTION) if error else None,
        workload=(task,),
        task=name,
        group=name,
    )


def _scaled(value: object, factor: int) -> int:
    amount = number(value)
    return round(amount * factor) if amount is not None and 0 <= amount <= LONGEST_NS / factor else 0
