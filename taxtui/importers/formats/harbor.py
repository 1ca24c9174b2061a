"""Harbor (0.8 to 0.25, and forks that write ``results.json``): one result per trial, with the agent's steps beside it.

``environment_setup`` is build and start in one; the agent's own time comes from ``atif`` where a trajectory tells it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from costmodel import cause_of, events
from taxtui.importers.files import document, walk
from taxtui.importers.formats import atif
from taxtui.importers.protocol import (
    ACTIONS,
    AGENT_LIMITS,
    HELD,
    READY,
    RUN,
    THINK,
    Asked,
    Failure,
    ImportedAction,
    ImportedTrial,
    Unreadable,
)
from taxtui.importers.protocol import (
    CREATE as CREATE_TIME,
)
from taxtui.importers.protocol import (
    SETUP as SETUP_TIME,
)
from taxtui.importers.timeline import Timeline
from taxtui.importers.values import MICROSECOND_NS, at, duration_ns, instant_ns, integer, maps, number, text

NAMES: Final = frozenset({"result.json", "results.json"})
SPANS: Final = {
    "environment_setup": events.CREATE,
    "agent_setup": events.SETUP,
    "agent_execution": events.ACTION,
    "verifier": events.VERIFY,
}
"""In the order of a trial."""
SILENT: Final = ("oracle", "nop")
"""Agents without a model: they do not think."""
_WITHOUT_TIMER: Final = "dispatch and command time are one without --plugin-kwarg timer=true"
_WITHOUT_TIME: Final = "some commands ran without bash, or replaced their shell"


class HarborReader:
    """Finds results in jobs of any layout; a job's own result holds no trial."""

    name: ClassVar[str] = "harbor"
    summary: ClassVar[str] = "jobs of Harbor 0.8 to 0.25: result.json and the agents' ATIF trajectories"
    takes_map: ClassVar[bool] = False

    def files(self, folder: Path) -> Iterator[Path]:
        """Every result below a folder."""
        return walk(folder, NAMES.__contains__)

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the head has keys that only Harbor's results have."""
        if b'"responses_create_params"' in head:
            return False  # a rollout of NeMo-Gym around a result
        if b'"n_total_trials"' in head:
            return b'"stats"' in head
        return b'"trial_name"' in head and (b'"agent_info"' in head or b'"environment_setup"' in head)

    def trials(self, path: Path, asked: Asked) -> Iterator[ImportedTrial]:
        """The trial of one result. Raises ``Unreadable`` where it is none."""
        result = document(path)
        if at(result, "n_total_trials") is not None:
            return
        if not text(at(result, "trial_name")) or not any(key in result for key in ("agent_info", *SPANS)):
            raise Unreadable("it is no result of a Harbor trial")
        yield trial_of(result, path.parent)


class Execution(NamedTuple):
    """An ``environment.exec`` call, measured by the plug-in."""

    start_ns: int  # Unix
    duration_ns: int
    run_ns: int = events.UNKNOWN
    exit_code: int = events.UNKNOWN  # also of a command without an end


class Executions(NamedTuple):
    """Every command of one trial, measured by the plug-in beside Harbor's own times."""

    commands: Sequence[Execution]
    inside: bool  # whether the agent itself runs in the sandbox, as a single command
    stop: Execution | None = None  # ``environment.stop``


