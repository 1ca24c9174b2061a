"""A recording as OpenTelemetry spans, in OTLP/JSON: a line per trial, its phases and commands below it.

Commands are ``execute_tool`` spans of the GenAI conventions, so that what reads an agent's traces reads these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from costmodel.measures import start_delay_ns
from taxtui.recording.events import (
    ACTION,
    OK,
    UNKNOWN,
    Actions,
    Cell,
    Clock,
    Event,
    PhaseEnded,
    TrialEnded,
    TrialStarted,
    column,
)
from taxtui.recording.reader import Follower
from taxtui.report.formats.json_rows import printable

INTERNAL, ERROR = 1, 2  # the kind of a span, the code of a status
TOOL: Final = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "shell"}
"""An action's. Those of the set-up are not the agent's doing, and spans of their own."""


def pieces(paths: Sequence[Path], table: str) -> Iterator[bytes]:
    """Trials that never ended are left out. Raises ``RecordingError``."""
    encode = msgspec.json.Encoder().encode
    for path in paths:
        with Follower(path) as follower:
            trials = _Trials()
            while events := follower.poll():
                for event in events:
                    if spans := trials.ended_by(event):
                        assert follower.header is not None
                        yield printable(encode(_exported(spans, follower.header.run_id))) + b"\n"
            follower.finish()


class _Trials:
    """The spans of trials in flight."""

    def __init__(self) -> None:
        self._anchor_unix_ns = 0
        self._cells: dict[int, Cell] = {}
        self._open: dict[int, _Trial] = {}

    def ended_by(self, event: Event) -> list[dict[str, Any]]:
        """The spans of the trial that an event ends; nothing else."""
        if isinstance(event, Clock):
            self._anchor_unix_ns = event.unix_ns
        elif isinstance(event, Cell):
            self._cells[event.id] = event
        elif isinstance(event, TrialStarted):
            self._open[event.trial] = _Trial(event, self._anchor_unix_ns)
        elif isinstance(event, PhaseEnded) and (trial := self._open.get(event.trial)):
            trial.phase(event)
        elif isinstance(event, Actions) and (trial := self._open.get(event.trial)):
            trial.commands(event)
        elif isinstance(event, TrialEnded) and (trial := self._open.pop(event.trial, None)):
            return trial.spans(event, self._cells.get(trial.started.cell))
        return []


class _Trial:
    def __init__(self, started: TrialStarted, anchor_unix_ns: int) -> None:
        self.started = started
        self._anchor_unix_ns = anchor_unix_ns
        self._children: list[dict[str, Any]] = []
        self._now_ns = started.start_ns  # where what is known ends: a command has no instant of its own

    def phase(self, event: PhaseEnded) -> None:
        self._now_ns = max(self._now_ns, event.start_ns + event.duration_ns)
        self._child(event.phase, event.start_ns, event.duration_ns, {})

    def commands(self, event: Actions) -> None:
        rows = len(event.duration_ns)
        columns = (event.gap_ns, event.think_ns, event.duration_ns, event.run_ns, event.exit_code)
        full = [column(values, rows) for values in columns]
        for gap, think, duration, run, code in zip(*full, strict=False):
            self._now_ns += gap + think
            told: dict[str, str | int] = dict(TOOL) if event.step == ACTION else {}
            if run not in (UNKNOWN, 0) and run <= duration:
                told["taxtui.run_ns"] = run
            if code != UNKNOWN:
                told["process.exit.code"] = code
            self._child(f"{event.step} command", self._now_ns, duration, told)
            self._now_ns += duration

    def _child(self, name: str, start_ns: int, duration_ns: int, attributes: dict[str, str | int]) -> None:
        self._children.append(self._span(name, start_ns, start_ns + duration_ns, attributes))

    def _span(self, name: str, start_ns: int, end_ns: int, attributes: dict[str, str | int]) -> dict[str, Any]:
        return {
            "name": name,
            "kind": INTERNAL,
            "startTimeUnixNano": str(self._anchor_unix_ns + start_ns),
            "endTimeUnixNano": str(self._anchor_unix_ns + end_ns),
            "attributes": _attributes(attributes),
        }

    def spans(self, ended: TrialEnded, cell: Cell | None) -> list[dict[str, Any]]:
        """The trial's own, then those below it."""
        told: dict[str, str | int] = {
            "gen_ai.operation.name": "invoke_agent",
            "taxtui.trial": self.started.trial,
            "taxtui.sandbox": self.started.sandbox,
            "taxtui.outcome": ended.outcome,
            "taxtui.queued_ns": ended.queued_ns,
            "taxtui.start_delay_ns": start_delay_ns(self.started.scheduled_ns, self.started.start_ns),
        }
        if cell is not None:
            identity = ("substrate", "variant", "tier", "mode", "concurrency", "provenance")
            told |= {f"taxtui.{name}": getattr(cell, name) for name in identity}
        if ended.error:
            told["error.type"] = ended.error
        root = self._span("trial", self.started.start_ns, max(self._now_ns, ended.end_ns), told)
        if ended.outcome != OK:
            root["status"] = {"code": ERROR, "message": ended.message}
        return [root, *self._children]


def _exported(spans: list[dict[str, Any]], run_id: str) -> dict[str, Any]:
    root = spans[0]
    trace = hashlib.sha256(f"{run_id} {root['attributes']} {root['startTimeUnixNano']}".encode()).hexdigest()
    for number, span in enumerate(spans):
        span["traceId"] = trace[:32]
        span["spanId"] = hashlib.sha256(f"{trace} {number}".encode()).hexdigest()[:16]
        if number:
            span["parentSpanId"] = root["spanId"]
    resource = _attributes({"service.name": "taxtui", "taxtui.run_id": run_id})
    return {
        "resourceSpans": [
            {"resource": {"attributes": resource}, "scopeSpans": [{"scope": {"name": "taxtui"}, "spans": spans}]}
        ]
    }


def _attributes(values: dict[str, str | int]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in values.items()
    ]
