"""``project``: from recordings and a training run to a row per cell, with providers, attribution and baseline.

``project_per_substrate``: the same where nodes, limits or prices of substrates differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from costmodel.analysis.baseline import matches_spec, with_baseline, with_full_speed
from costmodel.errors import SourceError, TrainingRunError
from costmodel.pricing.sheet import Prices
from costmodel.projection import warnings
from costmodel.projection.measured_row import ENDS, Reference, measured_row
from costmodel.projection.published_rows import quoted
from costmodel.projection.row import Row, Share, TaxBounds
from costmodel.recording.published import Published
from costmodel.recording.reader import Data, Recording, files_of
from costmodel.recording.trial import CellIdentity
from costmodel.training.run import Precision, TrainingRun
from costmodel.workload.pool import Pool, by_levels, nearest_length, pools
from costmodel.workload.rescaling import Alternatives, at_scale

if TYPE_CHECKING:
    from costmodel.providers.provider import Provider

_KEPT: Final = ("identity", "length", "flags", "evidence", "assumptions", "levels", "versus")
"""Fields of a row that are independent of the projected pool."""

CellFilter = Callable[[CellIdentity], bool]
SIMULATED_ROWS = 40
"""Rows with a full simulation budget each; more rows share this budget."""


class SubstrateRun(NamedTuple):
    """Training run for a substrate.

    ``spec``: SUBSTRATE[:key=value]; "": all remaining substrates.
    """

    spec: str
    training_run: TrainingRun
    prices: Prices | None


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
) -> list[Row]:
    """Return a row per cell of all files, in their order.

    Lengths of a cell share a row if ``training_run.actions`` is set. Concurrencies of a cell share a row, unless
    ``each_level``. Each of the ``providers`` adds an estimated row per recorded workload.

    ``reference`` bounds the tax where in-sandbox time is unknown. ``effort`` is the simulation budget per attribution:
    1 is about fifteen seconds, 0 is none. More than 40 rows share the budget of 40. ``wanted`` selects rows.

    A cell without a success has a row of Nones with the flag ``no_success``.

    Raises:
        TrainingRunError: ``baseline`` or ``full_speed`` names no row, or a published row cannot answer an option.
        PriceError: the sheet lacks a price.
        SourceError: nothing was recorded, not one cell has a success, or a run was given twice.
    """

    def needed(identity: CellIdentity) -> bool:
        specs = (training_run.full_speed, training_run.baseline, *(summary.baseline for summary, _ in summaries))
        return (
            wanted is None
            or wanted(identity)
            or any(spec is not None and matches_spec(identity, spec) for spec in specs)
        )

    recordings = files_of(data)
    summaries = [(item, quoted(item, training_run, prices)) for item in recordings if isinstance(item, Published)]
    cells = cells_of(recordings, training_run)
    groups = [
        group for group in ([[item] for item in cells] if each_level else by_levels(cells)) if needed(group[0].identity)
    ]
    precision = training_run.precision.share(min(1.0, SIMULATED_ROWS / max(1, len(groups))))
    shared = replace(training_run, precision=precision)
    alternatives = [item for item in inputs_of(groups, cells, providers, shared, prices) if needed(item.value.identity)]
    rows = rows_of(alternatives, reference, effort, wanted)
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
        which = "no cell has" if wanted is None else "no chosen cell has"
        raise SourceError(f"nothing to project: {which} a successful trial")
    if baseline is not None and rows:
        rows = with_baseline(rows, baseline, required=training_run.baseline is not None, run_sd=training_run.run_sd)
    return [row for row in rows if wanted is None or wanted(row.identity)]


def project_per_substrate(
    recordings: Sequence[Recording | Published],
    places: Sequence[SubstrateRun],
    reference: Reference | None = None,
    providers: Sequence[Provider] = (),
    wanted: CellFilter | None = None,
    effort: float = 1.0,
) -> list[Row]:
    """Project as ``project``, with a training run for each substrate; the last is for the rest and has the baseline.

    Raises:
        TrainingRunError, PriceError, SourceError: as ``project``.
    """
    *separate, common = places
    if not separate:
        return project(
            recordings, common.training_run, common.prices, reference, providers, effort=effort, wanted=wanted
        )
    rows: list[Row] = []
    for place in places:

        def of_place(identity: CellIdentity, place: SubstrateRun = place) -> bool:
            first = next(item for item in places if not item.spec or matches_spec(identity, item.spec))
            return first is place and (wanted is None or wanted(identity))

        matching = [item for item in providers if not place.spec or item.substrate == place.spec.partition(":")[0]]
        sources = recordings if place is common else [item for item in recordings if isinstance(item, Recording)]
        training_run = replace(place.training_run, baseline=None)
        rows += project(sources, training_run, place.prices, reference, matching, effort=effort, wanted=of_place)
    if common.training_run.baseline is None:
        return rows
    return with_baseline(rows, common.training_run.baseline, run_sd=common.training_run.run_sd)


def behind(
    recordings: Sequence[Recording | Published],
    training_run: TrainingRun,
    prices: Prices | None,
    providers: Sequence[Provider],
) -> list[Alternatives]:
    """Return the inputs of the rows of ``project``, in order, without published ones. Raises as ``project``."""
    cells = cells_of(recordings, training_run)
    return inputs_of(by_levels(cells), cells, providers, training_run, prices)


def cells_of(recordings: Sequence[Recording | Published], training_run: TrainingRun) -> list[Pool]:
    """Return the projected cells, each with the recorded length nearest to the training run's."""
    series: dict[object, list[Pool]] = {}
    for pool in pools(recording for recording in recordings if isinstance(recording, Recording)):
        series.setdefault((pool.series, pool.provenance), []).append(pool)
    return [
        pool
        for lengths in series.values()
        for pool in (lengths if training_run.length is None else [nearest_length(lengths, training_run.length)])
    ]


