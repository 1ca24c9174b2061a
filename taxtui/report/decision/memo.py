"""The page of a decision: verdict, saving, unmeasured inputs, costs, sources, doubts, and what to measure next."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from costmodel import (
    CANNOT_TELL,
    MOVE,
    UNMEASURED_PROVENANCES,
    USD,
    Assumption,
    Bill,
    Decision,
    InputEffect,
    Interval,
    Share,
    Side,
    Turn,
    poisoned_groups,
    warnings,
)
from costmodel import CAUSES as ATTRIBUTED
from taxtui.report.cells import SHARE, SHORT, Content, TableCell, amount_cell
from taxtui.report.decision.layout import Block, Code, Items, Page, PagePart, Paragraph, TextTable
from taxtui.report.decision.sources import rests_on
from taxtui.report.numbers import NOTHING, compact, money, percent, span
from taxtui.report.projected.attributed import Unit
from taxtui.report.words import CAUSES
from taxtui.sandboxes import registry
from taxtui.terminal_text import clean

TRIALS: Final = 30
"""Least trials of a cell in a first measurement."""
MOST_STEPS: Final = 4
"""Things to measure next that a page names."""
MOST_DOUBTS: Final = 8
"""Doubts that a page names."""
ONE_LINE: Final = 18
"""Columns that both ends of a range may take on one line."""
DOLLARS, HOURS = Unit("$", True), Unit("worker-hours", False)
INPUTS: Final = {
    "dispatch": "dispatch",
    "failure_rate": "failures",
    "failure_burst": "bursts of failures",
    "image": "image pulls and builds",
    "start": "start under load",
    "limits": "limits of the plan",
    "disk": "disk",
    "work_speed": "time of the commands",
}
"""An unmeasured input as a page names it."""
_ASK: Final = {
    "limits": "ask for the limits of your plan, and add profile=NAME to --compose {0}, or quota and create_rate under "
    "[at.{0}.limits]",
    "failure_rate": "count the failed attempts of some days there, and write failure_rate under [at.{0}.failures]",
    "failure_burst": "count sandboxes that are lost together there, and write failure_burst under [at.{0}.failures]",
    "disk": "choose the disk of a sandbox, and give a price sheet with it: --compose {0}:prices=FILE",
}
"""How to find out about an input that a measurement of some trials does not tell."""


def page(
    found: Decision,
    effects: Sequence[InputEffect],
    turns: Sequence[Turn],
    given: Sequence[Assumption],
    command: str,
    *,
    rough: bool = False,
) -> Page:
    """The page.

    Args:
        found: the decision.
        effects: what the unmeasured inputs change, the one that turns the decision soonest first.
        turns: what else would turn it.
        given: every input with where it comes from.
        command: the command line that writes the same page.
        rough: whether little was simulated, so that every amount is printed with ≈.
    """
    unmeasured = [side for side in (found.start, found.goal) if side.candidate is not None]
    parts = [
        *(PagePart(f"Unmeasured inputs at {side.name}", tuple(_ranges(found, side, effects))) for side in unmeasured),
        PagePart("Costs of the training run", (_money(found),)),
        PagePart("Costs of the sandbox by cause", tuple(_causes(found))),
        PagePart("Other inputs that turn the verdict", tuple(_turning(turns))),
        PagePart("Not verified", tuple(_items(_doubts(found)))),
        PagePart("Measure next", tuple(_items(next_steps(found, effects, turns), numbered=True))),
        PagePart("Command that writes this page", (Code(command),)),
        PagePart("Source of each input", (Items(tuple(rests_on(found, given))),)),
    ]
    return Page(_title(found), tuple(_lead(found, effects, turns, rough=rough)), tuple(parts))


def _items(texts: Sequence[str], *, numbered: bool = False) -> Iterator[Block]:
    if texts:
        yield Items(tuple(texts), numbered)


def unit_of(found: Decision) -> Unit:
    """Return the unit of all amounts."""
    return DOLLARS if found.unit == USD else HOURS


def name_of(side: Side) -> str:
    """A side's name, marked where it was not measured."""
    provenance = side.row.provenance
    if provenance == warnings.MEASURED:
        return side.name
    return f"{side.name} ({'estimated' if side.candidate is not None else provenance})"


def _title(found: Decision) -> str:
    start, goal = name_of(found.start), name_of(found.goal)
    if found.verdict == MOVE:
        return f"MOVE from {start} to {goal}"
    return f"CAN'T TELL {start} from {goal}" if found.verdict == CANNOT_TELL else f"STAY with {start}"


def _shown(found: Decision, amount: Interval) -> str:
    """``$90.0 ($88.0 … $92.0)``, with the interval where it is known."""
    unit = unit_of(found)
    known = amount.low is not None and amount.high is not None
    limits = f" ({span(amount, money if unit.usd else compact)})" if known else ""
    return f"{unit.shown(amount.value)}{limits}"


def _saves(found: Decision, saving: Interval) -> str:
    """``saves $90.0 (…)`` or ``costs $90.0 (…)``."""
    return f"saves {_shown(found, saving)}" if saving.value >= 0 else f"costs {_shown(found, _reversed(saving))}"


