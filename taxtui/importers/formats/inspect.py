"""inspect_ai: logs as ``.eval`` (a zip file) and as ``.json``; a trial is one sample of one epoch.

Its ``sandbox`` events are commands exactly. A log without them has its tool calls instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from costmodel import events
from costmodel import events as recording_events
from taxtui.importers.files import decoded, document, walk
from taxtui.importers.protocol import (
    ACTIONS,
    HELD,
    READY,
    RUN,
    Asked,
    Failure,
    ImportedTrial,
    Skipped,
    Unreadable,
)
from taxtui.importers.protocol import CREATE as CREATE_TIME
from taxtui.importers.timeline import Timeline
from taxtui.importers.values import MICROSECOND_NS, at, duration_ns, instant_ns, integer, items, maps, text
from taxtui.importers.zipped import TooMuch, archive, is_archive

SAMPLES: Final = "samples/"
HEADERS: Final = ("header.json", "_journal/start.json")
"""The second is all that an evaluation has that has not ended."""
INIT: Final = "init"
SCORERS: Final = "scorers"
MAX_DEPTH: Final = 20
ERROR: Final = re.compile(r"[\w.]*?(\w+(?:Error|Exception|Timeout|Exceeded|Interrupt|Failed))\b")


LIMITS: Final = {
    **dict.fromkeys(("message", "token", "cost", "custom"), "LimitsExceeded"),
    **dict.fromkeys(("time", "working"), "AgentTimeoutError"),
    "context": "ContextWindowExceededError",
}
"""Type of a sample's limit → class of the agent's limit. ``operator`` is a person's decision."""


class InspectReader:
    """Both kinds of log."""

    name: ClassVar[str] = "inspect"
    summary: ClassVar[str] = "logs of inspect_ai: *.eval and *.json"
    takes_map: ClassVar[bool] = False

    def files(self, folder: Path) -> Iterator[Path]:
        """Every log and every other JSON file below a folder: its content tells."""
        return walk(folder, lambda name: name.endswith((".eval", ".json")))

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether a zip file's members, or a log's first keys, are inspect_ai's."""
        if head.startswith(b"PK"):
            return any(name.encode() in head for name in (*HEADERS, SAMPLES))
        return b'"eval_id"' in head or (b'"eval"' in head and b'"task_id"' in head and b'"status"' in head)

    def trials(self, path: Path, asked: Asked) -> Iterator[ImportedTrial | Skipped]:
        """A trial per sample; one that is damaged is skipped."""
        if is_archive(path):
            yield from _zipped(path)
            return
        log = document(path)
        if not isinstance(at(log, "eval"), dict):
            raise Unreadable("it is no log of inspect_ai, or was cut off")
        for number, sample in enumerate(items(log, "samples"), 1):
            yield _or_skipped(f"sample {number}", log, sample)


def sample(path: Path, number: int) -> tuple[Any, int]:
    """One sample of a log, by its number from 1, and how many there are; None where there is no such number.

    Raises as ``InspectReader.trials``.
    """
    if not is_archive(path):
        samples = list(maps(document(path), "samples"))
        return at(samples, number - 1) if number > 0 else None, len(samples)
    with archive(path) as log:
        members = log.members()
        names = _samples_in(members)
        there = 0 < number <= len(names)
        return decoded(log.content(members[names[number - 1]])) if there else None, len(names)


def _samples_in(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(SAMPLES) and name.endswith(".json"))


def _zipped(path: Path) -> Iterator[ImportedTrial | Skipped]:
    with archive(path) as log:
        members = log.members()
        header = next((decoded(log.content(members[name])) for name in HEADERS if name in members), None)
        for number, name in enumerate(_samples_in(members), 1):
            try:
                yield _or_skipped(f"sample {number}", header, decoded(log.content(members[name])))
            except TooMuch:
                raise
            except Unreadable as error:
                yield Skipped(f"sample {number}", str(error))


def _or_skipped(where: str, log: object, sample: object) -> ImportedTrial | Skipped:
    try:
        return _trial(log, sample)
    except Unreadable as error:
        return Skipped(where, str(error))


