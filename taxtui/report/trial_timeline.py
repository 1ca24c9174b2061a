"""Timeline of one trial as text: phases, actions as a strip, milestones, and the whole error message."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from costmodel import events
from taxtui.live.trial_story import TrialStory
from taxtui.report.cells import Content, TableCell, duration_cell
from taxtui.report.formats import Section
from taxtui.report.numbers import COUNT, duration
from taxtui.terminal_text import clean, fit, wrap

WIDEST: Final = 100
"""Maximum columns of a line in a wide terminal."""
EIGHTHS: Final = "▁▂▃▄▅▆▇█"
NAME: Final = 14
LEAST_BAR: Final = 10


def lines(story: TrialStory, width: int) -> str:
    """Return the whole timeline in at most ``width`` columns."""
    texts = [*_heading(story, width), "", *_phases(story, width), *_actions(story, width)]
    return "\n".join([*texts, *_milestones(story, width)])


def commands(story: TrialStory) -> Section:
    """Return a table with a line per command of the set-up and per action."""
    rows: list[list[Content]] = []
    for batch in story.actions:
        wrappers = batch.wrapper_ns or [events.UNKNOWN] * len(batch.duration_ns)
        codes = batch.exit_code or [0] * len(batch.duration_ns)
        inside = batch.run_ns or [0] * len(batch.duration_ns)
        for number, took_ns in enumerate(batch.duration_ns):
            name = f"{'action' if batch.step == events.ACTION else 'set-up'} {batch.first + number + 1}"
            parts = (took_ns, inside[number], wrappers[number])
            dispatch = (
                took_ns - inside[number] - max(0, wrappers[number])
                if inside[number] != events.UNKNOWN
                else events.UNKNOWN
            )
            code = "–" if codes[number] == events.UNKNOWN else TableCell(codes[number], COUNT)
            rows.append(
                [name, *(duration_cell(None if ns == events.UNKNOWN else ns) for ns in (*parts, dispatch)), code]
            )
    notes = ["dispatch: getting the command in and its result out; took − in sandbox − wrapper."]
    return Section("", ["command", "took", "in sandbox", "wrapper", "dispatch", "exit code"], rows, notes)


def _heading(story: TrialStory, width: int) -> list[str]:
    cell, end = story.cell, story.end
    when = time.strftime("%H:%M:%S", time.localtime(story.began_unix_ns // 10**9))
    how = "still runs, or was cut off" if end is None else "ok" if end.outcome == events.OK else clean(end.outcome)
    where = f" in {clean(end.phase)}" if end and end.phase else ""
    warm_up = "warm-up · " if story.warm_up else ""
    first = f"{warm_up}{cell.label} {cell.workload} {cell.mode} · {how}{where} · started {when}"
    texts = [*wrap(first, width), *wrap(f"sandbox {story.sandbox}", width)]
    if end is not None and (end.error or end.message):
        texts += ["", *wrap(clean(": ".join(filter(None, (end.error, end.message)))), width)]
    return texts


def _phases(story: TrialStory, width: int) -> list[str]:
    """Return a line per phase, with a bar at its place in the trial: ``create  +0 ns  40.0 ms  ███``."""
    whole_ns = max(1, story.last_ns - story.began_ns)
    spans = [(clean(phase.phase), phase.start_ns, phase.duration_ns) for phase in story.phases]
    actions = sum(len(batch.duration_ns) for batch in story.actions if batch.step == events.ACTION)
    before = [phase for phase in story.phases if phase.phase not in {events.CLEANUP, *events.LIFE_CYCLE}]
    began_ns = max((phase.start_ns + phase.duration_ns for phase in before), default=story.began_ns)
    ended_ns = story.end.end_ns if story.end else story.last_ns
    if actions and ended_ns > began_ns:
        spans.append((f"{actions:,} actions", began_ns, ended_ns - began_ns))
    spans.sort(key=lambda span: span[1])
    room = max(LEAST_BAR, width - NAME - 2 * 11)
    texts = [f"{'phase':<{NAME}}{'from':>10} {'took':>10}"]
    for name, start_ns, duration_ns in spans:
        first = min(round((start_ns - story.began_ns) / whole_ns * room), room - 1)
        cells = max(1, round(duration_ns / whole_ns * room))
        bar = f"{' ' * max(0, first)}{'█' * min(cells, room - max(0, first))}"
        begins, took = f"+{duration(start_ns - story.began_ns)}", duration(duration_ns)
        texts.append(f"{fit(name, NAME)}{begins:>10} {took:>10} {bar}".rstrip())
    return texts


def _actions(story: TrialStory, width: int) -> list[str]:
    durations_ns = story.durations_ns
    if not durations_ns:
        return []
    ordered = sorted(durations_ns)
    worst = max(range(len(durations_ns)), key=durations_ns.__getitem__)
    middle = duration(ordered[len(ordered) // 2])
    thinks = sum(sum(batch.think_ns) for batch in story.actions)
    text = f"median {middle}, longest {duration(ordered[-1])} (action {worst + 1:,})"
    text += f", think time {duration(thinks)}" if thinks else ""
    return ["", *wrap(f"actions, one after the other: {text}", width), strip(durations_ns, width)]


def strip(durations_ns: Sequence[int], width: int) -> str:
    """Draw durations as columns of block characters; neighbours share a column, with the longest, if room is short."""
    count = min(len(durations_ns), max(1, width))
    edges = [round(number * len(durations_ns) / count) for number in range(count + 1)]
    columns = [max(durations_ns[first:last]) for first, last in pairwise(edges)]
    peak = max(1, *columns)
    return "".join(EIGHTHS[min(len(EIGHTHS) - 1, value * len(EIGHTHS) // peak)] for value in columns)


def _milestones(story: TrialStory, width: int) -> list[str]:
    marks = [f"{clean(mark.name)} +{duration(mark.at_ns - story.began_ns)}" for mark in story.marks]
    return ["", *wrap(f"seen: {', '.join(marks)}", width)] if marks else []
