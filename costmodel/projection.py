"""``project``: from recordings and a demand to one row per cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from costmodel import flags
from costmodel.alternatives import Alternatives
from costmodel.billing import cost
from costmodel.bounds import Reference, tax_between
from costmodel.collecting import paused
from costmodel.comparison import meant, with_baseline, with_full_speed
from costmodel.continuation import EXACT, Margin
from costmodel.dealing import dealt
from costmodel.demand import Demand
from costmodel.engine.estimate import SimulatedRun
from costmodel.errors import DemandError, SourceError
from costmodel.gpu_waiting import with_split
from costmodel.grounds import beyond_recorded_ns, evidence_of, reasons, trust
from costmodel.percentiles import Quantile
from costmodel.pricing import Prices
from costmodel.published import Published
from costmodel.quoted import quoted
from costmodel.recording import CellIdentity, Recording
from costmodel.results import (
    ByCause,
    HeldOut,
    PoolUse,
    Projection,
    Steps,
    Stress,
    Trajectory,
    WallClock,
)
from costmodel.runs import interval
from costmodel.samples import Pool, attempts, by_levels, nearest_length, pools
from costmodel.sweeps import told
from costmodel.tally import Tally, Value
from costmodel.timed import TimedRun, launched, timed_run
from costmodel.timescale import NS_PER_HOUR, NS_PER_S
from costmodel.uncertainty import Between, Interval
from costmodel.used import untold
from costmodel.wallclock import Ends, WholeRun, limits, run_in_time

if TYPE_CHECKING:
    from costmodel.providers import Provider

Wanted = Callable[[CellIdentity], bool]
STRESS_SHARE, STRESS_FACTOR = 100, 30
"""One trajectory in 100 takes 30 times as long."""
SIMULATED_ROWS = 40
"""So many rows are each simulated with all that one may cost; more share what these would."""
MOST_LENGTHS = 16
"""Of a series of more lengths so many are predicted from each other, evenly from the shortest to the longest."""


def project(
    recordings: Sequence[Recording | Published],
    demand: Demand,
    prices: Prices | None = None,
    reference: Reference | None = None,
    providers: Sequence[Provider] = (),
    *,
    each_level: bool = False,
    effort: float = 1.0,
    wanted: Wanted | None = None,
    checked: bool = True,
    stressed: bool = True,
) -> list[Projection]:
    """One row per cell, in the order of the recordings; with ``demand.actions`` one per cell but for its length.

    Cells that differ in how many trials ran at a time only are one row, for as many as the demand has, unless
    ``each_level``. Of each of the ``providers`` there is a composed row for each work that was recorded. ``checked``:
    recorded lengths are predicted from each other (``held_out``). ``stressed``: rows have their ``stress``.

    What is simulated for more than 40 rows is that much less for each: its error, which every row tells, is greater.

    ``reference`` bounds the tax of rows whose commands' own time is unknown. ``effort`` is how much is simulated for
    the attribution of a run in steps, relative to a few seconds for all rows; 0: there is none. ``wanted`` says which
    cells have a row, of a composed row by the identity that it has; others still tell what they tell of those.

    A cell without a success is a row of Nones flagged ``no_success``.

    Raises:
        DemandError: the baseline or whose speed is full is not among the rows, or a published row cannot answer an
            option.
        PriceError: the sheet lacks a price.
        SourceError: nothing was recorded, not one cell has a success, or a run was given twice.
    """

    def needed(identity: CellIdentity) -> bool:
        specs = (demand.full_speed, demand.baseline)
        return wanted is None or wanted(identity) or any(spec is not None and meant(identity, spec) for spec in specs)

    summaries = [(one, quoted(one, demand, prices)) for one in recordings if isinstance(one, Published)]
    cells = _cells(recordings, demand, checked=checked)
    groups = [own for own in ([[one] for one in cells] if each_level else by_levels(cells)) if needed(own[0].identity)]
    shared = replace(demand, effort=demand.effort * min(1.0, SIMULATED_ROWS / max(1, len(groups))))
    found = [one for one in _thought_of(groups, cells, providers, shared, prices) if needed(one.value.identity)]
    rows = rows_of(found, reference, effort, wanted, stressed=stressed)
    for place, own in enumerate(groups):
        rows[place] = replace(rows[place], held_out=sum((cells[pool] for pool in own), ()))
    baseline = demand.baseline
    for summary, printed in summaries:
        baseline = baseline or summary.baseline
        rows += [row for row in printed if needed(row.identity)]
    if all(row.worker_hours is None for row in rows) and (rows or wanted is None):
        if any(flags.LENGTH_UNKNOWN in row.flags for row in rows):
            raise DemandError(
                f"nothing was published for {demand.actions} actions; leave -n out, or --compose NAME "
                "with recorded work of that length"
            )
        raise SourceError("nothing to project: no cell has a successful trial")
    if baseline is not None and rows:
        rows = with_baseline(rows, baseline, required=demand.baseline is not None, run_sd=demand.run_sd)
    return [row for row in rows if wanted is None or wanted(row.identity)]


def behind(
    recordings: Sequence[Recording | Published], demand: Demand, prices: Prices | None, providers: Sequence[Provider]
) -> list[Alternatives]:
    """What the rows of ``project`` are computed from, in their order, published ones left out. Raises as it does."""
    cells = _cells(recordings, demand, checked=False)
    return _thought_of(by_levels(cells), cells, providers, demand, prices)


def _cells(
    recordings: Sequence[Recording | Published], demand: Demand, *, checked: bool = True
) -> dict[Pool, tuple[HeldOut, ...]]:
    """The cells that are projected, each with how well its lengths predict each other, if that is ``checked``."""
    series: dict[object, list[Pool]] = {}
    for pool in pools(recording for recording in recordings if isinstance(recording, Recording)):
        series.setdefault((pool.series, pool.provenance), []).append(pool)
    found: dict[Pool, tuple[HeldOut, ...]] = {}
    for lengths in series.values():
        near = lengths if demand.length is None else [nearest_length(lengths, demand.length)]
        found |= dict.fromkeys(near, _held_out(lengths) if checked else ())
    return found


def _thought_of(
    groups: Sequence[Sequence[Pool]],
    cells: Iterable[Pool],
    providers: Sequence[Provider],
    demand: Demand,
    prices: Prices | None,
) -> list[Alternatives]:
    """What rows are computed from; who has one level of each cell and no provider waits for no more modules."""
    found = [Alternatives(levels[0], demand, prices) for levels in groups]
    if any(len(levels) > 1 for levels in groups):
        from costmodel.at_scale import at_scale

        found = [at_scale(levels, demand, prices) for levels in groups]
    if providers:
        from costmodel.elsewhere import elsewhere, works

        done = works(cells)
        found += [elsewhere(pool, provider, demand, prices) for provider in providers for pool in done]
    return found


@paused()
def rows_of(
    found: Sequence[Alternatives],
    reference: Reference | None = None,
    effort: float = 0.0,
    wanted: Wanted | None = None,
    *,
    stressed: bool = True,
) -> list[Projection]:
    """One row for each, from the least to the most of what was not measured; the rest is as for ``project``."""
    cells = [(one, pool) for one in found for pool in (one.value, *one.ends)]
    rows = dealt(
        [partial(_measured, pool, one.demand, one.prices, reference, stressed=stressed) for one, pool in cells],
        sum(len(pool.trials) for _, pool in cells),
    )
    demand = found[0].demand if found else None
    if demand is not None and demand.full_speed is not None:
        rows = with_full_speed(rows, demand.full_speed)
    if demand is not None and demand.step_rollouts is not None and (effort or demand.step_model):
        from costmodel.step.row import attributed  # who asks for no steps does not wait for it

        shown = [place for place, (one, _) in enumerate(cells) if wanted is None or wanted(one.value.identity)]
        for place in shown:
            one, pool = cells[place]
            rows[place] = attributed(rows[place], pool, one.demand, one.prices, effort / len(shown))
    left = iter(rows)
    return [one.told(next(left), list(islice(left, len(one.ends)))) for one in found]


def _measured(
    pool: Pool, demand: Demand, prices: Prices | None, reference: Reference | None, *, stressed: bool
) -> Projection:
    """One row of a recorded cell."""
    length = demand.length or pool.length
    sample = attempts(pool, demand.length, demand)
    row = Projection(
        identity=pool.identity,
        length=length,
        label=pool.identity.label,
        provenance=pool.provenance,
        sources=tuple(pool.sources),
        trials=len(pool.trials),
        failures=len(pool.trials),
    )
    by_steps = bool(demand.step_model)  # what follows from when things happen is then told by ``step``
    timed = timed_run(sample, pool, replace(demand, gpus=None, gpu_usd_hour=None) if by_steps else demand)
    if timed is None:
        return replace(row, flags=flags.ordered({flags.NO_SUCCESS: None, **trust(pool)}))

    tally, retries, law, _, run = timed
    backoff_ns = round(demand.backoff_s * NS_PER_S)
    doubt_ns = beyond_recorded_ns(tally, pool)
    estimated, quantiles, tax, line = told(tally)
    held = doubt_ns.around(interval(estimated, tally.assume))
    exact_held = tally.total(lambda sample: sample.held_ns) / tally.successes
    waiting = (retries.attempts - 1) * backoff_ns  # per trajectory
    delivered = demand.trajectories * retries.delivered
    hours = float(delivered) / NS_PER_HOUR  # times ns per success
    waiting_hours = float(demand.trajectories * waiting / NS_PER_HOUR)
    exact_hours = (delivered * exact_held + demand.trajectories * waiting) / NS_PER_HOUR
    worker_hours = _shifted(held.times(hours), waiting_hours)._replace(value=float(exact_hours)).not_negative()
    tax_hours = tax and _shifted(doubt_ns.around(tax).times(hours), waiting_hours).not_negative()
    by_cause = _by_cause(tally, pool, demand, hours, waiting_hours)
    between = tax_between(tally, (reference or {}).get(pool.identity.substrate), hours, waiting_hours)
    ends = limits(run, demand, worker_hours)
    wall_clock = _wall_clock(run, worker_hours, demand, ends.run)
    outcome = run.outcome
    if outcome is not None and demand.over_provision > 0:
        own_ns = outcome.held_ns.value + outcome.backoff_ns.value
        kept = (own_ns - outcome.wasted_ns.value) / (law.mean * demand.trajectories or 1.0)
        worker_hours = launched(worker_hours, own_ns / NS_PER_HOUR, outcome)
        tax_hours = tax_hours and tax_hours.times(kept)
        by_cause = by_cause.kept(kept, outcome.wasted_ns.value / NS_PER_HOUR)
        between = between and Between(kept * between.low, kept * between.high)
    if outcome is not None and outcome.waited_ns.value:
        waited_hours = outcome.waited_ns.value / NS_PER_HOUR
        worker_hours, tax_hours = _waited(worker_hours, outcome), tax_hours and _waited(tax_hours, outcome)
        by_cause = by_cause._replace(queued=by_cause.queued + waited_hours)
        between = between and Between(between.low + waited_hours, between.high + waited_hours)
    wall_clock = wall_clock._replace(fluid=worker_hours.value / demand.usable_workers)
    warm_pool = None if demand.warm_pool is None else _pool_use(demand, outcome)
    return replace(
        row,
        failures=len(pool.trials) - round(tally.successes),
        trajectory_s=_trajectory(tally, doubt_ns, quantiles),
        held_per_success_s=held.times(1 / NS_PER_S).not_negative(),
        think_s=float(tally.total(lambda sample: sample.of_successes(sample.think_ns)) / tally.successes) / NS_PER_S,
        cleanup_share_left_out=None if demand.include_cleanup else pool.cleanup_ns / (held.value or 1.0),
        attempts=float(retries.attempts),
        delivered=float(retries.delivered),
        worker_hours=worker_hours,
        tax_worker_hours=tax_hours,
        tax_between_worker_hours=between,
        by_cause_worker_hours=by_cause,
        wall_clock_hours=wall_clock,
        steps=run.steps and _with_limits(run.steps, ends.step),
        gpu=run.gpu and with_split(run.gpu, sample, pool, demand, known=tally.run_known),
        warm_pool=warm_pool,
        cost=None if prices is None else cost(timed, pool, prices, demand, worker_hours, wall_clock, warm_pool),
        stress=_stress(timed, demand, worker_hours) if stressed and not by_steps else None,
        unused=untold(pool, tally, demand),
        flags=reasons(pool, timed, demand, prices, max(doubt_ns) / (float(exact_held) or 1.0)),
        evidence=evidence_of(timed, demand, estimated, line, ends.run.tail),
    )


def _waited(hours: Interval, outcome: SimulatedRun) -> Interval:
    """Worker-hours with those in which workers wait for creates."""
    value, error = outcome.waited_ns.value / NS_PER_HOUR, outcome.waited_ns.error / NS_PER_HOUR
    low = None if hours.low is None else hours.low + max(0.0, value - error)
    high = None if hours.high is None else hours.high + value + error
    return Interval(hours.value + value, low, high)


def _pool_use(demand: Demand, outcome: SimulatedRun | None) -> PoolUse:
    """The pool's share of all attempts, and what stands ready meanwhile."""
    assert demand.warm_pool is not None
    hit = outcome.hits.value / outcome.attempts.value if outcome is not None else 0.0
    if demand.image_pool and demand.group_size is not None:
        groups = max(1.0, demand.usable_workers / demand.group_size)  # in flight; the next image of each is kept ready
        return PoolUse(hit, demand.warm_pool * groups, "P of each image")
    idle = outcome.idle_ns.value / outcome.wall_ns.value if outcome is not None and outcome.wall_ns.value else 0.0
    rule = "a slot is ready T after it was taken" if demand.refill_s is not None else "one is ready every 1/r, up to P"
    return PoolUse(hit, idle, rule)