def trial_of(result: dict[str, Any], folder: Path | None, measured: Executions | None = None) -> ImportedTrial:
    """The trial of a result, with the plug-in's commands where ``measured`` is given.

    Raises:
        Unreadable: the result has no beginning.
    """
    asked_ns = instant_ns(at(result, "environment_setup", "started_at")) or instant_ns(at(result, "started_at"))
    if asked_ns is None:
        raise Unreadable("it does not say when the trial began")
    timeline = Timeline(asked_ns)
    timeline.lacks_zone(at(result, "started_at"), *(at(result, span, "started_at") for span in SPANS))
    if measured is None:
        timeline.lacks(RUN, "dispatch and work are one")
    elif any(command.run_ns == events.UNKNOWN for command in measured.commands):
        timed = any(command.run_ns != events.UNKNOWN for command in measured.commands)
        timeline.lacks(RUN, _WITHOUT_TIME if timed else _WITHOUT_TIMER, partly=timed)
    raised = _exceptions(result)
    failed = next((each for each in reversed(raised) if _short(each.error) not in AGENT_LIMITS), None)
    failure = None if failed is None else _failure(result, failed)
    limit = "" if failure is not None else next((each.error for each in raised), "")
    ended = bool(raised)
    create_ended = _phase(timeline, result, "environment_setup", "" if ended else "no end of environment_setup")
    if create_ended:
        timeline.lacks(READY, "environment_setup holds build, create and ready")
    else:
        timeline.lacks(CREATE_TIME, "environment_setup has no ends")
    if not _phase(timeline, result, "agent_setup", "") and not ended:
        timeline.lacks(SETUP_TIME, "agent_setup has no ends")
    steps = list(maps(result, "step_results"))
    if steps:
        for step in steps:
            name = text(at(step, "step_name"))
            inside = folder / "steps" / name if folder and name and Path(name).name == name else None
            _agent(timeline, step, result, inside, measured)
        _phase(timeline, steps[-1], "verifier", "")
        if len(steps) > 1:
            timeline.lacks(events.VERIFY, "what was verified between steps is part of the gaps", partly=True)
    else:
        _agent(timeline, result, result, folder, measured)
        _phase(timeline, result, "verifier", "")
    if measured is not None and (stop := measured.stop) is not None:
        timeline.phase(events.CLEANUP, stop.start_ns, stop.start_ns + stop.duration_ns)
    if failed is not None and failure is not None and failure.phase != events.VERIFY:  # else the trajectory was over
        timeline.ended(_raised_ns(result, failed, asked_ns))
    agent = at(result, "agent_info")
    environment = at(result, "config", "environment")
    task = text(at(result, "task_name"))
    job = text(at(result, "config", "job_id"))
    return ImportedTrial(
        **timeline.times(),
        setup=() if measured is None else _setup(result, measured),
        failure=failure,
        limit=limit,
        resolution_ns=MICROSECOND_NS,
        substrate=text(at(environment, "type")) or text(at(environment, "import_path")),
        cpu_milli=round(1000 * min(max(number(at(environment, "override_cpus")) or 0, 0), 1 << 20)),
        memory_mib=integer(at(environment, "override_memory_mb"), 1 << 40) or 0,
        workload=tuple(
            text(value)
            for value in (
                at(agent, "name"),
                at(agent, "version"),
                at(agent, "model_info", "name"),
                at(agent, "model_info", "provider"),
            )
        ),
        task=text(at(result, "task_checksum")) or task,
        group=f"{job}:{task}" if job and task else "",
    )


def _phase(timeline: Timeline, holder: dict[str, Any], key: str, why: str) -> bool:
    span = at(holder, key)
    return timeline.phase(SPANS[key], instant_ns(at(span, "started_at")), instant_ns(at(span, "finished_at")), why)


def _setup(result: dict[str, Any], measured: Executions) -> tuple[ImportedAction, ...]:
    """The commands of the agent's set-up; overlaps are cut."""
    span = at(result, "agent_setup")
    start_ns, end_ns = instant_ns(at(span, "started_at")), instant_ns(at(span, "finished_at"))
    commands = Timeline()
    for command in _within(measured, start_ns, end_ns):
        _command(commands, command, end_ns)
    return tuple(action._replace(gap_ns=0) for action in commands.times()["actions"])


def _within(measured: Executions, start_ns: int | None, end_ns: int | None) -> list[Execution]:
    """The commands with a beginning inside a span."""
    if start_ns is None or end_ns is None:
        return []
    return [command for command in measured.commands if start_ns <= command.start_ns <= end_ns]


def _command(timeline: Timeline, command: Execution, end_ns: int | None) -> None:
    ended_ns = command.start_ns + command.duration_ns
    ended_ns = ended_ns if end_ns is None else max(command.start_ns, min(ended_ns, end_ns))
    timeline.action(command.start_ns, ended_ns, run_ns=command.run_ns, exit_code=command.exit_code)


def _measured(timeline: Timeline, measured: Executions, agent: str, start_ns: int, end_ns: int) -> None:
    """Divide the agent's time into commands and, between commands, the time of model and agent."""
    if measured.inside:
        timeline.lacks(ACTIONS, "the agent runs in the sandbox: its commands are part of one command")
        timeline.lacks(THINK, "the agent runs in the sandbox: the model's time is part of a command")
    elif agent not in SILENT:
        timeline.lacks(THINK, "known with the agent's own time, between two commands", partly=True)
    cursor_ns = start_ns
    for command in sorted(_within(measured, start_ns, end_ns)):
        if agent not in SILENT and not measured.inside and command.start_ns > cursor_ns:
            timeline.think(cursor_ns, command.start_ns)
        _command(timeline, command, end_ns)
        cursor_ns = max(cursor_ns, command.start_ns + command.duration_ns)