def _lead(found: Decision, effects: Sequence[InputEffect], turns: Sequence[Turn], *, rough: bool) -> Iterator[Block]:
    saving, whole, about = found.saving, found.start_bill.whole.value, "≈ " * rough
    share = f", {percent(abs(saving.value) / whole)} of {unit_of(found).shown(whole)}" if whole else ""
    verb, _, amount = _saves(found, saving).partition(" ")
    what = f"Moving to {name_of(found.goal)} {verb} this run {about}{amount}{share}"
    if not effects:
        yield Paragraph(f"{what}.")
    else:
        yield Paragraph(f"{what}, if all unmeasured inputs are as assumed. {_over_ranges(found)}")
    if rough:
        yield Paragraph("A rough simulation (--quick): without it intervals are narrower and causes are separated.")
    yield from map(Paragraph, _reasons(found, effects, turns))
    if (first := next(iter(next_steps(found, effects, turns)), None)) and found.verdict == CANNOT_TELL:
        yield Paragraph(f"Measure first: {first}")


def _over_ranges(found: Decision) -> str:
    """Return the sentence about the savings at the ends of the ranges."""
    ends = [
        "the run would not end" if item is None else f"it {_saves(found, item)}"
        for item in (found.saving_at_best, found.saving_at_worst)
    ]
    count = len(found.inputs)
    return f"Over the ranges of {count} unmeasured inputs: at best {ends[0]}, at worst {ends[1]}."


def _reasons(found: Decision, effects: Sequence[InputEffect], turns: Sequence[Turn]) -> Iterator[str]:
    """Why there is this verdict."""
    for point in found.open_points:
        yield f"There is no verdict: {point.side}: {point.words}{f'; {point.do}' if point.do else ''}."
    if found.verdict != CANNOT_TELL:
        if effects:
            yield "The verdict holds over the whole range of every unmeasured input."
        nearest = next((turn for turn in turns if turn.at is not None), None)
        if nearest is not None:
            yield f"The input that turns it soonest: {_turn_in_words(nearest)}."
        return
    turning = [effect for effect in effects if effect.at is not None]
    if turning:
        text = "; ".join(f"{_input_name(effect)} at {_at(effect)}" for effect in turning)
        yield f"The sign of the saving changes with one input alone, the nearest first: {text}."
    elif effects and not found.open_points:
        yield "No unmeasured input alone changes the sign of the saving; several of them together do."
    if found.saving.low is None and not found.open_points:
        yield "How sure the saving is, is not known."
    elif found.saving.low is not None and found.saving.high is not None and found.saving.low <= 0 < found.saving.high:
        yield "More and less than nothing are both in the 95 % interval, so the data do not decide."


def _input_name(effect: InputEffect) -> str:
    return f"{INPUTS[effect.input.name]} of {effect.side}"


def _at(effect: InputEffect) -> str:
    assert effect.at is not None
    return f"{effect.input.label(effect.at)} (assumed {effect.input.label(effect.input.assumed)})"


def _ranges(found: Decision, side: Side, effects: Sequence[InputEffect]) -> Iterator[Block]:
    """The unmeasured inputs of one side: their ranges, what they change, and their sources."""
    group = [effect for effect in effects if effect.side == side.name]
    if not group:
        return
    shown = unit_of(found).shown

    def cell(amount: float | None) -> str:
        return "never ends" if amount is None else NOTHING if math.isnan(amount) else shown(amount)

    rows = [
        (
            INPUTS[effect.input.name] + (f"\n{effect.input.unit}" if effect.input.unit else ""),
            _two(effect.input.short(effect.input.best), effect.input.short(effect.input.worst)),
            effect.input.short(effect.input.assumed),
            _two(cell(effect.best), cell(effect.worst)),
            NOTHING if effect.at is None else effect.input.short(effect.at),
        )
        for effect in group
    ]
    yield TextTable(("input", "best … worst", "assumed", "saving then", "sign changes"), tuple(rows))
    yield Paragraph("Each input alone varies over its range, on this side; the others are as assumed. Sources:")
    others = ", from other providers"
    yield Items(
        tuple(
            f"{INPUTS[effect.input.name]}{others * effect.input.of_others}: {'; '.join(effect.input.sources)}"
            + (f". Plans: {', '.join(effect.input.plans)}" if effect.input.plans else "")
            for effect in group
        )
    )


def _two(best: str, worst: str) -> str:
    """Both ends on one line, or on two where they are long."""
    return f"{best} …{chr(10) if len(best) + len(worst) > ONE_LINE else ' '}{worst}"


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
    """The cost whose opposite is a saving."""
    value, low, high = amount
    return Interval(-value, None if high is None else -high, None if low is None else -low)


