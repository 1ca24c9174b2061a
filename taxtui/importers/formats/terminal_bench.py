"""Terminal-Bench 1: ``results.json`` of a trial, or of a run that holds those of its trials."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from costmodel import events
from taxtui.importers.files import document, walk
from taxtui.importers.protocol import (
    ACTIONS,
    HELD,
    READY,
    RUN,
    SETUP,
    SUBSTRATE,
    THINK,
    Asked,
    Failure,
    ImportedTrial,
    Skipped,
    Unreadable,
)
from taxtui.importers.protocol import (
    CREATE as CREATE_TIME,
)
from taxtui.importers.protocol import (
    VERIFY as VERIFY_TIME,
)
from taxtui.importers.timeline import Timeline
from taxtui.importers.values import MICROSECOND_NS, at, instant_ns, items, text

LIMITS: Final = {
    "agent_timeout": "AgentTimeoutError",
    "context_length_exceeded": "ContextLengthExceededError",
    "output_length_exceeded": "OutputLengthExceededError",
}
"""Failure modes that are limits of the agent, not failures of its sandbox: classes of ``AGENT_LIMITS``."""
FAILURES: Final = {
    "test_timeout": Failure("TestTimeout", events.VERIFY, events.TIMEOUT),
    "unknown_agent_error": Failure("AgentError", events.ACTION),
    "agent_installation_failed": Failure("AgentInstallationFailed", events.CREATE),
    "fatal_llm_parse_error": Failure("LlmParseError", events.ACTION),
    "parse_error": Failure("ParseError", events.VERIFY),
    "unknown": Failure("UnknownError", events.ACTION),
}
FINE: Final = ("", "unset", "none")
STAMPS: Final = (
    "trial_started_at",
    "agent_started_at",
    "agent_ended_at",
    "test_started_at",
    "test_ended_at",
    "trial_ended_at",
)


class TerminalBenchReader:
    """Six instants a trial."""

    name: ClassVar[str] = "terminal-bench"
    summary: ClassVar[str] = "Terminal-Bench 1: results.json of trials and runs"
    takes_map: ClassVar[bool] = False

    def files(self, folder: Path) -> Iterator[Path]:
        """Every ``results.json`` below a folder."""
        return walk(folder, "results.json".__eq__)

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the head has this format's names of instants."""
        return b'"trial_started_at"' in head or (b'"n_resolved"' in head and b'"results"' in head)

    def trials(self, path: Path, asked: Asked) -> Iterator[ImportedTrial | Skipped]:
        """The trial, or those of a run whose trials have no files of their own beside it."""
        result = document(path)
        if not isinstance(result, dict):
            raise Unreadable("it is no result of Terminal-Bench")
        if isinstance(result.get("results"), list):
            if any(path.parent.glob("*/*/results.json")):
                return
            for number, item in enumerate(items(result, "results"), 1):
                try:
                    yield _trial(item)
                except Unreadable as error:
                    yield Skipped(f"result {number}", str(error))
            return
        yield _trial(result)


def _trial(result: object) -> ImportedTrial:
    if not isinstance(result, dict) or not any(stamp in result for stamp in STAMPS):
        raise Unreadable("it is no result of Terminal-Bench")
    started, agent, agent_ended, test, test_ended, ended = (instant_ns(result.get(stamp)) for stamp in STAMPS)
    start_ns = started if started is not None else agent
    if start_ns is None:
        raise Unreadable("it does not say when the trial began")
    timeline = Timeline(start_ns)
    timeline.lacks_zone(*map(result.get, STAMPS))
    timeline.lacks(RUN, "dispatch and work are one")
    timeline.lacks(SUBSTRATE, "results do not name it")
    failure, limit = _failure(result), LIMITS.get(text(result.get("failure_mode")), "")
    if limit and agent_ended is None:
        agent_ended = test or ended
    if timeline.phase(events.CREATE, started, agent):
        timeline.lacks(READY, "build, create, ready and the agent's installation are one")
        timeline.lacks(SETUP, "build, create, ready and the agent's installation are one")
    else:
        timeline.lacks(CREATE_TIME, "no time from trial_started_at to agent_started_at")
    if timeline.action(agent, agent_ended):
        timeline.lacks(ACTIONS, "the agent's time is one piece")
        timeline.lacks(THINK, "the agent's time is one piece")
    elif failure is None:
        timeline.lacks(HELD, "no time from agent_started_at to agent_ended_at")
    if not timeline.phase(events.VERIFY, test, test_ended) and failure is None:
        timeline.lacks(VERIFY_TIME, "no time from test_started_at to test_ended_at")
    timeline.phase(events.CLEANUP, test_ended, ended)
    if failure is not None and failure.phase != events.VERIFY:
        timeline.ended(agent_ended or test or ended)
    return ImportedTrial(
        **timeline.times(),
        failure=failure,
        limit=limit,
        resolution_ns=MICROSECOND_NS,
        task=text(at(result, "task_id")),
    )


def _failure(result: dict[str, Any]) -> Failure | None:
    mode = text(result.get("failure_mode"))
    return None if mode in FINE or mode in LIMITS else FAILURES.get(mode, Failure(mode, events.ACTION, events.FAILED))
