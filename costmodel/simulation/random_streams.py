"""Random streams shared by all counterfactuals: a draw depends on its rollout and attempt, never on simulated events.

Each rollout draws one success; the failures of its attempts are drawn separately. Without failures the rollout is
therefore the same. Another success is drawn only after the time limit ended the first.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Final, NamedTuple

from costmodel.simulation.attempts import ROOT, AttemptTimes, Trials, suspended_parts
from costmodel.statistics.lognormal_sum import WHOLE, strata_of_sum
from costmodel.training.run import Suspension, Think, TrainingRun
from costmodel.units import NS_PER_HOUR

PER_OCTAVE: Final = 4
APART: Final = 1.25
"""Distance between numbers of pauses with a computed distribution of their sum. Quantiles between two are interpolated
linearly, which keeps the mean exact."""


class ThinkQuantiles:
    """Quantiles of the total think time of an attempt in ns, by number of pauses."""

    def __init__(self, think: Think, trials: Trials, suspension: Suspension | None = None) -> None:
        wanted = sorted({attempt.pauses for attempt in (*trials.successes, *trials.failures)})
        anchors = [number for number in _anchors(wanted[0], wanted[-1]) if number]
        laws = {number: strata_of_sum(number, think.sigma, PER_OCTAVE) for number in anchors}
        strata = laws[anchors[0]] if anchors else strata_of_sum(0, 0.0, PER_OCTAVE)
        self.edges = [edge / WHOLE for edge in accumulate(stratum.weight for stratum in strata)]
        self.edges.pop()
        nothing = [0.0] * (len(self.edges) + 1)
        means = {0: nothing} | {number: [stratum.mean for stratum in law] for number, law in laws.items()}
        self.by_pauses: dict[int, list[int]] = {}
        for number in wanted:
            upper = min(anchor for anchor in means if anchor >= number)
            lower = max(anchor for anchor in means if anchor <= number)
            share = (number - lower) / (upper - lower) if upper > lower else 0.0
            self.by_pauses[number] = [
                round(think.median_ns * (low + share * (high - low)))
                for low, high in zip(means[lower], means[upper], strict=True)
            ]
        self.suspended: dict[int, list[tuple[int, int]]] = {}  # likewise: the delay by resuming, the suspended time
        if suspension is not None:
            for number, sums in self.by_pauses.items():
                self.suspended[number] = suspended_parts(think, number, suspension, sums)


def _anchors(low: int, high: int) -> list[int]:
    anchors = [low]
    while anchors[-1] < high:
        anchors.append(min(high, max(anchors[-1] + 1, int(anchors[-1] * APART))))
    return anchors


class TryDraws(NamedTuple):
    """Draws of the same attempt of all rollouts of a step, in the order of the queue."""

    rows: list[int]  # of the successes
    strata: list[int]  # of the think time
    chances: list[float]  # below the failure rate: the attempt fails; [] without failures
    moments: list[float]  # share of its span before the failure
    patience_h: list[float]  # time of a failure at a hazard of 1 per hour; [] without hazard
    failed_rows: list[int]  # of the recorded failures; [] without


class StepDraws(NamedTuple):
    """Draws of a step's rollouts in the order of the queue."""

    key: int  # unique number
    images: list[int]  # 0 without images
    shared: list[float]  # the prompt's part of log think time; [] without correlation
    tries: list[TryDraws]  # drawn when needed


