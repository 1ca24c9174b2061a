"""Questions with a function each: the cost of a substrate's sandbox, a move to another, and times by length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from costmodel.analysis.baseline import matches_spec
from costmodel.analysis.bill import Side
from costmodel.analysis.decision import Decision, decide_between
from costmodel.analysis.per_substrate import SubstrateRun, candidates_of, runs_of
from costmodel.analysis.project import CellFilter, behind, project, rows_of
from costmodel.errors import TrainingRunError
from costmodel.pricing.sheet import Prices
from costmodel.projection.row import Attribution, Row
from costmodel.providers.provider import load_provider
from costmodel.recording.reader import Data, Recording, files_of
from costmodel.recording.trial import CellIdentity
from costmodel.training.run import TrainingRun

if TYPE_CHECKING:
    from costmodel.attribution.paired_comparison import RunInSteps
    from costmodel.providers.plausible_ranges import Candidate
    from costmodel.providers.provider import Provider
    from costmodel.workload.pool import Pool

COARSE: Final = 0.005
"""Share of the usual simulation for a row with changed inputs."""


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
        TrainingRunError: the run has no steps, or not exactly one row is of the substrate.
        PriceError, SourceError: as ``project``.
    """
    if training_run.step_rollouts is None:
        raise TrainingRunError("causes are separated step by step: give prompts and group_size, or batch")
    wanted = _wanted(substrate, tier, mode)
    row = _only_row(data, SubstrateRun(substrate, training_run, prices), wanted, effort)
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
    recordings, goal_run = _recordings(data), candidate_run or training_run
    start = measured_side(data, SubstrateRun(current, training_run, prices), _wanted(current, tier, mode), effort)
    goal_substrate, wanted = SubstrateRun(candidate, goal_run, prices), _wanted(candidate, tier, mode)
    if any(wanted(cell.identity) for recording in recordings for cell in recording.cells):
        goal = measured_side(data, goal_substrate, wanted, effort)
    else:
        like = start.row.identity
        candidates = candidates_of(
            recordings,
            goal_substrate,
            provider or load_provider(candidate),
            lambda identity: identity == like,
            stated=_stated(goal_run, training_run),
            images_gb=() if training_run.images is None else training_run.images.sizes_gb,
            like=like,
        )
        if len(candidates) != 1:
            raise TrainingRunError(
                f"{candidate} was not measured, and no recorded work of the current side estimates it"
            )
        goal = estimated_side(candidates[0], effort)
    return decide_between(start, goal, effort=effort)


class RowCountError(TrainingRunError):
    """Not exactly one row is of a substrate. ``matching``: the rows, or the trials behind them."""

    def __init__(self, spec: str, matching: Sequence[Pool | Row], recorded: Iterable[Pool]) -> None:
        self.matching = matching
        names = ", ".join(
            f"{item.identity.label} {item.identity.tier} x {item.length} {item.identity.mode}" for item in matching
        )
        problem = f"{len(matching)} rows are of {spec}: {names}; choose one with tier, mode or actions"
        if not matching:
            labels = ", ".join(dict.fromkeys(pool.identity.label for pool in recorded)) or "none"
            problem = f"no row of {spec} was recorded; recorded substrates: {labels}"
        super().__init__(problem)


def measured_side(
    data: Data, substrate: SubstrateRun, wanted: CellFilter, effort: float, *, causes: bool = True
) -> Side:
    """Return the side of a measured substrate; ``wanted`` selects its cell, further parameters are as for ``project``.

    Raises:
        RowCountError: no row matches, or several.
        TrainingRunError, PriceError, SourceError: as ``project``.
    """
    row = _only_row(data, substrate, wanted, effort, causes=causes)
    runs = runs_of(_recordings(data), substrate, row)

    def project_row(changed: TrainingRun) -> Row:
        return _one_row(data, substrate._replace(training_run=changed), wanted, COARSE, causes=causes)

    return Side(
        name=row.label,
        row=row,
        training_run=runs[0].training_run if runs else substrate.training_run,
        rerun=project_row,
        runs=runs,
    )


