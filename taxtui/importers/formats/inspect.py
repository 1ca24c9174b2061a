"""inspect_ai: logs as ``.eval`` (a zip file) and as ``.json``; a trial is a sample of an epoch.

``sandbox`` events are the commands. In a log without ``sandbox`` events, tool calls replace the commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from costmodel import events, open_regular
from taxtui.importers.files import Unreadable, decoded, document
from taxtui.importers.protocol import Reader, Skipped, trial_or_skipped
from taxtui.importers.timeline import Timeline
from taxtui.importers.trial import Failure, ImportedTrial, Quantity, Span, failure_of
from taxtui.importers.values import at, instant_ns, integer, is_name, items, maps, span_ns, text
from taxtui.importers.zipped import Archive, TooMuch

SAMPLES: Final = "samples/"
HEADERS: Final = ("header.json", "_journal/start.json")
"""Members with the header; an unfinished evaluation has only the second."""
INIT: Final = "init"
SCORERS: Final = "scorers"
SCORER: Final = "scorer"
MAX_DEPTH: Final = 20
DELEGATES: Final = ("agent", "agent_span_id")
"""Keys of a tool call that starts an agent, whose own calls count."""
ERROR: Final = re.compile(r"[\w.]*?(\w+(?:Error|Exception|Timeout|Exceeded|Interrupt|Failed))\b")
LIMITS: Final = {
    **dict.fromkeys(("message", "turn", "token", "cost", "custom"), "LimitsExceeded"),
    **dict.fromkeys(("time", "working"), "AgentTimeoutError"),
    "context": "ContextWindowExceededError",
}
"""Type of a sample's limit → class of the agent's limit. ``operator`` is a person's decision."""


class InspectReader(Reader):
    """Both kinds of log."""

    name: ClassVar[str] = "inspect"
    file_names: ClassVar[tuple[str, ...]] = ("*.eval", "*.json")

    def recognises(self, path: Path, head: bytes) -> bool:
        if head.startswith(b"PK"):
            return any(name.encode() in head for name in (*HEADERS, SAMPLES))
        return b'"eval_id"' in head or (b'"eval"' in head and b'"task_id"' in head and b'"status"' in head)

    def trials(self, path: Path) -> Iterator[ImportedTrial | Skipped]:
        with open_regular(path) as file:
            if file.read(2) == b"PK":
                yield from _zipped(Archive(file))
                return
        log = document(path)
        if not isinstance(at(log, "eval"), dict):
            raise Unreadable("no log of inspect_ai, or cut off")
        for number, sample in enumerate(items(log, "samples"), 1):
            yield trial_or_skipped(f"sample {number}", _trial, log, sample)


def _zipped(log: Archive) -> Iterator[ImportedTrial | Skipped]:
    names = log.namelist()
    header = next((decoded(log.content(name)) for name in HEADERS if name in names), None)
    samples = sorted({name for name in names if name.startswith(SAMPLES) and name.endswith(".json")})
    for number, name in enumerate(samples, 1):
        try:
            yield _trial(header, decoded(log.content(name)))
        except TooMuch:
            raise
        except Unreadable as error:
            yield Skipped(f"sample {number}", str(error))


