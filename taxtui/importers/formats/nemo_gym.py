"""NeMo-Gym rollouts: JSON lines with Harbor's results, times of tool calls (``TrajectoryRecord`` 1.0), or sums.

Source: NeMo-Gym at 0d2836c (``nemo_gym/rollout_observability.py``) and committed example rollouts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from costmodel import causes, events
from taxtui.importers.files import Unreadable, decoded, lines
from taxtui.importers.formats import harbor
from taxtui.importers.protocol import Reader, Skipped, trial_or_skipped
from taxtui.importers.timeline import Timeline
from taxtui.importers.trial import Failure, ImportedTrial, Quantity
from taxtui.importers.values import (
    MILLISECOND_NS,
    at,
    duration_ns,
    instant_ns,
    integer,
    maps,
    span_ns,
    text,
)

OUTCOMES: Final = {
    "oom": Failure("SandboxLikelyOutOfMemoryError", events.ACTION, events.FAILED, causes.SANDBOX),
    "sandbox_error": Failure("SandboxError", events.ACTION, events.FAILED, causes.SANDBOX),
    "failed": Failure("RolloutError", events.ACTION),
    "cancelled": Failure("CancelledError", events.ACTION, events.CANCELLED),
}
"""Outcome of the agent's sandbox → failure; ``timeout`` is the agent's limit."""


class NemoGymReader(Reader):
    """A rollout a line."""

    name: ClassVar[str] = "nemo-gym"
    file_names: ClassVar[tuple[str, ...]] = ("*.jsonl",)

    def recognises(self, path: Path, head: bytes) -> bool:
        first = head.partition(b"\n")[0]
        row = b'"responses_create_params"' in first or b'"_ng_rollout_index"' in first
        return row or (b'"rollout_id"' in first and b'"schema_version"' in first)

    def trials(self, path: Path) -> Iterator[ImportedTrial | Skipped]:
        for number, line in lines(path):
            yield trial_or_skipped(f"line {number}", _trial, line)


def _trial(line: bytes) -> ImportedTrial:
    row = decoded(line)
    result = at(row, "metadata")
    if text(at(result, "trial_name")):
        return harbor.trial_of(result, None)
    timeline = Timeline()
    timeline.lacks(Quantity.RUN, "dispatch and command time are undivided")
    trajectory = at(row, "ng_trajectory") if at(row, "ng_trajectory") is not None else row
    dated = _add_tool_calls(timeline, trajectory) or _add_sums(timeline, row)
    if not dated:
        timeline = Timeline(0)
        timeline.lacks(Quantity.RUN, "no command is timed")
        _add_parts(timeline, row)
    records = maps(row, "ng_agent_observations", "records")
    sandbox = next((record for record in records if at(record, "role") == "agent"), {})
    limit = _limit(row, sandbox)
    request = at(row, "responses_create_params", "metadata")
    keys = ((row, "instance_id"), (request, "instance_id"), (row, "task_id"), (trajectory, "task_id"))
    task = next((name for holder, key in keys if (name := text(at(holder, key)))), "")
    index = integer(at(row, "_ng_task_index"))
    apptainer = "apptainer" if at(row, "instance_config", "apptainer_memory_limit_mb") is not None else ""
    return ImportedTrial(
        **timeline.times(),
        dated=dated,
        failure=None if limit else _failure(row, sandbox),
        limit=limit,
        substrate=text(at(sandbox, "provider")) or apptainer,
        cpu_milli=1000 * (integer(at(request, "cpus"), 1 << 20) or 0),
        memory_mib=integer(at(request, "memory_mb"), 1 << 40) or 0,
        workload=("nemo-gym", text(at(row, "agent_ref", "name")), text(at(row, "response", "model"))),
        task=task,
        image=text(at(row, "image")) or text(at(request, "docker_image")),
        group=task if index is None else f"{text(at(row, 'agent_ref', 'name'))}:{index}",
        attempt=integer(at(row, "_ng_attempt"), 1 << 31) or 0,
    )


def _add_tool_calls(timeline: Timeline, trajectory: object) -> bool:
    """Add tool calls with both ends, and the time between two calls as the model's. Return whether there is a call."""
    spans = []
    for call in maps(trajectory, "tool_calls"):
        timeline.lacks_zone(call.get("started_at"))
        start_ns, end_ns = span_ns(call, "started_at", "completed_at", "duration_ms", MILLISECOND_NS)
        if start_ns is None or end_ns is None or end_ns < start_ns:
            timeline.lacks(Quantity.ACTIONS, "some tool calls have no ends", partly=True)
        else:
            spans.append((start_ns, end_ns))
    if spans:
        timeline.lacks(Quantity.EXIT, "tool calls have a status only")
        timeline.lacks(Quantity.CREATE, "a trajectory begins with the first tool call")
        timeline.lacks(Quantity.HELD, "counted from the first tool call", partly=True)
        timeline.lacks(Quantity.THINK, "known with the agent's time, between two tool calls", partly=True)
        timeline.calls(spans)
    return bool(spans)


