"""What a run begins with, and how long it takes until that is used up: the burst, the pool's stock, its first refills.

A stock that would outlast everything that can be simulated is leapt over: while it lasts, nothing holds workers up, so
they get on as fast as they can. What the leap may be off by is part of the error.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, NamedTuple

from costmodel.simulation.engine.rules import Rules, WarmPool
from costmodel.simulation.engine.tries import Source

NEVER_NS: Final = 1 << 80
RARE: Final = 1_000
"""Fewer hits than this in what can be simulated are reckoned instead: by chance none of them may lie in there."""
WAVES: Final = 12
"""Rollouts per worker after which nobody remembers that all began at once."""


class Start(NamedTuple):
    """How a run begins."""

    rules: Rules  # with stocks that can be used up in what is simulated
    settling: float  # rollouts until they are
    leapt: int  # rollouts before that
    leapt_ns: float  # how long those take
    error_ns: float  # of the wall-clock
    later_hits: int = 0  # that are not simulated


def attempts_per_rollout(rules: Rules, source: Source) -> float:
    """(1 − f^cap) / (1 − f), for sandboxes that are made anew."""
    failure = source.failures
    if rules.cap is None:
        return 1 / (1 - failure)
    return rules.cap if failure == 1 else (1 - failure**rules.cap) / (1 - failure)


def start(rules: Rules, source: Source, rollouts: int) -> Start:
    """How ``rollouts`` begin."""
    per_rollout = attempts_per_rollout(rules, source)
    busy = per_rollout * min(source.mean_ns, source.warm_mean_ns) + (per_rollout - 1) * rules.backoff_ns
    asked = rules.workers * per_rollout / max(busy, 1.0)  # attempts per ns, if nothing held them up
    attempts = rollouts * per_rollout
    settling, error_ns, leapt, leapt_ns = float(WAVES * rules.workers), 0.0, 0, 0.0
    later_hits = 0
    most = math.ceil(WAVES * per_rollout * max(rules.workers, rules.launched(min(rules.batch or 0, rollouts))))
    let_through = asked
    if rules.gap_ns and rules.burst >= 2 * attempts:
        rules = replace(rules, gap_ns=0.0, burst=1)
    if rules.gap_ns:
        made = 1 / rules.gap_ns
        if rules.burst > most and rules.batch is None and asked > made:
            taken = (rules.burst - most) * asked / (asked - made)
            leapt = int(taken / per_rollout)
            if leapt >= rollouts:
                return start(replace(rules, gap_ns=0.0, burst=1), source, rollouts)
            leapt_ns = taken / asked
            error_ns += source.longest_ns * (1 + 3 * math.sqrt(taken) / rules.workers)
            error_ns += taken * source.saved_ns / rules.workers if rules.pool is not None else 0.0
        elif rules.burst > most and rules.batch is not None:
            error_ns += (min(rules.burst, attempts) - most) * rules.gap_ns
        rules = replace(rules, burst=min(rules.burst, most))
        settling += _emptied(rules.burst, asked, made) / per_rollout
        let_through = min(asked, made)
    pool = rules.pool
    if pool is not None and pool.size < attempts:
        taken = let_through * (pool.refill_ns or 0)  # during one refill
        if pool.refill_ns is not None and pool.size < taken / 1.5 and 3 * taken > most:
            steps = 0 if rules.batch is None else -(-rollouts // rules.batch)
            cold_ns = attempts * source.mean_ns / rules.workers  # hits are few
            lasts_ns = max(cold_ns, attempts / let_through) + steps * rules.train_ns
            refills = int(lasts_ns // pool.refill_ns)
            rare = most * pool.size < RARE * taken
            later_hits = pool.size * refills if rare else 0
            pool = _at_a_rate(pool, 0 if rare else refills, lasts_ns)
            error_ns += (pool.size + later_hits) * source.saved_ns / rules.workers
            settling += 1.5 * pool.size / per_rollout
        elif pool.refill_ns is not None and pool.size < 1.05 * taken:
            settling += 3 * let_through * pool.refill_ns / per_rollout
        elif pool.refill_ns is None and pool.gap_ns is not None:
            if pool.size > most:
                error_ns += (pool.size - most) * source.saved_ns / rules.workers
                pool = pool._replace(size=most)
            settling += _emptied(pool.size, let_through, 1 / max(1, pool.gap_ns or 0)) / per_rollout
        rules = replace(rules, pool=pool)
    return Start(rules, min(settling, float(rollouts - leapt)), leapt, leapt_ns, error_ns, later_hits)


def _at_a_rate(pool: WarmPool, refills: int, lasts_ns: float) -> WarmPool:
    """A pool whose slots are taken as soon as they are ready: its stock at the start, and once more for each refill."""
    gap_ns = math.ceil(lasts_ns / refills / pool.size) if refills else NEVER_NS
    return pool._replace(refill_ns=None, gap_ns=max(1, gap_ns))


def _emptied(stock: int, taken: float, made: float) -> float:
    """How many are taken until a stock that is refilled is empty; if it never is, nothing has to settle."""
    return 1.5 * stock * taken / (taken - made) if taken > 1.02 * made else 0.0
