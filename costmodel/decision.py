"""Move, stay, or cannot tell: two rows of the same work, what each costs a run, and what would turn the answer.

A decision is about the whole bill of a run: GPUs and nodes for as long as it lasts, workers for what they are held,
sandboxes as they are sold. Without any price it is about worker-hours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from costmodel import flags
from costmodel.comparison import judged
from costmodel.demand import Demand
from costmodel.errors import DemandError
from costmodel.results import Projection
from costmodel.uncertainty import Interval, difference

MOVE, STAY, CANNOT_TELL = VERDICTS = ("move", "stay", "cannot_tell")
USD, WORKER_HOURS = UNITS = ("usd", "worker_hours")
COMPOSED: Final = "composed"
MEASURED: Final = "measured"

CAUSES_DO: Final = {
    "slowdown": "run the same commands on both, and name the reference with --full-speed",
    "contention": "record --concurrency 1 beside it, with CPU times",
    "dispatch": flags.DO[flags.RUN_UNKNOWN],
}

Rerun = Callable[[Demand], Projection]
"""The row of one side at another demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of two places: its row, what it was asked, and how to ask it anew."""

    name: str
    row: Projection
    demand: Demand
    rerun: Rerun


class Bill(NamedTuple):
    """What one side costs the run, in dollars where anything has a price, else in worker-hours."""

    whole: Interval
    sandbox: Interval | None  # of that, what an ideal sandbox would save; None where the run is not in steps
    gpus: Interval | None  # for as long as the run lasts; None without a price of them
    nodes: Interval | None  # likewise
    rest: float  # workers and sandboxes, by the price sheet


class Doubt(NamedTuple):
    """What is not verified, and what to measure about it."""

    side: str  # a side's name; "" for both
    words: str
    do: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether to move from ``start`` to ``goal``. Amounts are of the whole run, in ``unit``."""

    verdict: str  # of ``VERDICTS``
    unit: str  # of ``UNITS``
    start: Side
    goal: Side
    start_bill: Bill
    goal_bill: Bill
    saving: Interval  # of moving; where it is negative, moving costs that
    doubts: tuple[Doubt, ...]  # the gravest first


def decide(start: Side, goal: Side) -> Decision:
    """Whether moving from one to the other saves money, or worker-hours where nothing has a price.

    Raises:
        DemandError: the two did not do the same work, or one of them has no number.
    """
    one, other = start.row, goal.row
    if (one.identity.tier, one.length) != (other.identity.tier, other.length):
        works = " and ".join(f"{row.identity.tier} {row.length}" for row in (one, other))
        raise DemandError(f"{start.name} and {goal.name} did different work, {works}; give the length with --actions")
    for side in (start, goal):
        if side.row.worker_hours is None:
            raise DemandError(f"there is no number for {side.name}: {', '.join(side.row.flags)}")
    unit = USD if all(_usd(side) is not None for side in (start, goal)) else WORKER_HOURS
    bills = bill(start, unit), bill(goal, unit)
    saving = saving_of(start, goal, unit)
    return Decision(
        verdict=verdict(saving),
        unit=unit,
        start=start,
        goal=goal,
        start_bill=bills[0],
        goal_bill=bills[1],
        saving=saving,
        doubts=tuple(_doubts(start, goal, bills, saving, unit)),
    )


def verdict(saving: Interval) -> str:
    """What an interval of the saving allows to say."""
    if saving.low is None or saving.high is None:
        return CANNOT_TELL
    if saving.low > 0:
        return MOVE
    return STAY if saving.high <= 0 else CANNOT_TELL


def bill(side: Side, unit: str) -> Bill:
    """What the run costs on one side."""
    row, demand, found = side.row, side.demand, side.row.attribution
    assert row.worker_hours is not None
    if unit == WORKER_HOURS:
        sandbox = row.tax_worker_hours if found is None else found.sandbox.worker_hours
        return Bill(row.worker_hours if found is None else found.run.worker_hours, sandbox, None, None, 0.0)
    whole = _usd(side)
    assert whole is not None
    if found is None:
        return Bill(whole, None, None, None, whole.value)
    hours = found.run.step_s.times(found.steps / 3600)
    gpus = hours.times(demand.gpus * demand.gpu_usd_hour) if demand.gpus and demand.gpu_usd_hour else None
    nodes = hours.times(demand.nodes * demand.node_usd_hour) if demand.nodes and demand.node_usd_hour else None
    rest = whole.value - sum(part.value for part in (gpus, nodes) if part)
    return Bill(whole, found.sandbox.usd, gpus, nodes, rest)


def _usd(side: Side) -> Interval | None:
    """All that has a price; None: nothing has."""
    row = side.row
    if row.attribution is not None:
        return row.attribution.run.usd
    if row.cost is None:
        return None
    sandbox, more = row.cost.sandbox_usd, row.cost.total_usd - row.cost.sandbox_usd.value
    return Interval(*(None if end is None else end + more for end in sandbox))  # type: ignore[arg-type]


