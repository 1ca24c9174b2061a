"""Harbor (0.8 to 0.26, and forks with ``results.json``): a result per trial, with the agent's steps in a file.

``environment_setup`` is build and start together. ``atif`` reads the agent's times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from costmodel import events
from taxtui.importers.files import Unreadable, document
from taxtui.importers.formats import atif
from taxtui.importers.protocol import Reader
from taxtui.importers.timeline import Timeline
from taxtui.importers.trial import (
    AGENT_LIMITS,
    Failure,
    ImportedAction,
    ImportedTrial,
    Quantity,
    failed_phase,
    failure_of,
)
from taxtui.importers.values import at, duration_ns, instant_ns, integer, maps, number, span_ns, text

AGENT_EXIT: Final = "NonZeroAgentExitCodeError"
SPANS: Final = {
    "environment_setup": events.CREATE,
    "agent_setup": events.PRELOAD,
    "agent_execution": events.ACTION,
    "verifier": events.VERIFY,
}
"""Span of a result → phase, in the order of a trial."""
SILENT: Final = ("oracle", "nop")
"""Agents without a model."""
_WITHOUT_TIMER: Final = "dispatch and command time are undivided without --plugin-kwarg timer=true"
_PARTLY_TIMED: Final = "some commands ran without bash, or replaced their shell"


class HarborReader(Reader):
    """The results in jobs of any layout. A job's result has no trial."""

    name: ClassVar[str] = "harbor"
    file_names: ClassVar[tuple[str, ...]] = ("result.json", "results.json")

    def recognises(self, path: Path, head: bytes) -> bool:
        if b'"responses_create_params"' in head:
            return False  # a rollout of NeMo-Gym around a result
        if b'"n_total_trials"' in head:
            return b'"stats"' in head
        return b'"trial_name"' in head and (b'"agent_info"' in head or b'"environment_setup"' in head)

    def trials(self, path: Path) -> Iterator[ImportedTrial]:
        result = document(path)
        if at(result, "n_total_trials") is not None:
            return
        if not text(at(result, "trial_name")) or not any(key in result for key in ("agent_info", *SPANS)):
            raise Unreadable("no result of a Harbor trial")
        yield trial_of(result, path.parent)


class Execution(NamedTuple):
    """An ``environment.exec`` call, measured by the plug-in."""

    start_ns: int  # Unix
    duration_ns: int
    run_ns: int = events.UNKNOWN
    exit_code: int = events.UNKNOWN  # also of a command without an end


class Executions(NamedTuple):
    """Every command of a trial, measured by the plug-in."""

    commands: Sequence[Execution]
    inside: bool  # whether the agent itself runs in the sandbox, as a single command
    stop: Execution | None = None  # ``environment.stop``


