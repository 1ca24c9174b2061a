"""NeMo-Gym rollouts: JSON lines with Harbor's results, times of tool calls (``TrajectoryRecord`` 1.0), or sums.

Read from the code of NeMo-Gym at 0d2836c (``nemo_gym/rollout_observability.py``) and from committed example rollouts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from costmodel import HARNESS, SANDBOX, VERIFIER, events
from taxtui.importers.files import decoded, lines, walk
from taxtui.importers.formats import harbor
from taxtui.importers.protocol import (
    ACTIONS,
    EXIT,
    HELD,
    INSTANTS,
    RUN,
    THINK,
    Asked,
    Failure,
    ImportedTrial,
    Skipped,
    Unreadable,
)
from taxtui.importers.protocol import CREATE as CREATE_TIME
from taxtui.importers.timeline import Timeline
from taxtui.importers.values import MICROSECOND_NS, MILLISECOND_NS, at, duration_ns, instant_ns, integer, maps, text

TRAJECTORY: Final = "ng_trajectory"
OBSERVATIONS: Final = "ng_agent_observations"
OUTCOMES: Final = {
    "oom": Failure("SandboxLikelyOutOfMemoryError", events.ACTION, events.FAILED, SANDBOX),
    "sandbox_error": Failure("SandboxError", events.ACTION, events.FAILED, SANDBOX),
    "failed": Failure("RolloutError", events.ACTION),
    "cancelled": Failure("CancelledError", events.ACTION, events.CANCELLED),
}
"""Outcome of the agent's sandbox → failure; ``timeout`` is the agent's limit."""


class NemoGymReader:
    """A rollout a line."""

    name: ClassVar[str] = "nemo-gym"
    summary: ClassVar[str] = "rollouts of NeMo-Gym: JSON lines, with TrajectoryRecord 1.0 where agents are observed"
    takes_map: ClassVar[bool] = False

    def files(self, folder: Path) -> Iterator[Path]:
        """Every ``.jsonl`` below a folder."""
        return walk(folder, lambda name: name.endswith(".jsonl"))

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first line has keys of a rollout."""
        first = head.partition(b"\n")[0]
        row = b'"responses_create_params"' in first or b'"_ng_rollout_index"' in first
        return row or (b'"rollout_id"' in first and b'"schema_version"' in first)

    def trials(self, path: Path, asked: Asked) -> Iterator[ImportedTrial | Skipped]:
        """A trial per rollout; a line without times is skipped."""
        for number, line in lines(path):
            try:
                yield _trial(decoded(line))
            except Unreadable as error:
                yield Skipped(f"line {number}", str(error))


def _trial(row: Any) -> ImportedTrial:
    result = at(row, "metadata")
    if text(at(result, "trial_name")):
        return harbor.trial_of(result, None)
    timeline = Timeline()
    timeline.lacks(RUN, "dispatch and command time are one")
    trajectory = at(row, TRAJECTORY) if at(row, TRAJECTORY) is not None else row
    dated = _observed(timeline, trajectory) or _summed(timeline, row)
    if not dated:
        timeline = Timeline(0)
        timeline.lacks(RUN, "no command is timed")
        _parts(timeline, row)
    sandbox = next((one for one in maps(row, OBSERVATIONS, "records") if at(one, "role") == "agent"), {})
    limit = _limit(row, sandbox)
    asked = at(row, "responses_create_params", "metadata")
    places = ((row, "instance_id"), (asked, "instance_id"), (row, "task_id"), (trajectory, "task_id"))
    task = next((name for holder, key in places if (name := text(at(holder, key)))), "")
    index = integer(at(row, "_ng_task_index"))
    apptainer = "apptainer" if at(row, "instance_config", "apptainer_memory_limit_mb") is not None else ""
    return ImportedTrial(
        **timeline.times(),
        dated=dated,
        failure=None if limit else _failure(row, sandbox),
        limit=limit,
        resolution_ns=MICROSECOND_NS,
        substrate=text(at(sandbox, "provider")) or apptainer,
        cpu_milli=1000 * (integer(at(asked, "cpus"), 1 << 20) or 0),
        memory_mib=integer(at(asked, "memory_mb"), 1 << 40) or 0,
        workload=("nemo-gym", text(at(row, "agent_ref", "name")), text(at(row, "response", "model"))),
        task=task,
        image=text(at(row, "image")) or text(at(asked, "docker_image")),
        group=task if index is None else f"{text(at(row, 'agent_ref', 'name'))}:{index}",
        attempt=integer(at(row, "_ng_attempt"), 1 << 31) or 0,
    )


