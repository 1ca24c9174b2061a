"""Answers what the Projection screen asks, with the cost model; meant to be called off the event loop."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from costmodel import Demand, Projection, Published, Recording
from costmodel.analysis.baseline import meant
from costmodel.analysis.per_substrate import PlaceAsked, project_places
from costmodel.analysis.project import Wanted, project
from costmodel.analysis.ranking import Answer, answer_of
from costmodel.analysis.sensitivity import Curve, curve
from costmodel.errors import CostModelError
from costmodel.pricing.sheet import SHIPPED
from costmodel.providers.limits import known_profiles
from costmodel.providers.provider import known_providers
from costmodel.recording.load import read
from costmodel.recording.reader import CellIdentity
from costmodel.training.run import Think
from taxtui.errors import RecordingError
from taxtui.live import catalogue
from taxtui.tui.projection.form import Question, Typed, parsed

Source = Recording | Published
Works = tuple[str | int, ...]
"""What works have in common that are answered together."""

QUICK: Final = frozenset(
    {
        *("trajectories", "workers", "actions", "baseline", "full_speed", "max_attempts", "backoff_s", "timeout_s"),
        *("think", "include_cleanup", "quota", "run_sd", "deltas", "tolerance", "seed", "effort"),
    }
)
"""Fields of a demand that are answered without a simulation."""
EFFORT: Final = 0.05
"""How much may be simulated of a run in steps, relative to ``taxtui project``: whoever types waits for it."""


class ProjectionAsked(NamedTuple):
    """What is to be answered."""

    paths: tuple[Path, ...]
    typed: Typed
    first: CellIdentity | None = None  # of the rows that a person looks at: these are answered first


class Answered(NamedTuple):
    """The rows of a projection, as far as they are known by now, and what they were computed from."""

    rows: Sequence[Projection]
    asked: Question
    sources: Sequence[Source]
    coarse: frozenset[CellIdentity] = frozenset()  # rows without what takes a simulation, which is on its way
    partly: bool = False  # other rows are on their way

    @property
    def demand(self) -> Demand:
        """What is asked of all places that a training file does not tell apart."""
        return self.asked.demand

    @property
    def answer(self) -> Answer:
        """The rows beside one another."""
        return answer_of(self.rows, run_sd=self.demand.run_sd, baseline=self.demand.baseline)


class Refinement(NamedTuple):
    """An answer whose simulations are wanted."""

    answered: Answered
    first: CellIdentity | None


class CurveAsked(NamedTuple):
    """Curves around an answer, of the works that differ from one row's in their length only."""

    answered: Answered
    like: CellIdentity