def _events(holder: object, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the events, also events inside of a tool call's event, as in older versions."""
    for event in maps(holder, "events"):
        yield event
        if depth < MAX_DEPTH:
            yield from _events(event, depth + 1)


def _steps_as_spans(log: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events with spans in place of steps, which older versions have, with a step per scorer."""
    steps: list[str] = []  # open
    for number, event in enumerate(log):
        if at(event, "event") != "step":
            yield event | {"span_id": steps[-1]} if steps else event
        elif at(event, "action") == "begin":
            kind = text(at(event, "type")) or text(at(event, "name"))
            span = {"id": f"step {number}", "parent_id": steps[-1] if steps else None}
            steps.append(f"step {number}")
            yield event | span | {"event": "span_begin", "type": SCORERS if kind == SCORER else kind}
        elif steps:
            yield event | {"event": "span_end", "id": steps.pop()}


def _in_trajectory(log: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the events of a kind between set-up and scoring."""
    spans = {text(at(event, "id")): event for event in log if at(event, "event") == "span_begin"}
    return [event for event in log if at(event, "event") == kind and not _outside(event, spans)]


def _outside(event: object, spans: dict[str, dict[str, Any]]) -> bool:
    """Return whether an event belongs to the sandbox's creation or to scoring."""
    span = text(at(event, "span_id"))
    for _ in range(MAX_DEPTH):
        if span not in spans:
            return False
        if at(spans[span], "type") in (INIT, SCORERS):
            return True
        span = text(at(spans[span], "parent_id"))
    return False


def _spans(log: list[dict[str, Any]], kind: str) -> list[Span]:
    """Return start and end of each span of a kind."""
    ends = {text(at(event, "id")): event for event in log if at(event, "event") == "span_end"}
    begins = [event for event in log if at(event, "event") == "span_begin" and at(event, "type") == kind]
    instants = [(at(begin, "timestamp"), at(ends.get(text(at(begin, "id"))), "timestamp")) for begin in begins]
    return [(instant_ns(start), instant_ns(end)) for start, end in instants]


def _ends(event: object) -> Span:
    return span_ns(event, "timestamp", "completed", "working_time")


def _trial(log: object, sample: object) -> ImportedTrial:
    sample_events = list(_steps_as_spans(_events(sample)))
    init, scorings = next(iter(_spans(sample_events, INIT)), (None, None)), _spans(sample_events, SCORERS)
    start_ns = init[0] or instant_ns(at(sample, "started_at"))
    if start_ns is None:
        raise Unreadable("the start of the sample is missing, or events were not logged")
    timeline = Timeline(start_ns)
    timeline.lacks_zone(at(sample, "started_at"), *(at(event, "timestamp") for event in sample_events))
    timeline.lacks(Quantity.RUN, "dispatch and command time are undivided")
    if timeline.add(events.CREATE, *init):
        timeline.lacks(Quantity.READY, "the span init holds create, ready and the sample's set-up")
    else:
        timeline.lacks(Quantity.CREATE, "before the sample's clock")
    calls, commands = (_in_trajectory(sample_events, kind) for kind in ("model", "sandbox"))
    timed = [timeline.add(Quantity.THINK, *_ends(event), "a call of the model has no ends") for event in calls]
    if not commands:
        why = "no command is logged: tool calls, with the harness's time, replace commands"
        timeline.lacks(Quantity.ACTIONS, why)
    tools = (tool for tool in _in_trajectory(sample_events, "tool") if not any(map(tool.get, DELEGATES)))
    for event in commands or tools:
        code = integer(at(event, "result"), 255) if commands else None
        timed.append(timeline.add(events.ACTION, *_ends(event), "a command has no ends", exit_code=code))
    if timed and not any(timed) and not at(sample, "error") and not at(sample, "limit"):
        raise Unreadable("no event has both ends, as before inspect_ai 0.3.71")
    for scoring in scorings:
        timeline.add(events.VERIFY, *scoring)
    failure = _failure(sample, init, scorings)
    if failure is not None and failure.phase != events.VERIFY:
        completed_ns = instant_ns(at(sample, "completed_at"))
        timeline.ended(completed_ns)
        if completed_ns is None:
            timeline.lacks(Quantity.HELD, "a sample failed at an unknown time")
    evaluation = at(log, "eval")
    name = at(sample, "id")
    task = f"{text(at(evaluation, 'task'))}:{name}" if is_name(name) else ""
    return ImportedTrial(
        **timeline.times(),
        failure=failure,
        limit="" if failure else LIMITS.get(text(at(sample, "limit", "type")), ""),
        substrate=_sandbox(at(sample, "sandbox")) or _sandbox(at(evaluation, "sandbox")),
        workload=(
            text(at(evaluation, "task")),
            text(at(evaluation, "model")),
            "inspect_ai",
            text(at(evaluation, "packages", "inspect_ai")),
        ),
        task=task,
        group=f"{text(at(evaluation, 'run_id'))}:{task}" if task else "",
        attempt=len(items(sample, "error_retries")),
    )


def _sandbox(value: object) -> str:
    """Return the kind of a sandbox from a map, or from a list as in older versions."""
    return text(at(value, "type")) or text(at(value, 0)) or text(value)


def _failure(sample: object, init: Span, scorings: list[Span]) -> Failure | None:
    """Return the failure of a sample with an error. A reached limit is no failure."""
    error = at(sample, "error")
    if not error:
        return None
    match = ERROR.match(text(at(error, "message")))
    kind = match[1] if match else "SampleError"
    phase = events.ACTION
    if any(start_ns is not None for start_ns, _ in scorings):
        phase = events.VERIFY
    elif init[0] is not None and init[1] is None:
        phase = events.CREATE
    return failure_of(kind, phase)
