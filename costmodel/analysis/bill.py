"""A side of a decision and its bill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from costmodel.errors import TrainingRunError
from costmodel.pricing.sheet import BILLED_RATES
from costmodel.projection import warnings
from costmodel.projection.row import Row
from costmodel.statistics.intervals import Interval
from costmodel.training.run import TrainingRun
from costmodel.workload.rescaling import Alternatives

if TYPE_CHECKING:
    from costmodel.providers.plausible_ranges import Candidate

USD, WORKER_HOURS = "usd", "worker_hours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A substrate: its row, and the inputs of the row."""

    row: Row
    inputs: Alternatives
    candidate: Candidate | None = None  # unmeasured inputs with their ranges, of an unmeasured substrate

    @property
    def name(self) -> str:
        return self.row.label

    @property
    def training_run(self) -> TrainingRun:
        return self.inputs.training_run


class Bill(NamedTuple):
    """Bill of a side, in dollars where anything has a price, else in worker-hours."""

    whole: Interval
    sandbox: Interval | None  # saving of an ideal sandbox, part of ``whole``; None where the run is not in steps
    gpus: Interval | None  # for the duration of the run; None without a price
    nodes: Interval | None  # likewise
    rest: float  # workers and sandboxes, by the price sheet


def check_prices(start: Alternatives, goal: Alternatives) -> None:
    """Refuse a decision in dollars where sandboxes are free on a single side; nothing is simulated before.

    Raises:
        TrainingRunError: the message says which price to add.
    """
    if any(_bills_sandboxes(side) is None for side in (start, goal)):
        return  # without a price on either side the decision is about worker-hours
    free, billed = sorted((start, goal), key=lambda side: bool(_bills_sandboxes(side)))
    if _bills_sandboxes(free) or not _bills_sandboxes(billed):
        return
    substrate = free.value.identity.substrate
    add = f"nodes, pods_per_node and node_usd_hour under [at.{substrate}.nodes] of --training FILE, or --prices FILE"
    if free.value.provenance == warnings.COMPOSED:
        add = f"a price sheet with --compose {substrate}:prices=FILE"
    names = (side.value.identity.label for side in (free, billed))
    raise TrainingRunError("{} costs nothing here and {} is billed: add {}".format(*names, add))


def _bills_sandboxes(side: Alternatives) -> bool | None:
    """Whether sandboxes, workers or nodes cost more than 0; None: nothing has a price, not even GPUs.

    Raises ``NoPrice``: the sheet lacks the substrate.
    """
    training_run, prices = side.training_run, side.prices
    if training_run.suspended_usd_hour or training_run.node_usd_hour:
        return True
    if prices is not None:
        rates = prices.sandbox(side.value.identity).rates
        return bool(prices.worker_usd_hour) or any(high for rate, (_, high) in rates.items() if rate in BILLED_RATES)
    return None if training_run.gpu_usd_hour is None and training_run.node_usd_hour is None else False


def bill(side: Side, unit: str) -> Bill:
    """Return the bill of a side, in dollars or worker-hours."""
    row, training_run, attribution = side.row, side.training_run, side.row.attribution
    assert row.worker_hours is not None
    if unit == WORKER_HOURS:
        sandbox = row.tax_worker_hours if attribution is None else attribution.sandbox.worker_hours
        return Bill(row.worker_hours if attribution is None else attribution.run.worker_hours, sandbox, None, None, 0.0)
    whole = usd_of(row)
    assert whole is not None
    if attribution is None:
        return Bill(whole, None, None, None, whole.value)
    hours = attribution.run.step_s.times(attribution.steps / 3600)
    gpus, nodes = (
        hours.times(count * usd_hour) if count and usd_hour else None
        for count, usd_hour in (
            (training_run.gpus, training_run.gpu_usd_hour),
            (training_run.nodes, training_run.node_usd_hour),
        )
    )
    rest = whole.value - sum(part.value for part in (gpus, nodes) if part)
    rest = rest if rest > 1e-9 * whole.value else 0.0  # ignore a remainder due to rounding
    return Bill(whole, attribution.sandbox.usd, gpus, nodes, rest)


def usd_of(row: Row) -> Interval | None:
    """Return all priced amounts; None: no price."""
    if row.attribution is not None:
        return row.attribution.run.usd
    if row.cost is None:
        return None
    return row.cost.sandbox_usd.shifted(row.cost.total_usd - row.cost.sandbox_usd.value)
