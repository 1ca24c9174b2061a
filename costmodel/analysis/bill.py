"""A side of a decision and its bill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from costmodel.errors import TrainingRunError
from costmodel.projection import warnings
from costmodel.projection.row import Row
from costmodel.statistics.intervals import Interval
from costmodel.training.run import TrainingRun

if TYPE_CHECKING:
    from costmodel.attribution.paired_comparison import RunInSteps
    from costmodel.providers.plausible_ranges import Candidate

USD, WORKER_HOURS = UNITS = ("usd", "worker_hours")

Rerun = Callable[[TrainingRun], Row]
"""Function from a training run to the row of a side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A substrate: its row, its training run, and how to compute both again."""

    name: str
    row: Row
    training_run: TrainingRun
    rerun: Rerun
    runs: tuple[RunInSteps, ...] = ()  # of a run in steps: as measured, then at both ends of an unmeasured concurrency
    candidate: Candidate | None = None  # unmeasured inputs with their ranges, of an unmeasured substrate

    def at(self, training_run: TrainingRun, *, with_row: bool) -> Side:
        """Return the side with a changed training run; ``with_row``: with a new row, which takes longer."""
        runs = tuple(run._replace(training_run=training_run) for run in self.runs[:1])
        return replace(
            self, training_run=training_run, row=self.rerun(training_run) if with_row else self.row, runs=runs
        )

    def runs_at(self, values: Mapping[str, float]) -> tuple[RunInSteps, ...]:
        """Return the inputs of the simulation at these values of the unmeasured inputs."""
        if not self.runs or self.candidate is None or not values:
            return self.runs
        estimate = self.candidate.at(values)
        return (self.runs[0]._replace(pool=estimate.value, training_run=estimate.training_run, prices=estimate.prices),)

    def row_at(self, values: Mapping[str, float]) -> Side:
        """Return the side with its row at these values of the unmeasured inputs, for a run without steps."""
        if self.candidate is None:
            return self
        from costmodel.analysis.project import rows_of

        estimate = self.candidate.at(values)
        [row] = rows_of([estimate])
        return replace(self, row=row, training_run=estimate.training_run)


class Bill(NamedTuple):
    """Bill of a side, in dollars where anything has a price, else in worker-hours."""

    whole: Interval
    sandbox: Interval | None  # saving of an ideal sandbox, part of ``whole``; None where the run is not in steps
    gpus: Interval | None  # for the duration of the run; None without a price
    nodes: Interval | None  # likewise
    rest: float  # workers and sandboxes, by the price sheet


def price_keys(substrate: str) -> str:
    """Return the keys of a training file that give a measured substrate a price."""
    return f"nodes, pods_per_node and node_usd_hour under [at.{substrate}.nodes] of --training FILE, or --prices FILE"


def check_prices(start: Side, goal: Side, bills: tuple[Bill, Bill], unit: str) -> None:
    """Refuse a decision where sandboxes are free on a single side.

    Raises:
        TrainingRunError: the message says which price to add.
    """
    free = [side for side, side_bill in zip((start, goal), bills, strict=True) if is_free(side_bill, unit)]
    if len(free) != 1:
        return
    [side] = free
    billed, substrate = goal if side is start else start, side.row.identity.substrate
    add = f"a price sheet with --compose {substrate}:prices=FILE"
    if side.row.provenance != warnings.COMPOSED:
        add = price_keys(substrate)
    raise TrainingRunError(f"{side.name} costs nothing here and {billed.name} is billed: add {add}")


def is_free(side_bill: Bill, unit: str) -> bool:
    """Whether sandboxes cost nothing there."""
    return unit == USD and not side_bill.nodes and not side_bill.rest


def bill(side: Side, unit: str) -> Bill:
    """Return the bill of a side, in dollars or worker-hours."""
    row, training_run, attribution = side.row, side.training_run, side.row.attribution
    assert row.worker_hours is not None
    if unit == WORKER_HOURS:
        sandbox = row.tax_worker_hours if attribution is None else attribution.sandbox.worker_hours
        return Bill(row.worker_hours if attribution is None else attribution.run.worker_hours, sandbox, None, None, 0.0)
    whole = usd_of(side)
    assert whole is not None
    if attribution is None:
        return Bill(whole, None, None, None, whole.value)
    hours = attribution.run.step_s.times(attribution.steps / 3600)
    gpus = (
        hours.times(training_run.gpus * training_run.gpu_usd_hour)
        if training_run.gpus and training_run.gpu_usd_hour
        else None
    )
    nodes = (
        hours.times(training_run.nodes * training_run.node_usd_hour)
        if training_run.nodes and training_run.node_usd_hour
        else None
    )
    rest = whole.value - sum(part.value for part in (gpus, nodes) if part)
    rest = rest if rest > 1e-9 * whole.value else 0.0  # ignore a remainder due to rounding
    return Bill(whole, attribution.sandbox.usd, gpus, nodes, rest)


def usd_of(side: Side) -> Interval | None:
    """Return all priced amounts; None: no price."""
    row = side.row
    if row.attribution is not None:
        return row.attribution.run.usd
    if row.cost is None:
        return None
    return row.cost.sandbox_usd.shifted(row.cost.total_usd - row.cost.sandbox_usd.value)
