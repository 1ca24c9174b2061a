"""Some steps of a run in one world: rollouts and trainer in turn, as the policy says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from costmodel.simulation.config import StepRules
from costmodel.simulation.random_streams import View
from costmodel.simulation.simulator import StepSimulator
from costmodel.simulation.state import CarriedOn, State, Totals

Bill = Callable[[Sequence[int]], float]
"""What sandboxes cost that existed for so many ns each."""


class StepTaken(NamedTuple):
    """What one step adds to a run. ns."""

    wall_ns: float  # until it is trained, from when the one before it was
    held_ns: float  # by workers
    usd: float  # of sandboxes
    delivered: float
    attempts: float
    hits: float
    idle_ns: float  # of ready sandboxes
    pulled_gb: float


class Stretch(NamedTuple):
    """Consecutive steps of a run."""

    first: int  # the number of the step that it is drawn as
    sizes: tuple[int, ...]  # rollouts that each keeps
    disks: Sequence[Iterable[int]] = ()  # what nodes hold before the first
    after: int = 0  # rollouts that the step keeps which follows them; 0: the run is over


def taken(asked: StepRules, view: View, stretch: Stretch, bill: Bill) -> list[StepTaken]:
    """The steps of a stretch, one by one."""
    state = State(asked, view, stretch.disks)
    if state.nodes is not None and not any(stretch.disks):
        _pull_ahead(state, stretch.first, stretch.sizes[0], 0)
    told = (_in_turn if asked.rules.policy.barrier else _stream)(state, stretch)
    before, found = (0, Totals(), 0), []
    for now in told:
        usd = bill(state.clocks_ns[before[2] : now[2]])
        held, delivered, attempts, hits, idle, pulled = (b - a for a, b in zip(before[1], now[1], strict=True))
        found.append(StepTaken(now[0] - before[0], held, usd, delivered, attempts, hits, idle, pulled))
        before = now
    return found


def _in_turn(state: State, stretch: Stretch) -> list[tuple[int, Totals, int]]:
    """When each step is trained, how things stood then, and how many clocks were told; with a barrier."""
    rules = state.asked.rules
    start = trained = 0
    carried: list[CarriedOn] = []
    found = []
    following = (*stretch.sizes[1:], stretch.after)
    for number, (keep, coming) in enumerate(zip(stretch.sizes, following, strict=True), stretch.first):
        launched = rules.launched(keep)
        fresh = max(0, launched - len(carried))
        state.load(state.view.world.step(number, launched), fresh, number)
        crew = StepSimulator(state, start, min(rules.workers, len(carried) + fresh))
        crew.start(carried)
        if state.nodes is not None and state.nodes.pulls_ahead:
            crew.work(keep, most=start)
            _pull_ahead(state, number + 1, coming, start)
        crew.work(keep)
        carried = crew.cut()
        before, trained = trained, max(crew.now, trained) + rules.train_ns
        start = rules.policy.next_start(crew.now, before, trained)
        found.append((trained, state.totals(start), len(state.clocks_ns)))
    return found


def _stream(state: State, stretch: Stretch) -> list[tuple[int, Totals, int]]:
    """The same of rollouts that do not wait for the trainer."""
    asked = state.asked
    coming = list(enumerate(stretch.sizes, stretch.first))

    def more(steps_trained: int) -> bool:
        loaded = len(stretch.sizes) - len(coming)
        if not coming or (asked.staleness and loaded >= steps_trained + asked.staleness):
            return False
        number, size = coming.pop(0)
        state.load(state.view.world.step(number, size), size, number)
        if state.nodes is not None:
            _pull_ahead(state, number + 1, coming[0][1] if coming else stretch.after, crew.now)
        return True

    total = sum(stretch.sizes)
    crew = StepSimulator(state, 0, min(asked.rules.workers, total), more)
    crew.start([])
    crew.work(total)
    return crew.trained


def _pull_ahead(state: State, number: int, size: int, now: int) -> None:
    """The images of a step that keeps ``size`` rollouts, if they are pulled before it starts."""
    if state.nodes is not None and state.nodes.pulls_ahead:
        images = state.view.world.images(number, state.asked.rules.launched(size))
        state.nodes.pull_ahead(images[:: state.asked.group], now)
