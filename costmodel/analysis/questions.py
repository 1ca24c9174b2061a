"""Questions with a function each: the cost of a substrate's sandbox, and a move to another substrate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from costmodel.analysis.baseline import matches_spec
from costmodel.analysis.decision import Decision, Side, check_prices, decide_between
from costmodel.analysis.project import CellFilter, SubstrateRun, cells_of, inputs_of, rows_of
from costmodel.errors import SourceError, TrainingRunError
from costmodel.pricing.sheet import Prices
from costmodel.projection.row import Attribution
from costmodel.providers.plausible_ranges import Candidate
from costmodel.providers.provider import Provider, known_providers, load_provider
from costmodel.recording.reader import Data, Recording, files_of
from costmodel.recording.trial import CellIdentity
from costmodel.training.run import Precision, TrainingRun
from costmodel.workload.pool import Pool, by_levels
from costmodel.workload.rescaling import Alternatives


def attribute(
    data: Data,
    training_run: TrainingRun,
    substrate: str,
    *,
    tier: str | None = None,
    mode: str | None = None,
    prices: Prices | None = None,
    effort: float = 1.0,
) -> Attribution:
    """Return the amounts of each cause of sandbox time on a substrate, for a run in steps.

    ``substrate`` is SUBSTRATE[:key=value]. ``tier`` and ``mode`` select a cell. ``effort`` is the share
    of the usual simulation.

    Raises:
        TrainingRunError: no steps, an ``effort`` that is no number above 0, or not exactly one row of the substrate.
        PriceError, SourceError: as ``project``.
    """
    Precision(effort=effort)
    if training_run.step_rollouts is None:
        raise TrainingRunError("causes are separated step by step: give prompts and group_size, or batch")
    cells = cells_of(files_of(data), training_run)
    place = SubstrateRun(substrate, training_run, prices)
    row = _side(cells, _only(cells, place, _workload(tier, mode)), effort).row
    if row.attribution is None:
        raise TrainingRunError(f"nothing attributes the time of {row.label}: no success was recorded, or no attempts")
    return row.attribution


def decide(
    data: Data,
    training_run: TrainingRun,
    *,
    current: str,
    candidate: str,
    candidate_run: TrainingRun | None = None,
    tier: str | None = None,
    mode: str | None = None,
    prices: Prices | None = None,
    provider: Provider | None = None,
    effort: float = 1.0,
) -> Decision:
    """Decide whether to move a training run from the substrate ``current`` to the substrate ``candidate``.

    ``candidate_run`` is the training run at the candidate, if limits, nodes or failures differ there. An unmeasured
    candidate is estimated from figures of ``provider``, or of the shipped provider of the same name.

    Raises:
        TrainingRunError: not exactly one row is of a side, or the sides cannot be compared.
        PriceError, SourceError: as ``project``.
    """
    goal_run = candidate_run or training_run
    names = (field.name for field in fields(goal_run))
    stated = frozenset(name for name in names if getattr(goal_run, name) not in (None, getattr(training_run, name)))
    start, goal = SubstrateRun(current, training_run, prices), SubstrateRun(candidate, goal_run, prices)
    workload = _workload(tier, mode)
    if provider is None and candidate.partition(":")[0] in known_providers():
        cells = [cell for file in files_of(data) if isinstance(file, Recording) for cell in file.cells]
        if not any(_is_of(cell.identity, goal, workload) for cell in cells):
            provider = load_provider(candidate)
    both = sides(data, start, goal, workload, provider, stated=stated, effort=effort)
    return decide_between(*both, effort=effort)


def sides(
    data: Data,
    start: SubstrateRun,
    goal: SubstrateRun,
    workload: CellFilter,
    provider: Provider | None = None,
    *,
    stated: frozenset[str] = frozenset(),
    effort: float = 1.0,
    causes: bool = True,
) -> tuple[Side, Side]:
    """Return both sides of a decision, each with its row.

    The goal is estimated from the figures of ``provider`` if its ``workload`` was not recorded. ``stated`` is as for
    ``Candidate``; further parameters are as for ``project``.

    Raises:
        TrainingRunError: not exactly one row is of a side, or only one of them has a price.
        PriceError, SourceError: as ``project``.
    """
    cells = cells_of(files_of(data), start.training_run)
    same = start.training_run.length == goal.training_run.length
    goal_cells = cells if same else cells_of(files_of(data), goal.training_run)
    start_inputs, candidate = _only(cells, start, workload), None
    if provider is not None and not any(_is_of(pool.identity, goal, workload) for pool in cells):
        like = start_inputs.value.identity, start_inputs.value.provenance
        [pool] = [pool for pool in cells if (pool.identity, pool.provenance) == like]
        images = start.training_run.images  # an unmeasured substrate pulls the same images
        sizes_gb = () if images is None else images.sizes_gb
        candidate = Candidate(pool, provider, goal.training_run, goal.prices, stated, sizes_gb)
    goal_inputs = _only(goal_cells, goal, workload) if candidate is None else candidate.at({})
    check_prices(start_inputs, goal_inputs)
    return (_side(cells, start_inputs, effort, causes), _side(goal_cells, goal_inputs, effort, causes, candidate))


def _side(
    cells: Sequence[Pool], inputs: Alternatives, effort: float, causes: bool = True, candidate: Candidate | None = None
) -> Side:
    """Return a side with its row; the reference of ``full_speed`` is projected beside it."""
    identity, full_speed, references = inputs.value.identity, inputs.training_run.full_speed, list[Alternatives]()
    if full_speed is not None:
        groups = [group for group in by_levels(cells) if matches_spec(group[0].identity, full_speed)]
        alternatives = inputs_of(groups, cells, (), inputs.training_run, inputs.prices)
        references = [item for item in alternatives if item.value.identity != identity]
    row, *_ = rows_of([inputs, *references], effort=effort, wanted=lambda cell: cell == identity, causes=causes)
    return Side(row=row, inputs=inputs, candidate=candidate)


def _only(cells: Sequence[Pool], place: SubstrateRun, workload: CellFilter) -> Alternatives:
    """Return the inputs of the only row of a substrate's workload; others are refused before any simulation."""
    inputs = inputs_of(by_levels(cells), cells, (), place.training_run, place.prices)
    matching = [item for item in inputs if _is_of(item.value.identity, place, workload)]
    if not matching:
        recorded = [item.value.identity for item in inputs]
        same = [cell for cell in recorded if matches_spec(cell, place.spec)]
        labels = [f"{cell.tier} {cell.mode}" for cell in same] or [cell.label for cell in recorded]
        names = ", ".join(dict.fromkeys(labels))
        problem = "has this workload; recorded workloads" if same else "was recorded; recorded substrates"
        raise TrainingRunError(f"no row of {place.spec} {problem}: {names or 'none'}")
    if len(matching) > 1:
        names = ", ".join(
            f"{pool.identity.label} {pool.identity.tier} x {pool.length} {pool.identity.mode}" for pool, *_ in matching
        )
        choose = "choose one with tier, mode, training_run.actions or SUBSTRATE:key=value"
        raise TrainingRunError(f"{len(matching)} rows are of {place.spec}: {names}; {choose}")
    if not matching[0].value.succeeded:
        raise SourceError(f"nothing to project: no trial of {place.spec} succeeded")
    return matching[0]


def _is_of(identity: CellIdentity, place: SubstrateRun, workload: CellFilter) -> bool:
    return matches_spec(identity, place.spec) and workload(identity)


def _workload(tier: str | None, mode: str | None) -> CellFilter:
    """Return a filter of the cells of a tier and a mode; None: any."""
    return lambda cell: tier in (None, cell.tier) and mode in (None, cell.mode)
