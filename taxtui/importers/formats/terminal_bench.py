"""Terminal-Bench 1: ``results.json`` of a trial, or of a run with all trials."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from costmodel import events
from taxtui.importers.files import Unreadable, document
from taxtui.importers.protocol import Reader, Skipped, trial_or_skipped
from taxtui.importers.timeline import Timeline
from taxtui.importers.trial import Failure, ImportedTrial, Quantity
from taxtui.importers.values import at, instant_ns, items, text

LIMITS: Final = {
    "agent_timeout": "AgentTimeoutError",
    "context_length_exceeded": "ContextLengthExceededError",
    "output_length_exceeded": "OutputLengthExceededError",
}
"""Failure mode → limit of the agent, as in ``AGENT_LIMITS``."""
FAILURES: Final = {
    "test_timeout": Failure("TestTimeout", events.VERIFY, events.TIMEOUT),
    "unknown_agent_error": Failure("AgentError", events.ACTION),
    "agent_installation_failed": Failure("AgentInstallationFailed", events.CREATE),
    "fatal_llm_parse_error": Failure("LlmParseError", events.ACTION),
    "parse_error": Failure("ParseError", events.VERIFY),
    "unknown": Failure("UnknownError", events.ACTION),
}
NO_FAILURE: Final = ("", "unset", "none")
STAMPS: Final = (
    "trial_started_at",
    "agent_started_at",
    "agent_ended_at",
    "test_started_at",
    "test_ended_at",
    "trial_ended_at",
)


class TerminalBenchReader(Reader):
    """Six instants a trial."""

    name: ClassVar[str] = "terminal-bench"
    file_names: ClassVar[tuple[str, ...]] = ("results.json",)

    def recognises(self, path: Path, head: bytes) -> bool:
        return b'"trial_started_at"' in head or (b'"n_resolved"' in head and b'"results"' in head)

    def trials(self, path: Path) -> Iterator[ImportedTrial | Skipped]:
        """Yield the trial, or the trials of a run without files of trials."""
        result = document(path)
        if not isinstance(result, dict):
            raise Unreadable("no result of Terminal-Bench")
        if not isinstance(result.get("results"), list):
            yield _trial(result)
        elif not any(path.parent.glob("*/*/results.json")):
            for number, item in enumerate(items(result, "results"), 1):
                yield trial_or_skipped(f"result {number}", _trial, item)


def _trial(result: object) -> ImportedTrial:
    if not isinstance(result, dict) or not any(stamp in result for stamp in STAMPS):
        raise Unreadable("no result of Terminal-Bench")
    started, agent, agent_ended, test, test_ended, ended = (instant_ns(result.get(stamp)) for stamp in STAMPS)
    start_ns = started if started is not None else agent
    if start_ns is None:
        raise Unreadable("the start of the trial is missing")
    timeline = Timeline(start_ns)
    timeline.lacks_zone(*map(result.get, STAMPS))
    timeline.lacks(Quantity.RUN, "dispatch and command time are undivided")
    timeline.lacks(Quantity.SUBSTRATE, "results have no substrate")
    failure, limit = _failure(result), LIMITS.get(text(result.get("failure_mode")), "")
    if limit and agent_ended is None:
        agent_ended = test or ended
    if timeline.add(events.CREATE, started, agent):
        timeline.lacks(Quantity.READY, "create contains build, ready and the agent's installation")
        timeline.lacks(Quantity.SETUP, "create contains build, ready and the agent's installation")
    else:
        timeline.lacks(Quantity.CREATE, "no time from trial_started_at to agent_started_at")
    timed = agent is not None and agent_ended is not None and timeline.add_undivided(agent, agent_ended)
    if not timed and failure is None:
        timeline.lacks(Quantity.HELD, "no time from agent_started_at to agent_ended_at")
    if not timeline.add(events.VERIFY, test, test_ended) and failure is None:
        timeline.lacks(Quantity.VERIFY, "no time from test_started_at to test_ended_at")
    timeline.add(events.CLEANUP, test_ended, ended)
    if failure is not None and failure.phase != events.VERIFY:
        timeline.ended(agent_ended or test or ended)
    return ImportedTrial(
        **timeline.times(),
        failure=failure,
        limit=limit,
        task=text(at(result, "task_id")),
    )


def _failure(result: dict[str, Any]) -> Failure | None:
    mode = text(result.get("failure_mode"))
    return None if mode in NO_FAILURE or mode in LIMITS else FAILURES.get(mode, Failure(mode, events.ACTION))
