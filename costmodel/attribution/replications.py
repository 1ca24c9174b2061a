"""Replications of a run with and without each cause, under common random streams.

Each stream draws from the recorded trials. Its twin draws from a resample of the trials with the same random numbers:
of repetitions, and of stretches of neighbouring trials. With fewer than three repetitions a repetition effect is
assumed. Rounds are added until the simulation error is small; twins join only as many as the limits need. ``shares``
computes the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from random import Random
from typing import Final, NamedTuple

from costmodel.errors import TrainingRunError
from costmodel.projection.cost import by_clock
from costmodel.projection.row import CAUSES
from costmodel.simulation.attempts import AttemptTimes, Trials, timed
from costmodel.simulation.random_streams import AttemptStream, RandomStream, ThinkQuantiles
from costmodel.simulation.rules import StepRules
from costmodel.simulation.simulator import simulate_steps
from costmodel.simulation.state import StepTaken
from costmodel.simulation.step_sampling import StepSample, is_alike, rollouts_of, sample_steps, settling, smaller
from costmodel.statistics.intervals import correlation_time
from costmodel.statistics.repetitions import MIN_RUNS, assumed
from costmodel.training.run import KEEP, MASK, RESAMPLE, TrainingRun
from costmodel.units import NS_PER_HOUR
from costmodel.workload.pool import Pool
from costmodel.workload.rescaling import Alternatives

STREAMS: Final = (6, 10)
"""Streams on the recorded trials with limits, each with a twin: at least, and at most."""
ATTEMPTS: Final = 48_000_000
"""Largest number of attempts in a round: a larger system is simulated smaller. Half a minute to a minute."""
TOO_MANY: Final = 4 * ATTEMPTS
"""Attempts of a round that is refused: more than two minutes."""
BUDGET: Final = 6_000_000
"""Attempts of a row on the recorded trials: twenty seconds with twins. The interval contains the remaining error."""
FIRST: Final = 600_000
"""Approximate attempts of the first round, for any number of causes, so that all rows have the same draws."""
SHARED: Final = 4
"""Relative cost of a run that waits for more than workers."""
MOST_STEPS: Final = 16
"""Steps of a stream in a round."""
ROUGH: Final = 0.2
"""Below this effort there are as few streams as possible."""
FEW_STREAMS: Final = 4
"""Streams of a run without limits below this effort. Limits of four would hold the truth in 88 to 92 %."""
BEFORE: Final = 8
"""Growth of the number of rounds before the error is checked again."""
CHANCE_STEP: Final = 1 << 19
"""Number of an unused step, to estimate the share of attempts that succeed."""
CHANCE_ATTEMPTS: Final = 1_000
LEAST_CHANCE: Final = 0.01
THINK: Final = "think"


class Sampling(NamedTuple):
    """Size of a simulation."""

    sample: StepSample
    streams: int
    scale: int  # divisor of the system's size
    salt: int = 0  # separates resamples of different repetitions


class Stream(NamedTuple):
    """A random stream, and the steps simulated with it."""

    seed: int
    times: Sequence[int] | None  # how often it draws each trial; None: as recorded
    factor: float  # of an assumed repetition effect
    steps: list[list[StepTaken]]  # of the run, without each acting cause, ideal, and ideal without think time


class Rates(NamedTuple):
    """Dollars per hour."""

    lasting: float  # GPUs and nodes, for the duration of the run
    worker: float
    idle_sandbox: float
    suspended_sandbox: float
    priced: bool  # whether anything has a price

    @classmethod
    def of(cls, run: Alternatives) -> Rates:
        """Return the rates of the training run and the price sheet."""
        training_run, prices, identity = run.training_run, run.prices, run.value.identity
        gpu_usd_hour, node_usd_hour = training_run.gpu_usd_hour, training_run.node_usd_hour
        lasting = (training_run.gpus or 0) * (gpu_usd_hour or 0.0) + (training_run.nodes or 0) * (node_usd_hour or 0)
        priced = prices is not None or gpu_usd_hour is not None or node_usd_hour is not None
        suspended = training_run.suspended_usd_hour
        if prices is None:
            return cls(lasting, 0.0, 0.0, suspended or 0.0, priced or bool(suspended))
        price = prices.sandbox(identity)
        suspended = price.suspended_usd_hour() if suspended is None else suspended
        return cls(lasting, prices.worker_usd_hour or 0.0, price.idle_usd_hour(identity), suspended, priced)

    def sandbox_usd(self, step: StepTaken) -> float:
        """Return dollars of the sandboxes of a simulated step, suspended or not."""
        return step.usd + step.suspended_ns / NS_PER_HOUR * self.suspended_sandbox


def repeated(runs: Sequence[Replications], needed: Callable[[], float]) -> None:
    """Add rounds to all runs alike until as many as ``needed``, or ``most_rounds``.

    Frequent checks would stop at a lucky moment, so they are few.
    """
    rounds, wanted = 0, max(1, *(run.rounds[0] for run in runs))
    while rounds < wanted:
        for number in range(rounds, wanted):
            for run in runs:
                run.simulate(number)
        rounds = wanted
        wanted = min(BEFORE * rounds, math.ceil(needed()))
        wanted = min(wanted, *(run.most_rounds for run in runs))  # fewer counterfactuals afford more rounds


class StepTooLong(TrainingRunError):
    """A step has too many rollouts for each worker to be simulated."""


class Replications:
    """A run under several random streams, with and without each cause, added in rounds."""

    def __init__(
        self,
        run: Alternatives,
        trials: Trials,
        full_speed: float | None = None,
        effort: float = 1.0,
        *,
        causes: bool = True,
        unchanged: bool = False,
        twin_rounds: int | None = None,
        sampling: Sampling | None = None,
    ) -> None:
        """Prepare a run without simulating. ``effort`` 1 is usual.

        ``full_speed``: share of the command time that the reference needs; None: no reference. Without ``causes`` all
        causes are removed together only.

        ``unchanged``: no cause is removed, and resamples have half of the trials, because the longest trajectory of a
        step decides a difference. ``twin_rounds``: first rounds with twins; 0: no limits; None: every round.
        ``sampling``: given size of the simulation. Raises ``StepTooLong``.
        """
        pool, training_run = self.pool, self.training_run = run.value, run.training_run
        self.rates = Rates.of(run)
        self.separate = causes  # whether each acting cause is removed alone, too
        self.causes = _acting_causes(trials, training_run, pool, full_speed)  # whether each acts; None: unknown
        everything = frozenset(cause for cause, acts in self.causes.items() if acts is not None)
        self._without = [frozenset[str]()]
        if not unchanged:
            self._without += [frozenset({cause}) for cause, acts in self.causes.items() if acts and causes]
            self._without += [everything, everything | {THINK}]
        self._trials, self._thinking = trials, None
        if training_run.think is not None:
            self._thinking = ThinkQuantiles(training_run.think, trials, training_run.suspension)
        first = RandomStream(training_run, trials, self._thinking, training_run.precision.seed)
        rules = StepRules(training_run)
        attempts = _attempts(trials, first)
        cost_per_rollout = len(self._without) / _least_chance(training_run, attempts)
        cost_per_rollout *= 1 if rules.workers_only else SHARED
        settled = settling(rules, _busy_ns(rules, attempts))
        smallest = cost_per_rollout * rollouts_of(training_run, rules, settled) * 2 * STREAMS[0]
        divisor = math.ceil(smallest / ATTEMPTS) if sampling is None else sampling.scale
        scale, training_run = smaller(training_run, divisor)
        if smallest / scale > TOO_MANY:
            problem = f"a step of {rules.size:,} rollouts on {rules.workers:,} workers takes too long to simulate"
            raise StepTooLong(f"{problem}: give a smaller batch, or fewer prompts")
        if sampling is None:
            rules, streams = StepRules(training_run), STREAMS[effort >= ROUGH]
            if twin_rounds == 0 and effort < ROUGH:
                streams = FEW_STREAMS
            while True:
                highest = int(min(1.0, effort) * FIRST / (len(CAUSES) * rules.launched(rules.size) * 2 * streams))
                sample = sample_steps(training_run, rules, first, min(MOST_STEPS, highest), settled / scale)
                round_attempts = cost_per_rollout * sample.rollouts(0) * 2 * STREAMS[0]
                divisor, smaller_run = smaller(run.training_run, math.ceil(scale * round_attempts / ATTEMPTS))
                if round_attempts <= ATTEMPTS or divisor <= scale or not rules.fills:
                    break
                scale, training_run, rules = divisor, smaller_run, StepRules(smaller_run)
            while streams > STREAMS[0] and cost_per_rollout * sample.rollouts(0) * 2 * streams > effort * ATTEMPTS:
                streams -= 1
            sampling = Sampling(sample, streams, scale)
        self.sampling, self._simulated_run = sampling, training_run
        self._times = [self._timed(without, 1.0) for without in self._without]
        self._rules = [StepRules(training_run, without) for without in self._without]
        self.ideal_alike = not unchanged and is_alike(self._rules[-2])  # whether all steps of an ideal sandbox are
        self.tariff = None if run.prices is None else run.prices.sandbox(pool.identity)
        self._bill, self._usd_range = by_clock(pool, self.tariff, run.training_run)
        self.times = run.training_run.trajectories / training_run.trajectories  # weight of each rollout
        self.rounds = [0] * len(self._without)  # of each counterfactual
        self.active = frozenset(range(len(self._without)))  # counterfactuals with more rounds
        self._budget = effort * BUDGET * len(self._without) / cost_per_rollout
        self.twin_rounds = twin_rounds
        spread = assumed(pool.identity.substrate, training_run.run_sd)
        runs = 0 if spread.by_user else len(pool.runs)
        self.repetitions = runs if runs >= MIN_RUNS else 0  # drawn whole by resamples
        seeds = [training_run.precision.seed + (number + 1 << 32) for number in range(sampling.streams)]
        drawn: list[tuple[int, Sequence[int] | None, float]] = [(seed, None, 1.0) for seed in seeds]
        for seed in seeds if twin_rounds != 0 else ():
            drawn.append((seed, *self._resampled(spread.sd, Random(seed + (sampling.salt << 64)), halved=unchanged)))
        self._streams = [Stream(*sample, [[] for _ in self._without]) for sample in drawn]
        steps = [stream.steps for stream in self._streams]
        self.plain, self.twins = steps[: len(seeds)], steps[len(seeds) :]  # the same streams on resampled trials

    def _resampled(self, sd: float, rng: Random, *, halved: bool) -> tuple[list[int], float]:
        """Return how often a resample has each trial, and the factor of an assumed repetition effect.

        The factor is 1 if whole repetitions are drawn. Within a repetition, stretches of neighbouring trials are drawn,
        as long as neighbours correlate.

        ``halved``: half of the trials of each repetition, once, unless whole repetitions are drawn. Their mean differs
        from the mean of all as much as the mean of all from the truth. Every other half lacks the longest trial, but
        only one of three resamples of full size, which hides how amounts depend on the longest trial.
        """
        trials = self.pool.trials
        by_run: dict[object, list[int]] = {}
        for index, trial in enumerate(trials):
            by_run.setdefault(trial.run, []).append(index)
        runs, factor = list(by_run.values()), 1.0
        if self.repetitions:
            runs, halved = rng.choices(runs, k=len(runs)), False
        else:
            share = math.sqrt(sum(len(run) ** 2 for run in runs)) / len(trials)
            factor = math.exp(rng.gauss(0, sd * share))
        times = [0] * len(trials)
        for run in runs:
            held = [float(trials[index].measures.held_ns) for index in run]
            mean = math.fsum(held) / len(held)
            neighbours = correlation_time([[ns - mean for ns in held]], only_if_seen=True)  # that are worth one trial
            stretch = min(len(run), math.ceil(neighbours))
            drawn: list[int] = []
            if halved:
                stretches = [run[place : place + stretch] for place in range(0, len(run), stretch)]
                drawn = list(chain.from_iterable(rng.sample(stretches, max(1, len(stretches) // 2))))
            while not halved and len(drawn) < len(run):
                begin = rng.randrange(len(run))
                drawn += [run[(begin + place) % len(run)] for place in range(stretch)]
            for index in drawn[: len(run)]:
                times[index] += 1
        ends = any(times[index] for index, trial in enumerate(trials) if trial.ok)
        if ends and self.training_run.timeout_s is not None:  # perhaps every success lasts too long
            stream = RandomStream(self.training_run, self._trials, self._thinking, 0, times)
            attempts = _attempts(self._trials, stream, factor)
            ends = _chance(self.training_run, attempts) >= LEAST_CHANCE
        return (times, factor) if ends else ([1] * len(times), 1.0)

    @property
    def sample(self) -> StepSample:
        """The simulated steps of all rounds."""
        return self.sampling.sample._replace(rounds=self.rounds[0])

    @property
    def share(self) -> float:
        """Return the factor from counted amounts of the steps to the run; the last step may be partial."""
        return self.times * self.sampling.sample.whole / self.sampling.sample.steps

    def usd(self, step: StepTaken) -> float:
        """Return dollars of a simulated step."""
        rates = self.rates
        lasting, idle = step.wall_ns * rates.lasting, self.times * step.idle_ns * rates.idle_sandbox
        used = rates.sandbox_usd(step) + step.held_ns / NS_PER_HOUR * rates.worker
        return (lasting + idle) / NS_PER_HOUR + self.share * used

    def usd_range(self, step: StepTaken) -> float:
        """Return half the range of the dollars of a simulated step, where tariff or usage are known within limits."""
        return self.share * step.usd * self._usd_range

    @property
    def most_rounds(self) -> int:
        """The largest number of rounds within the budget."""
        return max(1, self.rounds[0] + int(self._budget / self._cost(self.rounds[0] or 1)))

    def _cost(self, number: int) -> int:
        """Return the rollouts of a further round on the recorded trials, over all streams and counterfactuals."""
        return self.sampling.sample.rollouts(number) * len(self.plain) * len(self.active)

    def simulate(self, number: int) -> None:
        """Simulate round ``number`` unless finished."""
        if number < self.rounds[0]:
            return
        twins = self.twin_rounds is None or number < self.twin_rounds
        for stream in self._streams if twins else self._streams[: len(self.plain)]:
            random_stream = RandomStream(self._simulated_run, self._trials, self._thinking, stream.seed, stream.times)
            for index in self.active:
                without = self._without[index]
                if stream.times is not None and THINK in without:
                    continue  # shown without limits
                times = self._times[index] if stream.factor == 1.0 else self._timed(without, stream.factor)
                source = AttemptStream(random_stream, *times, without)
                for segment in self.sampling.sample.of(number):
                    stream.steps[index] += simulate_steps(self._rules[index], source, segment, self._bill)
        self._budget -= self._cost(number)
        for index in self.active:
            self.rounds[index] = number + 1

    def _timed(self, without: frozenset[str], factor: float) -> tuple[list[AttemptTimes], list[AttemptTimes]]:
        """Return the times of successes and failures in a counterfactual."""
        fork_s = self.training_run.fork_s
        fork_ns = None if fork_s is None else round(fork_s * 1e9)
        return (
            timed(self._trials.successes, without, factor, fork_ns),
            timed(self._trials.failures, without, factor, fork_ns, ok=False),
        )


def _attempts(trials: Trials, stream: RandomStream, factor: float = 1.0) -> Sequence[AttemptTimes]:
    """Return attempts of an unused step."""
    source = AttemptStream(stream, timed(trials.successes, (), factor), timed(trials.failures, (), factor, ok=False))
    return source.first(stream.step(CHANCE_STEP, CHANCE_ATTEMPTS))


def _chance(training_run: TrainingRun, attempts: Sequence[AttemptTimes]) -> float:
    """Return the share of attempts that succeed in time, or of groups where whole groups are redone."""
    limit_ns = math.inf if training_run.timeout_s is None else training_run.timeout_s * 1e9
    chance = sum(attempt.ok is True and attempt.span <= limit_ns for attempt in attempts) / len(attempts)
    return math.pow(chance, training_run.group_size or 1) if training_run.on_failure == RESAMPLE else chance


def _least_chance(training_run: TrainingRun, attempts: Sequence[AttemptTimes]) -> float:
    """Return the chance of a rollout to end at an attempt. Raises ``TrainingRunError``: it hardly ever does."""
    chance = _chance(training_run, attempts)
    if training_run.max_attempts is None and training_run.on_failure not in (MASK, KEEP) and chance < LEAST_CHANCE:
        which = "groups are without a failure" if training_run.on_failure == RESAMPLE else "attempts succeed in time"
        raise TrainingRunError(f"{chance:.2%} of {which}, so that a rollout hardly ever ends: add --max-attempts A")
    return max(chance, 1 / (training_run.max_attempts or 1 / LEAST_CHANCE))


def _busy_ns(rules: StepRules, attempts: Sequence[AttemptTimes]) -> float:
    """Return how long a worker takes for a rollout, with a barrier's wait for the longest one and for the training."""
    spans = sorted(attempt.span for attempt in attempts)
    mean = math.fsum(spans) / len(spans)
    if not rules.policy.barrier:
        return mean
    step_ns = max(spans[len(spans) * rules.size // (rules.size + 1)], mean * rules.size / rules.workers)
    step_ns = max(step_ns, rules.train_ns) if rules.policy.overlaps else step_ns + rules.train_ns
    return step_ns * rules.workers / rules.size


def _acting_causes(
    trials: Trials, training_run: TrainingRun, pool: Pool, full_speed: float | None
) -> dict[str, bool | None]:
    """Return whether each cause acts at all in this training run; None: unknown."""
    parts = (*trials.successes, *trials.failures)
    acts: dict[str, bool | None] = {
        cause: any(getattr(attempt, cause) for attempt in parts)
        for cause in ("create", "ready", "preload", "dispatch", "slowdown", "contention", "harness", "cleanup")
    }
    pulled = training_run.pull_gb_s is not None or bool(training_run.build_s)
    acts["image_pull"] = training_run.images is not None and pulled
    limited = training_run.create_rate is not None or training_run.quota is not None
    acts["throttle"] = limited or any(attempt.queued for attempt in parts)
    acts["failures"] = bool(training_run.failure_rate or training_run.failure_hazard or trials.failures)
    if not trials.run_known:
        acts |= {"dispatch": None, "slowdown": None, "contention": None}
    if full_speed is None:
        acts["slowdown"] = None
    if pool.contended is None:
        acts["contention"] = None
    return {cause: acts[cause] for cause in CAUSES}