def _trajectory(tally: Tally, doubt_ns: Margin, quantiles: tuple[Quantile, ...]) -> Trajectory:
    """In seconds; a mean without an interval has no quantiles beside it."""
    mean = _mean_trajectory(tally, doubt_ns)
    return Trajectory(mean, *(quantiles if mean.low is not None else (None, None, None)))


def _mean_trajectory(tally: Tally, doubt_ns: Margin) -> Interval:
    """In seconds."""
    return doubt_ns.around(tally.of_successes(lambda sample: sample.trajectory_ns)).times(1 / NS_PER_S).not_negative()


def _by_cause(tally: Tally, pool: Pool, demand: Demand, hours: float, waiting_hours: float) -> ByCause:
    """Worker-hours of successes by what they went into, and of failures as one; without a reference."""

    def share(value: Value) -> float:
        return float(tally.total(value) / tally.successes) * hours

    def good(name: str) -> float:
        return share(lambda sample: sample.of_successes(getattr(sample, name)))

    known = tally.run_known
    return ByCause(
        startup=good("startup_ns"),
        dispatch=good("dispatch_ns") if known else None,
        slowdown=None,
        contention=good("contention_ns") if known and pool.contended is not None else None,
        work=share(lambda sample: sample.work_ns) if known else None,
        unsplit=None if known else good("unsplit_ns"),
        harness=good("harness_ns"),
        queued=good("queued_ns"),
        think=good("think_ns"),
        failed=share(lambda sample: sample.of_failures(sample.held_ns)) + waiting_hours,
        cleanup=good("cleanup_ns") if demand.include_cleanup else None,
        wrapper=(good("wrapper_ns") or None) if known else None,
    )


