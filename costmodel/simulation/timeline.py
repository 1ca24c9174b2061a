"""Some steps of a run under one random stream: rollouts and trainer in turn, as the policy says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from costmodel.simulation.random_streams import AttemptStream
from costmodel.simulation.rules import StepRules
from costmodel.simulation.simulator import Simulator
from costmodel.simulation.state import State, StepEnd, Totals

Bill = Callable[[Sequence[int]], float]
"""Function from lifetimes of sandboxes in ns to dollars."""


class StepTaken(NamedTuple):
    """Contribution of one step to a run. ns."""

    wall_ns: float  # between the ends of training of this and the previous step
    usd: float  # of sandboxes
    held_ns: float  # by workers
    waited_ns: float  # for creates; part of the above
    wasted_ns: float  # by cut rollouts; part of the above
    delivered: float
    attempts: float
    hits: float
    idle_ns: float  # of ready sandboxes
    pulled_gb: float
    suspended_ns: float = 0.0  # of sandboxes; not in ``usd``


class Segment(NamedTuple):
    """Consecutive simulated steps of a run, and how many steps of the run each stands for."""

    first: int  # number of its random stream
    sizes: tuple[int, ...]  # kept rollouts per step
    stands_for: tuple[float, ...] = ()  # weight of each step after the lead
    lead: int = 0  # first steps that do not count
    disks: Sequence[Iterable[int]] = ()  # images on nodes before the first step
    built: Sequence[int] = ()  # images built before the first step


def simulate_steps(rules: StepRules, source: AttemptStream, segment: Segment, bill: Bill) -> list[StepTaken]:
    """Return the steps of a segment after its lead."""
    state = State(rules, source, segment.disks, segment.built)
    trained, totals, clocks, taken = 0, Totals(), 0, []
    for step in (_in_turn if rules.policy.barrier else _stream)(state, segment):
        usd = bill(state.clocks_ns[clocks : step.clocks])
        added = (now - before for before, now in zip(totals, step.totals, strict=True))
        taken.append(StepTaken(step.trained - trained, usd, *added))
        trained, totals, clocks = step
    return taken[segment.lead :]


def _in_turn(state: State, segment: Segment) -> list[StepEnd]:
    """Steps with a barrier."""
    rules = state.rules
    start = trained = 0
    ends = []
    for number, keep in enumerate(segment.sizes, segment.first):
        launched = rules.launched(keep)
        state.load(state.source.stream.step(number, launched), launched, number)
        crew = Simulator(state, start, min(rules.workers, launched))
        crew.start()
        crew.work(keep)
        crew.cut()
        before, trained = trained, max(crew.now, trained) + rules.train_ns
        start = max(crew.now, before) if rules.policy.overlaps else trained
        ends.append(StepEnd(trained, state.totals(start), len(state.clocks_ns)))
    return ends


def _stream(state: State, segment: Segment) -> list[StepEnd]:
    """Simulate rollouts without a barrier."""
    rules = state.rules
    coming = list(enumerate(segment.sizes, segment.first))

    def more(steps_trained: int) -> bool:
        loaded = len(segment.sizes) - len(coming)
        if not coming or (rules.staleness and loaded >= steps_trained + rules.staleness):
            return False
        number, size = coming.pop(0)
        state.load(state.source.stream.step(number, size), size, number)
        return True

    total = sum(segment.sizes)
    crew = Simulator(state, 0, min(rules.workers, total), more)
    crew.start()
    crew.work(total)
    return crew.trained
