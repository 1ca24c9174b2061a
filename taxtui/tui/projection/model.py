"""Answers the questions of the Projection screen with the cost model; runs in a thread."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from costmodel import (
    SHIPPED_PRICES,
    Answer,
    CellFilter,
    CellIdentity,
    Curve,
    Published,
    Recording,
    Row,
    SubstrateRun,
    Think,
    TrainingRun,
    answer_of,
    curve,
    known_profiles,
    known_providers,
    load,
    matches_spec,
    project,
    project_per_substrate,
)
from taxtui.errors import RecordingError
from taxtui.live import catalogue
from taxtui.tui.projection.form import Question, Typed, parsed

Source = Recording | Published
Works = tuple[str | int, ...]
"""A workload: tier, mode, actions, length."""

QUICK: Final = frozenset(
    {
        *("trajectories", "workers", "actions", "baseline", "full_speed", "max_attempts", "backoff_s", "timeout_s"),
        *("think", "include_cleanup", "quota", "run_sd", "precision"),
    }
)
"""Fields of a training run without a simulation."""
EFFORT: Final = 0.05
"""Simulation effort of a training run in steps, as a share of the effort of ``taxtui project``."""


class ProjectionAsked(NamedTuple):
    """A question to the cost model."""

    paths: tuple[Path, ...]
    typed: Typed


class Answered(NamedTuple):
    """The rows of a projection so far, and their inputs."""

    rows: Sequence[Row]
    question: Question
    sources: Sequence[Source]
    coarse: frozenset[CellIdentity] = frozenset()  # rows whose simulation is pending

    @property
    def training_run(self) -> TrainingRun:
        return self.question.training_run

    @property
    def answer(self) -> Answer:
        return answer_of(self.rows, run_sd=self.training_run.run_sd, baseline=self.training_run.baseline)


class Refinement(NamedTuple):
    """A request for the simulations of an answer."""

    answered: Answered
    first: CellIdentity | None  # simulated first


class CurveAsked(NamedTuple):
    """A request for curves over the length of a workload."""

    answered: Answered
    like: CellIdentity


class Projector:
    """Reads each recording once, until the file changes."""

    def __init__(self) -> None:
        self._cache: dict[Path, tuple[tuple[int, int], Source]] = {}

    def answer(self, request: ProjectionAsked) -> Answered:
        """Return the answer without simulations; ``refined`` adds simulations.

        Raises:
            RecordingError: there is no recording.
            CostModelError: the question cannot be answered.
        """
        question = parsed(request.typed)
        if not request.paths:
            raise RecordingError("there is no recording yet", fix="1 measures, 5 lists recordings")
        self._cache = {path: source for path, source in self._cache.items() if path in request.paths}
        sources = [self._source(path) for path in request.paths]
        quick = question._replace(places=[_quick(place) for place in question.places])
        if any(isinstance(source, Published) for source in sources):
            quick = question  # published figures need no simulation, and refuse other options by name
        rows = project_per_substrate(sources, quick.places, None, quick.providers, stressed=False)
        return Answered(rows, question, sources, frozenset() if quick == question else _identities(rows))

    def _source(self, path: Path) -> Source:
        stamp = catalogue.stamp(path)
        if path not in self._cache or self._cache[path][0] != stamp:
            self._cache[path] = (stamp, load(path))
        return self._cache[path][1]


def refined(request: Refinement) -> Iterator[Answered]:
    """Yield answers with more and more simulated workloads, beginning with ``request.first``.

    The last answer equals the answer of ``taxtui project``.

    Raises:
        CostModelError: the question cannot be answered.
    """
    answered = request.answered
    question, sources, coarse = answered.question, answered.sources, answered.coarse
    rows = {_key(row): row for row in answered.rows}
    first = request.first and _work(request.first)
    works = sorted(dict.fromkeys(_work(row.identity) for row in answered.rows), key=lambda work: work != first)
    for work in works:
        matches = _rows(question, sources, partial(_is_of, work))
        rows |= {_key(row): row for row in matches}
        coarse -= _identities(matches)
        yield Answered(list(rows.values()), question, sources, coarse)


def _rows(question: Question, sources: Sequence[Source], wanted: CellFilter) -> list[Row]:
    """Project some workloads as ``project_per_substrate`` does, with less simulation effort."""
    matches: list[Row] = []
    for number, place in enumerate(question.places):
        earlier = [item.spec for item in question.places[:number]]

        def at_place(identity: CellIdentity, spec: str = place.spec, earlier: Sequence[str] = tuple(earlier)) -> bool:
            return (not spec or matches_spec(identity, spec)) and not any(
                matches_spec(identity, item) for item in earlier
            )

        def both(identity: CellIdentity, at_place: CellFilter = at_place) -> bool:
            return at_place(identity) and wanted(identity)

        providers = [
            item for item in question.providers if not place.spec or item.substrate == place.spec.split(":")[0]
        ]
        matches += project(
            sources, place.training_run, place.prices, None, providers, effort=EFFORT, wanted=both, stressed=False
        )
    return matches


def _quick(place: SubstrateRun) -> SubstrateRun:
    """Return the question without the fields that take a simulation, and with the mean of the think times."""
    request = {item.name: getattr(place.training_run, item.name) for item in fields(TrainingRun) if item.name in QUICK}
    think = place.training_run.think
    if think is not None and think.sigma:
        request["think"] = Think(round(think.mean_ns))
    return place._replace(training_run=TrainingRun(**request))


def _key(row: Row) -> tuple[CellIdentity, str]:
    return row.identity, row.provenance


def _family(identity: CellIdentity) -> Works:
    """Return the tier and the mode, without the length."""
    return identity.tier, identity.mode


def _work(identity: CellIdentity) -> Works:
    """Return the tier, the mode and the length."""
    return (*_family(identity), identity.actions, identity.length)


def _like(source: Source, like: CellIdentity) -> Source:
    """Return a recording with only the cells of a family."""
    part = copy.copy(source)
    if isinstance(part, Recording):
        part.cells = [cell for cell in part.cells if _family(cell.identity) == _family(like)]
    return part


def _is_of(work: Works, identity: CellIdentity) -> bool:
    return _work(identity) == work


def _identities(rows: Iterable[Row]) -> frozenset[CellIdentity]:
    return frozenset(row.identity for row in rows)


def curves(request: CurveAsked) -> list[Curve]:
    """Return a curve over actions for each substrate, without the fields that take a simulation."""
    answered = request.answered
    parts = [_like(source, request.like) for source in answered.sources]
    training_run = _quick(answered.question.places[-1]).training_run
    return curve(parts, replace(training_run, baseline=None))


def choices(rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """Return the choices of the options that name a substrate, a price sheet or a provider."""
    labels = tuple(dict.fromkeys(row.identity.label for row in rows))
    sheets = tuple(sorted(path.stem for path in SHIPPED_PRICES.glob("*.toml")))
    return {"baseline": labels, "full_speed": labels, "prices": sheets, "profile": tuple(known_profiles())} | {
        "compose": tuple(known_providers())
    }
