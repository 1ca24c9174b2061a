"""``project``: from recordings and a training run to one row per cell, with providers, attribution and baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from costmodel.analysis.baseline import matches_spec, with_baseline, with_full_speed
from costmodel.errors import SourceError, TrainingRunError
from costmodel.pricing.sheet import Prices
from costmodel.projection import warnings
from costmodel.projection.diagnostics import beyond_recorded_ns
from costmodel.projection.measured_row import ENDS, mean_trajectory, measured_row
from costmodel.projection.published_rows import quoted
from costmodel.projection.row import HeldOut, Row, Share
from costmodel.projection.tax_bounds import Reference
from costmodel.recording.load import Data, files_of
from costmodel.recording.published import Published
from costmodel.recording.reader import CellIdentity, Recording
from costmodel.statistics.intervals import Between, Interval
from costmodel.training.run import TrainingRun
from costmodel.workload.estimator import Tally
from costmodel.workload.length_extrapolation import EXACT
from costmodel.workload.pool import Pool, attempts, by_levels, nearest_length, pools
from costmodel.workload.scenario_range import Alternatives

if TYPE_CHECKING:
    from costmodel.providers.provider import Provider


_KEPT: Final = ("identity", "length", "held_out", "flags", "evidence", "assumptions", "levels", "versus")
"""Fields of a row that do not depend on which of its pools was projected."""

CellFilter = Callable[[CellIdentity], bool]
SIMULATED_ROWS = 40
"""So many rows are each simulated with all that one may cost; more share what these would."""
MOST_LENGTHS = 16
"""Of a series of more lengths so many are predicted from each other, evenly from the shortest to the longest."""


def project(
    data: Data,
    training_run: TrainingRun,
    prices: Prices | None = None,
    reference: Reference | None = None,
    providers: Sequence[Provider] = (),
    *,
    each_level: bool = False,
    effort: float = 1.0,
    wanted: CellFilter | None = None,
    checked: bool = True,
    stressed: bool = True,
    causes: bool = True,
    progress: Callable[[float], None] | None = None,
) -> list[Row]:
    """One row per cell of a file or several, in their order.

    With ``training_run.actions`` the cells that differ in their length only are one row.

    Cells that differ in how many trials ran at a time only are one row, for as many as the training run has, unless
    ``each_level``. Of each of the ``providers`` there is a composed row for each work that was recorded. ``checked``:
    recorded lengths are predicted from each other (``held_out``).
    ``stressed``: rows have their ``stress``. Without ``causes`` attributions do not separate them, which takes a third
    of the time.

    What is simulated for more than 40 rows is that much less for each: its error, which every row tells, is greater.

    ``reference`` bounds the tax of rows whose commands' own time is unknown. ``effort`` is how much may be simulated
    for the attribution of each row of a run in steps, relative to the usual, some fifteen seconds; 0: there is none.
    It ends earlier where its own error is small. ``progress`` is told the share that is done. ``wanted`` says
    which cells have a row, of a composed row by the identity that it has; others still tell what they tell of those.

    A cell without a success is a row of Nones flagged ``no_success``.

    Raises:
        TrainingRunError: the baseline or whose speed is full is not among the rows, or a published row cannot answer an
            option.
        PriceError: the sheet lacks a price.
        SourceError: nothing was recorded, not one cell has a success, or a run was given twice.
    """

    def needed(identity: CellIdentity) -> bool:
        specs = (training_run.full_speed, training_run.baseline)
        return (
            wanted is None
            or wanted(identity)
            or any(spec is not None and matches_spec(identity, spec) for spec in specs)
        )

    recordings = files_of(data)
    summaries = [(one, quoted(one, training_run, prices)) for one in recordings if isinstance(one, Published)]
    cells = _cells(recordings, training_run, checked=checked)
    groups = [own for own in ([[one] for one in cells] if each_level else by_levels(cells)) if needed(own[0].identity)]
    shared = replace(training_run, effort=training_run.effort * min(1.0, SIMULATED_ROWS / max(1, len(groups))))
    found = [one for one in _thought_of(groups, cells, providers, shared, prices) if needed(one.value.identity)]
    rows = rows_of(found, reference, effort, wanted, stressed=stressed, causes=causes, progress=progress)
    for place, own in enumerate(groups):
        rows[place] = replace(rows[place], held_out=sum((cells[pool] for pool in own), ()))
    baseline = training_run.baseline
    for summary, printed in summaries:
        baseline = baseline or summary.baseline
        rows += [row for row in printed if needed(row.identity)]
    if all(row.worker_hours is None for row in rows) and (rows or wanted is None):
        if any(warnings.LENGTH_UNKNOWN in row.flags for row in rows):
            raise TrainingRunError(
                f"nothing was published for {training_run.actions} actions; leave --length out, or --compose NAME "
                "with recorded work of that length"
            )
        raise SourceError("nothing to project: no cell has a successful trial")
    if baseline is not None and rows:
        rows = with_baseline(rows, baseline, required=training_run.baseline is not None, run_sd=training_run.run_sd)
    return [row for row in rows if wanted is None or wanted(row.identity)]


def behind(
    recordings: Sequence[Recording | Published],
    training_run: TrainingRun,
    prices: Prices | None,
    providers: Sequence[Provider],
) -> list[Alternatives]:
    """What the rows of ``project`` are computed from, in their order, published ones left out. Raises as it does."""
    cells = _cells(recordings, training_run, checked=False)
    return _thought_of(by_levels(cells), cells, providers, training_run, prices)


def cells_of(recordings: Sequence[Recording | Published], training_run: TrainingRun) -> list[Pool]:
    """The recorded cells that are projected, each at the recorded length nearest to the training run's."""
    return list(_cells(recordings, training_run, checked=False))


