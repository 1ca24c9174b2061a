"""OpenTelemetry traces as OTLP/JSON lines, by the conventions for generative AI; other spans by ``--map``.

A trial is a trace, or each outermost ``invoke_agent`` of a trace. Memory: kind, ends, parent and a few names of each
span of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from costmodel import events
from taxtui.importers.files import MOST_BYTES, Unreadable, decoded, document, lines
from taxtui.importers.protocol import Reader, Skipped
from taxtui.importers.timeline import Timeline
from taxtui.importers.trial import PHASES, TIMES, Failure, ImportedTrial, Quantity, failure_of
from taxtui.importers.values import LAST_NS, at, integer, maps, text

AGENT: Final = "agent"
OPERATIONS: Final = {
    "chat": Quantity.THINK,
    "generate_content": Quantity.THINK,
    "text_completion": Quantity.THINK,
    "execute_tool": events.ACTION,
    "invoke_agent": AGENT,
}
"""``gen_ai.operation.name`` → kind of the span."""
FAILED_CODES: Final = (2, "2", "STATUS_CODE_ERROR")
MOST_SPANS: Final = 500_000
"""Spans of a file, which are in memory together."""
MAX_DEPTH: Final = 200
"""Spans around a span that are looked at."""


class TraceSpan(NamedTuple):
    """The recorded part of a span."""

    line: int
    id: str
    parent: str
    kind: str  # AGENT, one of TIMES; "": only a link to the parent
    start_ns: int | None
    end_ns: int | None
    error: str | None  # the class; "": a failure without a class
    names: tuple[str, ...]  # service, agent and model


class OtlpReader(Reader):
    """Traces of a file exporter: a line per export, or a document."""

    name: ClassVar[str] = "otlp"
    file_names: ClassVar[tuple[str, ...]] = ("*.jsonl", "*.json")
    span_phases: Mapping[str, str] | None = {}

    def recognises(self, path: Path, head: bytes) -> bool:
        return b'"resourceSpans"' in head and b'"scopeSpans"' in head

    def trials(self, path: Path) -> Iterator[ImportedTrial | Skipped]:
        """Yield the trials of each trace, at the end of the file."""
        traces: dict[str, list[TraceSpan]] = {}
        is_otlp = False
        spans = 0
        for number, export in _exports(path):
            if not isinstance(export, dict):
                yield export if isinstance(export, Skipped) else Skipped(f"line {number}", "no export of spans")
                continue
            is_otlp = is_otlp or "resourceSpans" in export
            for name, span in _spans(export, number, self.span_phases or {}):
                traces.setdefault(name, []).append(span)
                spans += 1
                if spans > MOST_SPANS:
                    raise Unreadable(f"more than {MOST_SPANS:,} spans")
        if not is_otlp:
            raise Unreadable("no OTLP spans")
        for trace in traces.values():
            yield from _trials(trace)


def _exports(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the exports of a file with the numbers of their lines."""
    for number, line in lines(path):
        try:
            yield number, decoded(line)
        except Unreadable as error:
            if number == 1 and path.stat().st_size <= MOST_BYTES:
                yield 1, document(path)  # one document in many lines
                return
            yield number, Skipped(f"line {number}", str(error))


def _spans(export: dict[str, Any], line: int, span_phases: Mapping[str, str]) -> Iterator[tuple[str, TraceSpan]]:
    """Yield the spans of an export, each with the id of the trace."""
    for resource in maps(export, "resourceSpans"):
        service = _attribute(at(resource, "resource"), "service.name")
        for scope in maps(resource, "scopeSpans"):
            for raw in maps(scope, "spans"):
                operation = _attribute(raw, "gen_ai.operation.name")
                kind = span_phases.get(text(raw.get("name"))) or OPERATIONS.get(operation, "")
                names = (_attribute(raw, "gen_ai.agent.name"), _attribute(raw, "gen_ai.request.model"))
                if trace := text(raw.get("traceId")):
                    yield (
                        trace,
                        TraceSpan(
                            line,
                            text(raw.get("spanId")),
                            text(raw.get("parentSpanId")),
                            kind,
                            integer(raw.get("startTimeUnixNano"), LAST_NS) or None,
                            integer(raw.get("endTimeUnixNano"), LAST_NS) or None,
                            _attribute(raw, "error.type") if at(raw, "status", "code") in FAILED_CODES else None,
                            (service, *(names if kind else ("", ""))),
                        ),
                    )


