"""How often a trajectory finds a sandbox ready, and what the ready ones cost while they wait."""

from __future__ import annotations

from typing import NamedTuple

from costmodel.demand import Demand


class PoolUse(NamedTuple):
    """A warm pool at work."""

    hit: float  # share of trajectories that find a sandbox ready
    idle_sandboxes: float  # that wait, on average
    rule: str  # how ``hit`` was found


def pool_use(demand: Demand, workers: int, warm_ns: float, cold_extra_ns: float) -> PoolUse:
    """The pool's hit ratio when every worker takes the next trajectory as soon as it can.

    ``warm_ns`` is a trajectory's mean when it hits, ``cold_extra_ns`` what a miss adds; ``demand.warm_pool`` is set.
    """
    size = demand.warm_pool
    assert size is not None
    if demand.group_size is not None:
        groups = max(1.0, workers / demand.group_size)  # in flight; the next image of each is being kept ready
        return PoolUse(min(1.0, size / demand.group_size), size * groups, "P/G: a group starts at once")
    if demand.refill_rate is not None:
        hit = rate_limited_hit(demand.refill_rate, workers, warm_ns, cold_extra_ns)
        return PoolUse(hit, float(size) if hit == 1 else 0.0, "r·μ_cold / (W + r·c)")
    assert demand.refill_s is not None
    refill_ns = demand.refill_s * 1e9
    hit = refilled_hit(size, refill_ns, workers, warm_ns, cold_extra_ns)
    arrivals = workers / max(1.0, warm_ns + (1 - hit) * cold_extra_ns)
    return PoolUse(hit, max(0.0, size - arrivals * refill_ns * hit), "1 − ErlangB(P, λ·T)")


def erlang_b(servers: int, load: float) -> float:
    """The share of arrivals that find all ``servers`` busy at ``load`` erlangs (Erlang 1917)."""
    if load <= 0:
        return 0.0 if servers else 1.0
    inverse = 1.0
    for server in range(1, servers + 1):
        inverse = 1 + server / load * inverse
        if inverse > 1e300:
            return 0.0
    return 1 / inverse


def refilled_hit(size: int, refill_ns: float, workers: int, warm_ns: float, cold_extra_ns: float) -> float:
    """1 − ErlangB(P, λ·T): a slot taken is a server busy for T; λ depends on the hit ratio, hence the fixed point."""
    low, high = 0.0, 1.0
    for _ in range(40):  # more hits, more demand, fewer hits: the map falls, so bisection finds its one fixed point
        hit = (low + high) / 2
        arrivals = workers / max(1.0, warm_ns + (1 - hit) * cold_extra_ns)
        if 1 - erlang_b(size, arrivals * refill_ns) > hit:
            low = hit
        else:
            high = hit
    return (low + high) / 2


def rate_limited_hit(rate: float, workers: int, warm_ns: float, cold_extra_ns: float) -> float:
    """min(1, r·μ_cold / (W + r·c)) for a pool that is made ready at ``rate`` per second."""
    rate_ns = rate / 1e9
    return min(1.0, rate_ns * (warm_ns + cold_extra_ns) / (workers + rate_ns * cold_extra_ns))