def saving_of(start: Side, goal: Side, unit: str) -> Interval:
    """What moving saves of the whole bill.

    Where both wait for the same generation, that cancels, however it was drawn: what differs is the sandbox's part,
    the commands' own time, and what each side pays for an hour. Worker-hours that were measured in the same runs are
    paired, as everywhere.
    """
    one, other = bill(start, unit), bill(goal, unit)
    if unit == USD:
        here, there = _ideal(start), _ideal(goal)
        if here is not None and there is not None and _generated(start) == _generated(goal):
            return _apart(here, there)
    rows = start.row, goal.row
    if unit == WORKER_HOURS and all(row.attribution is None for row in rows):
        return judged(*rows, one.whole, other.whole, start.demand.run_sd).value
    return difference(one.whole, other.whole)


class _Ideal(NamedTuple):
    """A run with an ideal sandbox, on one side, and what the sandbox adds to it."""

    added: Interval  # $ of the whole run
    lasting: float  # $ for each hour that the run lasts
    generation_h: float  # of the wall-clock
    commands_h: float
    trained_h: float
    used: float  # $ for sandboxes and workers
    unsure: float  # relative, of what its own trials say


def _ideal(side: Side) -> _Ideal | None:
    """None where it is not known: no GPUs, no prices, or commands whose own time is unknown."""
    found, demand = side.row.attribution, side.demand
    if found is None or found.waiting is None or found.run.usd is None or found.sandbox.usd is None:
        return None
    waits, gpus = found.waiting, demand.gpus or 1
    if waits.commands_gpu_hours is None or waits.stalled_gpu_hours is None:
        return None
    lasting = gpus * (demand.gpu_usd_hour or 0.0) + (demand.nodes or 0) * (demand.node_usd_hour or 0.0)
    generation_h, commands_h = (waits.generation_gpu_hours or 0.0) / gpus, waits.commands_gpu_hours / gpus
    trained_h = waits.wall_clock_hours - waits.waiting_gpu_hours / gpus
    lasts_h = generation_h + commands_h + trained_h
    hours = found.run.worker_hours
    return _Ideal(
        found.sandbox.usd,
        lasting,
        generation_h,
        commands_h,
        trained_h,
        found.run.usd.value - found.sandbox.usd.value - lasts_h * lasting,
        0.0 if hours.low is None or not hours.value else 1 - hours.low / hours.value,
    )


def _apart(start: _Ideal, goal: _Ideal) -> Interval:
    """How much dearer the start is than the goal."""
    generation_h = (start.generation_h + goal.generation_h) / 2
    more, unsure = 0.0, []
    for one, sign in ((start, 1), (goal, -1)):
        commands = one.commands_h * one.lasting
        more += sign * ((generation_h + one.trained_h) * one.lasting + commands + one.used)
        unsure += [one.unsure * commands, one.unsure * one.used]
    added, off = difference(start.added, goal.added), math.hypot(*unsure)
    value = added.value + more
    if added.low is None or added.high is None:
        return Interval(value)
    below, above = math.hypot(added.value - added.low, off), math.hypot(added.high - added.value, off)
    return Interval(value, value - below, value + above)


_GENERATION: Final = (
    *("trajectories", "think", "think_correlation", "prompts", "group_size", "batch", "policy", "staleness"),
    *("over_provision", "partial_rollouts", "train_s", "gpus", "gpu_usd_hour"),
)
"""What says how long the model generates, and how long GPUs wait for that."""


def _generated(side: Side) -> tuple[object, ...]:
    return (side.row.length, *(getattr(side.demand, name) for name in _GENERATION))


def _doubts(start: Side, goal: Side, bills: tuple[Bill, Bill], saving: Interval, unit: str) -> list[Doubt]:
    found = []
    for side, own in zip((start, goal), bills, strict=True):
        if unit == USD and not own.nodes and not own.rest:
            found.append(
                Doubt(
                    side.name, "its sandboxes cost nothing here", "give --node-usd-hour, or a price sheet with --prices"
                )
            )
    rates = start.demand.failure_rate, goal.demand.failure_rate
    if rates[0] is not None and rates[0] == rates[1]:
        found.append(
            Doubt("", f"attempts fail as often at both ({rates[0]:.3g})", "count the failures of both over some days")
        )
    for side in (start, goal):
        if (attribution := side.row.attribution) is not None:
            unknown = [cause for cause, share in attribution.causes.items() if share is None]
            if unknown:
                told = f"it is not known what these cost: {', '.join(unknown)}"
                found.append(Doubt(side.name, told, CAUSES_DO.get(unknown[0], "measure it")))
    flagged = flags.ordered(dict.fromkeys((*start.row.flags, *goal.row.flags)))
    for flag in flagged:
        of = [side.name for side in (start, goal) if flag in side.row.flags]
        found.append(Doubt(of[0] if len(of) == 1 else "", flags.WORDS[flag], flags.DO[flag]))
    return found
