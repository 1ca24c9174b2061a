"""Rows of substrates with a training run each, because nodes, limits or prices differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from costmodel.analysis.baseline import matches_spec, with_baseline
from costmodel.analysis.project import CellFilter, behind, cells_of, project
from costmodel.pricing.sheet import Prices
from costmodel.projection.row import Row
from costmodel.projection.tax_bounds import Reference
from costmodel.recording.published import Published
from costmodel.recording.reader import Recording
from costmodel.recording.trial import CellIdentity
from costmodel.training.run import TrainingRun

if TYPE_CHECKING:
    from costmodel.attribution.paired_comparison import RunInSteps
    from costmodel.providers.plausible_ranges import Candidate
    from costmodel.providers.provider import Provider


class SubstrateRun(NamedTuple):
    """Training run for a substrate.

    ``spec``: SUBSTRATE[:key=value]; "": all remaining substrates.
    """

    spec: str
    training_run: TrainingRun
    prices: Prices | None


def project_per_substrate(
    recordings: Sequence[Recording | Published],
    places: Sequence[SubstrateRun],
    reference: Reference | None = None,
    providers: Sequence[Provider] = (),
    wanted: CellFilter | None = None,
    *,
    stressed: bool = True,
    effort: float = 1.0,
) -> list[Row]:
    """Project as ``project``, with a training run for each substrate; the last is for the rest and has the baseline.

    Raises:
        TrainingRunError, PriceError, SourceError: as ``project``.
    """
    *separate, common = places
    rows_of = partial(project, stressed=stressed, effort=effort)
    if not separate:
        return rows_of(recordings, common.training_run, common.prices, reference, providers, wanted=wanted)
    rows: list[Row] = []
    for number, place in enumerate(places):
        earlier = [item.spec for item in places[:number]]

        def of_substrate(identity: CellIdentity, spec: str = place.spec, earlier: list[str] = earlier) -> bool:
            mine = (not spec or matches_spec(identity, spec)) and not any(
                matches_spec(identity, item) for item in earlier
            )
            return mine and (wanted is None or wanted(identity))

        matching_providers = [
            item for item in providers if not place.spec or item.substrate == place.spec.partition(":")[0]
        ]
        sources = recordings if place is common else [item for item in recordings if isinstance(item, Recording)]
        training_run = replace(place.training_run, baseline=None)
        rows += rows_of(sources, training_run, place.prices, reference, matching_providers, wanted=of_substrate)
    if common.training_run.baseline is None:
        return rows
    return with_baseline(rows, common.training_run.baseline, run_sd=common.training_run.run_sd)


def runs_of(recordings: Sequence[Recording | Published], place: SubstrateRun, row: Row) -> tuple[RunInSteps, ...]:
    """Return inputs of a simulation of a measured row's run: as measured, then at the ends of an unmeasured
    concurrency.

    Empty where the run is not in steps, or the row has no trials.
    """
    if place.training_run.step_rollouts is None:
        return ()
    from costmodel.attribution.paired_comparison import RunInSteps  # not imported for a run without steps

    for alternatives in behind(recordings, place.training_run, place.prices, ()):
        if (alternatives.value.identity, alternatives.value.provenance) == (row.identity, row.provenance):
            return tuple(
                RunInSteps(pool, alternatives.training_run, alternatives.prices)
                for pool in (alternatives.value, *alternatives.ends)
            )
    return ()


def candidates_of(
    recordings: Sequence[Recording | Published],
    place: SubstrateRun,
    provider: Provider,
    wanted: CellFilter,
    *,
    stated: frozenset[str] = frozenset(),
    images_gb: Sequence[float] = (),
    like: CellIdentity | None = None,
) -> list[Candidate]:
    """Return the recorded workloads at an unmeasured provider.

    ``wanted`` selects recorded cells. ``like``: cell with preferred trials. ``stated`` and ``images_gb`` are as
    for ``Candidate.of``.
    """
    from costmodel.providers.estimation import workloads
    from costmodel.providers.plausible_ranges import Candidate

    cells = [pool for pool in cells_of(recordings, place.training_run) if wanted(pool.identity)]
    same = [pool for pool in cells if pool.identity == like and pool.succeeded]
    return [
        Candidate.of(pool, provider, place.training_run, place.prices, stated, images_gb)
        for pool in (same or (workloads(cells) if cells else []))
    ]
