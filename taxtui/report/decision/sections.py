"""The page of a decision: verdict, saving, unmeasured inputs, costs, doubts, next measurements and sources."""

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
    poisoned_groups,
    warnings,
)
from costmodel import CAUSES as ATTRIBUTED
from taxtui.report.cells import SHARE, SHORT, Content, TableCell, amount_cell
from taxtui.report.decision.layout import Block, Code, Items, Page
from taxtui.report.decision.sources import sources_of
from taxtui.report.formats import Section
from taxtui.report.numbers import NOTHING, compact, money, percent, span
from taxtui.report.projected.attributed import Unit
from taxtui.report.words import CAUSES
from taxtui.sandboxes import registry
from taxtui.terminal_text import clean

TRIALS: Final = 30
"""Minimum trials of a cell in a first measurement."""
MOST_STEPS: Final = 4
"""Maximum number of next measurements on a page."""
MOST_DOUBTS: Final = 8
"""Maximum number of doubts on a page."""
ONE_LINE: Final = 18
"""Maximum columns of a range on one line."""
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
"""Unmeasured input → name on a page."""
_ASK: Final = {
    "limits": "ask for the limits of your plan, and add profile=NAME to --compose {0}, or quota and create_rate under "
    "[at.{0}.limits]",
    "failure_rate": "count the failed attempts of some days there, and write failure_rate under [at.{0}.failures]",
    "failure_burst": "count the sandboxes lost together there, and write failure_burst under [at.{0}.failures]",
    "disk": "choose the disk of a sandbox, and give a price sheet with it: --compose {0}:prices=FILE",
}
"""Unmeasured input → way to find its value, where a measurement of some trials is no help."""


def page(
    decision: Decision,
    effects: Sequence[InputEffect],
    inputs: Sequence[Assumption],
    command: str,
    *,
    rough: bool = False,
) -> Page:
    """Return the page of a decision.

    Args:
        decision: the decision.
        effects: effects of the unmeasured inputs, the nearest threshold first.
        inputs: every input with its source.
        command: the command line of this page.
        rough: whether the simulation was short; the saving is then printed with ≈.
    """
    doubts, steps = _doubts(decision), next_steps(decision, effects)
    parts: dict[str, list[Block]] = {
        f"Unmeasured inputs at {decision.goal.name}": list(_ranges(decision, effects)),
        "Costs of the training run": [_costs(decision)],
        "Costs of the sandbox by cause": list(_causes(decision)),
        "Not verified": [Items(doubts)] if doubts else [],
        "Measure next": [Items(steps, numbered=True)] if steps else [],
        "Command that writes this page": [Code(command)],
        "Source of each input": [Items(list(sources_of(decision, inputs)))],
    }
    lead = list(_lead(decision, effects, steps, rough=rough))
    return Page(_title(decision), lead, {heading: blocks for heading, blocks in parts.items() if blocks})


def unit_of(decision: Decision) -> Unit:
    """Return the unit of all amounts."""
    return DOLLARS if decision.unit == USD else HOURS


def name_of(side: Side) -> str:
    """Return the name of a side, with its provenance if not measured."""
    provenance = side.row.provenance
    if provenance == warnings.MEASURED:
        return side.name
    return f"{side.name} ({'estimated' if side.candidate is not None else provenance})"


def _title(decision: Decision) -> str:
    start, goal = name_of(decision.start), name_of(decision.goal)
    if decision.verdict == MOVE:
        return f"MOVE from {start} to {goal}"
    return f"CAN'T TELL {start} from {goal}" if decision.verdict == CANNOT_TELL else f"STAY with {start}"


def _format(decision: Decision, amount: Interval) -> str:
    """Return an amount with its interval, if known: ``$90.0 ($88.0–$92.0)``."""
    unit = unit_of(decision)
    limits = "" if None in amount else f" ({span(amount, money if unit.usd else compact)})"
    return f"{unit.format(amount.value)}{limits}"


def _saves(decision: Decision, saving: Interval) -> str:
    """Return ``saves $90.0 (…)`` or ``costs $90.0 (…)``."""
    return (
        f"saves {_format(decision, saving)}" if saving.value >= 0 else f"costs {_format(decision, _reversed(saving))}"
    )


