"""Opens, checks and prepares the substrates of a run."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from costmodel import events
from taxtui import shipped
from taxtui.errors import SubstrateError, SubstrateUnavailable, UsageError
from taxtui.plan.spec import CellPlan, Operation, Plan
from taxtui.runner import identity
from taxtui.runner.journal import Journal
from taxtui.runner.redaction import hide_names_of, redact
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.kept_output import KEPT_BYTES
from taxtui.sandboxes.protocol import Availability, ChecksAcquire, Prepares, Substrate
from taxtui.sandboxes.registry import blamed, build

CLOSING_S: Final = 120.0
"""Time for a substrate to close its clients."""
OWN_DESCRIPTORS: Final = 16
"""Descriptors of a measuring process: standard streams, event loop, recording, watchdog, modules being read."""
DESCRIPTORS_PER_TRIAL: Final = 2
"""Fewest descriptors of a command on this machine: one for each output stream."""


class Opened(NamedTuple):
    """A substrate with open clients, after all checks."""

    substrate: Substrate
    availability: Availability


async def open_all(plan: Plan, stack: contextlib.AsyncExitStack) -> dict[str, Opened]:
    """Open the substrates of a plan until the stack ends, and check their preconditions; by their text.

    From now on this task keeps as much output as the plan says, and the process hides the plan's names in messages.

    Raises:
        SubstrateUnavailable, UsageError: a substrate or this process cannot run the plan.
    """
    KEPT_BYTES.set(plan.limits.output_mib << 20)
    hide_names_of(plan)
    require_descriptors(plan)
    opened: dict[str, Opened] = {}
    for cell in plan.cells:
        key = str(cell.substrate)
        if key not in opened:
            with blamed(key):
                substrate = await stack.enter_async_context(_closed_in_time(build(cell.substrate)))
                availability = await substrate.check()
            if not availability.ok:
                raise SubstrateUnavailable(f"{key}: {availability.detail}", fix=availability.fix)
            opened[key] = Opened(substrate, availability)
        substrate = opened[key].substrate
        require(cell, substrate, opened[key].availability, plan.lifecycle)
        if isinstance(substrate, ChecksAcquire):
            with blamed(key):
                await substrate.check_acquire(cell.acquire, plan.limits)
    return opened


def describe_cells(plan: Plan, opened: Mapping[str, Opened]) -> list[events.Cell]:
    """Return the cells of a plan for a recording."""
    environment = identity.environment(identity.client_facts())
    places = [opened[str(cell.substrate)] for cell in plan.cells]
    return [
        identity.describe_cell(number, cell, plan, place.substrate, place.availability, environment)
        for number, (cell, place) in enumerate(zip(plan.cells, places, strict=True))
    ]


async def prepare(plan: Plan, run_id: str, opened: Iterable[Opened], journal: Journal) -> None:
    """Prepare each substrate before the first trial, for all sandboxes of the run.

    A failure is a notice: the first ``create`` tries again, and the trial records the error.
    """
    for substrate, _ in opened:
        if isinstance(substrate, Prepares):
            try:
                async with asyncio.timeout(plan.create_timeout_s):
                    await substrate.prepare(run_id, plan.limits)
            except (SubstrateError, TimeoutError) as error:
                text = f"{substrate.name}: not prepared: {' '.join(redact(error))}; the first create includes it"
                journal.emit(events.Notice(journal.now(), "warning", text))


def require_descriptors(plan: Plan) -> None:
    """Refuse a plan with too many open files for this process. Raises ``UsageError``."""
    here = [cell for cell in plan.cells if shipped.row_of(cell.substrate.name).here]  # an SDK may share connections
    concurrency = max((-(-cell.concurrency // plan.workers) for cell in here), default=0)
    needed = OWN_DESCRIPTORS + DESCRIPTORS_PER_TRIAL * concurrency
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < needed:
        raise UsageError(
            f"the limit of {limit:,} open files is too low: concurrency {concurrency:,} needs {needed:,}",
            fix=f"ulimit -n {needed}, or a lower --concurrency",
        )


@contextlib.asynccontextmanager
async def _closed_in_time(substrate: Substrate) -> AsyncIterator[Substrate]:
    entered = await substrate.__aenter__()
    try:
        yield entered
    finally:
        with contextlib.suppress(Exception):
            await finish_despite_cancel(substrate.__aexit__(None, None, None), CLOSING_S)


def facts(opened: Iterable[Opened]) -> dict[str, str]:
    """Return the facts of substrates, under name and variant only: options may name accounts and endpoints."""
    return {
        f"{':'.join(filter(None, [substrate.name, substrate.variant]))}.{fact}": value
        for substrate, availability in opened
        for fact, value in [*availability.facts.items(), ("latency_ns", str(availability.latency_ns))]
        if fact != "latency_ns" or availability.latency_ns
    }


def require(
    cell: CellPlan, substrate: Substrate, availability: Availability, operations: Sequence[Operation] = ()
) -> None:
    """Refuse a cell beyond the substrate's capabilities. Raises ``UsageError`` or ``SubstrateUnavailable``."""
    kind = cell.acquire.partition(":")[0]
    if kind not in substrate.capabilities.acquire:
        can = ", ".join(substrate.capabilities.acquire)
        raise UsageError(f"{cell.substrate} cannot acquire sandboxes by {kind!r}", fix=f"it can: {can}")
    if cell.mode not in substrate.capabilities.modes:
        can = ", ".join(substrate.capabilities.modes)
        raise UsageError(f"{cell.substrate} has no {cell.mode} mode", fix=f"it has: {can}")
    if absent := [operation for operation in operations if operation not in substrate.capabilities.lifecycle]:
        can = ", ".join(substrate.capabilities.lifecycle) or "none of them"
        raise UsageError(f"{cell.substrate} has no {absent[0]}", fix=f"leave it out of lifecycle; it has: {can}")
    limit = substrate.capabilities.max_concurrency
    if limit is not None and cell.concurrency > limit:
        raise UsageError(f"{cell.substrate} takes at most {limit} sandboxes at once, not {cell.concurrency}")
    if availability.tools is not None and (missing := set(cell.tier.requires) - availability.tools):
        raise SubstrateUnavailable(
            f"{cell.substrate} lacks {', '.join(sorted(missing))}, which tier {cell.tier.name} needs",
            fix="install it there",
        )
