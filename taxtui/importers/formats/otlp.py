"""OpenTelemetry traces as OTLP/JSON lines, by the conventions for generative AI; other spans by ``--map``.

A trial is a trace, or each outermost ``invoke_agent`` of one. Of a span only its kind, ends, parent and a few names
are kept, so that the traces that are still open fit in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from costmodel import events
from taxtui.importers.files import MOST_BYTES, decoded, document, lines, walk
from taxtui.importers.protocol import (
    CREATE as CREATE_TIME,
)
from taxtui.importers.protocol import (
    EXIT,
    RUN,
    THINK,
    Asked,
    Failure,
    ImportedTrial,
    Skipped,
    Unreadable,
)
from taxtui.importers.protocol import (
    READY as READY_TIME,
)
from taxtui.importers.timeline import Timeline
from taxtui.importers.values import at, maps, text, unix_ns

AGENT: Final = "agent"
OPERATIONS: Final = {
    "chat": THINK,
    "generate_content": THINK,
    "text_completion": THINK,
    "execute_tool": events.ACTION,
    "invoke_agent": AGENT,
}
"""``gen_ai.operation.name`` → what a span of it is."""
FAILED_CODES: Final = (2, "2", "STATUS_CODE_ERROR")
MOST_SPANS: Final = 500_000
"""Kept at once; beyond them the traces whose root came first are taken to be whole."""


class TraceSpan(NamedTuple):
    """The recorded part of a span."""

    id: str
    parent: str
    kind: str  # "": it only shows what belongs to what
    start_ns: int | None
    end_ns: int | None
    error: str | None  # its class, "" where a failure has none
    names: tuple[str, ...]  # agent and model


class Trace:
    """The spans of one trace so far."""

    __slots__ = ("first_line", "rooted", "service", "spans")

    def __init__(self, first_line: int) -> None:
        """Without a span."""
        self.first_line = first_line
        self.rooted = False
        self.service = ""
        self.spans: list[TraceSpan] = []


class OtlpReader:
    """Traces of a file exporter, a line per export, or one document."""

    name: ClassVar[str] = "otlp"
    summary: ClassVar[str] = "OTLP/JSON lines of traces by the conventions for generative AI; --map for other spans"
    takes_map: ClassVar[bool] = True

    def files(self, folder: Path) -> Iterator[Path]:
        """Every ``.jsonl`` and ``.json`` below a folder."""
        return walk(folder, lambda name: name.endswith((".jsonl", ".json")))

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the head has the envelope of spans."""
        return b'"resourceSpans"' in head and b'"scopeSpans"' in head

    def trials(self, path: Path, asked: Asked) -> Iterator[ImportedTrial | Skipped]:
        """The trials of each trace, at the end of the file or when memory asks for it."""
        traces: dict[str, Trace] = {}
        kept = 0
        known = False
        for number, export in _exports(path):
            if isinstance(export, Skipped):
                yield export
                continue
            known = known or "resourceSpans" in export
            kept += _keep(export, number, asked, traces)
            if kept > MOST_SPANS:
                for name in [name for name, trace in traces.items() if trace.rooted] or list(traces):
                    yield from _trials(traces.pop(name))
                kept = sum(len(trace.spans) for trace in traces.values())
        if not known:
            raise Unreadable("it holds no OTLP spans")
        for trace in traces.values():
            yield from _trials(trace)


def _exports(path: Path) -> Iterator[tuple[int, dict[str, Any] | Skipped]]:
    """The exports of a file with the numbers of their lines."""
    for number, line in lines(path):
        try:
            export = decoded(line)
        except Unreadable as error:
            if number == 1 and path.stat().st_size <= MOST_BYTES:
                break  # perhaps one document over many lines
            yield number, Skipped(f"line {number}", str(error))
            continue
        yield number, export if isinstance(export, dict) else Skipped(f"line {number}", "it is no export of spans")
    else:
        return
    export = document(path)
    yield 1, export if isinstance(export, dict) else Skipped("", "it is no export of spans")


def _keep(export: dict[str, Any], number: int, asked: Asked, traces: dict[str, Trace]) -> int:
    kept = 0
    for resource in maps(export, "resourceSpans"):
        service = _attribute(at(resource, "resource"), "service.name")
        for scope in maps(resource, "scopeSpans"):
            for span in maps(scope, "spans"):
                name = text(span.get("traceId"))
                if not name:
                    continue
                trace = traces.setdefault(name, Trace(number))
                found = _span(span, asked)
                trace.spans.append(found)
                trace.rooted = trace.rooted or not found.parent
                trace.service = trace.service or service
                kept += 1
    return kept


