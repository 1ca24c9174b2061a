"""One's own work at a provider that nobody measured: published starts, limits and prices around recorded commands.

::

    from costmodel import Demand, read
    from costmodel.analysis.estimated_row import compose, works
    from costmodel.providers.provider import load_provider
    from costmodel.workload.pool import pools

    e2b, demand = load_provider("e2b"), Demand(trajectories=10**6, workers=100)
    rows = [compose(pool, e2b, demand) for pool in works(pools([read("run.msgpack")]))]
    rows[0].worker_hours, rows[0].cost, rows[0].assumptions

``project(…, providers=[e2b])`` makes the same rows beside the measured ones.
"""

from __future__ import annotations

from costmodel.analysis.project import rows_of
from costmodel.pricing.sheet import Prices
from costmodel.projection.row import Projection
from costmodel.providers.estimation import elsewhere
from costmodel.providers.estimation import works as works
from costmodel.providers.provider import Provider
from costmodel.training.run import Demand
from costmodel.workload.pool import Pool


def compose(pool: Pool, provider: Provider, demand: Demand, prices: Prices | None = None) -> Projection:
    """The row of a recorded pool's work at a provider's; ``prices`` come before the provider's own.

    Raises:
        DemandError: the demand asks for what nobody published.
        PriceError: what is sold there is not as large.
    """
    [row] = rows_of([elsewhere(pool, provider, demand, prices)])
    return row
