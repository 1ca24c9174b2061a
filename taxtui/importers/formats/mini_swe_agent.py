"""mini-swe-agent 2 (``*.traj.json``, format 1.1): an instant at the end of each answer and of each observation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from costmodel import events
from taxtui.importers.files import document, walk
from taxtui.importers.protocol import (
    ACTIONS,
    CREATE,
    HELD,
    RUN,
    THINK,
    Asked,
    Failure,
    ImportedTrial,
    Unreadable,
)
from taxtui.importers.timeline import BACKWARDS, Timeline
from taxtui.importers.values import MICROSECOND_NS, at, instant_ns, integer, items, maps, text

FORMAT: Final = "mini-swe-agent-1.1"
ENDS_WELL: Final = frozenset({"Submitted", "LimitsExceeded", "TimeExceeded", "RepeatedFormatError"})
"""How an agent may end that is no failure of its sandbox: done, or told to stop."""
LIMITS: Final = ("LimitsExceeded", "TimeExceeded")
"""Ends of the agent's budget."""


class MiniSweAgentReader:
    """One trajectory a file."""

    name: ClassVar[str] = "mini-swe-agent"
    summary: ClassVar[str] = "trajectories of mini-swe-agent 2: *.traj.json"
    takes_map: ClassVar[bool] = False

    def files(self, folder: Path) -> Iterator[Path]:
        """Every trajectory below a folder."""
        return walk(folder, lambda name: name.endswith(".traj.json"))

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the version, which comes before the messages, is in the head."""
        if b'"mini_version"' in head or b'"mini-swe-agent-' in head:
            return True
        # version 1: a list of messages, by itself or below "messages"; recognised so that the refusal has its reason
        return path.name.endswith(".traj.json") and b'"role"' in head and b'"trajectory"' not in head[:64]

    def trials(self, path: Path, asked: Asked) -> Iterator[ImportedTrial]:
        """The trial of one file. Raises ``Unreadable`` where it tells no times."""
        told = document(path)
        if isinstance(told, list) or text(at(told, "trajectory_format")) == "mini-swe-agent-1":
            raise Unreadable("mini-swe-agent wrote no times into its messages before version 2")
        if text(at(told, "trajectory_format")) != FORMAT:
            raise Unreadable(f"its format is not {FORMAT}")
        yield _trial(told)


def turns(messages: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each answer of the model that asks for commands, with the observations that follow it."""
    answer: dict[str, Any] | None = None
    observations: list[dict[str, Any]] = []
    for message in messages:
        if items(message, "extra", "actions"):
            if answer is not None:
                yield answer, observations
            answer, observations = message, []
        elif instant_ns(at(message, "extra", "timestamp")) is not None:
            observations.append(message)
    if answer is not None:
        yield answer, observations


def _trial(told: dict[str, Any]) -> ImportedTrial:
    timeline = Timeline()
    timeline.lacks(RUN, "dispatch and work are one")
    timeline.lacks(CREATE, "nothing before the first answer is dated")
    timeline.lacks(HELD, "counted from the first answer")
    timeline.lacks(THINK, "the first answer has no begin", partly=True)
    seen_ns: int | None = None
    for answer, observations in turns(list(maps(told, "messages"))):
        answered_ns = instant_ns(at(answer, "extra", "timestamp"))
        if answered_ns is not None and seen_ns is not None and answered_ns < seen_ns:
            timeline.lacks(THINK, BACKWARDS, partly=True)
            timeline.lacks(
                ACTIONS, BACKWARDS, partly=True
            )  # it was answered before it was asked: what follows has no begin
            answered_ns = None
        elif seen_ns is not None:
            timeline.think(seen_ns, answered_ns, "an answer has no time")
        if not observations:
            timeline.lacks(ACTIONS, "a command that submits or fails has no end", partly=True)
            continue
        if len(items(answer, "extra", "actions")) > 1:
            timeline.lacks(ACTIONS, "commands of one answer share one interval", partly=True)
        seen_ns = max(instant_ns(at(one, "extra", "timestamp")) or 0 for one in observations)
        code = integer(at(observations[0], "extra", "returncode"), 255) if len(observations) == 1 else None
        timeline.action(answered_ns, seen_ns, exit_code=events.UNKNOWN if code is None else code)
    if timeline.empty:
        raise Unreadable("none of its messages is dated")
    config = at(told, "info", "config")
    status = text(at(told, "info", "exit_status"))
    task = text(at(told, "instance_id")) or text(at(told, "info", "instance_id"))
    return ImportedTrial(
        **timeline.times(),
        failure=_failure(status),
        limit=status if status in LIMITS else "",
        resolution_ns=MICROSECOND_NS,
        substrate=text(at(config, "environment_type")).rpartition(".")[2].lower().removesuffix("environment"),
        workload=(
            "mini-swe-agent",
            text(at(told, "info", "mini_version")),
            text(at(config, "agent_type")).rpartition(".")[2],
            text(at(config, "model", "model_name")),
        ),
        task=task,
        image=text(at(config, "environment", "image")),
        group=task,
    )


def _failure(status: str) -> Failure | None:
    if status in ENDS_WELL:
        return None
    if not status:  # saved after a step that was not the last
        return Failure("RunInterrupt", events.ACTION, events.CANCELLED)
    return Failure(status, events.ACTION, events.TIMEOUT if "Timeout" in status else events.FAILED)
