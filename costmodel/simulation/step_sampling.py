"""Selection of the simulated steps of a run, and the weight of each.

A short run is simulated whole. In a longer run the first steps are exact, and later steps represent the rest. They
follow the start directly where no state is carried between steps, and half of the budget where throttles and pools
settle. They are spread along the run where disks fill up. A stream is simulated as a stream: a start, a settled part
with the weight of the rest, and an end without following rollouts.

More rounds repeat the selection with other random numbers; where disks fill up, only the last place.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from costmodel.simulation.random_streams import RandomStream
from costmodel.simulation.rules import StepRules
from costmodel.simulation.simulator import Segment
from costmodel.simulation.state import Nodes
from costmodel.training.run import TrainingRun

FEW: Final = 3
"""At least so many steps are simulated."""
MANY: Final = 64
"""Number of steps above which a smaller last step is not simulated separately."""
LEAD: Final = 2
"""Uncounted steps before a counted step in the middle of a run with overlapping steps."""
SETTLING: Final = 12
"""Rollouts per worker before a stream has forgotten the common start."""
LASTING: Final = 12
"""Rollouts per worker of the settled part of a stream, and its least number of steps."""
AVERAGED: Final = 16
"""Steps between two looks at the pulls of the nodes."""
AT_ONCE: Final = 4
"""The same part in steps, as a multiple of the steps in flight."""
SETTLED: Final = 0.03
UNPULLED: Final = 0.05
"""Share of the pulls of a filling run that may remain where its steps count as alike."""
ROUND: Final = 1 << 20
"""Distance between the step numbers of two rounds."""


class StepSample(NamedTuple):
    """The simulated segments of a run, repeated for ``rounds``."""

    steps: int
    segments: tuple[Segment, ...]  # of the first round
    whole: float  # full steps with as many rollouts as the run
    rounds: int = 1
    later: tuple[Segment, ...] = ()  # of every later round; (): as the first
    alike: int = 1  # number of last steps of the first round that represent these

    @property
    def simulated(self) -> int:
        """Number of simulated steps under one random stream."""
        return sum(len(segment.sizes) for number in range(self.rounds) for segment in self.of(number))

    @property
    def stands_for(self) -> list[float]:
        """Weight of each counted step, round by round."""
        weights = [weight for segment in self.segments for weight in segment.stands_for]
        if not self.later:
            return [weight / self.rounds for weight in weights] * self.rounds
        early, last = weights[: -self.alike], math.fsum(weights[-self.alike :])
        alike = self.alike + sum(len(segment.stands_for) for segment in self.later) * (self.rounds - 1)
        return early + [last / alike] * alike

    def rollouts(self, number: int) -> int:
        """Return the kept rollouts of one round."""
        return sum(sum(segment.sizes) for segment in self.of(number))

    def of(self, number: int) -> list[Segment]:
        """Return the segments of one round, with separate random numbers."""
        segments = self.later if number and self.later else self.segments
        return [segment._replace(first=segment.first + number * ROUND) for segment in segments]


def settling(rules: StepRules, busy_ns: float) -> float:
    """Return the rollouts until the burst and the pool are used up, if ever.

    ``busy_ns`` is a worker's busy time per rollout.
    """
    takes, rollouts = rules.workers / max(busy_ns, 1.0), 0.0  # creates per ns without a limit

    def used_up(stock: int, created: float) -> float:
        return 1.5 * stock * takes / (takes - created) if takes > 1.02 * created else 0.0

    if rules.gap_ns:
        rollouts += used_up(rules.burst, 1 / rules.gap_ns)
        takes = min(takes, 1 / rules.gap_ns)
    if rules.refill_gap_ns is not None:
        rollouts += used_up(rules.pool or 0, 1 / max(1, rules.refill_gap_ns))
    elif rules.refill_ns is not None and (rules.pool or 0) < 1.05 * takes * rules.refill_ns:
        rollouts += 3 * takes * rules.refill_ns
    return rollouts


def sample_steps(
    training_run: TrainingRun, rules: StepRules, stream: RandomStream, highest: int, settled: float = 0.0
) -> StepSample:
    """Select the steps of a training run. A round has about ``highest`` steps, of a stream as many as necessary.

    Limits and pools settle within ``settled`` rollouts.
    """
    full, rest = divmod(training_run.trajectories, rules.size)
    count = full + (rest > 0)
    pulls = _fills(rules)
    whole = training_run.trajectories / rules.size
    if not rules.policy.barrier:
        return _of_a_stream(rules, stream, count, rest or rules.size, highest, settled)
    first = 0 if _alike(rules) else max(highest // 2, math.ceil(settled / rules.size))
    highest = max(FEW, highest, first + highest - highest // 2)
    if count <= (2 * highest if pulls else highest):
        sizes = (rules.size,) * full + (rest,) * (rest > 0)
        return StepSample(count, (Segment(0, sizes, (1.0,) * count),), float(count))
    if pulls:
        return _along_the_run(rules, stream, count, highest, whole)
    last = (rest,) if rest and count < MANY else ()
    like = full if last else count
    stands_for = (1.0,) * first + ((like - first) / (highest - first),) * (highest - first) + (1.0,) * len(last)
    segment = Segment(0, (rules.size,) * highest + last, stands_for)
    return StepSample(count, (segment,), float(count) if last else whole)


def following(plan: StepSample, rules: StepRules) -> StepSample | None:
    """Return the same steps for a run without image pulls; None: the run pulls images."""
    if _fills(rules):
        return None
    if not rules.policy.barrier:
        return plan

    def follows(segment: Segment) -> Segment:
        counted = segment.first + segment.lead
        lead = 0 if _alike(rules) else min(LEAD, counted)
        return Segment(counted - lead, (rules.size,) * lead + segment.sizes[segment.lead :], segment.stands_for, lead)

    return plan._replace(segments=tuple(map(follows, plan.segments)), later=tuple(map(follows, plan.later)))


def smaller(training_run: TrainingRun, scale: int) -> tuple[int, TrainingRun]:
    """Return the run with 1/``scale`` of its rollouts, workers, nodes and limits.

    At least one group, its pods and one worker remain, so the scale may be lower.
    """
    size, group = training_run.step_rollouts or 1, training_run.group_size or 1
    scale = min(scale, size // group, training_run.workers, training_run.trajectories)
    if training_run.nodes is not None and training_run.pods is not None:
        scale = min(scale, training_run.nodes, training_run.pods // group)
    if scale <= 1:
        return 1, training_run
    prompts = None if training_run.prompts is None else max(1, round(training_run.prompts / scale))
    size_kept = max(1, round(size / scale)) if prompts is None else prompts * group

    share = size_kept / size

    def less(count: int | None) -> int | None:
        return None if count is None else max(1, round(count * share))

    full, rest = divmod(training_run.trajectories, size)
    return scale, replace(
        training_run,
        trajectories=full * size_kept + max(1, round(rest * share)) * (rest > 0),
        workers=max(1, round(training_run.workers * share)),
        prompts=prompts,
        batch=None if prompts is not None else size_kept,
        quota=less(training_run.quota),
        builders=less(training_run.builders),
        create_rate=None if training_run.create_rate is None else training_run.create_rate * share,
        create_burst=max(1, round(training_run.create_burst * share)),
        warm_pool=training_run.warm_pool if training_run.image_pool else less(training_run.warm_pool),
        refill_rate=None if training_run.refill_rate is None else training_run.refill_rate * share,
        nodes=less(training_run.nodes),
    )


def rollouts_of(training_run: TrainingRun, rules: StepRules, settled: float) -> int:
    """How many rollouts a round simulates at least, of each counterfactual. ``settled``: as of ``sample_steps``."""
    if rules.policy.barrier:
        return rules.launched(rules.size) * (FEW + math.ceil(settled / rules.size))
    return min(training_run.trajectories, sum(_stream_steps(rules)) * rules.size + math.ceil(settled))


def is_alike(rules: StepRules) -> bool:
    """Whether each step is like every other: nothing is carried from step to step, no disk fills up."""
    return _alike(rules) and not _fills(rules)


def _fills(rules: StepRules) -> bool:
    return rules.cluster is not None and rules.cluster.fills


def _alike(rules: StepRules) -> bool:
    """Whether nothing but images is carried from step to step."""
    alike = not rules.policy.overlaps and not rules.gap_ns
    return alike and (rules.pool is None or rules.image_pool)


def _stream_steps(rules: StepRules) -> tuple[int, int, int]:
    """How many steps a stream takes to settle, how many stand for the rest, and at how many its end shows."""
    at_once = rules.workers
    if rules.staleness:
        at_once = min(at_once, rules.staleness * rules.size)
    waves = at_once / rules.size
    return max(FEW, math.ceil(SETTLING * waves)), max(LASTING, math.ceil(LASTING * waves)), math.ceil(waves) + 1


def _of_a_stream(
    rules: StepRules, stream: RandomStream, count: int, last: int, highest: int, settled: float
) -> StepSample:
    """Return start, settled part and end of a stream in one piece; the ``last`` step may be smaller."""
    start, lasting, ending = _stream_steps(rules)
    start += min(count, math.ceil(settled / rules.size))
    if _fills(rules):
        start = max(start, _until_full(rules, stream, count))
    lasting = max(lasting, highest - start - ending)
    simulated = min(count, start + lasting + ending)
    stands_for = (1.0,) * simulated
    if simulated < count:
        stands_for = (1.0,) * start + ((count - start - ending) / lasting,) * lasting + (1.0,) * ending
    return StepSample(count, (Segment(0, (rules.size,) * (simulated - 1) + (last,), stands_for),), float(count))


def _until_full(rules: StepRules, stream: RandomStream, count: int) -> int:
    """After how many steps of a stream nodes pull no less than before, if each worker always has a pod."""
    assert rules.cluster is not None
    nodes, workers = Nodes(rules.cluster), rules.workers
    waves = max(1, math.ceil(workers / rules.size))  # steps in flight
    seated: deque[int] = deque()
    built: list[int] = []
    pulled: list[float] = []
    for number in range(count):
        if number % waves == 0:
            pulled.append(nodes.pulled_gb)
            built.append(len(nodes.built))
            if (
                len(pulled) > 2 * AT_ONCE
                and built[-1] == built[-AT_ONCE]
                and _settled([b - a for a, b in pairwise(pulled)], AT_ONCE)
            ):
                return number
        for image in stream.images(number, rules.size):
            if len(seated) == workers:
                nodes.let_go([seated.popleft()])
            seated.append(nodes.take(image, 0)[0])
    return count


def _along_the_run(rules: StepRules, stream: RandomStream, count: int, highest: int, whole: float) -> StepSample:
    """Return steps along a run whose disks fill up; values between them are interpolated linearly. Later rounds repeat
    the last place if steps are alike from there."""
    lead = LEAD if rules.policy.overlaps else 0
    wanted = max(3, highest // (lead + 1))
    before, last = _filling(rules, stream, count, lead)
    early = max(2, (wanted - 1) // 2)  # the other steps repeat the last place, which stands for most of the run
    places = (round((last + 1) ** (place / early)) - 1 for place in range(early + 1))
    at = sorted({min(before, key=lambda number: (abs(number - place), number)) for place in places})
    weights = [0.0] * len(at)
    weights[0] += 0.5
    for place, (start, following_start) in enumerate(pairwise(at)):
        weights[place] += (following_start - start) / 2
        weights[place + 1] += (following_start - start) / 2
    weights[-1] += count - 0.5 - last
    segments: list[Segment] = []
    drawn = 0
    full = last < count - 1
    copies = max(1, wanted - len(at) + 1) if full else 1
    for number, weight in zip(at, weights, strict=True):
        lead_steps, times = min(lead, number), copies if number == last else 1
        for _ in range(times):
            disks, built = before[number]
            sizes = (rules.size,) * (lead_steps + 1)
            segments.append(Segment(drawn, sizes, (weight / times,), lead_steps, disks, built))
            drawn += lead_steps + 1
    later = [segments[-1]._replace(first=place * len(segments[-1].sizes)) for place in range(wanted)]
    return StepSample(count, tuple(segments), whole, later=tuple(later) if full else (), alike=copies)


class Contents(NamedTuple):
    """What is on the nodes' disks, and the built images."""

    disks: list[list[int]]
    built: list[int]