def _cells(
    recordings: Sequence[Recording | Published], training_run: TrainingRun, *, checked: bool = True
) -> dict[Pool, tuple[HeldOut, ...]]:
    """The cells that are projected, each with how well its lengths predict each other, if that is ``checked``."""
    series: dict[object, list[Pool]] = {}
    for pool in pools(recording for recording in recordings if isinstance(recording, Recording)):
        series.setdefault((pool.series, pool.provenance), []).append(pool)
    found: dict[Pool, tuple[HeldOut, ...]] = {}
    for lengths in series.values():
        near = lengths if training_run.length is None else [nearest_length(lengths, training_run.length)]
        found |= dict.fromkeys(near, _held_out(lengths) if checked else ())
    return found


def _thought_of(
    groups: Sequence[Sequence[Pool]],
    cells: Iterable[Pool],
    providers: Sequence[Provider],
    training_run: TrainingRun,
    prices: Prices | None,
) -> list[Alternatives]:
    """What rows are computed from; who has one level of each cell and no provider waits for no more modules."""
    found = [Alternatives(levels[0], training_run, prices) for levels in groups]
    if any(len(levels) > 1 for levels in groups):
        from costmodel.workload.concurrency_scaling import at_scale

        found = [at_scale(levels, training_run, prices) for levels in groups]
    if providers:
        from costmodel.providers.estimation import elsewhere, works

        done = works(cells)
        found += [elsewhere(pool, provider, training_run, prices) for provider in providers for pool in done]
    return found


def rows_of(
    found: Sequence[Alternatives],
    reference: Reference | None = None,
    effort: float = 0.0,
    wanted: CellFilter | None = None,
    *,
    stressed: bool = True,
    causes: bool = True,
    progress: Callable[[float], None] | None = None,
) -> list[Row]:
    """One row for each, from the least to the most of what was not measured; the rest is as for ``project``."""
    cells = [(one, pool) for one in found for pool in (one.value, *one.ends)]
    rows = [measured_row(pool, one.training_run, one.prices, reference, stressed=stressed) for one, pool in cells]
    training_run = found[0].training_run if found else None
    if training_run is not None and training_run.full_speed is not None:
        rows = with_full_speed(rows, training_run.full_speed)
    if training_run is not None and training_run.step_rollouts is not None and (effort or training_run.step_model):
        from costmodel.attribution.row import attributed  # who asks for no steps does not wait for it

        shown = [place for place, (one, _) in enumerate(cells) if wanted is None or wanted(one.value.identity)]
        for number, place in enumerate(shown):
            one, pool = cells[place]
            own = None if progress is None else _part_of(progress, number, len(shown))
            share = 1.0 if pool is one.value else ENDS
            rows[place] = attributed(
                rows[place], pool, one.training_run, one.prices, share * effort, own, causes=causes
            )
    left = iter(rows)
    return [widen(one, next(left), list(islice(left, len(one.ends)))) for one in found]


