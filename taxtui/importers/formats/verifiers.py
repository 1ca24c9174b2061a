"""verifiers and prime-rl: ``traces.jsonl`` with one episode a line, and ``results.jsonl`` of versions before 1.

The time between two answers of the model is one action: harness and command are one number.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from costmodel import events
from taxtui.importers.files import decoded, lines
from taxtui.importers.files import walk as files_below
from taxtui.importers.protocol import (
    ACTIONS,
    AGENT_LIMITS,
    EXIT,
    GROUP,
    HELD,
    READY,
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
from taxtui.importers.values import (
    LONGEST_NS,
    MICROSECOND_NS,
    at,
    duration_ns,
    instant_ns,
    integer,
    items,
    maps,
    number,
    text,
)

TRACES: Final = "traces.jsonl"
RESULTS: Final = "results.jsonl"
SPANS: Final = {"boot": events.CREATE, "setup": events.SETUP, "agent": events.ACTION}
"""In the order of a rollout."""


class VerifiersReader:
    """Runs of ``vf-eval`` and of prime-rl, whose layout is one folder per training step."""

    name: ClassVar[str] = "verifiers"
    summary: ClassVar[str] = "verifiers 1 and prime-rl: traces.jsonl; before: results.jsonl with spans"
    takes_map: ClassVar[bool] = False

    def files(self, folder: Path) -> Iterator[Path]:
        """Every file of rollouts. prime-rl writes two views of a step: ``effective`` is read only without ``all``."""
        for path in files_below(folder, {TRACES, RESULTS}.__contains__):
            if path.parent.name != "effective" or not (path.parent.with_name("all") / path.name).exists():
                yield path

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first line has keys of an episode, or of a result with its timing."""
        first = head.partition(b"\n")[0].replace(b" ", b"")
        episode = b'"env":{' in first and b'"task":{' in first
        return episode or (b'"timing":{' in first and b'"example_id"' in first)

    def trials(self, path: Path, asked: Asked) -> Iterator[ImportedTrial | Skipped]:
        """A trial per trace of each episode; a line that is damaged is skipped."""
        for number_, line in lines(path):
            try:
                row = decoded(line)
                if at(row, "timing") is not None:
                    yield _legacy(row)
                    continue
                traces = list(maps(row, "traces"))
                if not traces:
                    yield Skipped(f"line {number_}", "its episode has no trace")
                for trace in traces:
                    yield _trial(row, trace)
            except Unreadable as error:
                yield Skipped(f"line {number_}", str(error))


def _trial(episode: dict[str, Any], trace: dict[str, Any]) -> ImportedTrial:
    timing = at(trace, "timing")
    start_ns = instant_ns(at(timing, "boot", "start")) or instant_ns(at(timing, "start"))
    if start_ns is None:
        raise Unreadable("a trace does not say when it began")
    timeline = Timeline(start_ns)
    timeline.lacks(RUN, "dispatch and work are one, and the harness between two answers with them")
    timeline.lacks(EXIT, "traces hold none")
    failed = at(trace, "ok") is False or (at(trace, "ok") is None and at(episode, "ok") is False)
    limit = _limit(episode, trace)
    failed = failed and not limit
    runtime = at(trace, "agent", "runtime") or at(trace, "agent", "config", "runtime")  # the real box, else the asked
    borrowed = at(runtime, "borrowed") is True
    if borrowed:
        timeline.lacks(CREATE_TIME, "the sandbox is another rollout's")
    elif _phase(timeline, timing, "boot", events.CREATE):
        timeline.lacks(READY, "boot holds create and ready")
    elif not failed:
        timeline.lacks(CREATE_TIME, "boot has no ends")
    _phase(timeline, timing, "setup", events.SETUP)
    last_ns = _agent(timeline, trace)
    for key in ("finalize", "scoring"):
        _phase(timeline, timing, key, events.VERIFY)
    failure = None
    if failed:
        failure = _failure(episode, trace)
        if last_ns is None:
            timeline.lacks(HELD, "a rollout failed at an unknown time")
        timeline.ended(last_ns)
    cached = at(runtime, "image_cached")
    task = at(trace, "task") or at(episode, "task")
    group = text(at(episode, "group", "id"))
    if not group:
        timeline.lacks(GROUP, "episodes name none")
    return ImportedTrial(
        **timeline.times(),
        failure=failure,
        limit=limit,
        image_cached=cached if isinstance(cached, bool) and not borrowed else None,
        borrowed=borrowed,
        resolution_ns=MICROSECOND_NS,
        substrate=text(at(runtime, "type")),
        cpu_milli=_scaled(at(runtime, "cpu"), 1000),
        memory_mib=_scaled(at(runtime, "memory"), 1024),
        workload=tuple(
            text(value)
            for value in (at(episode, "env", "id"), at(trace, "agent", "name"), at(items(trace, "calls"), 0, "model"))
        ),
        task=text(at(task, "key")) or text(at(task, "hash")),
        image=text(at(task, "data", "image")) or text(at(runtime, "image")),
        group=group,
        training_step=_step(at(episode, "run", "work", "step")),
    )


def _phase(timeline: Timeline, timing: object, key: str, name: str) -> bool:
    return timeline.phase(name, instant_ns(at(timing, key, "start")), instant_ns(at(timing, key, "end")))


