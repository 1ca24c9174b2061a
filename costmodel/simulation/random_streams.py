"""Random streams shared by all counterfactuals: a draw depends on its rollout and attempt, never on simulated events.

Each rollout draws one success; the failures of its attempts are drawn separately. Without failures the rollout is
therefore the same. Another success is drawn only after the time limit ended the first.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Container, Sequence
from itertools import accumulate
from random import Random
from typing import Final, NamedTuple

from costmodel.simulation.attempts import AttemptTimes, Trials, suspended_parts
from costmodel.statistics.distribution import ROOT, WHOLE, strata_of_sums
from costmodel.training.run import Suspension, Think, TrainingRun
from costmodel.units import NS_PER_HOUR

PER_OCTAVE: Final = 4


class Pauses(NamedTuple):
    """Total think time of an attempt, with its suspensions. ns."""

    think_ns: int = 0
    delay_ns: int = 0  # by resuming
    suspended_ns: int = 0


NO_PAUSES: Final = Pauses()


class ThinkQuantiles:
    """Quantiles of the pauses of an attempt, by their number."""

    def __init__(self, think: Think, trials: Trials, suspension: Suspension | None = None) -> None:
        numbers = {attempt.pauses for attempt in (*trials.successes, *trials.failures)}
        laws = strata_of_sums(numbers, think.sigma, PER_OCTAVE)
        weights = [stratum.weight for stratum in next(iter(laws.values()))]
        self.edges = [edge / WHOLE for edge in accumulate(weights)][:-1]
        self.by_pauses: dict[int, list[Pauses]] = {}
        for number, law in laws.items():
            sums = [round(think.median_ns * stratum.mean) for stratum in law]
            parts = [(0, 0)] * len(sums) if suspension is None else suspended_parts(think, number, suspension, sums)
            self.by_pauses[number] = [Pauses(whole, *part) for whole, part in zip(sums, parts, strict=True)]


class StepDraws(NamedTuple):
    """Draws of a step's rollouts in the order of the queue. Lists have one entry per rollout."""

    key: int  # unique number
    rows: list[int]  # of the successes
    pauses: list[Pauses]
    chances: list[float]  # below the failure rate: the first attempt fails; [] without failures
    patience_h: list[float]  # time of a failure at a hazard of 1 per hour; [] without hazard
    images: list[int]  # 0 without images
    shared: list[float]  # the prompt's part of log think time


