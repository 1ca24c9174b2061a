"""An answer in one sentence, computed from it: who is cheapest, by how much, how sure, and what of."""

from __future__ import annotations

from typing import Final

from costmodel.answer import Answer, CauseExcess, Entry, WorkLine, excess, headline, middle
from costmodel.uncertainty import Interval
from costmodel.verdict import CANNOT_TELL, TIE

WORDS: Final = {
    "startup": "start-up",
    "work": "the commands' own time",
    "slowdown": "slower commands",
    "contention": "waiting for each other",
    "harness": "our own time between commands",
    "queued": "throttling",
    "think": "think time",
    "failed": "failed attempts",
    "cleanup": "clean-up",
    "wasted": "rollouts launched in excess",
}
"""Causes whose names are no words."""
WAYS: Final = {"exec": "by exec", "session": "through one shell", "unknown": ""}
ALMOST_ALL: Final = 0.85
MOST: Final = 0.5
LOPSIDED: Final = 2.0
"""An interval whose limits are so differently far from its value is no "±"."""


def sentence(found: Answer) -> str:
    """``docker costs 6.1x local for T1 x 50 by exec (±8 %), almost all of it dispatch (57 ms per action); …``.

    Says what can be said: a tie, one place only, no work in common, nothing measured. Texts from recordings are in it
    as they are.
    """
    if (line := headline(found)) is None:
        return _without_a_pair(found)
    *others, last = [entry for entry in line.ranked if entry.place != line.reference]
    reference = next(entry for entry in line.entries if entry.place == line.reference)
    way = _ground(found)
    way += ", on another machine" * any(entry.elsewhere for entry in (*others, last))
    way += ", at the highest concurrency that was measured" * any(map(_at_least, (*others, last, reference)))
    if not others:
        said = f"{_one(last, reference, line)}{way}{_why(last, reference)}"
    else:
        role = "the baseline" if found.baseline else "cheapest"
        those = ", ".join(_beside(entry) for entry in (*others, last))
        said = f"{reference.place.name} is {role} for {_work(line)}{way}: {those}{_why(last, reference)}"
    return f"{said}{_otherwise(found, line, last, reference, name=bool(others))}."


def _at_least(entry: Entry) -> bool:
    """Whether its amount has a lower limit only."""
    return entry.amount is not None and entry.amount.low is not None and entry.amount.high is None


def _one(entry: Entry, reference: Entry, line: WorkLine) -> str:
    """The two of a line."""
    assert entry.ratio is not None
    name, other, verdict = entry.place.name, reference.place.name, entry.verdict
    if verdict is not None and verdict.kind == TIE:
        return f"{other} and {name} tie for {_work(line)}: {_times(entry.ratio)}{_limits(entry.ratio)}"
    costs = f"{name} costs {_times(entry.ratio)} {other} for {_work(line)}"
    if verdict is not None and verdict.kind == CANNOT_TELL:
        return f"{costs}, but that cannot be told {verdict.reason}"
    return f"{costs}{_sure(entry.ratio)}"


def _beside(entry: Entry) -> str:
    """One of several."""
    assert entry.ratio is not None
    name, verdict = entry.place.name, entry.verdict
    if verdict is not None and verdict.kind == TIE:
        return f"{name} ties with it"
    if verdict is not None and verdict.kind == CANNOT_TELL:
        return f"{name} cannot be told from it ({_times(entry.ratio)})"
    return f"{name} costs {_times(entry.ratio)}{_sure(entry.ratio)}"


def _why(entry: Entry, reference: Entry) -> str:
    """What the difference consists of, where there is one and it is known."""
    if entry.verdict is None or entry.verdict.kind in (TIE, CANNOT_TELL):
        return ""
    dear, cheap = (entry.row, reference.row) if entry.ratio and entry.ratio.value >= 1 else (reference.row, entry.row)
    found = excess(dear, cheap)
    return "" if found is None else f", {_part(found)}"


def _part(found: CauseExcess) -> str:
    much = (
        "almost all of it"
        if found.share >= ALMOST_ALL
        else "most of it"
        if found.share > MOST
        else f"{100 * found.share:.0f} % of it"
    )
    each = f" ({_short(found.per_action_s)} per action)" if found.cause == "dispatch" else ""
    return f"{much} {WORDS.get(found.cause, found.cause)}{each}"