def _wall_clock(run: WholeRun, worker_hours: Interval, demand: Demand, ends: Ends) -> WallClock:
    """Hours, between the ``ends``; these do not know how rollouts and training overlap, the value does."""
    value, error = run.wall.value_ns / NS_PER_HOUR, run.wall.error_ns / NS_PER_HOUR
    fluid = worker_hours.value / demand.usable_workers
    low = None if ends.low is None else min(ends.low, value - error)
    high = None if ends.high is None else max(ends.high, value + error)
    return WallClock(value, low, high, fluid, run.wall.method, error, ends.tail.needs_trials)


def _with_limits(steps: Steps, step: Ends) -> Steps:
    low_s, high_s = (None if end is None else end * 3600 for end in (step.low, step.high))
    return steps._replace(low_s=low_s, high_s=high_s, needs_trials=step.tail.needs_trials)


def _stress(timed: TimedRun, demand: Demand, worker_hours: Interval) -> Stress:
    law, source = timed.law, timed.source
    run = run_in_time(
        law.mixed(STRESS_SHARE - 1, law.scaled(STRESS_FACTOR, 1), 1),
        replace(demand, gpus=None, gpu_usd_hour=None),
        source.mixed(STRESS_SHARE - 1, source.scaled(STRESS_FACTOR), 1),
        aside=True,
    )
    wall_hours = run.wall.value_ns / NS_PER_HOUR
    if run.outcome is not None and (demand.over_provision or demand.create_rate or demand.warm_pool):
        return Stress(run.outcome.busy_ns / NS_PER_HOUR, wall_hours)
    factor = (STRESS_SHARE - 1 + STRESS_FACTOR) / STRESS_SHARE
    return Stress(worker_hours.value * factor, wall_hours)


def _held_out(lengths: Sequence[Pool]) -> tuple[HeldOut, ...]:
    """Predict each recorded length from every shorter one, and put what was measured beside it."""
    usable = sorted((pool for pool in lengths if pool.succeeded), key=lambda pool: pool.length.high)
    if len(usable) > MOST_LENGTHS:
        usable = [usable[i * (len(usable) - 1) // (MOST_LENGTHS - 1)] for i in range(MOST_LENGTHS)]
    one = Demand(trajectories=1, workers=1)
    found = []
    for place, long in enumerate(usable[1:], 1):
        measured = _mean_trajectory(Tally(attempts(long, long.length, one), long.trials), EXACT)
        for short in usable[:place]:
            tally = Tally(attempts(short, long.length, one), short.trials)
            predicted = _mean_trajectory(tally, beyond_recorded_ns(tally, short))
            found.append(HeldOut(short.length.high, long.length.high, predicted, measured))
    return tuple(sorted(found, key=lambda check: (check.from_actions, check.to_actions)))


def _shifted(interval: Interval, by: float) -> Interval:
    return Interval(*(None if end is None else end + by for end in interval))  # type: ignore[arg-type]
