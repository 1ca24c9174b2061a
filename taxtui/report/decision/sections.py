"""The page of a decision: verdict, saving, unmeasured inputs, costs, doubts, next measurements and sources."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final

from costmodel import (
    CANNOT_TELL,
    MOVE,
    UNMEASURED_PROVENANCES,
    USD,
    Assumption,
    Decision,
    InputEffect,
    Interval,
    Share,
    Side,
    Unverified,
    poisoned_groups,
    warnings,
)
from costmodel import CAUSES as ATTRIBUTED
from taxtui import shipped
from taxtui.report.cells import Content, TableCell, amount_cell
from taxtui.report.decision.sources import sources_of
from taxtui.report.formats import Section
from taxtui.report.numbers import NOTHING, SHARE, SHORT, CostUnit, compact, money, percent, span
from taxtui.report.words import CAUSES, DO, WORDS
from taxtui.sandboxes import registry
from taxtui.terminal_text import clean

TRIALS: Final = 30  # minimum of a repetition in a first measurement
REPETITIONS: Final = 3
MOST_STEPS: Final = 4
"""Maximum number of next measurements on a page."""
MOST_DOUBTS: Final = 8
"""Maximum number of doubts on a page."""
IN_RANGES: Final = (warnings.COMPOSED, warnings.DISPATCH_BORROWED, warnings.SPEED_ASSUMED)
"""Warnings contained in the ranges of an unmeasured substrate."""
ONE_LINE: Final = 18
"""Maximum columns of a range on one line."""
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
) -> list[Section]:
    """Return the page of a decision: a title, the reasons, and a section per part.

    Args:
        decision: the decision.
        effects: effects of the unmeasured inputs, the nearest threshold first.
        inputs: every input with its source.
        command: the command line of this page.
        rough: whether the simulation was short; the saving is then printed with ≈.
    """
    steps = next_steps(decision, effects)
    parts = [
        _ranges(decision, effects),
        _costs(decision),
        _causes(decision),
        Section("Not verified", [], [], _doubts(decision)),
        Section("Measure next, the most useful first", [], [], steps),
        Section("Command that writes this page", [], [], [f"`{command}`"]),
        Section("Source of each input", [], [], list(sources_of(decision, inputs))),
    ]
    lead = [Section("", [], [], [text]) for text in _lead(decision, effects, steps, rough=rough)]
    whole = [Section(_title(decision), [], [], []), *lead, *(part for part in parts if part.rows or part.notes)]
    return [section._replace(title=clean(section.title), links=True) for section in whole]


def unit_of(decision: Decision) -> CostUnit:
    """Return the unit of all amounts."""
    return CostUnit(usd=decision.unit == USD)


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


def _saves(decision: Decision, saving: Interval) -> str:
    """Return ``saves $90.0 ($88.0–$92.0)`` or ``costs $90.0 (…)``, with the interval if known."""
    unit, amount = unit_of(decision), saving
    if saving.value < 0:
        value, low, high = saving
        amount = Interval(-value, None if high is None else -high, None if low is None else -low)
    limits = "" if None in amount else f" ({span(amount, money if unit.usd else compact)})"
    return f"{'saves' if amount is saving else 'costs'} {unit.format(amount.value)}{limits}"


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
        best, worst = (
            "the run would not end" if item is None else f"it {_saves(decision, item)}"
            for item in (decision.saving_at_best, decision.saving_at_worst)
        )
        ranges = f"Over the ranges of {len(decision.inputs)} unmeasured inputs: at best {best}, at worst {worst}."
        yield f"{saving_text}, if all unmeasured inputs are as assumed. {ranges}"
    if rough:
        yield "A rough simulation (--quick): without it intervals are narrower and causes are separated."
    yield from _reasons(decision, effects)
    if steps and decision.verdict == CANNOT_TELL:
        yield f"Measure first: {steps[0]}"


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
        texts = []
        for effect in single:
            at, assumed = (effect.input.label(value or 0.0) for value in (effect.at, effect.input.assumed))
            texts.append(f"{INPUTS[effect.input.name]} of {decision.goal.name} at {at} (assumed {assumed})")
        yield f"Thresholds of single inputs, the nearest first: {'; '.join(texts)}."
    elif effects and not decision.open_points:
        yield "No unmeasured input alone has a threshold; several together change the verdict."
    low, high = decision.saving.low, decision.saving.high
    if low is None and not decision.open_points:
        yield "The saving has no interval."
    elif low is not None and high is not None and low <= 0 < high:
        yield "The 95 % interval of the saving includes zero."


def _ranges(decision: Decision, effects: Sequence[InputEffect]) -> Section:
    format_amount = unit_of(decision).format

    def cell(amount: float | None) -> str:
        return "never ends" if amount is None else NOTHING if math.isnan(amount) else format_amount(amount)

    rows: list[list[Content]] = []
    notes = ["Each input alone varies over its range on this side. Threshold: the saving is zero."]
    for effect in effects:
        item, name = effect.input, INPUTS[effect.input.name]
        rows.append(
            [
                name + (f"\n{item.unit}" if item.unit else ""),
                _two(item.short(item.best), item.short(item.worst)),
                item.short(item.assumed),
                _two(cell(effect.best), cell(effect.worst)),
                NOTHING if effect.at is None else item.short(effect.at),
            ]
        )
        plans = f". Plans: {', '.join(item.plans)}" if item.plans else ""
        notes.append(f"{name}{', from other providers' * item.of_others}: {'; '.join(item.sources)}{plans}")
    head = ["input", "best … worst", "assumed", "saving", "threshold"]
    return Section(f"Unmeasured inputs at {decision.goal.name}", head, rows, notes if rows else [])


def _two(best: str, worst: str) -> str:
    return f"{best} …{chr(10) if len(best) + len(worst) > ONE_LINE else ' '}{worst}"


def measurement(side: Side) -> str:
    """Return how to measure the workload of a side: a command if taxtui supports the substrate."""
    row = side.row
    if row.identity.substrate not in registry.names():
        return "run the same work there with your own harness, and read the logs with `taxtui import`."
    trials = max(TRIALS, -(-((row.wall_clock_hours and row.wall_clock_hours.needs_trials) or 0) // REPETITIONS))
    words = ["taxtui", "run", "-s", row.identity.substrate, "-t", row.identity.tier, "-n", str(row.length.high)]
    words += ["--mode", row.identity.mode, "--trials", str(trials), "--repeat", str(REPETITIONS)]
    if shipped.row_of(row.identity.substrate).price_sheet:  # paid; one warm-up per repetition
        words += ["--yes", "--max-sandboxes", str((trials + 1) * REPETITIONS)]
    return f"`{clean(shlex.join(words))}`, then this page with both recordings."


def _costs(decision: Decision) -> Section:
    bills = decision.start_bill, decision.goal_bill
    attributions = [side.row.attribution for side in (decision.start, decision.goal)]
    waits = [item.waiting if item else None for item in attributions]

    def line(name: str, owners: Sequence[Any], field: str) -> list[Content]:
        amounts = (getattr(owner, field, None) for owner in owners)
        return [
            name,
            *(amount_cell(item if isinstance(item, Interval | None) else Interval(item), SHORT) for item in amounts),
        ]

    rows = [line("the whole run", bills, "whole"), line("the sandbox", bills, "sandbox")]
    if decision.unit == USD:
        parts = {"GPUs, whole duration": "gpus", "nodes": "nodes", "sandboxes and workers": "rest"}
        rows += [line(name, bills, field) for name, field in parts.items()]
        if all(waits):
            rows.append(line("GPU-hours waiting", waits, "waiting_gpu_hours"))
            rows.append(line("GPU-hours stalled by the sandbox", waits, "stalled_gpu_hours"))
        if all(item and item.usd_per_critical_second for item in attributions):
            rows.append(line("one second per step", attributions, "usd_per_critical_second"))
    if any(groups := [_poisoned(side) for side in (decision.start, decision.goal)]):
        rows.append(["groups with a failed attempt", *groups])
    return Section("Costs of the training run", _head(decision), rows, [])


def _poisoned(side: Side) -> Content:
    """Return the share of groups with a failed attempt; "" if groups or the rate are unknown."""
    rate, group = side.training_run.failure_rate, side.training_run.group_size
    if rate is None or group is None:
        return ""
    return TableCell(poisoned_groups(rate, group, side.training_run.failure_burst), SHARE)


def _causes(decision: Decision) -> Section:
    unit = unit_of(decision)
    splits = [side.row.attribution.causes if side.row.attribution else {} for side in (decision.start, decision.goal)]

    def cell(share: Share | None) -> Content:
        return NOTHING if share is None else amount_cell(unit.of(share), SHORT)

    causes = [
        cause
        for cause in ATTRIBUTED
        if any((share := split.get(cause)) is not None and share.worker_hours.value for split in splits)
    ]
    rows = [[CAUSES[cause], *(cell(split.get(cause)) for split in splits)] for cause in causes]
    return Section("Costs of the sandbox by cause", _head(decision), rows, [])


def _head(decision: Decision) -> list[str]:
    return [unit_of(decision).name, name_of(decision.start), name_of(decision.goal)]


def doubts_of(decision: Decision) -> list[Unverified]:
    """Return the open points, then all further doubts, the most important first."""
    doubts, sides = list(decision.open_points), (decision.start, decision.goal)
    measured = [side for side in sides if side.row.provenance not in UNMEASURED_PROVENANCES]
    for side, bill in zip(sides, (decision.start_bill, decision.goal_bill), strict=True):
        if decision.unit == USD and not bill.nodes and not bill.rest:
            fix = "give --node-usd-hour, or a price sheet with --prices"
            doubts.append(Unverified(side.name, "its sandboxes cost nothing here", fix))
    for flag in warnings.ordered(flag for side in sides for flag in side.row.flags):
        of = [side.name for side in (measured if flag in IN_RANGES else sides) if flag in side.row.flags]
        if of:
            doubts.append(Unverified(of[0] if len(of) == 1 else "", WORDS[flag], DO[flag]))
    return doubts


def _doubts(decision: Decision) -> list[str]:
    doubts = doubts_of(decision)
    texts = [f"{doubt.side or 'both'}: {doubt.words}" for doubt in doubts[:MOST_DOUBTS]]
    more = len(doubts) - MOST_DOUBTS
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
    for doubt in doubts_of(decision):
        if doubt.do:
            lines.setdefault(f"{doubt.side or 'both'}: {doubt.do}")
    return list(lines)[:MOST_STEPS]