def _add_sums(timeline: Timeline, row: object) -> bool:
    """Add the agent's and the verifier's time after a wait in Ray's queue. Return whether both are known."""
    queued_ns = instant_ns(at(row, "instance_config", "ray_queue_timestamp"))
    keys = ("ray_queue_time", "total_run_time", "agent_run_time", "eval_run_time")
    waited_ns, total_ns, agent_ns, verify_ns = (duration_ns(at(row, key)) for key in keys)
    if queued_ns is None or waited_ns is None or total_ns is None or agent_ns is None:
        return False
    start_ns = queued_ns + max(0, waited_ns - total_ns)
    timeline.lacks(Quantity.CREATE, "the container starts within the agent's time")
    timeline.add_undivided(start_ns, start_ns + agent_ns)
    if verify_ns is not None:
        timeline.append(events.VERIFY, verify_ns)
    return True


def _add_parts(timeline: Timeline, row: object) -> None:
    """Add durations of a sandbox's start and of verification. Raises ``Unreadable`` without a start."""
    create_ns, verify_ns = (duration_ns(at(row, key)) for key in ("sandbox_start_time_s", "verification_time_s"))
    if create_ns is None:
        raise Unreadable("the rollout has no time of a sandbox, a tool call or an agent")
    timeline.lacks(Quantity.INSTANTS, "only durations are known")
    for quantity in (Quantity.ACTIONS, Quantity.THINK, Quantity.HELD):
        timeline.lacks(quantity, "the agent's time is unknown")
    timeline.append(events.CREATE, create_ns)
    if verify_ns is not None:
        timeline.append(events.VERIFY, verify_ns)


def _limit(row: object, sandbox: dict[str, Any]) -> str:
    if at(row, "agent_timed_out") is True or at(sandbox, "outcome") == "timeout" or at(row, "agent_timeout_error"):
        return "AgentTimeoutError"
    return "ContextLengthExceededError" if at(row, "context_length_exceeded_error") else ""


def _failure(row: object, sandbox: dict[str, Any]) -> Failure | None:
    if at(row, "container_timed_out") is True:
        return Failure("ContainerTimeout", events.ACTION, events.TIMEOUT, causes.SANDBOX)
    if (failure := OUTCOMES.get(text(at(sandbox, "outcome")))) is not None:
        error = text(at(sandbox, "error_type"))
        return failure._replace(error=error) if error else failure
    if kind := text(at(row, "_ng_failure_class")):
        if kind.startswith(("judge", "verif")):
            return Failure(kind, events.VERIFY, events.FAILED, causes.VERIFIER)
        return Failure(kind, events.ACTION, events.FAILED, causes.HARNESS)
    if text(at(row, "verifier_error")) or at(row, "evaluation_completed") is False:
        return Failure("VerifierError", events.VERIFY, events.FAILED, causes.VERIFIER)
    return None