def estimated_side(candidate: Candidate, effort: float, *, causes: bool = True) -> Side:
    """Return the side of an unmeasured substrate: the work of a measured cell with published figures."""
    estimate = candidate.at({})
    [row] = rows_of([estimate], effort=effort, causes=causes)

    def project_row(changed: TrainingRun) -> Row:
        [changed_row] = rows_of([replace(candidate, training_run=changed).at({})], effort=COARSE)
        return changed_row

    runs: tuple[RunInSteps, ...] = ()
    if estimate.training_run.step_rollouts is not None:
        from costmodel.attribution.paired_comparison import RunInSteps  # not imported for a run without steps

        runs = (RunInSteps(estimate.value, estimate.training_run, estimate.prices),)
    return Side(
        name=row.label,
        row=row,
        training_run=estimate.training_run,
        rerun=project_row,
        runs=runs,
        candidate=candidate,
    )


def _only_row(data: Data, substrate: SubstrateRun, wanted: CellFilter, effort: float, *, causes: bool = True) -> Row:
    """Return the only row of a substrate; several are refused before a simulation.

    Raises:
        RowCountError: not exactly one row is of the substrate.
    """
    cells = [item.value for item in behind(files_of(data), substrate.training_run, substrate.prices, ())]
    matching = [pool for pool in cells if wanted(pool.identity)]
    if len(matching) > 1:
        raise RowCountError(substrate.spec, matching, cells)
    return _one_row(data, substrate, wanted, effort, causes=causes, recorded=cells)


def _one_row(
    data: Data,
    substrate: SubstrateRun,
    wanted: CellFilter,
    effort: float,
    *,
    causes: bool,
    recorded: Sequence[Pool] = (),
) -> Row:
    """Project the only row. Raises ``RowCountError``: not exactly one row; ``recorded`` has the choices."""
    _, training_run, prices = substrate
    rows = project(data, training_run, prices, effort=effort, wanted=wanted, checked=False, causes=causes)
    if len(rows) != 1:
        raise RowCountError(substrate.spec, rows, recorded)
    return rows[0]


def _wanted(spec: str, tier: str | None, mode: str | None) -> CellFilter:
    """Return whether a cell is of the substrate, the tier and the mode; None: any."""
    return lambda cell: matches_spec(cell, spec) and tier in (None, cell.tier) and mode in (None, cell.mode)


def _stated(candidate_run: TrainingRun, current_run: TrainingRun) -> frozenset[str]:
    """Return the fields that are set for the candidate alone."""
    names = (field.name for field in fields(candidate_run))
    return frozenset(name for name in names if getattr(candidate_run, name) not in (None, getattr(current_run, name)))


def _recordings(data: Data) -> list[Recording]:
    return [source for source in files_of(data) if isinstance(source, Recording)]


class Point(NamedTuple):
    """A point of a curve; None where the row has no number."""

    actions: int
    trajectory_s: float | None


class Curve(NamedTuple):
    """Mean time of a trajectory of a cell by its number of actions."""

    identity: CellIdentity
    label: str
    points: list[Point]


def curve(data: Data, training_run: TrainingRun) -> list[Curve]:
    """Return a curve per cell, at round numbers of actions from a tenth to ten times those of the training run.

    Raises:
        TrainingRunError: nothing was recorded but published latencies, which have one length; or as for ``project``.
    """
    trials = [trial for recording in _recordings(data) for cell in recording.cells for trial in cell.trials]
    if not any(trial.ok for trial in trials):
        raise TrainingRunError("a published latency is of one length, so there is no curve over actions")
    length = training_run.length
    center = max((len(trial.durations_ns) for trial in trials), default=50) if length is None else round(length.mean)
    curves: dict[CellIdentity, Curve] = {}
    for actions in _around(max(1, center)):
        for row in project(data, replace(training_run, actions=actions), effort=0.0, checked=False):
            result = curves.setdefault(row.identity._replace(actions=0), Curve(row.identity, row.label, []))
            result.points.append(Point(actions, row.trajectory_s.mean.value if row.trajectory_s else None))
    return list(curves.values())


def _around(center: int) -> list[int]:
    """Return ``center`` and 1, 2, 5, 10 … from a tenth of ``center`` to ten times ``center``."""
    low, high = max(1, center // 10), center * 10
    exponent = len(str(low)) - 1
    rounds = [step * 10**power for power in range(exponent, exponent + 4) for step in (1, 2, 5)]
    return sorted({center, *(number for number in rounds if low <= number <= high)})