def trial_of(result: dict[str, Any], folder: Path | None, measured: Executions | None = None) -> ImportedTrial:
    """Return the trial of a result, with the plug-in's commands if given. ``folder`` has the agent's trajectory.

    Raises:
        Unreadable: the result has no beginning.
    """
    requested_ns = instant_ns(at(result, "environment_setup", "started_at")) or instant_ns(at(result, "started_at"))
    if requested_ns is None:
        raise Unreadable("the start of the trial is missing")
    timeline = Timeline(requested_ns)
    timeline.lacks_zone(at(result, "started_at"), *(at(result, span, "started_at") for span in SPANS))
    _report_run(timeline, measured)
    steps = list(maps(result, "step_results"))
    # The trial's exception is null where a step of several failed.
    raised = [holder for holder in (*steps, result) if isinstance(at(holder, "exception_info"), dict)]
    failed = next((holder for holder in reversed(raised) if not _delivered(holder)), None)
    failure = None if failed is None else _failure(result, failed)
    if _phase(timeline, result, "environment_setup", "" if raised else "no end of environment_setup"):
        timeline.lacks(Quantity.READY, "environment_setup holds build, create and ready")
    else:
        timeline.lacks(Quantity.CREATE, "environment_setup has no ends")
    if not _phase(timeline, result, "agent_setup") and not raised:
        timeline.lacks(Quantity.SETUP, "agent_setup has no ends")
    for step in steps:
        name = text(at(step, "step_name"))
        step_folder = folder / "steps" / name if folder and name and Path(name).name == name else None
        _agent(timeline, step, result, step_folder, measured)
    if not steps:
        _agent(timeline, result, result, folder, measured)
    _phase(timeline, steps[-1] if steps else result, "verifier")
    if len(steps) > 1:
        timeline.lacks(Quantity.VERIFY, "verification between steps is part of the gaps", partly=True)
    if measured is not None and (stop := measured.stop) is not None:
        timeline.add(events.CLEANUP, stop.start_ns, stop.start_ns + stop.duration_ns)
    if failed is not None and failure is not None and failure.phase != events.VERIFY:
        timeline.ended(_raised_ns(result, failed, requested_ns))
    agent = at(result, "agent_info")
    environment = at(result, "config", "environment")
    task = text(at(result, "task_name"))
    job = text(at(result, "config", "job_id"))
    names = (("name",), ("version",), ("model_info", "name"), ("model_info", "provider"))
    return ImportedTrial(
        **timeline.times(),
        preload=() if measured is None else _preload(result, measured),
        failure=failure,
        limit="" if failure is not None else next(map(_error, raised), ""),
        substrate=text(at(environment, "type")) or text(at(environment, "import_path")),
        cpu_milli=round(1000 * min(max(number(at(environment, "override_cpus")) or 0, 0), 1 << 20)),
        memory_mib=integer(at(environment, "override_memory_mb"), 1 << 40) or 0,
        workload=tuple(text(at(agent, *path)) for path in names),
        task=text(at(result, "task_checksum")) or task,
        group=f"{job}:{task}" if job and task else "",
    )


def _report_run(timeline: Timeline, measured: Executions | None) -> None:
    """Report commands without in-sandbox time."""
    if measured is None:
        timeline.lacks(Quantity.RUN, "dispatch and command time are undivided")
    elif any(command.run_ns == events.UNKNOWN for command in measured.commands):
        timed = any(command.run_ns != events.UNKNOWN for command in measured.commands)
        timeline.lacks(Quantity.RUN, _PARTLY_TIMED if timed else _WITHOUT_TIMER, partly=timed)


def _phase(timeline: Timeline, holder: dict[str, Any], key: str, why: str = "") -> bool:
    return timeline.add(SPANS[key], *span_ns(at(holder, key)), why)


def _preload(result: dict[str, Any], measured: Executions) -> tuple[ImportedAction, ...]:
    """Return the commands of the agent's set-up, without overlaps."""
    start_ns, end_ns = span_ns(at(result, "agent_setup"))
    timeline = Timeline()
    if start_ns is not None and end_ns is not None:
        _add_commands(timeline, measured, start_ns, end_ns, model=False)
    return tuple(action._replace(gap_ns=0) for action in timeline.times()["actions"])


def _add_commands(timeline: Timeline, measured: Executions, start_ns: int, end_ns: int, *, model: bool) -> None:
    """Add the plug-in's commands of a span; with a ``model`` the time between two is of model and agent."""
    cursor_ns = start_ns
    for command in sorted(measured.commands):
        if start_ns <= command.start_ns <= end_ns:
            if model and command.start_ns > cursor_ns:
                timeline.add(Quantity.THINK, cursor_ns, command.start_ns)
            until_ns = min(command.start_ns + command.duration_ns, end_ns)
            timeline.add(events.ACTION, command.start_ns, until_ns, run_ns=command.run_ns, exit_code=command.exit_code)
            cursor_ns = max(cursor_ns, until_ns)