def inputs_of(
    groups: Sequence[Sequence[Pool]],
    cells: Iterable[Pool],
    providers: Sequence[Provider],
    training_run: TrainingRun,
    prices: Prices | None,
) -> list[Alternatives]:
    """Return the inputs of rows: of each group of levels, and of each of the ``providers``."""
    alternatives = [at_scale(levels, training_run, prices) for levels in groups]
    if not providers:
        return alternatives
    from costmodel.providers.estimation import estimated, workloads  # not imported without a provider

    recorded = workloads(cells)
    return alternatives + [
        estimated(pool, provider, training_run, prices) for provider in providers for pool in recorded
    ]


def rows_of(
    alternatives: Sequence[Alternatives],
    reference: Reference | None = None,
    effort: float = 0.0,
    wanted: CellFilter | None = None,
    *,
    causes: bool = True,
) -> list[Row]:
    """Return a row for each, with the range of its unmeasured inputs; further parameters are as for ``project``.

    Without ``causes`` attributions have no separate causes.
    """
    if effort:
        Precision(effort=effort)
    cells = [(alternative, pool) for alternative in alternatives for pool in (alternative.value, *alternative.ends)]
    rows = [measured_row(pool, alternative.training_run, alternative.prices, reference) for alternative, pool in cells]
    if alternatives and (full_speed := alternatives[0].training_run.full_speed) is not None:
        rows = with_full_speed(rows, full_speed)
    if alternatives and alternatives[0].training_run.step_rollouts is not None:
        from costmodel.attribution.row import attributed

        for place, (alternative, pool) in enumerate(cells):
            if (effort or alternative.training_run.step_model) and (
                wanted is None or wanted(alternative.value.identity)
            ):
                share = effort * (1.0 if pool is alternative.value else ENDS)
                rows[place] = attributed(rows[place], alternative._replace(value=pool), share, causes=causes)
    remaining = iter(rows)
    return [
        widen(alternative, next(remaining), list(islice(remaining, len(alternative.ends))))
        for alternative in alternatives
    ]


def widen(alternatives: Alternatives, row: Row, ends: Sequence[Row]) -> Row:
    """Return the row of the assumed values with the outer limits of all, or without upper limits."""
    for flag in alternatives.flags:
        row = row.flagged(flag)
    row = replace(row, assumptions=alternatives.assumptions, levels=alternatives.levels)
    if not ends and not alternatives.at_least:
        return row
    results, names = [row, *ends], [field.name for field in fields(Row) if field.name not in _KEPT]
    merged = {name: _merged([getattr(end, name) for end in results], alternatives.at_least) for name in names}
    return replace(row, **merged)


def _merged(results: Sequence[Any], at_least: bool) -> Any:
    """Return the first of several results of the same type with the outer limits of all, or without upper limits."""
    first = results[0]
    if any(result is None for result in results):
        return first
    if at_least and isinstance(first, TaxBounds):
        return None  # the upper end belongs to the measured concurrency
    if isinstance(first, dict):
        return {key: _merged([result.get(key) for result in results], at_least) for key in first}
    if not hasattr(first, "_fields"):
        return first
    parts = {name: _merged([getattr(result, name) for result in results], at_least) for name in first._fields}
    if isinstance(first, Share) and not at_least:  # an assumed range gives no limits where the trials give none
        parts |= {name: part for name, part in first._asdict().items() if part is not None and part[1:] == (None, None)}
    for low, high, value in (("low", "high", "value"), ("low_s", "high_s", "")):
        if low in parts and at_least:
            parts[high] = None
        elif low in parts:
            for limit, furthest in ((low, min), (high, max)):
                limits = [_limit(result, limit, value) for result in results]
                parts[limit] = None if None in limits else furthest(limits)
    return first._replace(**parts)


def _limit(result: Any, limit: str, value: str) -> Any:
    """Return a limit, or the value itself where the trials support no limit."""
    none = value and getattr(result, "low", None) is None and getattr(result, "high", None) is None
    return getattr(result, value if none else limit)
