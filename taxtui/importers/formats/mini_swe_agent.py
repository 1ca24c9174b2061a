"""mini-swe-agent 2 (``*.traj.json``, format 1.1): an instant at the end of each answer and of each observation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from costmodel import events
from taxtui.importers.files import Unreadable, document
from taxtui.importers.protocol import Reader
from taxtui.importers.timeline import BACKWARDS, Timeline
from taxtui.importers.trial import Failure, ImportedTrial, Quantity, failure_of
from taxtui.importers.values import at, instant_ns, integer, items, maps, text

FORMAT: Final = "mini-swe-agent-1.1"
LIMITS: Final = {
    **{status: status for status in ("LimitsExceeded", "TimeExceeded")},
    "LengthTruncated": "OutputLengthExceededError",  # written by Harbor's patch of the agent
}
"""Exit status → class of the agent's limit."""
ATTENDED: Final = ("confirm", "human")
"""Modes of the agent in which a person confirms or writes commands."""
DELIVERED: Final = frozenset({"Submitted", "RepeatedFormatError", *LIMITS})
"""Exit statuses without a failure of the sandbox."""


class MiniSweAgentReader(Reader):
    """A trajectory a file."""

    name: ClassVar[str] = "mini-swe-agent"
    file_names: ClassVar[tuple[str, ...]] = ("*.traj.json",)

    def recognises(self, path: Path, head: bytes) -> bool:
        if b'"mini_version"' in head or b'"mini-swe-agent-' in head:
            return True
        # Version 1 is recognised and then refused: a list of messages, alone or in a map.
        return path.name.endswith(".traj.json") and b'"role"' in head and b'"trajectory"' not in head[:64]

    def trials(self, path: Path) -> Iterator[ImportedTrial]:
        trajectory = document(path)
        if isinstance(trajectory, list) or text(at(trajectory, "trajectory_format")) == "mini-swe-agent-1":
            raise Unreadable("mini-swe-agent wrote no times into messages before version 2")
        if text(at(trajectory, "trajectory_format")) != FORMAT:
            raise Unreadable(f"the format is not {FORMAT}")
        yield _trial(trajectory)


def turns(messages: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each answer of the model with commands, and the observations after the answer."""
    answer: dict[str, Any] | None = None
    observations: list[dict[str, Any]] = []
    for message in messages:
        if items(message, "extra", "actions"):
            if answer is not None:
                yield answer, observations
            answer, observations = message, []
        elif instant_ns(at(message, "extra", "timestamp")) is not None and message.get("role") != "assistant":
            observations.append(message)  # an answer without commands observes none
    if answer is not None:
        yield answer, observations


def _trial(trajectory: dict[str, Any]) -> ImportedTrial:
    timeline = Timeline()
    timeline.lacks(Quantity.RUN, "dispatch and command time are undivided")
    timeline.lacks(Quantity.CREATE, "nothing before the first answer is dated")
    timeline.lacks(Quantity.HELD, "counted from the first answer")
    timeline.lacks(Quantity.THINK, "the first answer has no begin", partly=True)
    observed_ns: int | None = None
    for answer, observations in turns(list(maps(trajectory, "messages"))):
        answered_ns = instant_ns(at(answer, "extra", "timestamp"))
        why = "an answer has no time"
        if answered_ns is not None and observed_ns is not None and answered_ns < observed_ns:
            answered_ns, why = None, BACKWARDS  # answered before the observation: the command has no start
        if observed_ns is not None:
            timeline.add(Quantity.THINK, observed_ns, answered_ns, why)
        if not observations:
            timeline.lacks(Quantity.ACTIONS, "a submitting or failing command has no end", partly=True)
            observed_ns = None
            continue
        if len(items(answer, "extra", "actions")) > 1:
            timeline.lacks(Quantity.ACTIONS, "commands of an answer share an interval", partly=True)
        observed_ns = max(instant_ns(at(item, "extra", "timestamp")) or 0 for item in observations)
        code = integer(at(observations[0], "extra", "returncode"), 255) if len(observations) == 1 else None
        timeline.add(events.ACTION, answered_ns, observed_ns, why, exit_code=code)
    if timeline.empty:
        raise Unreadable("no message has a time")
    config = at(trajectory, "info", "config")
    if text(at(config, "agent", "mode")) in ATTENDED:
        timeline.lacks(Quantity.ACTIONS, "a person may have confirmed commands: the wait is part of them", partly=True)
    status = text(at(trajectory, "info", "exit_status"))
    task = text(at(trajectory, "instance_id")) or text(at(trajectory, "info", "instance_id"))
    return ImportedTrial(
        **timeline.times(),
        failure=_failure(status),
        limit=LIMITS.get(status, ""),
        substrate=text(at(config, "environment_type")).rpartition(".")[2].lower().removesuffix("environment"),
        workload=(
            "mini-swe-agent",
            text(at(trajectory, "info", "mini_version")),
            text(at(config, "agent_type")).rpartition(".")[2],
            text(at(config, "model", "model_name")),
        ),
        task=task,
        image=text(at(config, "environment", "image")),
        group=task,
    )


def _failure(status: str) -> Failure | None:
    if status in DELIVERED:
        return None
    if not status:  # the agent was interrupted between two steps
        return Failure("RunInterrupt", events.ACTION, events.CANCELLED)
    return failure_of(status, events.ACTION)
