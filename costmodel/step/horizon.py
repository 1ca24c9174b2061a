"""Which steps of a run are simulated, and how many of them each stands for.

A run of a few steps is simulated whole. Of a longer one the first steps are taken as they are, and later ones stand
for the rest: from the start where nothing is carried from step to step, after half of what can be simulated where
throttles and pools have to settle, and at a few places along the run where disks fill up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from costmodel.demand import Demand
from costmodel.step.chance import World
from costmodel.step.nodes import Nodes
from costmodel.step.rules import StepRules
from costmodel.step.timeline import Stretch

FEW: Final = 3
"""At least so many steps are simulated where one depends on those before it."""
MANY: Final = 64
"""Of a run of so many steps the last, which is smaller, is none of its own."""
LEAD: Final = 2
"""Steps that are simulated, and not counted, before one in the midst of a run where steps overlap."""
AVERAGED: Final = 16
"""Steps over which it is looked whether nodes pull less than before."""
SETTLED: Final = 0.03


class HorizonPart(NamedTuple):
    """A stretch, and for how many steps each of its own stands; the first ``lead`` of them only lead up to others."""

    stretch: Stretch
    stands_for: tuple[float, ...]
    lead: int = 0


class Horizon(NamedTuple):
    """A run."""

    steps: int
    parts: tuple[HorizonPart, ...]
    whole: float  # steps of full size that have as many rollouts as the run

    @property
    def simulated(self) -> int:
        """Steps of one world that are."""
        return sum(len(part.stretch.sizes) for part in self.parts)

    @property
    def stands_for(self) -> list[float]:
        """For how many steps of the run each of those stands that are counted."""
        return [times for part in self.parts for times in part.stands_for]


def horizon(demand: Demand, asked: StepRules, world: World, most: int) -> Horizon:
    """The run of this demand, by simulating ``most`` steps or a few more."""
    full, rest = divmod(demand.trajectories, asked.size)
    count = full + (rest > 0)
    alike = _alike(asked)
    pulls = asked.cluster is not None and bool(asked.cluster.pull_ns)
    most = max(1 if alike and not pulls else FEW, most)
    if count <= most:
        sizes = (asked.size,) * full + (rest,) * (rest > 0)
        return Horizon(count, (HorizonPart(Stretch(0, sizes), (1.0,) * count),), float(count))
    whole = demand.trajectories / asked.size
    if pulls:
        return Horizon(count, _places(asked, world, count, most), whole)
    last = (rest,) if rest and count < MANY else ()
    like = full if last else count
    first = 0 if alike else most // 2
    stands_for = (1.0,) * first + ((like - first) / (most - first),) * (most - first) + (1.0,) * len(last)
    stretch = Stretch(0, (asked.size,) * most + last)
    return Horizon(count, (HorizonPart(stretch, stands_for),), float(count) if last else whole)


def following(other: Horizon, asked: StepRules) -> Horizon | None:
    """The steps of another run of as many, for one that pulls no images; None: it pulls some."""
    if asked.cluster is not None and asked.cluster.pull_ns:
        return None
    parts = []
    for part in other.parts:
        counted = part.stretch.first + part.lead
        lead = 0 if _alike(asked) else min(LEAD, counted)
        sizes = (asked.size,) * lead + part.stretch.sizes[part.lead :]
        parts.append(HorizonPart(Stretch(counted - lead, sizes), part.stands_for, lead))
    return other._replace(parts=tuple(parts))


def _alike(asked: StepRules) -> bool:
    """Whether nothing is carried from step to step."""
    rules = asked.rules
    alike = rules.policy.linear and not rules.gap_ns and not rules.partial
    return alike and (rules.pool is None or rules.pool.group is not None)


def _places(asked: StepRules, world: World, count: int, most: int) -> tuple[HorizonPart, ...]:
    """Steps along a run whose disks fill up; between two of them everything is on a straight line."""
    lead = (
        0
        if asked.rules.policy.linear and not (asked.cluster and asked.cluster.ahead) and not asked.rules.partial
        else LEAD
    )
    wanted = max(3, most // (lead + 1))
    disks = _filling(asked, world, count, wanted, lead)
    at = sorted(disks)
    last = at[-1]
    weights = [0.0] * len(at)
    weights[0] += 0.5
    for place, (here, there) in enumerate(pairwise(at)):
        weights[place] += (there - here) / 2
        weights[place + 1] += (there - here) / 2
    weights[-1] += count - 0.5 - last
    parts = []
    for number, weight in zip(at, weights, strict=True):
        own = min(lead, number)
        stretch = Stretch(number - own, (asked.size,) * (own + 1), disks[number], asked.size)
        parts.append(HorizonPart(stretch, (weight,), own))
    return tuple(parts)


def _filling(asked: StepRules, world: World, count: int, wanted: int, lead: int) -> dict[int, list[list[int]]]:
    """What disks hold before ``lead`` steps before each of ``wanted`` ones, by number: from where each attempt would
    go if all began at once, wave after wave, and none failed."""
    assert asked.cluster is not None
    nodes, workers = Nodes(asked.cluster), asked.rules.workers
    launched = asked.rules.launched(asked.size)
    kept: dict[int, list[list[int]]] = {}
    pulled: list[float] = []
    places = {round(count ** (place / (wanted - 1))) - 1 for place in range(wanted)} if wanted > 1 else {0}
    for number in range(count):
        kept.update({place: nodes.disks() for place in places if max(0, place - lead) == number})
        before = nodes.pulled_gb
        images = world.images(number, launched)
        if nodes.pulls_ahead:
            nodes.pull_ahead(images[:: asked.group], 0)
        for first in range(0, launched, workers):
            nodes.let_go([nodes.take(image, 0)[0] for image in images[first : first + workers]])
        pulled.append(nodes.pulled_gb - before)
        if number >= 2 * AVERAGED and _settled(pulled):
            kept[number + 1 + lead] = nodes.disks()
            break
    return {number: disks for number, disks in kept.items() if number < count}


def _settled(pulled: Sequence[float]) -> bool:
    earlier, later = math.fsum(pulled[-2 * AVERAGED : -AVERAGED]), math.fsum(pulled[-AVERAGED:])
    return abs(earlier - later) <= SETTLED * earlier
