"""Two questions in one call each: what the sandbox of one substrate costs, and whether to move to another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from costmodel.analysis.baseline import matches_spec
from costmodel.analysis.bill import Side
from costmodel.analysis.decision import Decision, decide_between
from costmodel.analysis.per_substrate import PlaceAsked, candidates_of, runs_of
from costmodel.analysis.project import project, rows_of
from costmodel.errors import TrainingRunError
from costmodel.pricing.sheet import Prices
from costmodel.projection.row import Attribution, Row
from costmodel.recording.load import Data, files_of
from costmodel.recording.reader import CellIdentity, Recording
from costmodel.training.run import TrainingRun

if TYPE_CHECKING:
    from costmodel.providers.provider import Provider

COARSE: Final = 0.005
"""The share of the usual simulation for a row that is computed anew with other inputs."""


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
    """What each cause of sandbox time costs a run in steps on one substrate.

    ``substrate`` is SUBSTRATE[:key=value]. ``tier`` and ``mode`` select one cell where several were recorded.
    ``effort`` is the share of the usual simulation.

    Raises:
        TrainingRunError: the run has no steps, or not exactly one row is of the substrate.
        PriceError, SourceError: as ``project``.
    """
    if training_run.step_rollouts is None:
        raise TrainingRunError("causes are separated step by step: give prompts and group_size, or batch")
    row = _row(data, training_run, substrate, tier, mode, prices, effort)
    if row.attribution is None:
        raise TrainingRunError(f"nothing attributes the time of {row.label}: no success was recorded, or no attempts")
    return row.attribution


def decide(
    data: Data,
    training_run: TrainingRun,
    *,
    current: str,
    candidate: str,
    tier: str | None = None,
    mode: str | None = None,
    prices: Prices | None = None,
    provider: Provider | None = None,
    effort: float = 1.0,
) -> Decision:
    """Whether to move a training run from the substrate ``current`` to the substrate ``candidate``.

    A candidate without measurements is estimated from what ``provider``, or a shipped provider of that name, publishes.

    Raises:
        TrainingRunError: not exactly one row is of a side, or the sides cannot be compared.
        PriceError, SourceError: as ``project``.
    """
    start = _side(data, training_run, current, tier, mode, prices, effort)
    measured = any(_wanted(cell.identity, candidate, tier, mode) for one in _recordings(data) for cell in one.cells)
    if measured:
        goal = _side(data, training_run, candidate, tier, mode, prices, effort)
    else:
        goal = _estimated(data, training_run, candidate, start.row.identity, prices, provider, effort)
    return decide_between(start, goal, effort=effort)


def _recordings(data: Data) -> list[Recording]:
    return [one for one in files_of(data) if isinstance(one, Recording)]


def _wanted(identity: CellIdentity, spec: str, tier: str | None, mode: str | None) -> bool:
    return matches_spec(identity, spec) and tier in (None, identity.tier) and mode in (None, identity.mode)


def _row(
    data: Data,
    training_run: TrainingRun,
    spec: str,
    tier: str | None,
    mode: str | None,
    prices: Prices | None,
    effort: float,
) -> Row:
    rows = project(
        data,
        training_run,
        prices,
        effort=effort,
        wanted=lambda identity: _wanted(identity, spec, tier, mode),
        stressed=False,
    )
    if len(rows) != 1:
        names = dict.fromkeys(f"{row.label} {row.identity.tier} {row.length} {row.identity.mode}" for row in rows)
        known = dict.fromkeys(one.identity.substrate for item in _recordings(data) for one in item.cells)
        found = f"several rows: {', '.join(names)}; choose with tier, mode, actions" if rows else "no row"
        raise TrainingRunError(f"{spec} has {found}; recorded substrates: {', '.join(known) or 'none'}")
    return rows[0]


def _side(
    data: Data,
    training_run: TrainingRun,
    spec: str,
    tier: str | None,
    mode: str | None,
    prices: Prices | None,
    effort: float,
) -> Side:
    row = _row(data, training_run, spec, tier, mode, prices, effort)
    runs = runs_of(_recordings(data), PlaceAsked(spec, training_run, prices), row)

    def rerun(changed: TrainingRun) -> Row:
        return _row(data, changed, spec, row.identity.tier, row.identity.mode, prices, COARSE)

    asked = runs[0].training_run if runs else training_run
    return Side(name=row.label, row=row, training_run=asked, rerun=rerun, runs=runs)


def _estimated(
    data: Data,
    training_run: TrainingRun,
    spec: str,
    like: CellIdentity,
    prices: Prices | None,
    provider: Provider | None,
    effort: float,
) -> Side:
    """A side without measurements: the work of the measured side with published figures."""
    from costmodel.attribution.paired_comparison import RunInSteps
    from costmodel.providers.plausible_ranges import Candidate
    from costmodel.providers.provider import load_provider

    if provider is None:
        provider = load_provider(spec)

    def same_work(identity: CellIdentity) -> bool:
        return identity == like

    [found] = candidates_of(_recordings(data), PlaceAsked(spec, training_run, prices), provider, same_work, like=like)

    def row_of(one: Candidate, effort: float) -> Row:
        [row] = rows_of([one.at({})], effort=effort, stressed=False)
        return row

    values, row = found.at({}), row_of(found, effort)
    in_steps = values.training_run.step_rollouts is not None
    return Side(
        name=row.label,
        row=row,
        training_run=values.training_run,
        rerun=lambda changed: row_of(replace(found, training_run=changed), COARSE),
        runs=(RunInSteps(values.value, values.training_run, values.prices),) if in_steps else (),
        candidate=found,
    )
