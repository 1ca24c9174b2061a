"""Substrates as a run finds them, and whether they can do what is asked of them."""

from __future__ import annotations

from typing import NamedTuple

from taxtui.errors import SubstrateUnavailable, UsageError
from taxtui.plan.spec import CellPlan, SubstrateRef
from taxtui.sandboxes.protocol import Availability, Substrate


class Opened(NamedTuple):
    """A substrate whose clients are open and whose preconditions hold."""

    ref: SubstrateRef
    substrate: Substrate
    found: Availability


def latency(found: Availability) -> list[tuple[str, str]]:
    """The round trip to the control plane as a fact, where there is one: it is in every figure that passes it."""
    return [("latency_ns", str(found.latency_ns))] if found.latency_ns else []


def require(cell: CellPlan, substrate: Substrate, found: Availability) -> None:
    """Refuse what the substrate cannot do before anything is created."""
    kind = cell.acquire.partition(":")[0]
    if kind not in substrate.capabilities.acquire:
        can = ", ".join(substrate.capabilities.acquire)
        raise UsageError(f"{cell.substrate} cannot acquire sandboxes by {kind!r}", fix=f"it can: {can}")
    limit = substrate.capabilities.max_concurrency
    if limit is not None and cell.concurrency > limit:
        raise UsageError(f"{cell.substrate} takes at most {limit} sandboxes at once, not {cell.concurrency}")
    if found.tools is not None and (missing := set(cell.tier.requires) - found.tools):
        raise SubstrateUnavailable(
            f"{cell.substrate} lacks {', '.join(sorted(missing))}, which tier {cell.tier.name} needs",
            fix="install it there",
        )
