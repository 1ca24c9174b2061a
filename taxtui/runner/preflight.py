"""Substrates as a run finds them, and whether they can do what is asked of them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Final, NamedTuple

from costmodel.recording.events import Cell
from taxtui.errors import SubstrateUnavailable, UsageError
from taxtui.plan.spec import CellPlan, Plan, SubstrateRef
from taxtui.runner import identity
from taxtui.runner.cell import describe_cell
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.protocol import Availability, ChecksAcquire, Substrate
from taxtui.sandboxes.registry import blamed, build

CLOSING_S: Final = 120.0
"""How long a substrate may take to let go of its clients."""


class Opened(NamedTuple):
    """A substrate whose clients are open and whose preconditions hold."""

    ref: SubstrateRef
    substrate: Substrate
    found: Availability


async def open_all(plan: Plan, stack: contextlib.AsyncExitStack) -> dict[str, Opened]:
    """Every substrate of a plan, by its text: its clients open until the stack ends, its preconditions met.

    Raises:
        SubstrateUnavailable, UsageError: one of them cannot be used, or not for what is asked.
    """
    opened: dict[str, Opened] = {}
    for cell in plan.cells:
        key = str(cell.substrate)
        if key not in opened:
            with blamed(key):
                substrate = await stack.enter_async_context(_closed_in_time(build(cell.substrate)))
                found = await substrate.check()
            if not found.ok:
                raise SubstrateUnavailable(f"{key}: {found.detail}", fix=found.fix)
            opened[key] = Opened(cell.substrate, substrate, found)
        substrate = opened[key].substrate
        require(cell, substrate, opened[key].found)
        if isinstance(substrate, ChecksAcquire):
            with blamed(key):
                await substrate.check_acquire(cell.acquire, plan.limits)
    return opened


def describe_cells(plan: Plan, opened: Mapping[str, Opened]) -> list[Cell]:
    """The cells of a plan as they would be recorded now."""
    environment = identity.environment(identity.client_facts())
    where = [opened[str(cell.substrate)] for cell in plan.cells]
    return [
        describe_cell(number, cell, plan, found.substrate, found.found, environment)
        for number, (cell, found) in enumerate(zip(plan.cells, where, strict=True))
    ]


@contextlib.asynccontextmanager
async def _closed_in_time(substrate: Substrate) -> AsyncIterator[Substrate]:
    """A substrate's clients, which may not hold the end of a run: by then everything has been swept."""
    entered = await substrate.__aenter__()
    try:
        yield entered
    finally:
        with contextlib.suppress(Exception):
            await finish_despite_cancel(substrate.__aexit__(None, None, None), CLOSING_S)


def facts(opened: Iterable[Opened]) -> dict[str, str]:
    """What is known of substrates, under name and variant only: options may name accounts, endpoints and folders."""
    return {
        f"{':'.join(filter(None, [substrate.name, substrate.variant]))}.{fact}": value
        for _, substrate, found in opened
        for fact, value in [*found.facts.items(), *latency(found)]
    }


def latency(found: Availability) -> list[tuple[str, str]]:
    """The round trip to the control plane as a fact, where there is one: it is in every figure that passes it."""
    return [("latency_ns", str(found.latency_ns))] if found.latency_ns else []


def require(cell: CellPlan, substrate: Substrate, found: Availability) -> None:
    """Refuse what the substrate cannot do before anything is created."""
    kind = cell.acquire.partition(":")[0]
    if kind not in substrate.capabilities.acquire:
        can = ", ".join(substrate.capabilities.acquire)
        raise UsageError(f"{cell.substrate} cannot acquire sandboxes by {kind!r}", fix=f"it can: {can}")
    if cell.mode not in substrate.capabilities.modes:
        can = ", ".join(substrate.capabilities.modes)
        raise UsageError(f"{cell.substrate} has no {cell.mode} mode", fix=f"it has: {can}")
    limit = substrate.capabilities.max_concurrency
    if limit is not None and cell.concurrency > limit:
        raise UsageError(f"{cell.substrate} takes at most {limit} sandboxes at once, not {cell.concurrency}")
    if found.tools is not None and (missing := set(cell.tier.requires) - found.tools):
        raise SubstrateUnavailable(
            f"{cell.substrate} lacks {', '.join(sorted(missing))}, which tier {cell.tier.name} needs",
            fix="install it there",
        )