def _lead(
    decision: Decision,
    effects: Sequence[InputEffect],
    steps: Sequence[str],
    *,
    rough: bool,
) -> Iterator[str]:
    saving, whole, about = decision.saving, decision.start_bill.whole.value, "≈ " * rough
    share = f", {percent(abs(saving.value) / whole)} of {unit_of(decision).format(whole)}" if whole else ""
    verb, _, amount = _saves(decision, saving).partition(" ")
    saving_text = f"Moving to {name_of(decision.goal)} {verb} this run {about}{amount}{share}"
    if not effects:
        yield f"{saving_text}."
    else:
        yield f"{saving_text}, if all unmeasured inputs are as assumed. {_over_ranges(decision)}"
    if rough:
        yield "A rough simulation (--quick): without it intervals are narrower and causes are separated."
    yield from _reasons(decision, effects)
    if steps and decision.verdict == CANNOT_TELL:
        yield f"Measure first: {steps[0]}"


def _over_ranges(decision: Decision) -> str:
    """Return the sentence about the savings at both ends of the ranges."""
    savings = [
        "the run would not end" if item is None else f"it {_saves(decision, item)}"
        for item in (decision.saving_at_best, decision.saving_at_worst)
    ]
    count = len(decision.inputs)
    return f"Over the ranges of {count} unmeasured inputs: at best {savings[0]}, at worst {savings[1]}."


def _reasons(decision: Decision, effects: Sequence[InputEffect]) -> Iterator[str]:
    """Yield the reasons for the verdict."""
    for point in decision.open_points:
        yield f"There is no verdict: {point.side}: {point.words}{f'; {point.do}' if point.do else ''}."
    if decision.verdict != CANNOT_TELL:
        if effects:
            yield "The verdict holds over the whole range of every unmeasured input."
        return
    single = [effect for effect in effects if effect.at is not None]
    if single:
        text = "; ".join(f"{INPUTS[effect.input.name]} of {decision.goal.name} at {_at(effect)}" for effect in single)
        yield f"Thresholds of single inputs, the nearest first: {text}."
    elif effects and not decision.open_points:
        yield "No unmeasured input alone has a threshold; several together change the verdict."
    low, high = decision.saving.low, decision.saving.high
    if low is None and not decision.open_points:
        yield "The saving has no interval."
    elif low is not None and high is not None and low <= 0 < high:
        yield "The 95 % interval of the saving includes zero."


def _at(effect: InputEffect) -> str:
    assert effect.at is not None
    return f"{effect.input.label(effect.at)} (assumed {effect.input.label(effect.input.assumed)})"


def _ranges(decision: Decision, effects: Sequence[InputEffect]) -> Iterator[Block]:
    if not effects:
        return
    format_amount = unit_of(decision).format

    def cell(amount: float | None) -> str:
        return "never ends" if amount is None else NOTHING if math.isnan(amount) else format_amount(amount)

    rows: list[list[Content]] = [
        [
            INPUTS[effect.input.name] + (f"\n{effect.input.unit}" if effect.input.unit else ""),
            _two(effect.input.short(effect.input.best), effect.input.short(effect.input.worst)),
            effect.input.short(effect.input.assumed),
            _two(cell(effect.best), cell(effect.worst)),
            NOTHING if effect.at is None else effect.input.short(effect.at),
        ]
        for effect in effects
    ]
    yield Section("", ["input", "best … worst", "assumed", "saving", "threshold"], rows, [])
    yield "Each input alone varies over its range on this side. Threshold: the saving is zero. Sources:"
    borrowed = ", from other providers"
    yield Items(
        [
            f"{INPUTS[effect.input.name]}{borrowed * effect.input.of_others}: {'; '.join(effect.input.sources)}"
            + (f". Plans: {', '.join(effect.input.plans)}" if effect.input.plans else "")
            for effect in effects
        ]
    )


def _two(best: str, worst: str) -> str:
    return f"{best} …{chr(10) if len(best) + len(worst) > ONE_LINE else ' '}{worst}"


def measurement(side: Side) -> str:
    """Return how to measure the workload of a side: a command if taxtui supports the substrate."""
    row = side.row
    if row.identity.substrate not in registry.names():
        return "run the same work there with your own harness, and read the logs with `taxtui import`."
    trials = max(TRIALS, (row.wall_clock_hours and row.wall_clock_hours.needs_trials) or 0)
    words = ["taxtui", "run", "-s", row.identity.substrate, "-t", row.identity.tier, "-n", str(row.length.high)]
    words += ["--mode", row.identity.mode, "--trials", str(trials), "--repeat", "3"]
    return f"`{clean(shlex.join(words))}`, then this page with both recordings."