def _otherwise(found: Answer, line: WorkLine, entry: Entry, reference: Entry, *, name: bool) -> str:
    """The same two in the other modes; with the dearer one's ``name`` where there are more."""
    parts = []
    for other in found.lines:
        if other is line or other.work != line.work._replace(mode=other.work.mode):
            continue
        here, there = other.at(entry.place), other.at(reference.place)
        if here is None or there is None:
            continue
        if other.reference == there.place and here.ratio is not None:
            costs = f"{here.place.name} costs {_times(here.ratio)}" if name else _times(here.ratio)
        elif other.reference == here.place and there.ratio is not None:
            here, costs = there, f"{there.place.name} costs {_times(there.ratio)}"
        else:
            continue
        tie = here.verdict is not None and here.verdict.kind == TIE
        parts.append(f"; {_way(other)} {f'{reference.place.name} and {entry.place.name} tie' if tie else costs}")
    return "".join(parts)


def _without_a_pair(found: Answer) -> str:
    lines = [
        line
        for line in found.lines
        if any(entry.amount and entry.place.provenance == found.ground for entry in line.entries)
    ]
    if not lines:
        return "No trajectory succeeded, so there is nothing to compare."
    places = [place for place in found.places if place.provenance == found.ground]
    if len(places) > 1:
        names = " and ".join([", ".join(place.name for place in places[:-1]), places[-1].name])
        return f"{names} share no work: the same tier, length and mode at each would make them comparable."
    line = middle(lines)
    entry = next(entry for entry in line.entries if entry.amount and entry.place.provenance == found.ground)
    assert entry.amount is not None
    held = entry.row.held_per_success_s  # whatever the answer is about, so that it is the same sentence everywhere
    takes = f"{_digits(entry.amount.value)} worker-hours" if held is None else f"{_short(held.value)} per trajectory"
    hours, tax = entry.row.worker_hours, entry.row.tax_worker_hours
    share = f", {100 * tax.value / hours.value:.0f} % of it tax" if tax and hours and hours.value else ""
    amount = f"{takes} for {_work(line)}{_ground(found)}"
    return (
        f"{entry.place.name} takes {amount}{share}; there is nothing to compare it with: "
        "measure another substrate at the same work."
    )


def _ground(found: Answer) -> str:
    """How it was come by, where it was not measured."""
    return "" if found.ground == "measured" else f" (as {found.ground.replace('_', '-')})"


def _work(line: WorkLine) -> str:
    """``T1 x 50 by exec``."""
    of = " x ".join(part for part in (line.work.tier, str(line.work.length)) if part)
    return ", ".join([" ".join(part for part in (of, _way(line)) if part), *line.others])


def _way(line: WorkLine) -> str:
    return WAYS.get(line.work.mode, line.work.mode and f"by {line.work.mode}")


def _times(ratio: Interval) -> str:
    """``6.1x``: two digits, three from 0.9 to 1.1, where they tell."""
    value = ratio.value
    return f"{value:.2f}x" if value < 2 else f"{value:.1f}x" if value < 9.95 else f"{value:,.0f}x"


def _sure(ratio: Interval) -> str:
    """`` (±8 %)``: half the interval, relative; what else can be said where it has no end or is lopsided."""
    low, high = ratio.low, ratio.high
    if low is None:
        return ""
    if high is None:
        return f" (at least {_digits(low)}x)"
    below, above = ratio.value - low, high - ratio.value
    if max(below, above) > LOPSIDED * min(below, above):
        return _limits(ratio)
    half = 100 * (high - low) / 2 / ratio.value
    return f" (±{half:.0f} %)" if half >= 0.95 else f" (±{half:.1g} %)"


def _limits(ratio: Interval) -> str:
    if ratio.low is None or ratio.high is None:
        return ""
    return f" ({_digits(ratio.low)} to {_digits(ratio.high)})"


def _digits(value: float) -> str:
    """Three digits, or all that are before the point."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


def _short(seconds: float) -> str:
    """``57 ms``."""
    scale, unit = next(((s, u) for s, u in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if seconds >= s), (1e-9, "ns"))
    return f"{seconds / scale:.2g} {unit}" if seconds < 99.5 * scale else f"{seconds / scale:,.0f} {unit}"