def _events(holder: object, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The events, with those that older versions keep within a tool call's own."""
    for event in maps(holder, "events"):
        yield event
        if depth < MAX_DEPTH:
            yield from _events(event, depth + 1)


def commands(sample: object) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Commands and model calls between set-up and scoring: ``sandbox`` events, else ``tool``."""
    events = list(_events(sample))
    spans = {text(at(one, "id")): one for one in events if at(one, "event") == "span_begin"}
    inside = [one for one in events if not _apart(one, spans)]
    acted = [one for one in inside if at(one, "event") == "sandbox"] or [
        one for one in inside if at(one, "event") == "tool"
    ]
    return acted, [one for one in inside if at(one, "event") == "model"]


def _apart(event: object, spans: dict[str, dict[str, Any]]) -> bool:
    """Whether an event belongs to the making of the sandbox or to scoring."""
    span = text(at(event, "span_id"))
    for _ in range(MAX_DEPTH):
        if span not in spans:
            return False
        if at(spans[span], "type") in (INIT, SCORERS):
            return True
        span = text(at(spans[span], "parent_id"))
    return False


def _span(events: list[dict[str, Any]], kind: str) -> tuple[int | None, int | None]:
    """When the first span of a kind began and ended."""
    begun = next((one for one in events if at(one, "event") == "span_begin" and at(one, "type") == kind), None)
    name = text(at(begun, "id"))
    ended = next((one for one in events if at(one, "event") == "span_end" and name and at(one, "id") == name), None)
    return instant_ns(at(begun, "timestamp")), instant_ns(at(ended, "timestamp"))


def ends(event: object) -> tuple[int | None, int | None]:
    """When an event began and was completed."""
    begun = instant_ns(at(event, "timestamp"))
    done = instant_ns(at(event, "completed"))
    if done is None and begun is not None and (took_ns := duration_ns(at(event, "working_time"))) is not None:
        done = begun + took_ns
    return begun, done


def _trial(log: object, sample: object) -> ImportedTrial:
    events = list(_events(sample))
    init, scoring = _span(events, INIT), _span(events, SCORERS)
    start_ns = init[0] or instant_ns(at(sample, "started_at"))
    if start_ns is None:
        raise Unreadable("it does not say when it began, or its events were not logged")
    timeline = Timeline(start_ns)
    timeline.lacks_zone(at(sample, "started_at"), *(at(one, "timestamp") for one in events))
    timeline.lacks(RUN, "dispatch and work are one")
    if timeline.phase(recording_events.CREATE, *init):
        timeline.lacks(READY, "the span init holds create, ready and the sample's set-up")
    else:
        timeline.lacks(CREATE_TIME, "it is before the sample's clock")
    acted, thought = commands(sample)
    if not any(at(one, "event") == "sandbox" for one in acted):
        timeline.lacks(ACTIONS, "no command is logged: tool calls take their place, with the harness's own time")
    for one in thought:
        timeline.think(*ends(one), "a call of the model has no ends")
    for one in acted:
        code = integer(at(one, "result"), 255) if at(one, "event") == "sandbox" else None
        timeline.action(
            *ends(one), "a command has no ends", exit_code=recording_events.UNKNOWN if code is None else code
        )
    timeline.phase(recording_events.VERIFY, *scoring)
    failure = _failure(sample, init, scoring)
    if failure is not None and failure.phase != recording_events.VERIFY:
        timeline.ended(instant_ns(at(sample, "completed_at")))
        if instant_ns(at(sample, "completed_at")) is None:
            timeline.lacks(HELD, "a sample failed at an unknown time")
    told = at(log, "eval")
    name = at(sample, "id")
    task = f"{text(at(told, 'task'))}:{name}" if isinstance(name, str | int) and not isinstance(name, bool) else ""
    return ImportedTrial(
        **timeline.times(),
        failure=failure,
        limit="" if failure else LIMITS.get(text(at(sample, "limit", "type")), ""),
        resolution_ns=MICROSECOND_NS,
        substrate=_sandbox(at(sample, "sandbox")) or _sandbox(at(told, "sandbox")),
        workload=(
            text(at(told, "task")),
            text(at(told, "model")),
            "inspect_ai",
            text(at(told, "packages", "inspect_ai")),
        ),
        task=task,
        group=f"{text(at(told, 'run_id'))}:{task}" if task else "",
        attempt=len(items(sample, "error_retries")),
    )


def _sandbox(told: object) -> str:
    """The kind of a sandbox, in both notations: a map, and before a list."""
    return text(at(told, "type")) or text(at(told, 0)) or text(told)


def _failure(
    sample: object, init: tuple[int | None, int | None], scoring: tuple[int | None, int | None]
) -> Failure | None:
    """The failure of a sample with an error. A reached limit is no failure."""
    error = at(sample, "error")
    if not error:
        return None
    found = ERROR.match(text(at(error, "message")))
    kind = found[1] if found else "SampleError"
    phase = (
        recording_events.VERIFY
        if scoring[0] is not None
        else recording_events.CREATE
        if init[0] is not None and init[1] is None
        else events.ACTION
    )
    return Failure(kind, phase, events.TIMEOUT if "Timeout" in kind else events.FAILED)