def _reversed(amount: Interval) -> Interval:
    """Return the negative of an amount: a saving as a cost."""
    value, low, high = amount
    return Interval(-value, None if high is None else -high, None if low is None else -low)


def _costs(decision: Decision) -> Section:
    bills = decision.start_bill, decision.goal_bill

    def line(name: str, part_of: Callable[[Bill], Interval | None]) -> list[Content]:
        return [name, *(amount_cell(part_of(bill), SHORT) for bill in bills)]

    rows = [
        line("the whole run", lambda item: item.whole),
        line("the sandbox", lambda item: item.sandbox),
    ]
    if decision.unit == USD:
        rows += [
            line("GPUs, whole duration", lambda item: item.gpus),
            line("nodes", lambda item: item.nodes),
            line("sandboxes and workers", lambda item: Interval(item.rest)),
        ]
        for name, part in (("GPU-hours waiting", "waiting"), ("GPU-hours stalled by the sandbox", "stalled")):
            waits = [side.row.attribution and side.row.attribution.waiting for side in (decision.start, decision.goal)]
            if all(waits):
                amounts = (getattr(item, f"{part}_gpu_hours") for item in waits)
                rows.append([name, *(NOTHING if item is None else TableCell(item, SHORT) for item in amounts)])
        seconds = [
            side.row.attribution and side.row.attribution.usd_per_critical_second
            for side in (decision.start, decision.goal)
        ]
        if all(seconds):
            rows.append(["one second per step", *(TableCell(item or 0.0, SHORT) for item in seconds)])
    if any(groups := [_poisoned(side) for side in (decision.start, decision.goal)]):
        rows.append(["groups with a failed attempt", *groups])
    return Section("", _head(decision), rows, [])


def _poisoned(side: Side) -> Content:
    """Return the share of groups with a failed attempt; "" if groups or the rate are unknown."""
    rate, group = side.training_run.failure_rate, side.training_run.group_size
    if rate is None or group is None:
        return ""
    return TableCell(poisoned_groups(rate, group, side.training_run.failure_burst), SHARE)


def _causes(decision: Decision) -> Iterator[Block]:
    if not decision.start.row.attribution:
        return
    unit = unit_of(decision)
    splits = [side.row.attribution.causes if side.row.attribution else {} for side in (decision.start, decision.goal)]

    def cell(share: Share | None) -> Content:
        return NOTHING if share is None else amount_cell(unit.of(share), SHORT)

    causes = [cause for cause in ATTRIBUTED if any(_counts(split.get(cause)) for split in splits)]
    if causes:
        rows = [[CAUSES[cause], *(cell(split.get(cause)) for split in splits)] for cause in causes]
        yield Section("", _head(decision), rows, [])


def _head(decision: Decision) -> list[str]:
    return [unit_of(decision).name, name_of(decision.start), name_of(decision.goal)]


def _counts(share: Share | None) -> bool:
    return share is not None and share.worker_hours.value != 0


def _doubts(decision: Decision) -> list[str]:
    texts = [f"{doubt.side or 'both'}: {doubt.words}" for doubt in decision.doubts[:MOST_DOUBTS]]
    more = len(decision.doubts) - MOST_DOUBTS
    return [*texts, f"and {more} lesser doubts in `--format json`"] if more > 0 else texts


def next_steps(decision: Decision, effects: Sequence[InputEffect]) -> list[str]:
    """Return the most useful next steps: unmeasured inputs, then other doubts."""
    lines: dict[str, None] = {}
    goal = decision.goal
    for effect in effects:
        if effect.at is not None or decision.verdict == CANNOT_TELL:
            ask = _ASK.get(effect.input.name)
            step = measurement(goal) if ask is None else f"{ask.format(goal.row.identity.substrate)}."
            subject = INPUTS[effect.input.name] if ask is not None else "the same work there"
            lines[f"{goal.name}, {subject}: {step}"] = None
    for side in (decision.start, goal):
        if side.row.provenance in UNMEASURED_PROVENANCES:
            lines.setdefault(f"{side.name}, the same work there: {measurement(side)}")
    for doubt in decision.doubts:
        if doubt.do:
            lines.setdefault(f"{doubt.side or 'both'}: {doubt.do}")
    return list(lines)[:MOST_STEPS]