class AttemptDraw(NamedTuple):
    """A separately drawn attempt, and its outcome."""

    row: int
    pauses: Pauses
    chance: float
    moment: float  # share of its span before the failure
    patience_h: float  # 0 without a hazard
    failed_row: int
    failed_pauses: Pauses


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
        self._pauses, self._failed_pauses = (
            [law.by_pauses[attempt.pauses] if law else [NO_PAUSES] for attempt in parts]
            for parts in (successes, failures)
        )
        retries_all = training_run.on_failure is not None  # independent of the removed causes
        self.dropped = [attempt.dropped and not retries_all for attempt in failures]
        forks = training_run.fork_s is not None
        self.prepare_ns = [attempt.create + attempt.ready + attempt.preload for attempt in successes] if forks else []
        correlation = training_run.think_correlation
        self._own, self._common = math.sqrt(1 - correlation), math.sqrt(correlation)
        self._seed = seed
        self._rng = Random(0)  # seeded for each separately drawn attempt
        self._steps: dict[int, StepDraws] = {}
        self._attempt_draws: dict[int, AttemptDraw] = {}

    def step(self, number: int, rollouts: int, *, prompt: int = -1, redone: int = 0) -> StepDraws:
        """Draw a step's rollouts, or those of one ``prompt`` at its ``redone``-th repetition."""
        key = (number << 44) + ((prompt + 1) << 14) + redone if redone else number << 44
        cached = self._steps.get(key)
        if cached is None or len(cached.rows) < rollouts:
            cached = self._steps[key] = self._draw(key, rollouts, Random((self._seed << 128) + (key << 1)))
        return cached

    def images(self, number: int, rollouts: int) -> list[int]:
        """Return the images of a step's rollouts, without other draws."""
        rng = Random((self._seed << 128) + (number << 45))
        drawn = [int(rng.random() * self._images) for _ in range(-(-rollouts // self.group))]
        return [image for image in drawn for _ in range(self.group)][:rollouts]

    def _draw(self, key: int, rollouts: int, rng: Random) -> StepDraws:
        random, total = rng.random, self._weights[-1]
        prompts = -(-rollouts // self.group)
        images = [int(random() * self._images) for _ in range(prompts)]
        shared = [rng.gauss(0, 1) for _ in range(prompts)] if self._common else [0.0]
        weights = self._weights
        rows = [bisect_right(weights, random() * total) for _ in range(rollouts)]
        edges, table, strata = self._edges, self._pauses, [0] * rollouts
        if edges and self._common:
            of_prompt = [z for z in shared for _ in range(self.group)][:rollouts]
            strata = [bisect_right(edges, self._rank(z, rng)) for z in of_prompt]
        elif edges:
            strata = [bisect_right(edges, random()) for _ in rows]
        pauses = [table[row][place] for row, place in zip(rows, strata, strict=True)]
        chances = [random() for _ in rows] if self.failure else []
        if self._burst > 1:  # neighbours fail together
            chances = [chances[place - place % self._burst] for place in range(len(chances))]
        return StepDraws(
            key,
            rows,
            pauses,
            chances,
            [rng.expovariate(1.0) for _ in rows] if self.hazard else [],
            [image for image in images for _ in range(self.group)][:rollouts],
            shared,
        )

    def _rank(self, shared: float, rng: Random) -> float:
        """Draw the rank of a rollout's think time, given its prompt's normal."""
        return 0.5 * math.erfc(-(self._common * shared + self._own * rng.gauss(0, 1)) / ROOT)

    def attempt_draw(self, draws: StepDraws, rollout: int, tries: int) -> AttemptDraw:
        """Attempt number ``tries`` of a rollout, the first being 0."""
        key = (draws.key << 40) + (rollout << 16) + tries
        cached = self._attempt_draws.get(key)
        if cached is None:
            rng = self._rng
            rng.seed((self._seed << 128) + (key << 1) + 1)
            row = bisect_right(self._weights, rng.random() * self._weights[-1])
            failed = 0
            if self._failed_weights:
                drawn = bisect_right(self._failed_weights, rng.random() * self._failed_weights[-1])
                failed = min(drawn, len(self._failed_weights) - 1)  # a resample without a failure: no attempt fails
            rank = self._rank(draws.shared[rollout // self.group], rng) if self._common else rng.random()
            place = bisect_right(self._edges, rank)
            cached = self._attempt_draws[key] = AttemptDraw(
                row,
                self._pauses[row][place],
                rng.random(),
                rng.random(),
                rng.expovariate(1.0) if self.hazard else 0.0,
                failed,
                self._failed_pauses[failed][place] if self._failed_pauses else NO_PAUSES,
            )
        return cached


class AttemptStream:
    """A random stream without some causes."""

    def __init__(
        self,
        stream: RandomStream,
        successes: Sequence[AttemptTimes],
        failures: Sequence[AttemptTimes],
        without: Container[str] = (),
    ) -> None:
        """The attempts as ``attempts.timed`` returns them. Without ``failures`` every attempt succeeds.

        Without ``dispatch`` a suspended sandbox continues at once.
        """
        self.stream = stream
        self._thinking, self._resuming = "think" not in without, "dispatch" not in without
        self._successes = successes
        self._failures = failures
        self._failure = 0.0 if "failures" in without else stream.failure
        self._hazard = 0.0 if "failures" in without else stream.hazard

    def first(self, draws: StepDraws, *, warm: bool = False) -> list[AttemptTimes]:
        """Return the first attempts of a step's rollouts; ``warm``: with a pool sandbox."""
        drawn = zip(draws.rows, draws.pauses, strict=True)
        times = [self._paused(self._successes[row], pauses, warm) for row, pauses in drawn]
        if self._hazard:
            pairs_h = zip(times, draws.patience_h, strict=True)
            return [self._struck(attempt, patience_h) for attempt, patience_h in pairs_h]
        if self._failure:
            for rollout, chance in enumerate(draws.chances):
                if chance < self._failure:
                    times[rollout] = self._failed(self.stream.attempt_draw(draws, rollout, 0), warm)
        return times

    def attempt(self, draws: StepDraws, rollout: int, tries: int, *, warm: bool = False) -> AttemptTimes:
        """Return attempt number ``tries`` of a rollout with failed attempts only."""
        draw = self.stream.attempt_draw(draws, rollout, tries)
        if draw.chance < self._failure:
            return self._failed(draw, warm)
        if self._hazard or (self.stream.limited and self._spent(draws, rollout, tries)):
            attempt = self._paused(self._successes[draw.row], draw.pauses, warm)
            return self._struck(attempt, draw.patience_h) if self._hazard else attempt
        return self._paused(self._successes[draws.rows[rollout]], draws.pauses[rollout], warm)

    def _spent(self, draws: StepDraws, rollout: int, tries: int) -> bool:
        """Whether an earlier attempt was the rollout's success, ended by the time limit."""
        later = (self.stream.attempt_draw(draws, rollout, before).chance for before in range(1, tries))
        first_succeeds = not draws.chances or draws.chances[rollout] >= self._failure
        return first_succeeds or any(chance >= self._failure for chance in later)

    def _struck(self, attempt: AttemptTimes, patience_h: float) -> AttemptTimes:
        """Return the attempt, failed if the hazard strikes before its end."""
        until = attempt.queued + round(patience_h / self._hazard * NS_PER_HOUR)
        return _cut(attempt, until) if until < attempt.span else attempt

    def _failed(self, draw: AttemptDraw, warm: bool) -> AttemptTimes:
        if self.stream.as_recorded:
            failed = self._paused(self._failures[draw.failed_row], draw.failed_pauses, warm)
            return failed._replace(ok=None) if self.stream.dropped[draw.failed_row] else failed
        attempt = self._paused(self._successes[draw.row], draw.pauses, warm)
        queued = attempt.queued
        return _cut(attempt, queued + round(draw.moment * (attempt.span - queued)))

    def _paused(self, attempt: AttemptTimes, pauses: Pauses, warm: bool) -> AttemptTimes:
        """Return the attempt with its pauses, and without startup on a pool hit."""
        think_ns, delay_ns, suspended_ns = pauses if self._thinking else NO_PAUSES
        ok, span, queued, cleanup, startup, _ = attempt
        span += think_ns + delay_ns * self._resuming - startup * warm
        return AttemptTimes(ok, span, queued, cleanup, startup, suspended_ns)


def _cut(attempt: AttemptTimes, span: int) -> AttemptTimes:
    """Return the attempt that fails after ``span``; the suspended share of its time is unchanged."""
    return attempt._replace(ok=False, span=span, suspended=attempt.suspended * span // max(1, attempt.span))