def _agent(
    timeline: Timeline,
    holder: dict[str, Any],
    result: dict[str, Any],
    folder: Path | None,
    measured: Executions | None,
) -> None:
    """Add the agent's time of an execution from the finest source. ``holder``: the result, or a step."""
    agent = text(at(result, "agent_info", "name"))
    start_ns, end_ns = span_ns(at(holder, "agent_execution"))
    if end_ns is None and start_ns is not None and isinstance(at(holder, "exception_info"), dict):
        end_ns = _raised_ns(result, holder, start_ns) if _delivered(holder) else None
    if start_ns is None or end_ns is None:
        if at(result, "exception_info") is None and at(holder, "exception_info") is None:
            timeline.lacks(Quantity.HELD, "agent_execution has no ends")
        return
    if measured is not None:
        if measured.inside:
            why = "the agent runs in the sandbox: all commands and the model's time are parts of a single command"
            timeline.lacks(Quantity.ACTIONS, why)
            timeline.lacks(Quantity.THINK, why)
        elif agent not in SILENT:
            timeline.lacks(Quantity.THINK, "known with the agent's time, between two commands", partly=True)
        _add_commands(timeline, measured, start_ns, end_ns, model=agent not in SILENT and not measured.inside)
        return
    metadata = at(holder, "agent_result", "metadata")
    thinks_ns = _durations(at(metadata, "api_request_times_msec"))
    commands_ns = _durations(at(metadata, "command_exec_times_msec"))
    if commands_ns:
        if not thinks_ns:
            timeline.lacks(Quantity.THINK, "known as a sum, before the first command")
            thinks_ns = [max(0, end_ns - start_ns - sum(commands_ns))]
        elif len(thinks_ns) != len(commands_ns):
            why = "calls and commands are counted apart, and paired by their order"
            timeline.lacks(Quantity.THINK, why, partly=True)
        # A call after the last command leads to no command, and a command may have no call.
        pairs = list(zip_longest(thinks_ns[: len(commands_ns)], commands_ns, fillvalue=0))
        atif.add_consecutive(timeline, pairs, start_ns, end_ns - sum(thinks_ns[len(commands_ns) :]))
        return
    path = folder / "agent" / "trajectory.json" if folder is not None and agent not in SILENT else None
    if path is None or not atif.add(timeline, path, agent, start_ns, end_ns, thinks_ns):
        timeline.add_undivided(start_ns, end_ns, think_ns=sum(thinks_ns), model=agent not in SILENT)


def _durations(value: object) -> list[int]:
    """Return a list of milliseconds in ns; empty if an item is no duration."""
    durations = [duration_ns(item, 10**6) for item in value] if isinstance(value, list) else []
    valid = [duration for duration in durations if duration is not None]
    return valid if len(valid) == len(durations) else []


def _error(holder: dict[str, Any]) -> str:
    """Return the class of the exception at the end of a trial or a step."""
    return text(at(holder, "exception_info", "exception_type")) or "Exception"


def _failure(result: dict[str, Any], failed: dict[str, Any]) -> Failure:
    """Return the failure of an exception, in the phase of its trial or step."""
    spans = {phase: span_ns(at(failed, key)) for key, phase in SPANS.items()}
    return failure_of(_error(failed), failed_phase(spans, events.CREATE if failed is result else events.ACTION))


def _delivered(holder: dict[str, Any]) -> bool:
    """Whether Harbor delivers the trial with its reward: a limit of the agent, or an error of the agent's program.

    The same class during agent set-up is a failed installation, and no agent ran.
    """
    error_class = _error(holder).rpartition(".")[2]
    ran = at(holder, "agent_execution", "started_at") is not None
    return error_class in AGENT_LIMITS or (error_class == AGENT_EXIT and ran)


def _raised_ns(result: dict[str, Any], holder: dict[str, Any], start_ns: int) -> int | None:
    """Return the instant of an exception; without a valid instant, the end of the trial or step."""
    finished_ns = instant_ns(at(holder, "finished_at")) or instant_ns(at(result, "finished_at"))
    occurred_ns = instant_ns(at(holder, "exception_info", "occurred_at"))
    if occurred_ns is not None and start_ns <= occurred_ns and (finished_ns is None or occurred_ns <= finished_ns):
        return occurred_ns
    return finished_ns
