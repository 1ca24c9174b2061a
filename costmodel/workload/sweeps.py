"""What takes the longest to tell of a row: all that goes through all of its attempts time and again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from costmodel.recording.parallel.dealing import dealt
from costmodel.statistics.intervals import Interval
from costmodel.statistics.quantiles import Percentile, Quantile
from costmodel.statistics.repetitions import Estimate
from costmodel.units import NS_PER_S
from costmodel.workload.estimator import StraightLine, Tally


class Sweeps(NamedTuple):
    """Of a row's attempts, of which one succeeded."""

    held: Estimate  # ns per success
    quantiles: tuple[Quantile, ...]  # of a success's trajectory, in s
    tax: Interval | None  # beyond think time and the successes' own work, in ns per success
    line: StraightLine | None


def told(tally: Tally) -> Sweeps:
    """By several processes where there are many: the first is told here, and what it told of held is used again."""
    works: tuple[Callable[[], Any], ...] = (  # of two processes each has a half
        partial(tally.estimate, lambda sample: sample.held_ns, lambda sample: sample.think_ns),
        lambda: tuple(map(_quantile, tally.percentiles((0.5, 0.95, 0.99)))),
        partial(_tax_ns, tally),
        tally.line,
    )
    return Sweeps(*dealt(works, len(tally.trials)))


def _tax_ns(tally: Tally) -> Interval | None:
    """Per success, beyond think time and the successes' own work; None where a command's own time is unknown."""
    return tally.per_success(lambda sample: sample.tax_ns) if tally.run_known else None


def _quantile(found: Percentile) -> Quantile:
    value, low, high = (None if ns is None else ns / NS_PER_S for ns in found[:3])
    return Quantile(value, low, high, found.needs)
