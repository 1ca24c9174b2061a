"""SWE-agent 1 (``*.traj``): how long each action took, and nothing else of time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from costmodel import PROVIDER, SANDBOX, events
from taxtui.importers.files import decoded, document, walk
from taxtui.importers.protocol import (
    ACTIONS,
    CREATE,
    EXIT,
    HELD,
    INSTANTS,
    RUN,
    THINK,
    Asked,
    Failure,
    ImportedTrial,
    Unreadable,
)
from taxtui.importers.timeline import Timeline
from taxtui.importers.values import MICROSECOND_NS, at, duration_ns, items, maps, text

FAILURES: Final = {
    "exit_environment_error": Failure("EnvironmentError", events.ACTION, events.FAILED, SANDBOX),
    "exit_error": Failure("ExitError", events.ACTION, events.FAILED),
    "exit_api": Failure("ApiExit", events.ACTION, events.FAILED, PROVIDER),
    "exit_command_timeout": Failure("CommandTimeout", events.ACTION, events.TIMEOUT, SANDBOX),
}
"""Ends by a failure of the sandbox, a command or the model's provider; all others are the agent's."""


LIMITS: Final = {
    "exit_total_execution_time": "TotalExecutionTimeExceeded",
    "exit_cost": "CostLimit",
    "exit_context": "ContextWindowExceededError",
}
"""The agent's budget ran out: the trajectory is submitted as it is."""


class SweAgentReader:
    """One trajectory a file."""

    name: ClassVar[str] = "swe-agent"
    summary: ClassVar[str] = "trajectories of SWE-agent 1: *.traj; tool times alone"
    takes_map: ClassVar[bool] = False

    def files(self, folder: Path) -> Iterator[Path]:
        """Every trajectory below a folder."""
        return walk(folder, lambda name: name.endswith(".traj"))

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the head begins like a trajectory."""
        return head.lstrip()[:1] == b"{" and b'"trajectory"' in head[:64] and b'"action"' in head

    def trials(self, path: Path, asked: Asked) -> Iterator[ImportedTrial]:
        """The trial of one file. Raises ``Unreadable`` where no action has a time."""
        told = document(path)
        steps = [step for step in maps(told, "trajectory") if text(step.get("action")).strip()]
        if not steps and not isinstance(at(told, "trajectory"), list):
            raise Unreadable("it is no trajectory of SWE-agent")
        yield _trial(told, steps)


def _trial(told: dict[str, Any], steps: list[dict[str, Any]]) -> ImportedTrial:
    timeline = Timeline(0)
    timeline.lacks(RUN, "dispatch and work are one")
    timeline.lacks(THINK, "not told")
    timeline.lacks(CREATE, "not told")
    timeline.lacks(INSTANTS, "only durations are known")
    timeline.lacks(EXIT, "not told")
    timeline.lacks(HELD, "the sum of the actions: what lies between them is not told")
    for step in steps:
        took_ns = duration_ns(step.get("execution_time"))
        if not took_ns:  # 0 is the field's default: the action was not run, or not timed
            timeline.lacks(ACTIONS, "a step has no time", partly=True)
            continue
        timeline.next_action(took_ns)
    if timeline.empty:
        raise Unreadable("none of its steps has a time")
    config = configuration(told)
    task = text(at(config, "problem_statement", "id"))
    status = text(at(told, "info", "exit_status")).removeprefix("submitted (").removesuffix(")")
    return ImportedTrial(
        **timeline.times(),
        dated=False,
        failure=FAILURES.get(status),
        limit=LIMITS.get(status, ""),
        resolution_ns=MICROSECOND_NS,
        substrate=text(at(config, "env", "deployment", "type")),
        workload=(
            "SWE-agent",
            text(at(told, "info", "swe_agent_version")),
            text(at(told, "info", "swe_rex_version")),
            text(at(config, "agent", "model", "name")),
        ),
        task=task,
        image=text(at(config, "env", "deployment", "image")),
        group=task,
    )


def configuration(told: object) -> Any:
    """The configuration that a trajectory repeats as a string of JSON; None where it does not."""
    try:
        return decoded(text(at(told, "replay_config")))
    except Unreadable:
        return None


def working_folders(told: object) -> Iterator[str]:
    """The folder in which each step began, by the state after the previous step; "" where it is unknown."""
    folder = ""
    for step in items(told, "trajectory"):
        yield folder
        state = at(step, "state")
        if isinstance(state, str):
            try:
                state = decoded(state)
            except Unreadable:
                state = None
        folder = text(at(state, "working_dir")) or folder
