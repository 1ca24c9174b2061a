"""Questions with a function each: the cost of a substrate's sandbox, a move to another, and times by length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from costmodel.analysis.baseline import matches_spec
from costmodel.analysis.bill import Side
from costmodel.analysis.decision import Decision, decide_between
from costmodel.analysis.per_substrate import SubstrateRun, candidates_of, runs_of
from costmodel.analysis.project import behind, project, rows_of
from costmodel.errors import TrainingRunError
from costmodel.pricing.sheet import Prices
from costmodel.projection.row import Attribution, Row
from costmodel.providers.provider import load_provider
from costmodel.recording.reader import Data, Recording, files_of
from costmodel.recording.trial import CellIdentity
from costmodel.training.run import TrainingRun

if TYPE_CHECKING:
    from costmodel.providers.plausible_ranges import Candidate
    from costmodel.providers.provider import Provider

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
    row = _Question(data, tier, mode, prices, effort).row(training_run, substrate)
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
    question, goal_run = _Question(data, tier, mode, prices, effort), candidate_run or training_run
    start = question.side(training_run, current)
    if question.measured(candidate):
        goal = question.side(goal_run, candidate)
    else:
        goal = question.estimated_side(
            SubstrateRun(candidate, goal_run, prices),
            provider or load_provider(candidate),
            start.row.identity,
            stated=_stated(goal_run, training_run),
            images_gb=() if training_run.images is None else training_run.images.sizes_gb,
        )
    return decide_between(start, goal, effort=effort)


def _stated(candidate_run: TrainingRun, current_run: TrainingRun) -> frozenset[str]:
    """Return the fields that are set for the candidate alone."""
    names = (field.name for field in fields(candidate_run))
    return frozenset(name for name in names if getattr(candidate_run, name) not in (None, getattr(current_run, name)))


def _recordings(data: Data) -> list[Recording]:
    return [source for source in files_of(data) if isinstance(source, Recording)]


class _Question(NamedTuple):
    """Recordings, and parameters that are the same for every substrate."""

    data: Data
    tier: str | None
    mode: str | None
    prices: Prices | None
    effort: float

    def matches(self, identity: CellIdentity, spec: str) -> bool:
        return (
            matches_spec(identity, spec) and self.tier in (None, identity.tier) and self.mode in (None, identity.mode)
        )

    def measured(self, spec: str) -> bool:
        """Whether a cell of the substrate was recorded."""
        return any(self.matches(cell.identity, spec) for source in _recordings(self.data) for cell in source.cells)

    def row(self, training_run: TrainingRun, spec: str) -> Row:
        """Return the only row of a substrate.

        Raises:
            TrainingRunError: not exactly one row is of the substrate.
        """

        def wanted(identity: CellIdentity) -> bool:
            return self.matches(identity, spec)

        cells = [item.value.identity for item in behind(files_of(self.data), training_run, self.prices, ())]
        matching = [identity for identity in cells if wanted(identity)]
        if len(matching) <= 1:  # else nothing is simulated
            rows = project(self.data, training_run, self.prices, effort=self.effort, wanted=wanted, stressed=False)
            if len(rows) == 1:
                return rows[0]
            matching = [row.identity for row in rows]
        if not matching:
            labels = ", ".join(dict.fromkeys(identity.label for identity in cells)) or "none"
            raise TrainingRunError(f"no row of {spec} was recorded; recorded substrates: {labels}")
        names = ", ".join(f"{item.label} {item.tier} x {item.actions} {item.mode}" for item in matching)
        raise TrainingRunError(f"{len(matching)} rows are of {spec}: {names}; choose one with tier, mode or actions")

    def side(self, training_run: TrainingRun, spec: str) -> Side:
        """Return a measured side."""
        row = self.row(training_run, spec)
        runs = runs_of(_recordings(self.data), SubstrateRun(spec, training_run, self.prices), row)
        coarse = self._replace(tier=row.identity.tier, mode=row.identity.mode, effort=COARSE)
        return Side(
            name=row.label,
            row=row,
            training_run=runs[0].training_run if runs else training_run,
            rerun=lambda changed: coarse.row(changed, spec),
            runs=runs,
        )

    def estimated_side(
        self,
        place: SubstrateRun,
        provider: Provider,
        like: CellIdentity,
        *,
        stated: frozenset[str],
        images_gb: Sequence[float],
    ) -> Side:
        """Return a side without measurements: the work of a measured cell with published figures."""
        from costmodel.attribution.paired_comparison import RunInSteps

        candidates = candidates_of(
            _recordings(self.data),
            place,
            provider,
            lambda identity: identity == like,
            stated=stated,
            images_gb=images_gb,
            like=like,
        )
        if len(candidates) != 1:
            raise TrainingRunError(
                f"{place.spec} was not measured, and no recorded work of the current side estimates it"
            )
        [candidate] = candidates

        def row_of(estimated: Candidate, effort: float) -> Row:
            [row] = rows_of([estimated.at({})], effort=effort, stressed=False)
            return row

        assumed, row = candidate.at({}), row_of(candidate, self.effort)
        run = RunInSteps(assumed.value, assumed.training_run, assumed.prices)
        return Side(
            name=row.label,
            row=row,
            training_run=assumed.training_run,
            rerun=lambda changed: row_of(replace(candidate, training_run=changed), COARSE),
            runs=() if assumed.training_run.step_rollouts is None else (run,),
            candidate=candidate,
        )


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
        for row in project(data, replace(training_run, actions=actions), effort=0.0, stressed=False):
            result = curves.setdefault(row.identity._replace(actions=0), Curve(row.identity, row.label, []))
            result.points.append(Point(actions, row.trajectory_s.mean.value if row.trajectory_s else None))
    return list(curves.values())


def _around(center: int) -> list[int]:
    """Return ``center`` and 1, 2, 5, 10 … from a tenth of ``center`` to ten times ``center``."""
    low, high = max(1, center // 10), center * 10
    exponent = len(str(low)) - 1
    rounds = [step * 10**power for power in range(exponent, exponent + 4) for step in (1, 2, 5)]
    return sorted({center, *(number for number in rounds if low <= number <= high)})
