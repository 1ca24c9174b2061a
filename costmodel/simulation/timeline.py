"""Some steps of a run under one random stream: rollouts and trainer in turn, as the policy says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from costmodel.simulation.random_streams import AttemptStream
from costmodel.simulation.rules import StepRules
from costmodel.simulation.simulator import Simulator
from costmodel.simulation.state import State, StepTaken

Bill = Callable[[Sequence[int]], float]
"""Function from lifetimes of sandboxes in ns to dollars."""


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
    before, taken = StepTaken(), []
    for end in (_in_turn if rules.policy.barrier else _stream)(state, segment):
        usd = bill(state.clocks_ns[before.sandboxes : end.sandboxes])
        added = StepTaken._make(now - then for then, now in zip(before, end, strict=True))
        taken.append(added._replace(usd=usd))
        before = end
    return taken[segment.lead :]


def _in_turn(state: State, segment: Segment) -> list[StepTaken]:
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
        ends.append(state.totals(start, trained))
    return ends


def _stream(state: State, segment: Segment) -> list[StepTaken]:
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