def _money(found: Decision) -> TextTable:
    bills = found.start_bill, found.goal_bill

    def line(name: str, of: Callable[[Bill], Interval | None]) -> tuple[Content, ...]:
        return name, *(amount_cell(of(item), SHORT) for item in bills)

    rows: list[tuple[Content, ...]] = [
        line("the whole run", lambda item: item.whole),
        line("the sandbox's part of it", lambda item: item.sandbox),
    ]
    if found.unit == USD:
        rows += [
            line("GPUs, as long as it lasts", lambda item: item.gpus),
            line("nodes", lambda item: item.nodes),
            line("sandboxes and workers", lambda item: Interval(item.rest)),
        ]
        for name, part in (("GPU-hours waiting", "waiting"), ("GPU-hours stalled by the sandbox", "stalled")):
            waits = [side.row.attribution and side.row.attribution.waiting for side in (found.start, found.goal)]
            if all(waits):
                amounts = (getattr(item, f"{part}_gpu_hours") for item in waits)
                rows.append((name, *(NOTHING if item is None else TableCell(item, SHORT) for item in amounts)))
        seconds = [
            side.row.attribution and side.row.attribution.usd_per_critical_second for side in (found.start, found.goal)
        ]
        if all(seconds):
            rows.append(("a second more in every step", *(TableCell(item or 0.0, SHORT) for item in seconds)))
    if any(groups := [_poisoned(side) for side in (found.start, found.goal)]):
        rows.append(("groups with a failed attempt", *groups))
    return TextTable((unit_of(found).name, name_of(found.start), name_of(found.goal)), tuple(rows))


def _poisoned(side: Side) -> Content:
    """The share of groups in which an attempt fails; "" where groups or the rate are unknown."""
    rate, group = side.training_run.failure_rate, side.training_run.group_size
    if rate is None or group is None:
        return ""
    return TableCell(poisoned_groups(rate, group, side.training_run.failure_burst), SHARE)


def _causes(found: Decision) -> Iterator[Block]:
    if not found.start.row.attribution:
        return
    unit = unit_of(found)
    splits = [side.row.attribution.causes if side.row.attribution else {} for side in (found.start, found.goal)]

    def cell(share: Share | None) -> Content:
        return NOTHING if share is None else amount_cell(unit.of(share), SHORT)

    causes = [cause for cause in ATTRIBUTED if any(_counts(split.get(cause)) for split in splits)]
    rows = tuple((CAUSES[cause], *(cell(split.get(cause)) for split in splits)) for cause in causes)
    if rows:
        yield TextTable((unit.name, name_of(found.start), name_of(found.goal)), rows)


def _counts(share: Share | None) -> bool:
    return share is not None and share.worker_hours.value != 0


def _turn_in_words(turn: Turn) -> str:
    of = f" of {turn.side}" if turn.side else ""
    assert turn.at is not None
    return f"{turn.input}{of} at {compact(turn.at)} {turn.unit} instead of {compact(turn.now)}".replace("  ", " ")


def _turning(turns: Sequence[Turn]) -> Iterator[Block]:
    rows = tuple(
        (turn.input, turn.side or "both", f"{compact(turn.now)} {turn.unit}", f"{compact(turn.at)} {turn.unit}")
        for turn in turns
        if turn.at is not None
    )
    if rows:
        yield TextTable(("input", "at", "now", "turns at"), rows)
    never = [
        f"{turn.input}{f' of {turn.side}' if turn.side else ''} "
        f"({compact(turn.low)} to {compact(turn.high)}{f' {turn.unit}' if turn.unit else ''})"
        for turn in turns
        if turn.at is None
    ]
    if never:
        yield Paragraph(f"These inputs turn nothing in the ranges that were tried: {'; '.join(never)}.")
    if turns:
        yield Paragraph("Each input alone, by bisection: the value at which both sides cost the same.")


def _doubts(found: Decision) -> list[str]:
    texts = [f"{doubt.side or 'both'}: {doubt.words}" for doubt in found.doubts[:MOST_DOUBTS]]
    left = len(found.doubts) - MOST_DOUBTS
    return [*texts, f"and {left} lesser doubts, which `--format json` has"] if left > 0 else texts


def next_steps(found: Decision, effects: Sequence[InputEffect], turns: Sequence[Turn]) -> list[str]:
    """Return the steps that would change the answer most: unmeasured inputs, close thresholds, other doubts."""
    lines: dict[str, None] = {}
    sides = {side.name: side for side in (found.start, found.goal)}
    for effect in effects:
        if effect.at is not None or found.verdict == CANNOT_TELL:
            side = sides[effect.side]
            ask = _ASK.get(effect.input.name)
            told = measurement(side) if ask is None else f"{ask.format(side.row.identity.substrate)}."
            what = INPUTS[effect.input.name] if ask is not None else "the same work there"
            lines[f"{side.name}, {what}: {told}"] = None
    for side in sides.values():
        if side.row.provenance in UNMEASURED_PROVENANCES:
            lines.setdefault(f"{side.name}, the same work there: {measurement(side)}")
    for turn in [turn for turn in turns if turn.at is not None and turn.side][:2]:
        assert turn.at is not None
        way = "above" if turn.at > turn.now else "below"
        at = f"{compact(turn.at)} {turn.unit}".strip()
        lines[f"{turn.input} of {turn.side}: whether it is {way} {at}."] = None
    for doubt in found.doubts:
        if doubt.do:
            lines.setdefault(f"{doubt.side or 'both'}: {doubt.do}")
    return list(lines)[:MOST_STEPS]
