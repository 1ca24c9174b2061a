"""SWE-agent 1 (``*.traj``): the duration of each action is the only time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from costmodel import causes, events
from taxtui.importers.files import Unreadable, decoded, document
from taxtui.importers.protocol import Reader
from taxtui.importers.timeline import Timeline
from taxtui.importers.trial import Failure, ImportedTrial, Quantity
from taxtui.importers.values import at, duration_ns, maps, text

FAILURES: Final = {
    **dict.fromkeys(("", "early_exit"), Failure("RunInterrupt", events.ACTION, events.CANCELLED)),
    "exit_environment_error": Failure("EnvironmentError", events.ACTION, events.FAILED, causes.SANDBOX),
    "exit_error": Failure("ExitError", events.ACTION, events.FAILED),
    "exit_api": Failure("ApiExit", events.ACTION, events.FAILED, causes.PROVIDER),
    "exit_command_timeout": Failure("CommandTimeout", events.ACTION, events.TIMEOUT, causes.SANDBOX),
}
"""Exit status → failure of the sandbox, a command or the model's provider. Other statuses are the agent's end."""
LIMITS: Final = {
    "exit_total_execution_time": "TotalExecutionTimeExceeded",
    "exit_cost": "CostLimit",
    "exit_context": "ContextWindowExceededError",
}
"""Exit status → the agent's limit. The trajectory is submitted."""


class SweAgentReader(Reader):
    """A trajectory a file."""

    name: ClassVar[str] = "swe-agent"
    file_names: ClassVar[tuple[str, ...]] = ("*.traj",)

    def recognises(self, path: Path, head: bytes) -> bool:
        return head.lstrip()[:1] == b"{" and b'"trajectory"' in head[:64] and b'"action"' in head

    def trials(self, path: Path) -> Iterator[ImportedTrial]:
        trajectory = document(path)
        steps = [step for step in maps(trajectory, "trajectory") if text(step.get("action")).strip()]
        if not steps and not isinstance(at(trajectory, "trajectory"), list):
            raise Unreadable("no trajectory of SWE-agent")
        yield _trial(trajectory, steps)


def _trial(trajectory: dict[str, Any], steps: list[dict[str, Any]]) -> ImportedTrial:
    timeline = Timeline(0)
    timeline.lacks(Quantity.RUN, "dispatch and command time are undivided")
    timeline.lacks(Quantity.INSTANTS, "only durations are known")
    timeline.lacks(Quantity.HELD, "only the sum of the actions is known")
    for quantity in (Quantity.THINK, Quantity.CREATE, Quantity.EXIT):
        timeline.lacks(quantity, "not in the file")
    for step in steps:
        took_ns = duration_ns(step.get("execution_time"))
        if took_ns:
            timeline.append(events.ACTION, took_ns)
        else:  # 0, the field's default: not run, or not timed
            timeline.lacks(Quantity.ACTIONS, "a step has no time", partly=True)
    if timeline.empty:
        raise Unreadable("no step has a time")
    config = _decoded_or_none(at(trajectory, "replay_config"))
    task = text(at(config, "problem_statement", "id"))
    status = text(at(trajectory, "info", "exit_status")).removeprefix("submitted (").removesuffix(")")
    return ImportedTrial(
        **timeline.times(),
        dated=False,
        failure=FAILURES.get(status),
        limit=LIMITS.get(status, ""),
        substrate=text(at(config, "env", "deployment", "type")),
        workload=(
            "SWE-agent",
            text(at(trajectory, "info", "swe_agent_version")),
            text(at(trajectory, "info", "swe_rex_version")),
            text(at(config, "agent", "model", "name")),
        ),
        task=task,
        image=text(at(config, "env", "deployment", "image")),
        group=task,
    )


def _decoded_or_none(value: object) -> Any:
    try:
        return decoded(text(value))
    except Unreadable:
        return None