class RandomStream:
    """A random stream: a resample of the trials and a seed."""

    def __init__(
        self,
        training_run: TrainingRun,
        trials: Trials,
        law: ThinkQuantiles | None,
        seed: int,
        times: Sequence[int] | None = None,
    ) -> None:
        """``times``: how often a resample has each trial; None: once."""
        successes, failures = trials.successes, trials.failures
        self._weights, self._failed_weights, recorded = trials.weighted(times)
        self.failure = recorded if training_run.failure_rate is None else training_run.failure_rate
        self.hazard = training_run.failure_hazard or 0.0
        if self.hazard:
            self.failure = 0.0
        self.as_recorded = training_run.failure_rate is None and not self.hazard
        self.limited = training_run.timeout_s is not None
        self.group = training_run.group_size or 1
        self._burst = training_run.failure_burst
        self._images = 1 if training_run.images is None else training_run.images.count
        self._edges = law.edges if law else []
        self.thinks = [law.by_pauses[attempt.pauses] for attempt in successes] if law else []
        retries_all = training_run.on_failure is not None  # independent of the removed causes
        self.dropped = [attempt.dropped and not retries_all for attempt in failures]
        self.failed_thinks = [law.by_pauses[attempt.pauses] for attempt in failures] if law else []
        suspended = law.suspended if law else {}
        self.suspended = [suspended[attempt.pauses] for attempt in successes] if suspended else []
        self.failed_suspended = [suspended[attempt.pauses] for attempt in failures] if suspended else []
        forks = training_run.fork_s is not None
        self.prepare_ns = [attempt.create + attempt.ready + attempt.preload for attempt in successes] if forks else []
        self._own = math.sqrt(1 - training_run.think_correlation)
        self._common = math.sqrt(training_run.think_correlation)
        self._seed = seed
        self._steps: dict[int, StepDraws] = {}

    def step(self, number: int, rollouts: int, *, prompt: int = -1, redone: int = 0) -> StepDraws:
        """Draw a step's rollouts, or those of one ``prompt`` at its ``redone``-th repetition."""
        key = (number << 44) + ((prompt + 1) << 14) + redone if redone else number << 44
        cached = self._steps.get(key)
        if cached is None or len(cached.images) < rollouts:
            rng = Random((self._seed << 192) + (key << 64))
            images = self._images_of(rollouts, rng)
            shared = [rng.gauss(0, 1) for _ in images[:: self.group]] if self._common else []
            cached = self._steps[key] = StepDraws(key, images, shared, [])
        return cached

    def images(self, number: int, rollouts: int) -> list[int]:
        """Return the images of a step's rollouts, without other draws."""
        return self._images_of(rollouts, Random((self._seed << 192) + (number << 108)))

    def _images_of(self, rollouts: int, rng: Random) -> list[int]:
        drawn = [int(rng.random() * self._images) for _ in range(-(-rollouts // self.group))]
        return [image for image in drawn for _ in range(self.group)][:rollouts]

    def tried(self, draws: StepDraws, tries: int) -> TryDraws:
        """Return attempt number ``tries`` of all rollouts, the first being 0."""
        while len(draws.tries) <= tries:
            draws.tries.append(self._tried(draws, len(draws.tries)))
        return draws.tries[tries]

    def _tried(self, draws: StepDraws, tries: int) -> TryDraws:
        rng, count = Random((self._seed << 192) + (draws.key << 64) + tries + 1), len(draws.images)
        random, total = rng.random, self._weights[-1]
        rows = [bisect_right(self._weights, random() * total) for _ in range(count)]
        if self._common:
            common, own, shared = self._common, self._own, draws.shared
            normals = (common * shared[place // self.group] + own * rng.gauss(0, 1) for place in range(count))
            ranks = [0.5 * math.erfc(-normal / ROOT) for normal in normals]
        else:
            ranks = [random() for _ in range(count)]
        chances = [random() for _ in range(count)] if self.failure else []
        if not tries and self._burst > 1:  # neighbours fail together
            chances = [chances[place - place % self._burst] for place in range(len(chances))]
        failed, last = self._failed_weights, len(self._failed_weights) - 1
        return TryDraws(
            rows,
            [bisect_right(self._edges, rank) for rank in ranks],
            chances,
            [random() for _ in chances],
            [rng.expovariate(1.0) for _ in range(count)] if self.hazard else [],
            # A resample without a failure has a last row of weight 0; no attempt fails then.
            [min(bisect_right(failed, random() * failed[-1]), last) for _ in range(count)] if failed else [],
        )


class AttemptStream:
    """A random stream without some causes."""

    def __init__(
        self,
        stream: RandomStream,
        successes: Sequence[AttemptTimes],
        failures: Sequence[AttemptTimes],
        *,
        failing: bool = True,
        thinking: bool = True,
        resuming: bool = True,
    ) -> None:
        """The attempts as ``attempts.timed`` returns them; unless ``failing``, every attempt succeeds.

        Unless ``resuming``, a suspended sandbox continues at once.
        """
        self.stream = stream
        self._thinking, self._resuming = thinking, resuming
        self._successes = successes
        self._failures = failures
        self._failure = stream.failure if failing else 0.0
        self._hazard = stream.hazard if failing else 0.0

    def first(self, draws: StepDraws, *, warm: bool = False) -> list[AttemptTimes]:
        """Return the first attempts of a step's rollouts; ``warm``: with a pool sandbox."""
        return [self.attempt(draws, rollout, 0, warm=warm) for rollout in range(len(draws.images))]

    def attempt(self, draws: StepDraws, rollout: int, tries: int, *, warm: bool = False) -> AttemptTimes:
        """Return attempt number ``tries`` of a rollout, the first being 0."""
        drawn = self.stream.tried(draws, tries)
        if self._hazard:
            return self._struck(self._success(drawn, rollout, warm), drawn.patience_h[rollout])
        if self._failure and drawn.chances[rollout] < self._failure:
            return self._failed(drawn, rollout, warm)
        if tries and not (self.stream.limited and self._spent(draws, rollout, tries)):
            drawn = draws.tries[0]  # the success of the rollout
        return self._success(drawn, rollout, warm)

    def _spent(self, draws: StepDraws, rollout: int, tries: int) -> bool:
        """Whether an earlier attempt was the rollout's success, ended by the time limit."""
        return any(not drawn.chances or drawn.chances[rollout] >= self._failure for drawn in draws.tries[:tries])

    def _success(self, drawn: TryDraws, rollout: int, warm: bool) -> AttemptTimes:
        row, stratum, stream = drawn.rows[rollout], drawn.strata[rollout], self.stream
        return self._paused(self._successes[row], stream.thinks, stream.suspended, row, stratum, warm)

    def _paused(
        self,
        attempt: AttemptTimes,
        thinks: Sequence[Sequence[int]],
        suspended: Sequence[Sequence[tuple[int, int]]],
        row: int,
        stratum: int,
        warm: bool,
    ) -> AttemptTimes:
        """Return the attempt with think time, suspended time and the delay of resuming; without startup if warm."""
        if not thinks or not self._thinking:
            return attempt._replace(span=attempt.span - attempt.startup) if warm else attempt
        ok, span, queued, cleanup, startup, _ = attempt
        delay_ns, suspended_ns = suspended[row][stratum] if suspended else (0, 0)
        span += thinks[row][stratum] - startup * warm + delay_ns * self._resuming
        return AttemptTimes(ok, span, queued, cleanup, startup, suspended_ns)

    def _struck(self, attempt: AttemptTimes, patience_h: float) -> AttemptTimes:
        """Return the attempt, failed if the hazard strikes before its end."""
        until = attempt.queued + round(patience_h / self._hazard * NS_PER_HOUR)
        return _cut(attempt, until) if until < attempt.span else attempt

    def _failed(self, drawn: TryDraws, rollout: int, warm: bool) -> AttemptTimes:
        stream = self.stream
        if stream.as_recorded:
            row, stratum = drawn.failed_rows[rollout], drawn.strata[rollout]
            attempt = self._failures[row]
            failed = self._paused(attempt, stream.failed_thinks, stream.failed_suspended, row, stratum, warm)
            return failed._replace(ok=None) if stream.dropped[row] else failed
        attempt = self._success(drawn, rollout, warm)
        return _cut(attempt, attempt.queued + round(drawn.moments[rollout] * (attempt.span - attempt.queued)))


def _cut(attempt: AttemptTimes, span: int) -> AttemptTimes:
    """Return the attempt that fails after ``span``; the suspended share of its time is unchanged."""
    return attempt._replace(ok=False, span=span, suspended=attempt.suspended * span // max(1, attempt.span))
