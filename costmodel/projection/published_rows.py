"""One row per published figure: each trajectory takes the published time."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from costmodel.errors import SourceError, TrainingRunError
from costmodel.pricing.sheet import Prices
from costmodel.projection import warnings
from costmodel.projection.cost import cost_of_mean, doubts
from costmodel.projection.diagnostics import refused
from costmodel.projection.row import Row, Trajectory, WallClock
from costmodel.recording.published import PROVENANCE, Published, PublishedRow
from costmodel.statistics.intervals import Interval
from costmodel.training.length import Length
from costmodel.training.run import TrainingRun
from costmodel.units import NS_PER_HOUR, NS_PER_S
from costmodel.workload.rescaling import Assumption


def quoted(summary: Published, training_run: TrainingRun, prices: Prices | None) -> list[Row]:
    """Return the rows of a file of published latencies.

    Raises:
        TrainingRunError: the training run asks for what one latency cannot answer; the message names the options and
        the file. SourceError: the file holds none, but starts.
        PriceError: the sheet lacks a price.
    """
    if not summary.rows:
        if not summary.starts:
            raise SourceError(f"{summary.name} has figures for the page of taxtui site only, and no latency")
        raise SourceError(
            f"{summary.name} holds no latency of a trajectory but how long sandboxes take to start: "
            f"give work that was recorded, and --compose {summary.starts[0].substrate}"
        )
    if unused := refused(training_run, PROVENANCE):
        raise TrainingRunError(
            f"{summary.name} holds published latencies, one number a row, which cannot answer {', '.join(unused)}; "
            f"leave {'it' if len(unused) == 1 else 'them'} out, or {summary.name}"
        )
    return [_row(row, summary, training_run, prices) for row in summary.rows]


def _row(row: PublishedRow, summary: Published, training_run: TrainingRun, prices: Prices | None) -> Row:
    date = "no date is known" if row.date is None else str(row.date)
    work = f"{row.trajectory_ns / NS_PER_S:g} s for {row.identity.actions} actions"
    projection = Row(
        identity=row.identity,
        length=training_run.length or Length.constant(row.identity.actions),
        label=row.label or row.identity.label,
        provenance=PROVENANCE,
        sources=(summary.name,),
        trials=None,
        failures=None,
        flags=(warnings.PUBLISHED,),
        assumptions=(Assumption("trajectory", work, f"{row.source or summary.name} ({date})"),),
    )
    if projection.length != Length.constant(row.identity.actions):
        return replace(projection, flags=(warnings.PUBLISHED, warnings.LENGTH_UNKNOWN))
    latency_s = row.trajectory_ns / NS_PER_S
    worker_hours = float(Fraction(training_run.trajectories * row.trajectory_ns, NS_PER_HOUR))
    workers = training_run.usable_workers
    wall_hours = math.ceil(training_run.trajectories / workers) * latency_s / 3600
    cost, flags = None, [warnings.PUBLISHED]
    if prices is not None:
        cost = cost_of_mean(row.identity, row.trajectory_ns, prices, training_run, worker_hours)
        flags += [*doubts(prices.sandbox(row.identity), cpu_known=False, think=False), warnings.BILLED_MEAN]
    return replace(
        projection,
        trajectory_s=Trajectory(Interval(latency_s), None, None, None),
        held_per_success_s=Interval(latency_s),
        worker_hours=Interval(worker_hours),
        wall_clock_hours=WallClock(wall_hours, None, None, worker_hours / workers, "waves", None),
        cost=cost,
        flags=warnings.ordered(flags),
    )