class Projector:
    """Reads each recording once, until it changes."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._read: dict[Path, tuple[tuple[int, int], Source]] = {}

    def answers(self, asked: ProjectionAsked) -> Iterator[Answered]:
        """Project what needs no simulation, the works in sight before the others; ``refined`` adds the rest.

        Without anything to simulate, the last part is what ``taxtui project`` prints.

        Raises:
            TaxtuiError, CostModelError: a recording or a price sheet cannot be used, or what was typed not answered.
        """
        question = parsed(asked.typed)
        if not asked.paths:
            raise RecordingError("there is no recording yet", fix="1 measures, 5 lists what there is")
        self._read = {path: read for path, read in self._read.items() if path in asked.paths}
        sources = [self._source(path) for path in asked.paths]
        quick = question._replace(places=[_quick(place) for place in question.places])
        if any(isinstance(source, Published) for source in sources):
            quick = question  # it answers what it can, and refuses the rest by name
        coarse = quick != question
        try:
            if asked.first is not None:
                like = [_like(source, asked.first) for source in sources]
                if rows := _rows(quick, like, partial(_is_of, _work(asked.first))):
                    yield Answered(rows, question, sources, _identities(rows, coarse=coarse), partly=True)
        except CostModelError:
            pass  # none of those has a success: others may have
        rows = project_places(sources, quick.places, None, quick.providers, stressed=False)
        yield Answered(rows, question, sources, _identities(rows, coarse=coarse))

    def _source(self, path: Path) -> Source:
        state = catalogue.stamp(path)
        known = self._read.get(path)
        if known is None or known[0] != state:
            self._read[path] = known = (state, read(path))
        return known[1]


def refined(asked: Refinement) -> Iterator[Answered]:
    """What takes a simulation, work by work, those in sight first; the last part is what ``taxtui project`` prints.

    Raises:
        CostModelError: what was typed cannot be answered.
    """
    answered = asked.answered
    question, sources, coarse = answered.asked, answered.sources, answered.coarse
    rows = {_key(row): row for row in answered.rows}
    first = asked.first and _work(asked.first)
    works = sorted(dict.fromkeys(_work(row.identity) for row in answered.rows), key=lambda work: work != first)
    for work in works:
        found = _rows(question, sources, partial(_is_of, work))
        rows |= {_key(row): row for row in found}
        coarse -= _identities(found)
        yield Answered(list(rows.values()), question, sources, coarse)


def _rows(question: Question, sources: Sequence[Source], wanted: Wanted) -> list[Projection]:
    """As ``project_places``, of some works; of a run in steps less is simulated, so that its intervals are wider."""
    found: list[Projection] = []
    for number, place in enumerate(question.places):
        earlier = [one.spec for one in question.places[:number]]

        def here(identity: CellIdentity, spec: str = place.spec, earlier: Sequence[str] = tuple(earlier)) -> bool:
            return (not spec or meant(identity, spec)) and not any(meant(identity, one) for one in earlier)

        def both(identity: CellIdentity, here: Wanted = here) -> bool:
            return here(identity) and wanted(identity)

        providers = [one for one in question.providers if not place.spec or one.substrate == place.spec.split(":")[0]]
        found += project(
            sources, place.demand, place.prices, None, providers, effort=EFFORT, wanted=both, stressed=False
        )
    return found


def _quick(place: PlaceAsked) -> PlaceAsked:
    """The same without what takes a simulation; of think times that differ, their mean."""
    asked = {one.name: getattr(place.demand, one.name) for one in fields(Demand) if one.name in QUICK}
    think = place.demand.think
    if think is not None and think.sigma:
        asked["think"] = Think(round(think.mean_ns))
    return place._replace(demand=Demand(**asked))


def _key(row: Projection) -> tuple[CellIdentity, str]:
    return row.identity, row.provenance


def _family(identity: CellIdentity) -> Works:
    """What works have in common that differ in their length."""
    return identity.tier, identity.mode


def _work(identity: CellIdentity) -> Works:
    """One length of a family."""
    return (*_family(identity), identity.actions, identity.length)


def _like(source: Source, like: CellIdentity) -> Source:
    """A recording with the cells of one family alone, of which nothing is told by others."""
    part = copy.copy(source)
    if isinstance(part, Recording):
        part.cells = [cell for cell in part.cells if _family(cell.identity) == _family(like)]
    return part


def _is_of(work: Works, identity: CellIdentity) -> bool:
    return _work(identity) == work


def _identities(rows: Iterable[Projection], *, coarse: bool = True) -> frozenset[CellIdentity]:
    return frozenset(row.identity for row in rows if coarse)


def curves(asked: CurveAsked) -> list[Curve]:
    """Return a curve over actions for each substrate around an answer, without what needs a simulation."""
    answered = asked.answered
    parts = [_like(source, asked.like) for source in answered.sources]
    demand = _quick(answered.asked.places[-1]).demand
    return curve(parts, replace(demand, baseline=None), "actions", ())


def stops(rows: Sequence[Projection]) -> dict[str, tuple[str, ...]]:
    """The values of the options that name a substrate, a price sheet or a provider's limits."""
    labels = tuple(dict.fromkeys(row.identity.label for row in rows))
    sheets = tuple(sorted(path.stem for path in SHIPPED.glob("*.toml")))
    return {"baseline": labels, "full_speed": labels, "prices": sheets, "profile": tuple(known_profiles())} | {
        "compose": tuple(known_providers())
    }