def _part_of(progress: Callable[[float], None], number: int, parts: int) -> Callable[[float], None]:
    return lambda done: progress((number + done) / parts)


def _held_out(lengths: Sequence[Pool]) -> tuple[HeldOut, ...]:
    """Predict each recorded length from every shorter one, and put what was measured beside it."""
    usable = sorted((pool for pool in lengths if pool.succeeded), key=lambda pool: pool.length.high)
    if len(usable) > MOST_LENGTHS:
        usable = [usable[i * (len(usable) - 1) // (MOST_LENGTHS - 1)] for i in range(MOST_LENGTHS)]
    one = TrainingRun(trajectories=1, workers=1)
    found = []
    for place, long in enumerate(usable[1:], 1):
        measured = mean_trajectory(Tally(attempts(long, long.length, one), long.trials), EXACT)
        for short in usable[:place]:
            tally = Tally(attempts(short, long.length, one), short.trials)
            predicted = mean_trajectory(tally, beyond_recorded_ns(tally, short))
            found.append(HeldOut(short.length.high, long.length.high, predicted, measured))
    return tuple(sorted(found, key=lambda check: (check.from_actions, check.to_actions)))


def widen(alternatives: Alternatives, row: Row, ends: Sequence[Row]) -> Row:
    """The value's row, from the lowest limit of any to the highest, with what it rests on."""
    for flag in alternatives.flags:
        if flag not in row.flags:
            row = replace(row, flags=warnings.including(row.flags, flag))
    found = _across([replace(row, assumptions=alternatives.assumptions, levels=alternatives.levels), *ends])
    return without_upper_limits(found) if alternatives.at_least else found  # type: ignore[no-any-return]


def without_upper_limits(one: Any) -> Any:
    """A result whose amounts are at least what they are: every upper limit is None."""
    if is_dataclass(one) and not isinstance(one, type):
        parts = {each.name: getattr(one, each.name) for each in fields(one) if each.name not in _KEPT}
        return replace(one, **{name: without_upper_limits(part) for name, part in parts.items()})
    if isinstance(one, dict):
        return {key: without_upper_limits(part) for key, part in one.items()}
    if isinstance(one, Between):
        return None  # its upper end is one of the measured concurrency
    if not hasattr(one, "_fields"):
        return one
    opened = {name: without_upper_limits(getattr(one, name)) for name in one._fields}
    return one._replace(**opened | {name: None for name in ("high", "high_s") if name in opened})


def _across(ones: Sequence[Any]) -> Any:
    """The first of several results of one kind; what has limits with those of all."""
    first = ones[0]
    if len(ones) == 1 or any(one is None for one in ones):
        return first
    if is_dataclass(first) and not isinstance(first, type):
        parts = {one.name: [getattr(each, one.name) for each in ones] for one in fields(first) if one.name not in _KEPT}
        return replace(first, **{name: _across(each) for name, each in parts.items()})
    if isinstance(first, dict):
        return {key: _across([one.get(key) for one in ones]) for key, _ in first.items()}
    if not hasattr(first, "_fields"):
        return first
    if isinstance(first, Share):  # without limits it stays: a range of what was assumed is none of what was measured
        parts = {name: [getattr(one, name) for one in ones] for name in first._fields}
        return Share(**{name: each[0] if _unlimited(each[0]) else _across(each) for name, each in parts.items()})
    wider = {name: _across([getattr(one, name) for one in ones]) for name in first._fields}
    for low, high, value in (("low", "high", "value"), ("low_s", "high_s", "")):
        if low in wider:
            wider[low] = _end([_limit(one, low, value) for one in ones], min)
            wider[high] = _end([_limit(one, high, value) for one in ones], max)
    return first._replace(**wider)


def _unlimited(one: Interval | None) -> bool:
    return one is not None and one.low is None and one.high is None


def _limit(one: Any, limit: str, value: str) -> Any:
    """A limit; the value itself where the trials support none at all."""
    own = getattr(one, limit)
    none = value and getattr(one, "low", None) is None and getattr(one, "high", None) is None
    return getattr(one, value) if none else own


def _end(limits: Sequence[Any], furthest: Any) -> Any:
    return None if any(limit is None for limit in limits) else furthest(limits)