def _span(span: dict[str, Any], asked: Asked) -> TraceSpan:
    operation = _attribute(span, "gen_ai.operation.name")
    kind = asked.span_phases.get(text(span.get("name"))) or OPERATIONS.get(operation, "")
    error = None
    if at(span, "status", "code") in FAILED_CODES:
        error = _attribute(span, "error.type")
    names = (_attribute(span, "gen_ai.agent.name"), _attribute(span, "gen_ai.request.model")) if kind else ()
    return TraceSpan(
        text(span.get("spanId")),
        text(span.get("parentSpanId")),
        kind,
        unix_ns(span.get("startTimeUnixNano")),
        unix_ns(span.get("endTimeUnixNano")),
        error,
        names,
    )


def _attribute(holder: object, key: str) -> str:
    for attribute in maps(holder, "attributes"):
        if attribute.get("key") == key:
            return text(at(attribute, "value", "stringValue"))
    return ""


def _trials(trace: Trace) -> Iterator[ImportedTrial | Skipped]:
    """One trial per outermost agent; without one, the trace."""
    if not any(span.kind for span in trace.spans):
        return  # of something else
    by_id = {span.id: span for span in trace.spans}
    agents = [span for span in trace.spans if span.kind == AGENT and _outermost(span, by_id) is span]
    if len(agents) <= 1:
        yield _trial(trace, trace.spans, agents[0] if agents else None, True)
        return
    for agent in agents:
        inside = [span for span in trace.spans if _outermost(span, by_id) is agent]
        yield _trial(trace, inside, agent, False)


def _outermost(span: TraceSpan, by_id: dict[str, TraceSpan]) -> TraceSpan | None:
    """The outermost agent that a span lies in, itself included; None where there is none."""
    found, here = None, span
    seen = set()
    while here.id not in seen:
        seen.add(here.id)
        if here.kind == AGENT:
            found = here
        above = by_id.get(here.parent) if here.parent else None
        if above is None:
            break
        here = above
    return found


def _trial(trace: Trace, spans: list[TraceSpan], agent: TraceSpan | None, whole: bool) -> ImportedTrial | Skipped:
    timeline = Timeline()
    timeline.lacks(RUN, "a span is a command as its caller saw it: dispatch and work are one")
    timeline.lacks(EXIT, "spans have none")
    kinds = {span.kind for span in spans}
    for phase, quantity in ((events.CREATE, CREATE_TIME), (events.READY, READY_TIME)):
        if phase not in kinds:
            many = "" if whole else ", or it lies in no agent's span"
            timeline.lacks(quantity, f"no span is known to be it{many}: --map NAME={phase}")
    for span in spans:
        if span.kind == THINK:
            timeline.think(span.start_ns, span.end_ns, "some spans have no ends")
        elif span.kind == events.ACTION:
            timeline.action(span.start_ns, span.end_ns, "some spans have no ends")
        elif span.kind and span.kind != AGENT:
            timeline.phase(span.kind, span.start_ns, span.end_ns, "some spans have no ends")
    if timeline.empty:
        return Skipped(f"line {trace.first_line}", "a trace without a span that has both ends and a meaning")
    failure = _failure(spans, agent)
    if failure is not None and agent is not None:
        timeline.ended(agent.end_ns)
    names = [""] * 2
    for span in spans:
        names = [own or other for own, other in zip(names, span.names or ("", ""), strict=True)]
    return ImportedTrial(**timeline.times(), failure=failure, resolution_ns=1, workload=(trace.service, *names))


def _failure(spans: list[TraceSpan], agent: TraceSpan | None) -> Failure | None:
    """The failure of the agent or of a phase before the agent; a failed command is no failure."""
    for span in spans:
        if span.error is not None and (span is agent or span.kind not in ("", AGENT, THINK, events.ACTION)):
            phase = events.ACTION if span.kind == AGENT else span.kind
            error = span.error or "Error"
            return Failure(error, phase, events.TIMEOUT if "timeout" in error.lower() else events.FAILED)
    return None
