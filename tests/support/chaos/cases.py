"""What a case is, which cases there are, and what may be said of one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from costmodel.errors import SourceError
from costmodel.recording.events import (
    ACTION,
    CANCELLED,
    INTERRUPTED,
    OK,
    OUTCOMES,
    Actions,
    Cell,
    Event,
    RunFinished,
    TrialEnded,
    TrialStarted,
)
from costmodel.recording.follower import read_events
from taxtui import errors
from taxtui.errors import TaxtuiError

HANG_S: Final = 420.0
"""No deadline of taxtui's is longer than this, here, on a machine with a load of twenty. What lasts longer hangs."""
PROBLEMS: Final = ("left", "hangs", "unreadable", "undocumented", "doubled")
LEFT, HANGS, UNREADABLE, UNDOCUMENTED, DOUBLED = PROBLEMS
RUN_OUTCOMES: Final = {"finished", "cancelled", "interrupted", "budget", "crashed", "write_failed"}
ERRORS: Final = {
    *("", "WrongResult", "TimeoutError"),  # a step without its proof; a create that took its whole time
    "WorkerLost",  # with its worker; it is done again
    *(name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, TaxtuiError)),
}
"""Every class of error that any recording may name; errors.py documents them."""
PAGES: Final = "".join(page.read_text() for page in (Path(__file__).parents[3] / "docs" / "substrates").glob("*.md"))
"""They name what only one substrate has."""


class Case(NamedTuple):
    """One of them, reproduced by its seed and number."""

    number: int
    seed: int
    group: str
    kind: str

    @property
    def source(self) -> random.Random:
        return random.Random(f"{self.seed}:{self.number}:{self.group}:{self.kind}")

    @property
    def run_id(self) -> str:
        return f"chaos-{self.seed}-{self.number}"


class Verdict(NamedTuple):
    """What came of a case."""

    case: Case
    problems: list[tuple[str, str]] = []  # which of PROBLEMS, and in words
    ending: str = ""  # how its run ended
    skipped: str = ""  # what this machine lacks for it


def cases(groups: Mapping[str, Sequence[str]], seed: int) -> Iterator[Case]:
    """Without an end: the groups in turn, of each its kinds in an order of the seed, again and again."""
    left: dict[str, list[str]] = {group: [] for group in groups}
    source = random.Random(seed)
    number = 0
    while True:
        for group, kinds in groups.items():
            left[group] = left[group] or source.sample(kinds, len(kinds))
            yield Case(number, seed, group, left[group].pop())
            number += 1


def judged(path: Path, *, tampered: bool = False) -> tuple[list[tuple[str, str]], list[Event]]:
    """What is wrong with a recording, where there is one, and what is in it.

    One that somebody else has ``tampered`` with may be refused, in one line.
    """
    events: list[Event] = []
    if not path.is_file() or not path.stat().st_size:
        return [], events
    try:
        read_events(path, events.append)
    except SourceError as error:
        return ([] if tampered and "\n" not in str(error) else [(UNREADABLE, str(error))]), events
    problems = []
    for event in events:
        known = not isinstance(event, TrialEnded) or event.error in ERRORS or f"`{event.error}`" in PAGES
        if isinstance(event, TrialEnded) and (event.outcome not in OUTCOMES or not known):
            problems.append((UNDOCUMENTED, f"a trial ended {event.outcome!r} of {event.error!r}"))
        if isinstance(event, RunFinished) and event.outcome not in RUN_OUTCOMES:
            problems.append((UNDOCUMENTED, f"the run ended {event.outcome!r}"))
    return problems, events


def doubled(events: list[Event], trials: int) -> list[tuple[str, str]]:
    """What a finished recording of so many trials has twice or not at all; what was lost is there as interrupted."""
    starts = [event for event in events if isinstance(event, TrialStarted)]
    ends = [event for event in events if isinstance(event, TrialEnded)]
    outcomes = {end.trial: end.outcome for end in ends}
    counted = [start for start in starts if not start.warm_up]
    lost = [start for start in counted if outcomes.get(start.trial) in (INTERRUPTED, CANCELLED)]
    rows, torn = Counter[tuple[int, str]](), False
    for event in events:
        if isinstance(event, Actions):
            torn |= event.first != rows[event.trial, event.step]
            rows[event.trial, event.step] += len(event.duration_ns)
    planned = {event.id: event.actions for event in events if isinstance(event, Cell)}
    ok = [start for start in counted if outcomes.get(start.trial) == OK]
    [finished] = [event for event in events if isinstance(event, RunFinished)]
    holds = {
        "a start or an end": sorted(start.trial for start in starts) == sorted(end.trial for end in ends),
        "a trial": len(outcomes) == len(ends) and len(counted) - len(lost) == trials,
        "a second attempt": sum(start.attempt > 0 for start in counted) <= len(lost),
        "a command": not torn and all(rows[start.trial, ACTION] == planned[start.cell] for start in ok),
        "a count": finished.counts == Counter(outcomes.get(start.trial) for start in counted),
    }
    return [(DOUBLED, what) for what, once in holds.items() if not once]
