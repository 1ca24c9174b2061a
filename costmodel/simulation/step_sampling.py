"""Selection of the simulated steps of a run, and the weight of each.

A short run is simulated whole. In a longer run the first steps are exact, and later steps represent the rest. They
follow the start directly where no state is carried between steps, and half of the budget where throttles and pools
settle. Where disks fill up they are spread along the run, and weighted by what all steps pull. A stream is simulated
as a stream: a start, a settled part with the weight of the rest, and an end without following rollouts.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple

from costmodel.simulation.random_streams import RandomStream
from costmodel.simulation.rules import StepRules
from costmodel.simulation.simulator import Segment
from costmodel.simulation.state import DiskUse, Nodes
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
UNPULLED: Final = 0.02
"""Share of the pulls of a filling run that may remain where its steps count as alike."""
PLACES: Final = 7
"""Places along a run where more than ``SETTLED`` of all pulls are above the final level; ``FEW`` in others."""
PROBED: Final = 4096
"""Rollouts whose images tell the usual pulls of a place, in ``FEW`` steps or more."""
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
    whole = training_run.trajectories / rules.size
    if not rules.policy.barrier:
        return _of_a_stream(rules, stream, count, rest or rules.size, highest, settled)
    first = 0 if _alike(rules) else max(highest // 2, math.ceil(settled / rules.size))
    highest = max(FEW, highest, first + highest - highest // 2)
    if count <= (2 * highest if rules.fills else highest):
        sizes = (rules.size,) * full + (rest,) * (rest > 0)
        return StepSample(count, (Segment(0, sizes, (1.0,) * count),), float(count))
    if rules.fills:
        return _along_the_run(rules, stream, count, highest, whole)
    last = (rest,) if rest and count < MANY else ()
    like = full if last else count
    stands_for = (1.0,) * first + ((like - first) / (highest - first),) * (highest - first) + (1.0,) * len(last)
    segment = Segment(0, (rules.size,) * highest + last, stands_for)
    return StepSample(count, (segment,), float(count) if last else whole)


def following(plan: StepSample, rules: StepRules) -> StepSample | None:
    """Return the same steps for a run without image pulls; None: the run pulls images."""
    if rules.fills:
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
    return _alike(rules) and not rules.fills


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
    if rules.fills:
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
    seated, uses = deque[int](), list[DiskUse]()
    for number in range(count):
        if number % waves == 0:
            uses.append(nodes.use())
            if len(uses) > 2 * AT_ONCE and _settled(rules, uses, AT_ONCE, (count - number) / waves):
                return number
        for image in stream.images(number, rules.size):
            if len(seated) == workers:
                nodes.let_go([seated.popleft()])
            seated.append(nodes.take(image, 0)[0])
    return count


def _along_the_run(rules: StepRules, stream: RandomStream, count: int, highest: int, whole: float) -> StepSample:
    """Return steps along a run whose disks fill up; steps between them are interpolated by their pulls. Later rounds
    repeat the last place only if it stands for most of the pulls."""
    lead = LEAD if rules.policy.overlaps else 0
    wanted = max(FEW, highest // (lead + 1))
    before, pulled = _filling(rules, stream, count, lead)
    last, level = len(pulled) - 1, fmean(pulled[-AVERAGED:])
    above = math.fsum(pulled) - level * len(pulled)
    soon = last < count - 1 and above <= SETTLED * (above + level * count)
    early = max(2, (wanted - 1) // 2, 0 if soon else PLACES - 1)
    places = (round((last + 1) ** (place / early)) - 1 for place in range(early + 1))
    at = sorted({min(before, key=lambda number: (abs(number - place), number)) for place in places})
    usual = [_usual(rules, stream, before[number], min(lead, number)) for number in at]
    weights = [0.0] * (len(at) - 1) + [float(count - last)]
    for place, (start, end) in enumerate(pairwise(at)):
        steps, fall = end - start, usual[place] - usual[place + 1]
        below = math.fsum(usual[place] - gb for gb in pulled[start:end])
        to_end = min(steps - 1, max(0.0, below / fall)) if fall > 0 else (steps - 1) / 2
        weights[place] += steps - to_end
        weights[place + 1] += to_end
    segments, drawn = list[Segment](), 0
    copies = max(1, wanted - len(at) + 1) if last < count - 1 else 1
    for number, weight in zip(at, weights, strict=True):
        lead_steps, times = min(lead, number), copies if number == last else 1
        for _ in range(times):
            sizes = (rules.size,) * (lead_steps + 1)
            segments.append(Segment(drawn, sizes, (weight / times,), lead_steps, *before[number]))
            drawn += lead_steps + 1
    later = [segments[-1]._replace(first=place * len(segments[-1].sizes)) for place in range(wanted)]
    return StepSample(count, tuple(segments), whole, later=tuple(later) if soon else (), alike=copies)


class Contents(NamedTuple):
    """What is on the nodes' disks, and the built images."""

    disks: list[list[int]]
    built: list[int]