def _attribute(holder: object, key: str) -> str:
    for attribute in maps(holder, "attributes"):
        if attribute.get("key") == key:
            return text(at(attribute, "value", "stringValue"))
    return ""


def _trials(trace: list[TraceSpan]) -> Iterator[ImportedTrial | Skipped]:
    """Yield a trial per outermost agent; for at most one agent, the trace."""
    if not any(span.kind for span in trace):
        return  # a trace of other software
    trace = list({span.id or number: span for number, span in enumerate(trace)}.values())  # exporters may send twice
    around = _around(trace)
    trace = _commands_once(trace, around) or trace
    by_agent: dict[TraceSpan | None, list[TraceSpan]] = {}
    for span in trace:
        outermost = next((outer for outer in reversed((span, *around[span])) if outer.kind == AGENT), None)
        by_agent.setdefault(outermost, []).append(span)
    outside = [span for span in by_agent.pop(None, []) if span.kind]
    if len(by_agent) <= 1:
        yield _trial(trace, next(iter(by_agent), None))
        return
    for agent, inside in by_agent.items():
        yield _trial(inside, agent, ", or the span is outside of every agent")
    if outside:
        yield Skipped(f"line {outside[0].line}", f"{len(outside):,} spans of the trace are outside of every agent")


def _around(trace: list[TraceSpan]) -> dict[TraceSpan, list[TraceSpan]]:
    """Return the agents and tool calls around each span, from the inside out."""
    by_id = {span.id: span for span in trace if span.id}
    around: dict[TraceSpan, list[TraceSpan]] = {span: [] for span in trace}
    for span in trace:
        outer = by_id.get(span.parent)
        for _ in range(MAX_DEPTH):
            if outer is None or outer is span:  # the span itself: a cycle of parents
                break
            if outer.kind in (AGENT, events.ACTION):
                around[span].append(outer)
            outer = by_id.get(outer.parent)
    return around


def _commands_once(trace: list[TraceSpan], around: dict[TraceSpan, list[TraceSpan]]) -> list[TraceSpan]:
    """Leave out a tool call around an agent, whose own calls count, and a tool call inside of another: one command."""
    tools = [span for span in trace if span.kind == events.ACTION]
    delegating = {outer for span in trace if span.kind == AGENT for outer in around[span]}
    ends_ns = {span: span.end_ns for span in tools if span.start_ns and span.end_ns and span not in delegating}
    parts = {span for span in tools if any((span.end_ns or 0) <= ends_ns.get(outer, -1) for outer in around[span])}
    left_out = delegating | parts
    return [span for span in trace if span.kind != events.ACTION or span not in left_out]


def _trial(spans: list[TraceSpan], agent: TraceSpan | None, doubt: str = "") -> ImportedTrial | Skipped:
    """Return the trial of these spans. ``doubt``: another reason for a missing phase."""
    timeline = Timeline()
    timeline.lacks(Quantity.RUN, "a span is the caller's time: dispatch and command time are undivided")
    timeline.lacks(Quantity.EXIT, "spans have none")
    kinds = {span.kind for span in spans}
    for quantity in (Quantity.CREATE, Quantity.READY):
        if quantity not in kinds:
            timeline.lacks(quantity, f"no span has this meaning{doubt}: --map NAME={quantity}")
    for span in spans:
        if span.kind in TIMES:
            kind = PHASES.get(span.kind, span.kind)
            timeline.add(kind, span.start_ns, span.end_ns, "some spans have no ends")
    if timeline.empty:
        return Skipped(f"line {spans[0].line}", "no span of the trace has both ends and a meaning")
    failure = _failure(spans, agent)
    if failure is not None and agent is not None:
        timeline.ended(agent.end_ns)
    names = [next(filter(None, column), "") for column in zip(*(span.names for span in spans), strict=True)]
    return ImportedTrial(**timeline.times(), failure=failure, resolution_ns=1, workload=tuple(names))


def _failure(spans: list[TraceSpan], agent: TraceSpan | None) -> Failure | None:
    """Return the failure of the agent or of a phase; a failed command is no failure."""
    for span in spans:
        if span.error is not None and (span is agent or span.kind in PHASES):
            return failure_of(span.error or "Error", PHASES.get(span.kind, events.ACTION))
    return None
