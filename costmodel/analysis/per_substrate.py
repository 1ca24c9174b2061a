"""Rows of places that are each asked their own: this one has nodes, that one limits and prices."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from costmodel.analysis.baseline import meant, with_baseline
from costmodel.analysis.project import Wanted, behind, project
from costmodel.pricing.sheet import Prices
from costmodel.projection.row import Projection
from costmodel.projection.tax_bounds import Reference
from costmodel.recording.published import Published
from costmodel.recording.reader import CellIdentity, Recording
from costmodel.training.run import Demand

if TYPE_CHECKING:
    from costmodel.attribution.paired_comparison import RunInSteps
    from costmodel.providers.provider import Provider


class PlaceAsked(NamedTuple):
    """What one place is asked: ``SUBSTRATE[:key=value]``, "" for all that no other means."""

    spec: str
    demand: Demand
    prices: Prices | None


def project_places(
    recordings: Sequence[Recording | Published],
    places: Sequence[PlaceAsked],
    reference: Reference | None = None,
    providers: Sequence[Provider] = (),
    wanted: Wanted | None = None,
    *,
    stressed: bool = True,
) -> list[Projection]:
    """As ``project``, with a demand for each place; the last one is for all others, and has the baseline.

    Raises:
        DemandError, PriceError, SourceError: as ``project``.
    """
    *own, common = places
    if not own:
        return project(recordings, common.demand, common.prices, reference, providers, wanted=wanted, stressed=stressed)
    rows: list[Projection] = []
    for number, place in enumerate(places):
        earlier = [one.spec for one in places[:number]]

        def here(identity: CellIdentity, spec: str = place.spec, earlier: list[str] = earlier) -> bool:
            mine = (not spec or meant(identity, spec)) and not any(meant(identity, one) for one in earlier)
            return mine and (wanted is None or wanted(identity))

        known = [one for one in providers if not place.spec or one.substrate == place.spec.partition(":")[0]]
        sources = recordings if place is common else [one for one in recordings if isinstance(one, Recording)]
        demand = replace(place.demand, baseline=None)
        rows += project(sources, demand, place.prices, reference, known, wanted=here, stressed=stressed)
    if common.demand.baseline is None:
        return rows
    return with_baseline(rows, common.demand.baseline, run_sd=common.demand.run_sd)


def runs_of(
    recordings: Sequence[Recording | Published], place: PlaceAsked, row: Projection, providers: Sequence[Provider] = ()
) -> tuple[RunInSteps, ...]:
    """What simulates a row's run beside that of another place: as it is, then at the ends of what was not measured.

    None where the run is not in steps, or the row has no trials.
    """
    if place.demand.step_rollouts is None:
        return ()
    from costmodel.attribution.paired_comparison import RunInSteps  # who asks for no steps does not wait for it

    for one in behind(recordings, place.demand, place.prices, providers):
        if (one.value.identity, one.value.provenance) == (row.identity, row.provenance):
            return tuple(RunInSteps(pool, one.demand, one.prices) for pool in (one.value, *one.ends))
    return ()


def only(recording: Recording, wanted: Wanted) -> Recording:
    """The recording without the cells that are not wanted, nor differ from a wanted one in length or concurrency only.

    What a row says also depends on those: lengths are predicted from each other, contention is told from the same cell
    alone.
    """
    families = {_family(cell.identity) for cell in recording.cells if wanted(cell.identity)}
    part = copy.copy(recording)
    part.cells = [cell for cell in recording.cells if _family(cell.identity) in families]
    return part


def _family(identity: CellIdentity) -> CellIdentity:
    return identity._replace(actions=0, length="", concurrency=1, arrival="")