def _filling(rules: StepRules, stream: RandomStream, count: int, lead: int) -> tuple[dict[int, Contents], list[float]]:
    """Return contents ``lead`` steps before some steps, by number, and the pulls of each until steps are alike.

    Attempts are placed wave after wave with a common start and without failures.
    """
    assert rules.cluster is not None
    nodes = Nodes(rules.cluster)
    contents: dict[int, Contents] = {}
    uses, pulled = [nodes.use()], list[float]()
    denser = {round(1.25**power) - 1 for power in range(1 + math.ceil(math.log(count, 1.25)))}
    for number in range(count):
        now = Contents(nodes.disks(), list(nodes.built))
        contents.update({place: now for place in denser if max(0, place - lead) == number})
        pulled.append(_pulls(rules, stream, nodes, number))
        uses.append(nodes.use())
        if len(uses) > 2 * AVERAGED and _settled(rules, uses, AVERAGED, count - number):
            now = Contents(nodes.disks(), list(range(1 + max(nodes.built, default=0))))
            break
    return contents | {number: now}, pulled


def _pulls(rules: StepRules, stream: RandomStream, nodes: Nodes, number: int) -> float:
    """Place the attempts of a step on the nodes; return its pulls in GB, or its builds of prepulled images."""
    before, built, images = nodes.pulled_gb, len(nodes.built), stream.images(number, rules.launched(rules.size))
    for first in range(0, len(images), rules.workers):
        nodes.let_go([nodes.take(image, 0)[0] for image in images[first : first + rules.workers]])
    return (nodes.pulled_gb - before) or len(nodes.built) - built


def _usual(rules: StepRules, stream: RandomStream, contents: Contents, lead: int) -> float:
    """Return the mean pulls of a step ``lead`` steps after these contents, whatever images it draws."""
    assert rules.cluster is not None
    pulled: list[float] = []
    for probe in range(1, 1 + max(FEW, PROBED // rules.size)):
        nodes = Nodes(rules.cluster, *contents)
        pulled += [_pulls(rules, stream, nodes, probe * ROUND + step) for step in range(lead + 1)][-1:]
    return fmean(pulled)


def _settled(rules: StepRules, uses: Sequence[DiskUse], over: int, remaining: float) -> bool:
    """Whether ``remaining`` more uses show few pulls, even with a prompt's by chance, or full disks that pull alike."""
    assert rules.cluster is not None
    first, middle, last = uses[-1 - 2 * over], uses[-1 - over], uses[-1]
    earlier_gb, later_gb = middle.pulled_gb - first.pulled_gb, last.pulled_gb - middle.pulled_gb
    alike = last.held_gb - middle.held_gb < SETTLED * later_gb and abs(earlier_gb - later_gb) <= SETTLED * earlier_gb
    prompt_gb = rules.group * max(rules.cluster.sizes_gb, default=0.0)
    recent_gb = last.pulled_gb - uses[-1 - AVERAGED :][0].pulled_gb + prompt_gb
    few = recent_gb / AVERAGED * remaining <= UNPULLED * last.pulled_gb
    return last.built == middle.built and (alike or few)
