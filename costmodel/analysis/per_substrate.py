"""Rows of substrates with a training run each, because nodes, limits or prices differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from costmodel.analysis.baseline import matches_spec, with_baseline
from costmodel.analysis.project import CellFilter, project
from costmodel.pricing.sheet import Prices
from costmodel.projection.row import Row
from costmodel.projection.tax_bounds import Reference
from costmodel.recording.published import Published
from costmodel.recording.reader import Recording
from costmodel.recording.trial import CellIdentity
from costmodel.training.run import TrainingRun

if TYPE_CHECKING:
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
    effort: float = 1.0,
) -> list[Row]:
    """Project as ``project``, with a training run for each substrate; the last is for the rest and has the baseline.

    Raises:
        TrainingRunError, PriceError, SourceError: as ``project``.
    """
    *separate, common = places
    rows_of = partial(project, effort=effort)
    if not separate:
        return rows_of(recordings, common.training_run, common.prices, reference, providers, wanted=wanted)
    rows: list[Row] = []
    for place in places:

        def of_place(identity: CellIdentity, place: SubstrateRun = place) -> bool:
            first = next(item for item in places if not item.spec or matches_spec(identity, item.spec))
            return first is place and (wanted is None or wanted(identity))

        matching = [item for item in providers if not place.spec or item.substrate == place.spec.partition(":")[0]]
        sources = recordings if place is common else [item for item in recordings if isinstance(item, Recording)]
        training_run = replace(place.training_run, baseline=None)
        rows += rows_of(sources, training_run, place.prices, reference, matching, wanted=of_place)
    if common.training_run.baseline is None:
        return rows
    return with_baseline(rows, common.training_run.baseline, run_sd=common.training_run.run_sd)