def _observed(timeline: Timeline, trajectory: object) -> bool:
    """Tool calls with both ends, and the time between two as the model's. Are there any?"""
    spans = []
    for call in maps(trajectory, "tool_calls"):
        start_ns, end_ns = instant_ns(at(call, "started_at")), instant_ns(at(call, "completed_at"))
        took_ns = duration_ns(at(call, "duration_ms"), MILLISECOND_NS)
        if end_ns is None and start_ns is not None and took_ns is not None:
            end_ns = start_ns + took_ns
        if start_ns is None or end_ns is None or end_ns < start_ns:
            timeline.lacks(ACTIONS, "some tool calls have no ends", partly=True)
            continue
        spans.append((start_ns, end_ns))
    if not spans:
        return False
    timeline.lacks(EXIT, "tool calls have a status only")
    timeline.lacks(CREATE_TIME, "a trajectory begins with the first tool call")
    timeline.lacks(HELD, "counted from the first tool call", partly=True)
    timeline.lacks(THINK, "known with the agent's own time, between two tool calls", partly=True)
    done_ns: int | None = None
    for start_ns, end_ns in sorted(spans):
        if done_ns is not None and start_ns > done_ns:
            timeline.think(done_ns, start_ns)
        timeline.action(start_ns, end_ns)
        done_ns = max(end_ns, done_ns or 0)
    return True


def _summed(timeline: Timeline, row: object) -> bool:
    """The agent's and the verifier's time after a wait in Ray's queue. Are they known?"""
    queued_ns = instant_ns(at(row, "instance_config", "ray_queue_timestamp"))
    keys = ("ray_queue_time", "total_run_time", "agent_run_time", "eval_run_time")
    waited_ns, total_ns, agent_ns, verify_ns = (duration_ns(at(row, key)) for key in keys)
    if queued_ns is None or waited_ns is None or total_ns is None or agent_ns is None:
        return False
    start_ns = queued_ns + max(0, waited_ns - total_ns)
    timeline.lacks(CREATE_TIME, "the container starts within the agent's time")
    timeline.lacks(ACTIONS, "the agent's time is one piece")
    timeline.lacks(THINK, "the agent's time is one piece")
    timeline.action(start_ns, start_ns + agent_ns)
    if verify_ns is not None:
        timeline.phase(events.VERIFY, start_ns + agent_ns, start_ns + agent_ns + verify_ns)
    return True


def _parts(timeline: Timeline, row: object) -> None:
    """Durations of a sandbox's start and of verification. Raises ``Unreadable`` without any."""
    start_ns, verify_ns = (duration_ns(at(row, key)) for key in ("sandbox_start_time_s", "verification_time_s"))
    if start_ns is None:
        raise Unreadable("the rollout has no time of a sandbox, a tool call or an agent")
    timeline.lacks(INSTANTS, "only durations are known")
    timeline.lacks(ACTIONS, "the agent's time is unknown")
    timeline.lacks(THINK, "the agent's time is unknown")
    timeline.lacks(HELD, "the agent's time is unknown")
    timeline.next_phase(events.CREATE, start_ns)
    if verify_ns is not None:
        timeline.next_phase(events.VERIFY, verify_ns)


def _limit(row: object, sandbox: dict[str, Any]) -> str:
    if at(row, "agent_timed_out") is True or at(sandbox, "outcome") == "timeout" or at(row, "agent_timeout_error"):
        return "AgentTimeoutError"
    return "ContextLengthExceededError" if at(row, "context_length_exceeded_error") else ""


def _failure(row: object, sandbox: dict[str, Any]) -> Failure | None:
    if at(row, "container_timed_out") is True:
        return Failure("ContainerTimeout", events.ACTION, events.TIMEOUT, SANDBOX)
    if (failure := OUTCOMES.get(text(at(sandbox, "outcome")))) is not None:
        error = text(at(sandbox, "error_type"))
        return failure._replace(error=error) if error else failure
    if kind := text(at(row, "_ng_failure_class")):
        judged = kind.startswith(("judge", "verif"))
        return Failure(kind, events.VERIFY if judged else events.ACTION, events.FAILED, VERIFIER if judged else HARNESS)
    if text(at(row, "verifier_error")) or at(row, "evaluation_completed") is False:
        return Failure("VerifierError", events.VERIFY, events.FAILED, VERIFIER)
    return None