def _filling(rules: StepRules, stream: RandomStream, count: int, lead: int) -> tuple[dict[int, Contents], int]:
    """Return contents ``lead`` steps before some steps, by number, and the last of them: the steps after it are alike.

    Attempts are placed wave after wave with a common start and without failures.
    """
    assert rules.cluster is not None
    nodes, workers = Nodes(rules.cluster), rules.workers
    launched = rules.launched(rules.size)
    contents: dict[int, Contents] = {}
    pulled: list[float] = []
    builds: list[int] = []
    denser = {round(1.25**power) - 1 for power in range(1 + math.ceil(math.log(count, 1.25)))}
    for number in range(count):
        now = Contents(nodes.disks(), list(nodes.built))
        contents.update({place: now for place in denser if max(0, place - lead) == number})
        before = nodes.pulled_gb
        builds.append(len(nodes.built))
        images = stream.images(number, launched)
        for first in range(0, launched, workers):
            nodes.let_go([nodes.take(image, 0)[0] for image in images[first : first + workers]])
        pulled.append(nodes.pulled_gb - before)
        settled = number >= 2 * AVERAGED and builds[-1] == builds[-AVERAGED]  # few images remain
        if settled and _settled(pulled, AVERAGED):
            now = Contents(nodes.disks(), list(range(1 + max(nodes.built, default=0))))
            break
    last = max(builds.index(builds[-1]), _level_from(pulled))
    return {number: held for number, held in contents.items() if number < last} | {last: now}, last


def _level_from(pulled: Sequence[float]) -> int:
    """Return the step from which on the pulls above the final level are few: ``UNPULLED`` of all above the level."""
    final = pulled[-AVERAGED:] if len(pulled) > 2 * AVERAGED else pulled[len(pulled) // 2 :]
    level = math.fsum(final) / len(final)
    above = [max(0.0, gb - level) for gb in pulled]
    left = total = math.fsum(above)
    for number, gb in enumerate(above):
        if left <= UNPULLED * total:
            return number
        left -= gb
    return len(pulled) - 1


def _settled(pulled: Sequence[float], over: int) -> bool:
    earlier, later = math.fsum(pulled[-2 * over : -over]), math.fsum(pulled[-over:])
    return abs(earlier - later) <= SETTLED * earlier
