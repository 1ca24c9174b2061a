"""Rows of places that are each asked their own: this one has nodes, that one limits and prices."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from costmodel.bounds import Reference
from costmodel.comparison import meant, with_baseline
from costmodel.demand import Demand
from costmodel.pricing import Prices
from costmodel.projection import project
from costmodel.published import Published
from costmodel.recording import CellIdentity, Recording
from costmodel.results import Projection
from costmodel.samples import Pool, pools

Wanted = Callable[[CellIdentity], bool]


class Asked(NamedTuple):
    """What one place is asked: ``SUBSTRATE[:key=value]``, "" for all that no other means."""

    spec: str
    demand: Demand
    prices: Prices | None


def project_places(
    recordings: Sequence[Recording | Published],
    places: Sequence[Asked],
    reference: Reference | None = None,
    effort: float = 1.0,
) -> list[Projection]:
    """As ``project``, with a demand for each place; the last one is for all others, and has the baseline.

    Raises:
        DemandError, PriceError, SourceError: as ``project``.
    """
    *own, common = places
    if not own:
        return project(recordings, common.demand, common.prices, reference, effort)
    rows: list[Projection] = []
    taken: list[str] = []
    for place in places:
        earlier = tuple(taken)

        def wanted(identity: CellIdentity, spec: str = place.spec, earlier: tuple[str, ...] = earlier) -> bool:
            return (not spec or meant(identity, spec)) and not any(meant(identity, one) for one in earlier)

        rows += rows_at(recordings, place, wanted, reference, effort)
        taken.append(place.spec)
    published = [one for one in recordings if isinstance(one, Published)]
    rows += project(published, replace(common.demand, baseline=None), common.prices) if published else []
    cells = [cell.identity for one in recordings if isinstance(one, Recording) for cell in one.cells]
    order = {identity: number for number, identity in reversed(list(enumerate(cells)))}
    rows.sort(key=lambda row: order.get(row.identity, len(order)))
    if common.demand.baseline is None:
        return rows
    return with_baseline(rows, common.demand.baseline, run_sd=common.demand.run_sd)


def rows_at(
    recordings: Sequence[Recording | Published],
    place: Asked,
    wanted: Wanted,
    reference: Reference | None = None,
    effort: float = 1.0,
) -> list[Projection]:
    """The rows of these cells, without a baseline; none where nothing was recorded of them."""
    full_speed = place.demand.full_speed

    def needed(identity: CellIdentity) -> bool:
        return wanted(identity) or (full_speed is not None and meant(identity, full_speed))

    parts = [only(one, needed) for one in recordings if isinstance(one, Recording)]
    if not any(wanted(cell.identity) for part in parts for cell in part.cells):
        return []
    rows = project(parts, replace(place.demand, baseline=None), place.prices, reference, effort)
    return [row for row in rows if wanted(row.identity)]


def pool_of(recordings: Sequence[Recording | Published], row: Projection) -> Pool | None:
    """The trials behind a row; None where it has none."""
    found = pools(one for one in recordings if isinstance(one, Recording))
    return next((pool for pool in found if (pool.identity, pool.provenance) == (row.identity, row.provenance)), None)


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
