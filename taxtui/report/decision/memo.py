"""The page: the decision, the money, what would turn it, what was assumed, what is not verified, what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Final

from costmodel.analysis.decision import (
    CANNOT_TELL,
    MEASURED,
    MOVE,
    UNMEASURED,
    UNMEASURED_THERE,
    USD,
    Bill,
    Decision,
    Side,
    Unverified,
)
from costmodel.analysis.thresholds import Turn
from costmodel.projection.row import CAUSES as ATTRIBUTED
from costmodel.projection.row import Share
from costmodel.statistics.intervals import Interval
from costmodel.workload.scenario_range import Assumption
from taxtui.report.formats import Section
from taxtui.report.formats.markdown_tables import to_text as tables
from taxtui.report.numbers import NOTHING, span
from taxtui.report.projected.attributed import Unit, compact, money
from taxtui.report.words import CAUSES
from taxtui.sandboxes import registry
from taxtui.terminal_text import clean

TRIALS: Final = 30
"""Trials of a cell that a first measurement has at least."""
NEXT: Final = 4
"""So many things to measure next."""
TOLD: Final = 8
"""So many doubts are told."""
DOLLARS, HOURS = Unit("$", True), Unit("worker-hours", False)


def to_text(
    found: Decision, turns: Sequence[Turn], given: Sequence[Assumption], command: str, *, rough: bool = False
) -> str:
    """The page, in Markdown.

    Args:
        found: the decision.
        turns: what would turn it.
        given: what was asked, each with where it comes from.
        command: the command line that writes the same page.
        rough: whether little was simulated, so that every amount is told with ≈.
    """
    sections = [
        (_title(found), "\n\n".join(_answer(found, turns, rough=rough))),
        ("What it costs", tables([_money(found)])),
        ("What the sandbox costs, by cause", tables([_causes(found)]) if found.start.row.attribution else ""),
        ("What would turn it", _turning(found, turns)),
        ("What was assumed", tables([_assumed(given)]) if given else ""),
        ("What is not verified", "\n".join(f"- {line}" for line in _doubts(found))),
        ("What to measure next", "\n".join(f"{number}. {line}" for number, line in enumerate(_next(found, turns), 1))),
        ("The same page again", f"```sh\n{clean(command)}\n```"),
    ]
    (title, lead), *rest = sections
    body = [f"## {name}\n\n{text}" for name, text in rest if text]
    return "\n\n".join([f"# {title}", lead, *body])


def unit_of(found: Decision) -> Unit:
    """What amounts are in."""
    return DOLLARS if found.unit == USD else HOURS


def name_of(side: Side) -> str:
    """A side's name, marked where it was not measured."""
    name = _plain(side.name)
    return name if side.row.provenance == MEASURED else f"{name} ({side.row.provenance})"


def _plain(text: str) -> str:
    """For Markdown outside of tables."""
    return clean(text).replace("`", "'").replace("<", "&lt;").replace("*", r"\*")


def _title(found: Decision) -> str:
    start, goal = name_of(found.start), name_of(found.goal)
    if found.verdict == MOVE:
        return f"MOVE from {start} to {goal}"
    return f"CAN'T TELL {start} from {goal}" if found.verdict == CANNOT_TELL else f"STAY with {start}"


def _answer(found: Decision, turns: Sequence[Turn], *, rough: bool) -> list[str]:
    about = "≈ " * rough
    unit, saving, whole = unit_of(found), found.saving, found.start_bill.whole.value
    known = saving.low is not None and saving.high is not None
    does = "saves" if saving.value >= 0 else "costs"
    amount = saving if saving.value >= 0 else _reversed(saving)
    limits = f" ({span(amount, money if unit.usd else compact)})" if known else ""
    share = f", {abs(saving.value) / whole:.1%} of {unit.shown(whole)}" if whole else ""
    unmeasured = [side for side in (found.start, found.goal) if side.row.provenance in UNMEASURED]
    given = ", if what was not measured is as assumed" * bool(unmeasured)
    lines = [
        f"Moving to {name_of(found.goal)} {does} this run {about}{unit.shown(amount.value)}{limits}{share}{given}."
    ]
    if rough:
        lines.append("A rough simulation: without --quick the interval is narrower.")
    for side in unmeasured:
        points = [point for point in found.open_points if point.side == side.name]
        assumed = [point.words.removesuffix(UNMEASURED_THERE) for point in points if _assumed_there(point)]
        told = f" Assumed there: {_plain('; '.join(assumed))}." * bool(assumed)
        lines.append(f"Nothing was measured at {_plain(side.name)}, so there is no verdict.{told}")
        lines.append(f"Measure it: {measurement(side)}")
    lines += [
        f"There is no verdict: {_plain(point.side)}: {_plain(point.words)}; {_plain(point.do)}."
        for point in found.open_points
        if point.side not in {side.name for side in unmeasured}
    ]
    if not known and not found.open_points:
        lines.append("How sure that is, is not known.")
    elif known and found.verdict == CANNOT_TELL and not found.open_points:
        lines.append("More and less than nothing are both in the 95 % interval, so the data do not decide.")
    nearest = next((turn for turn in turns if turn.at is not None), None)
    if nearest is not None and not found.open_points:
        lines.append(f"What turns it soonest: {_turn_in_words(nearest)}.")
    return [" ".join(lines)]


def measurement(side: Side) -> str:
    """How to measure the work of a side there: as a command where taxtui can."""
    row = side.row
    if row.identity.substrate not in registry.names():
        return "run the same work there with your own harness, and read its logs with `taxtui import`."
    trials = max(TRIALS, (row.wall_clock_hours and row.wall_clock_hours.needs_trials) or 0)
    words = ["taxtui", "run", "-s", row.identity.substrate, "-t", row.identity.tier, "-n", str(row.length.high)]
    words += ["--mode", row.identity.mode, "--trials", str(trials), "--repeat", "3"]
    return f"`{clean(shlex.join(words))}`, then this page with both recordings."