def _agent(timeline: Timeline, trace: dict[str, Any]) -> int | None:
    """The model's calls and what lies between them; the last instant that is known."""
    span = at(trace, "timing", "agent")
    start_ns, end_ns = instant_ns(at(span, "start")), instant_ns(at(span, "end"))
    told = [
        (instant_ns(at(call, "time", "start")), instant_ns(at(call, "time", "end"))) for call in maps(trace, "calls")
    ]
    calls = sorted((begun, done) for begun, done in told if begun is not None and done is not None)
    if len(calls) < len(told):
        timeline.lacks(THINK, "a call has no ends", partly=True)
    if not calls:
        _without_calls(timeline, span, start_ns, end_ns)
        return end_ns
    done_ns: int | None = None
    for begun, done in calls:
        if done_ns is not None and begun > done_ns:
            timeline.action(done_ns, begun)
        timeline.think(begun, done)
        done_ns = max(done, done_ns or 0) if done >= begun else done_ns
    if done_ns is not None and (end_ns is None or end_ns > done_ns):
        timeline.action(done_ns, end_ns, "the agent has no end: the last action has none")
    return max(filter(None, (done_ns, end_ns)), default=None)


def _without_calls(timeline: Timeline, span: object, start_ns: int | None, end_ns: int | None) -> None:
    if start_ns is None or end_ns is None:
        timeline.lacks(ACTIONS, "the agent has no ends")
        return
    timeline.lacks(ACTIONS, "no call of the model is told: the agent's time is one piece")
    if (thought_ns := duration_ns(at(span, "model", "duration"))) and thought_ns <= end_ns - start_ns:
        timeline.lacks(THINK, "known as a sum, before the first action")
        timeline.think(start_ns, start_ns + thought_ns)
        start_ns += thought_ns
    else:
        timeline.lacks(THINK, "no call of the model is told: the agent's time is one piece")
    timeline.action(start_ns, end_ns)


def _limit(episode: dict[str, Any], trace: dict[str, Any]) -> str:
    """The limit that ended the agent's span; empty where none did.

    verifiers records no error of a rollout that reaches its agent's deadline: it scores the trajectory so far.
    """
    errors = {text(at(error, "type")) for holder in (trace, episode) for error in maps(holder, "errors")}
    timed_out = at(trace, "is_timeout") is True or at(episode, "is_timeout") is True
    begun = instant_ns(at(trace, "timing", "agent", "start")) is not None
    if timed_out and begun and not errors:
        return "AgentTimeoutError"
    return min(errors) if errors and errors <= AGENT_LIMITS else ""


def _failure(episode: dict[str, Any], trace: dict[str, Any]) -> Failure:
    """The failure of a rollout: in the span without an end, else in the last span that began."""
    error = text(at(items(trace, "errors"), -1, "type")) or text(at(items(episode, "errors"), -1, "type"))
    timed_out = at(trace, "is_timeout") is True or at(episode, "is_timeout") is True or "Timeout" in error
    begun = [key for key in SPANS if instant_ns(at(trace, "timing", key, "start")) is not None]
    unfinished = [key for key in begun if instant_ns(at(trace, "timing", key, "end")) is None]
    phase = SPANS[(unfinished or begun or ["boot"])[-1]]
    return Failure(error or "RolloutError", phase, events.TIMEOUT if timed_out else events.FAILED)


def _legacy(row: dict[str, Any]) -> ImportedTrial:
    """A result of a version before 1, in seconds since its #1182; in ``*_ms`` before, which tell sums alone."""
    timing = at(row, "timing")
    if isinstance(timing, dict) and any(str(key).endswith("_ms") for key in timing):
        raise Unreadable("its times are sums in milliseconds: results tell spans since verifiers #1182")
    start_ns = instant_ns(at(timing, "generation", "start")) or instant_ns(at(timing, "start_time"))
    if start_ns is None:
        raise Unreadable("a result does not say when it began")
    timeline = Timeline(start_ns)
    timeline.lacks(RUN, "dispatch and work are one")
    timeline.lacks(EXIT, "results hold none")
    timeline.lacks(CREATE_TIME, "a sandbox is made within setup")
    if not _phase(timeline, timing, "setup", events.SETUP):
        timeline.lacks("setup", "it has no ends")
    for key, add in (("model", timeline.think), ("env", timeline.action)):
        for span in maps(timing, key, "spans"):
            add(instant_ns(at(span, "start")), instant_ns(at(span, "end")), "a span has no ends")
    if not items(timing, "env", "spans"):
        timeline.lacks(ACTIONS, "no span of the environment is told")
    _phase(timeline, timing, "scoring", events.VERIFY)
    error = at(row, "error")
    failure = Failure(_error_class(error), events.ACTION) if error else None
    if failure is not None:
        timeline.ended(instant_ns(at(timing, "generation", "end")))
    example = at(row, "example_id")
    name = str(example) if isinstance(example, str | int) and not isinstance(example, bool) else ""
    task = text(at(row, "task"))
    return ImportedTrial(
        **timeline.times(),
        failure=failure,
        resolution_ns=MICROSECOND_NS,
        workload=(task,),
        task=f"{task}:{name}" if name else "",
        group=f"{task}:{name}" if name else "",
    )


def _error_class(error: object) -> str:
    """The class of an error that is told as its class, as a map, or as a sentence that begins with it."""
    for key in ("error", "type", "error_chain_str"):
        error = at(error, key) if text(at(error, key)) else error
    word = text(error).partition("(")[0].partition(":")[0].strip()
    return word if word.isidentifier() else "RolloutError"


def _scaled(value: object, factor: int) -> int:
    told = number(value)
    return round(told * factor) if told is not None and 0 <= told <= LONGEST_NS / factor else 0


def _step(value: object) -> int:
    step = integer(value)
    return events.UNKNOWN if step is None else step
