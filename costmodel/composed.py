"""One's own work at a provider that nobody measured: published starts, limits and prices around recorded commands.

::

    from costmodel import Demand, read
    from costmodel.composed import compose, works
    from costmodel.providers import load_provider
    from costmodel.samples import pools

    e2b, demand = load_provider("e2b"), Demand(trajectories=10**6, workers=100)
    rows = [compose(pool, e2b, demand) for pool in works(pools([read("run.msgpack")]))]
    rows[0].worker_hours, rows[0].cost, rows[0].assumptions

``project(…, providers=[e2b])`` makes the same rows beside the measured ones.
"""

from __future__ import annotations

from costmodel.demand import Demand
from costmodel.elsewhere import elsewhere
from costmodel.elsewhere import works as works
from costmodel.pricing import Prices
from costmodel.projection import rows_of
from costmodel.providers import Provider
from costmodel.results import Projection
from costmodel.samples import Pool


def compose(pool: Pool, provider: Provider, demand: Demand, prices: Prices | None = None) -> Projection:
    """The row of a recorded pool's work at a provider's; ``prices`` come before the provider's own.

    Raises:
        DemandError: the demand asks for what nobody published.
        PriceError: what is sold there is not as large.
    """
    [row] = rows_of([elsewhere(pool, provider, demand, prices)])
    return row