def _agent(
    timeline: Timeline,
    holder: dict[str, Any],
    result: dict[str, Any],
    folder: Path | None,
    measured: Executions | None,
) -> None:
    """The agent's time in one execution, as finely as anything tells it."""
    span = at(holder, "agent_execution")
    start_ns, end_ns = instant_ns(at(span, "started_at")), instant_ns(at(span, "finished_at"))
    if end_ns is None and start_ns is not None and (raised := _exception(holder)) is not None:
        end_ns = _raised_ns(result, raised, start_ns) if _short(raised.error) in AGENT_LIMITS else None
    if start_ns is None or end_ns is None:
        if at(result, "exception_info") is None and at(holder, "exception_info") is None:
            timeline.lacks(HELD, "agent_execution has no ends")
        return
    if measured is not None:
        _measured(timeline, measured, text(at(result, "agent_info", "name")), start_ns, end_ns)
        return
    metadata = at(holder, "agent_result", "metadata")
    thinks_ns = _times(at(metadata, "api_request_times_msec"))
    commands_ns = _times(at(metadata, "command_exec_times_msec"))
    if thinks_ns and commands_ns:
        if len(thinks_ns) != len(commands_ns):
            timeline.lacks(THINK, "calls and commands are counted apart, and paired by their order", partly=True)
        _spread(timeline, thinks_ns, commands_ns, start_ns, end_ns)
        return
    if commands_ns:
        timeline.lacks(THINK, "known as a sum, before the first command")
        _spread(timeline, [max(0, end_ns - start_ns - sum(commands_ns))], commands_ns, start_ns, end_ns)
        return
    agent = text(at(result, "agent_info", "name"))
    if folder is not None and agent not in SILENT:
        told = atif.read(folder / "agent" / "trajectory.json", agent, start_ns, end_ns)
        for quantity, why, partly in told.unknown:
            timeline.lacks(quantity, why, partly=partly)
        for action in told.spans:
            (timeline.action if action.action else timeline.think)(action.start_ns, action.end_ns)
        if told.spans:
            return
    if thinks_ns:
        timeline.lacks(ACTIONS, "only the model's calls are timed: the rest of the agent's time is one piece")
        _spread(timeline, [sum(thinks_ns)], [max(0, end_ns - start_ns - sum(thinks_ns))], start_ns, end_ns)
        return
    timeline.lacks(ACTIONS, "the agent's time is one piece")
    if agent not in SILENT:
        timeline.lacks(THINK, "the agent's time is one piece")
    timeline.action(start_ns, end_ns)


def _times(value: object) -> list[int]:
    """A list of milliseconds in ns; empty where one of them is no duration."""
    told = [duration_ns(item, 10**6) for item in value] if isinstance(value, list) else []
    known = [item for item in told if item is not None]
    return known if len(known) == len(told) else []


def _spread(timeline: Timeline, thinks_ns: list[int], commands_ns: list[int], start_ns: int, end_ns: int) -> None:
    """Durations without instants, one behind the other up to the agent's end; gaps are known as a sum only."""
    cursor_ns = max(start_ns, end_ns - sum(thinks_ns) - sum(commands_ns))
    timeline.lacks("gaps", "the harness's own time is known as a sum, before the first command")
    # a call behind the last command leads to none, and a command may come without a call of its own
    for think_ns, command_ns in zip_longest(thinks_ns[: len(commands_ns)], commands_ns, fillvalue=0):
        timeline.think(cursor_ns, cursor_ns + think_ns)
        cursor_ns += think_ns
        timeline.action(cursor_ns, cursor_ns + command_ns)
        cursor_ns += command_ns


class _Raised(NamedTuple):
    """An exception that a trial, or one of its steps, ended with."""

    error: str  # its class
    occurred: object  # as it is written
    holder: dict[str, Any]  # the trial or the step


def _exception(holder: dict[str, Any]) -> _Raised | None:
    info = at(holder, "exception_info")
    if not isinstance(info, dict):
        return None
    error = text(info.get("exception_type")) or "Exception"
    return _Raised(error, info.get("occurred_at"), holder)


def _exceptions(result: dict[str, Any]) -> list[_Raised]:
    """The exceptions of the steps in their order, then the trial's own.

    Harbor leaves the trial's own at null where a step of several failed.
    """
    raised = map(_exception, [*maps(result, "step_results"), result])
    return [each for each in raised if each is not None]


def _failure(result: dict[str, Any], failed: _Raised) -> Failure:
    """An exception's failure: in the phase that began and did not end, else in the last one that began."""
    begun = [key for key in SPANS if at(failed.holder, key, "started_at") is not None]
    unfinished = [key for key in begun if at(failed.holder, key, "finished_at") is None]
    within = "environment_setup" if failed.holder is result else "agent_execution"
    phase = SPANS[(unfinished or begun or [within])[-1]]
    if cause_of(failed.error) == events.CANCELLED:
        return Failure(failed.error, phase, events.CANCELLED)
    return Failure(failed.error, phase, events.TIMEOUT if "Timeout" in failed.error else events.FAILED)


def _short(error: str) -> str:
    """The class without its module."""
    return error.rpartition(".")[2]


def _raised_ns(result: dict[str, Any], raised: _Raised, start_ns: int) -> int | None:
    """When it was raised. The exception's own time may be of another zone: then it is the end of what raised it."""
    finished_ns = instant_ns(at(raised.holder, "finished_at")) or instant_ns(at(result, "finished_at"))
    occurred_ns = instant_ns(raised.occurred)
    if occurred_ns is not None and start_ns <= occurred_ns and (finished_ns is None or occurred_ns <= finished_ns):
        return occurred_ns
    return finished_ns