def _reversed(amount: Interval) -> Interval:
    """What is saved as what it costs."""
    value, low, high = amount
    return Interval(-value, None if high is None else -high, None if low is None else -low)


def _amount(amount: Interval | None) -> str:
    return NOTHING if amount is None else f"{compact(amount.value)}\n{span(amount, compact)}"


def _money(found: Decision) -> Section:
    bills = found.start_bill, found.goal_bill

    def line(name: str, of: Callable[[Bill], Interval | None]) -> list[str]:
        return [name, *(_amount(of(one)) for one in bills)]

    rows = [line("the whole run", lambda one: one.whole), line("of that, the sandbox's part", lambda one: one.sandbox)]
    if found.unit == USD:
        rows += [
            line("GPUs, as long as it lasts", lambda one: one.gpus),
            line("nodes", lambda one: one.nodes),
            line("sandboxes and workers", lambda one: Interval(one.rest)),
        ]
        for name, part in (("GPU-hours waiting", "waiting"), ("… stalled by the sandbox", "stalled")):
            waits = [side.row.attribution and side.row.attribution.waiting for side in (found.start, found.goal)]
            if all(waits):
                rows.append([name, *(_hours(getattr(one, f"{part}_gpu_hours")) for one in waits)])
        seconds = [
            side.row.attribution and side.row.attribution.usd_per_critical_second for side in (found.start, found.goal)
        ]
        if all(seconds):
            rows.append(["a second more in every step", *(compact(one or 0.0) for one in seconds)])
    head = [unit_of(found).name, name_of(found.start), name_of(found.goal)]
    return Section("", head, rows, [])


def _hours(amount: float | None) -> str:
    return NOTHING if amount is None else f"{compact(amount)} h"


def _causes(found: Decision) -> Section:
    unit = unit_of(found)
    splits = [side.row.attribution.causes if side.row.attribution else {} for side in (found.start, found.goal)]

    def cell(share: Share | None) -> str:
        return NOTHING if share is None else _amount(unit.of(share))

    causes = [cause for cause in ATTRIBUTED if any(_counts(split.get(cause)) for split in splits)]
    rows = [[CAUSES[cause], *(cell(split.get(cause)) for split in splits)] for cause in causes]
    return Section("", [unit.name, name_of(found.start), name_of(found.goal)], rows, [])


def _counts(share: Share | None) -> bool:
    return share is not None and share.worker_hours.value != 0


def _turn_in_words(turn: Turn) -> str:
    of = f" of {_plain(turn.side)}" if turn.side else ""
    assert turn.at is not None
    return f"{turn.input}{of} at {compact(turn.at)} {turn.unit} instead of {compact(turn.now)}".replace("  ", " ")


def _turning(found: Decision, turns: Sequence[Turn]) -> str:
    if not turns:
        return ""
    rows = [
        [turn.input, _plain(turn.side) or "both", f"{compact(turn.now)} {turn.unit}", f"{compact(turn.at)} {turn.unit}"]
        for turn in turns
        if turn.at is not None
    ]
    parts = [tables([Section("", ["input", "at", "now", "turns at"], rows, [])])] if rows else []
    never = [
        f"{turn.input}{f' of {_plain(turn.side)}' if turn.side else ''} "
        f"({compact(turn.low)} to {compact(turn.high)}{f' {turn.unit}' if turn.unit else ''})"
        for turn in turns
        if turn.at is None
    ]
    if never:
        parts.append(f"These turn nothing, as far as they were tried: {'; '.join(never)}.")
    if untried := [_plain(f"{point.words} ({point.side})") for point in found.open_points if _assumed_there(point)]:
        parts.append(f"These were not tried: {'; '.join(untried)}.")
    parts.append("Each input alone, by bisection: the value at which both sides cost the same.")
    return "\n\n".join(parts)


def _assumed_there(point: Unverified) -> bool:
    return point.words.endswith(UNMEASURED_THERE)


def _assumed(given: Sequence[Assumption]) -> Section:
    rows = [[clean(one.name), clean(one.value), clean(one.source)] for one in given]
    return Section("", ["input", "value", "from"], rows, [])


def _doubts(found: Decision) -> list[str]:
    told = [f"{_plain(doubt.side) or 'both'}: {_plain(doubt.words)}" for doubt in found.doubts[:TOLD]]
    left = len(found.doubts) - TOLD
    return [*told, f"and {left} lesser doubts, which `--format json` has"] if left > 0 else told


def _next(found: Decision, turns: Sequence[Turn]) -> list[str]:
    """What would change the answer most: what was not measured at all, what is nearest to turning it, other doubts."""
    lines: dict[str, None] = {}
    for side in (found.start, found.goal):
        if side.row.provenance != MEASURED:
            lines[f"{_plain(side.name)} itself, with the same work: {measurement(side)}"] = None
    for turn in [turn for turn in turns if turn.at is not None and turn.side][:2]:
        assert turn.at is not None
        way = "above" if turn.at > turn.now else "below"
        at = f"{compact(turn.at)} {turn.unit}".strip()
        lines[f"{turn.input} of {_plain(turn.side)}: whether it is {way} {at}"] = None
    for doubt in found.doubts:
        if doubt.do:
            lines.setdefault(f"{_plain(doubt.side) or 'both'}: {_plain(doubt.do)}", None)
    return list(lines)[:NEXT]
