"""A recording as OpenTelemetry spans, in OTLP/JSON: a line per trial, with spans of phases and commands.

Commands are ``execute_tool`` spans of the GenAI conventions. Memory: the columns of trials in flight. Spans are written
one by one, because a span is two hundred times as large as a command in a recording.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from costmodel import Actions, Cell, Clock, Event, Follower, PhaseEnded, TrialEnded, TrialStarted, breakdown, events
from taxtui.export import most_rows, too_many
from taxtui.terminal_text import clean

INTERNAL, ERROR = 1, 2  # the kind of a span, the code of a status
TOOL: Final = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "shell"}
"""Attributes of an action. Commands of the set-up are no tool calls of the agent and have no attributes."""
_encode = msgspec.json.Encoder().encode


def pieces(paths: Sequence[Path], table: str) -> Iterator[bytes]:
    """Yield the lines of ended trials. Raises ``RecordingError``, also for more spans than ``most_rows``."""
    for path in paths:
        with Follower(path) as follower:
            trials, limit = _Trials(), most_rows(path)
            while events := follower.poll():
                for event in events:
                    trial = trials.ended_by(event)
                    if trials.spans > limit:
                        raise too_many(path, limit)
                    if trial is not None:
                        assert follower.header is not None
                        yield from trial.line(follower.header.run_id)
            follower.finish()


class _Trials:
    """The trials in flight."""

    def __init__(self) -> None:
        self.spans = 0  # of all trials until now
        self._anchor_unix_ns = 0
        self._cells: dict[int, Cell] = {}
        self._open: dict[int, _Trial] = {}

    def ended_by(self, event: Event) -> _Trial | None:
        """Add an event; return the ended trial, if any."""
        if isinstance(event, Clock):
            self._anchor_unix_ns = event.unix_ns
        elif isinstance(event, Cell):
            self._cells[event.id] = event
        elif isinstance(event, TrialStarted):
            self._open[event.trial] = _Trial(event, self._cells.get(event.cell), self._anchor_unix_ns)
            self.spans += 1
        elif isinstance(event, PhaseEnded) and (trial := self._open.get(event.trial)):
            trial.parts.append(event)
            self.spans += 1
        elif isinstance(event, Actions) and (trial := self._open.get(event.trial)):
            trial.parts.append(event)
            self.spans += len(event.duration_ns)
        elif isinstance(event, TrialEnded) and (trial := self._open.pop(event.trial, None)):
            trial.ended = event
            return trial
        return None


class _Trial:
    ended: TrialEnded

    def __init__(self, started: TrialStarted, cell: Cell | None, anchor_unix_ns: int) -> None:
        self.started = started
        self.parts: list[PhaseEnded | Actions] = []
        self._cell = cell
        self._anchor_unix_ns = anchor_unix_ns

    def line(self, run_id: str) -> Iterator[bytes]:
        """Yield the line of the ended trial, span by span."""
        root = self._root()
        trace = hashlib.sha256(f"{run_id} {root['attributes']} {root['startTimeUnixNano']}".encode()).hexdigest()
        root_id = _span_id(trace, 0)
        resource = _encode({"attributes": _attributes({"service.name": "taxtui", "taxtui.run_id": run_id})})
        yield b'{"resourceSpans":[{"resource":%b,"scopeSpans":[{"scope":{"name":"taxtui"},"spans":[' % resource
        yield _encode({**root, "traceId": trace[:32], "spanId": root_id})
        for number, span in enumerate(self._children(), 1):
            ids = {"traceId": trace[:32], "spanId": _span_id(trace, number), "parentSpanId": root_id}
            yield b"," + _encode(span | ids)
        yield b"]}]}]}\n"

    def _root(self) -> dict[str, Any]:
        started, ended = self.started, self.ended
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "invoke_agent",
            "taxtui.trial": started.trial,
            "taxtui.sandbox": started.sandbox,
            "taxtui.outcome": ended.outcome,
            "taxtui.queued_ns": ended.queued_ns,
            "taxtui.start_delay_ns": breakdown.start_delay_ns(started.scheduled_ns, started.start_ns),
        }
        if self._cell is not None:
            identity = ("substrate", "variant", "tier", "mode", "concurrency", "provenance")
            attributes |= {f"taxtui.{name}": getattr(self._cell, name) for name in identity}
        if ended.error:
            attributes["error.type"] = ended.error
        duration_ns = max(self._known_until_ns(), ended.end_ns) - started.start_ns
        root = self._span("trial", started.start_ns, duration_ns, attributes)
        if ended.outcome != events.OK:
            root["status"] = {"code": ERROR, "message": clean(ended.message)}
        return root

    def _known_until_ns(self) -> int:
        now_ns = self.started.start_ns
        for part in self.parts:
            if isinstance(part, PhaseEnded):
                now_ns = _after(part, now_ns)
            else:
                now_ns += sum(part.gap_ns) + sum(part.think_ns) + sum(part.duration_ns)
        return now_ns

    def _children(self) -> Iterator[dict[str, Any]]:
        """Yield the spans of phases and commands."""
        now_ns = self.started.start_ns
        for part in self.parts:
            if isinstance(part, PhaseEnded):
                now_ns = _after(part, now_ns)
                yield self._span(part.phase, part.start_ns, part.duration_ns, {})
                continue
            rows = len(part.duration_ns)
            columns = (part.gap_ns, part.think_ns, part.duration_ns, part.run_ns, part.exit_code, part.wrapper_ns)
            for gap, think, duration, run, code, wrapper in zip(
                *(events.column(values, rows) for values in columns), strict=False
            ):
                now_ns += gap + think
                attributes: dict[str, str | int] = {**TOOL} if part.step == events.ACTION else {}
                if run not in (events.UNKNOWN, 0) and run <= duration:
                    attributes["taxtui.run_ns"] = run
                if run != events.UNKNOWN and 0 < wrapper <= duration - run:
                    attributes["taxtui.wrapper_ns"] = wrapper
                if code != events.UNKNOWN:
                    attributes["process.exit.code"] = code
                yield self._span(f"{part.step} command", now_ns, duration, attributes)
                now_ns += duration

    def _span(self, name: str, start_ns: int, duration_ns: int, attributes: dict[str, str | int]) -> dict[str, Any]:
        begin = self._anchor_unix_ns + start_ns
        return {
            "name": clean(name),
            "kind": INTERNAL,
            "startTimeUnixNano": str(begin),
            "endTimeUnixNano": str(begin + duration_ns),
            "attributes": _attributes(attributes),
        }


def _after(phase: PhaseEnded, now_ns: int) -> int:
    """Return the earliest start after a phase; model time and gaps already contain suspensions."""
    return now_ns if phase.phase in events.LIFE_CYCLE else max(now_ns, phase.start_ns + phase.duration_ns)


def _span_id(trace: str, number: int) -> str:
    return hashlib.sha256(f"{trace} {number}".encode()).hexdigest()[:16]


def _attributes(values: dict[str, str | int]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": clean(value)}}
        for key, value in values.items()
    ]
