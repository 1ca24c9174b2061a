"""Answers what the Projection screen asks, with the cost model; meant to be called off the event loop."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Final, NamedTuple

from costmodel import Demand, Projection, Published, Recording
from costmodel.answer import Answer, answer_of
from costmodel.comparison import meant, with_baseline
from costmodel.errors import CostModelError
from costmodel.places import Asked, only, project_places
from costmodel.pricing import SHIPPED
from costmodel.profiles import known_profiles
from costmodel.projection import project
from costmodel.reading import read
from costmodel.recording import CellIdentity
from costmodel.whatif import Axis, Curve, curve
from taxtui.errors import RecordingError
from taxtui.tui.projection.form import Typed, parsed
from taxtui.tui.recordings import catalogue

Source = Recording | Published
Works = tuple[str | int, ...]
"""What works have in common that are answered together."""
Kind = Callable[[CellIdentity], Works]
Rows = dict[tuple[CellIdentity, str], Projection]

QUICK: Final = frozenset(
    {
        *("trajectories", "workers", "actions", "baseline", "full_speed", "max_attempts", "backoff_s", "timeout_s"),
        *("think", "include_cleanup", "quota", "run_sd", "deltas", "tolerance", "seed"),
    }
)
"""Fields of a demand that are answered without a simulation."""


class ProjectionAsked(NamedTuple):
    """What is to be answered."""

    paths: tuple[Path, ...]
    typed: Typed
    first: CellIdentity | None = None  # of the rows that a person looks at: these are answered first


class Answered(NamedTuple):
    """The rows of a projection, as far as they are known by now, and what they were computed from."""

    rows: Sequence[Projection]
    asked: Sequence[Asked]
    sources: Sequence[Source]
    coarse: frozenset[CellIdentity] = frozenset()  # rows without what takes a simulation, which is on its way
    partly: bool = False  # other rows are on their way

    @property
    def demand(self) -> Demand:
        """What is asked of all places that a demand file does not tell apart."""
        return self.asked[-1].demand

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
    axis: Axis
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
        places = parsed(asked.typed)
        if not asked.paths:
            raise RecordingError("there is no recording yet", fix="1 measures, 5 lists what there is")
        self._read = {path: read for path, read in self._read.items() if path in asked.paths}
        sources = [self._source(path) for path in asked.paths]
        if any(isinstance(source, Published) for source in sources):
            yield Answered(project_places(sources, places), places, sources)
            return
        try:
            yield from _quickly(sources, places, _families(sources, asked.first))
        except CostModelError:  # of one family, such as that none of its trials succeeded: others may have
            yield Answered(project_places(sources, places), places, sources)

    def _source(self, path: Path) -> Source:
        state = catalogue.stamp(path)
        known = self._read.get(path)
        if known is None or known[0] != state:
            self._read[path] = known = (state, read(path))
        return known[1]


def _quickly(sources: Sequence[Source], places: Sequence[Asked], families: Sequence[Works]) -> Iterator[Answered]:
    quick = [_quick(place) for place in places]
    simulated = quick != list(places)
    rows: Rows = {}
    for number, family in enumerate(families, 1):
        rows |= _rows(sources, quick, family, _family)
        if number in (1, len(families)):
            partly = number < len(families)
            coarse = _identities(rows) if simulated else frozenset()
            whole = _whole(rows, sources, places, partly=partly or simulated)
            yield Answered(whole, places, sources, coarse, partly)


def refined(asked: Refinement) -> Iterator[Answered]:
    """What takes a simulation, work by work, those in sight first; the last part is what ``taxtui project`` prints.

    Raises:
        CostModelError: what was typed cannot be answered.
    """
    _, places, sources, coarse, _ = asked.answered
    rows: Rows = {(row.identity, row.provenance): row for row in asked.answered.rows}
    of = _work if places[-1].demand.length is None else _family
    first = asked.first and of(asked.first)
    works = sorted(dict.fromkeys(of(row.identity) for row in asked.answered.rows), key=lambda work: work != first)
    for work in works:
        parts = sources if of is _family else [_alone(source, work) for source in sources]
        # the lengths that a row is checked against are not among its parts; the checks need no simulation
        found = {key: replace(row, held_out=rows[key].held_out) for key, row in _rows(parts, places, work, of).items()}
        rows |= found
        coarse -= _identities(found)
        yield Answered(_whole(rows, sources, places, partly=bool(coarse)), places, sources, coarse)


def _alone(source: Source, work: Works) -> Source:
    """A recording with the cells of one work, at whatever concurrency."""
    if isinstance(source, Recording):
        source = copy.copy(source)
        source.cells = [cell for cell in source.cells if _work(cell.identity) == work]
    return source


def _quick(place: Asked) -> Asked:
    """The same without what takes a simulation."""
    asked = {one.name: getattr(place.demand, one.name) for one in fields(Demand) if one.name in QUICK}
    return place._replace(demand=Demand(**asked))


def _families(sources: Sequence[Source], first: CellIdentity | None) -> list[Works]:
    """Works that are answered together, those of ``first`` before the others."""
    cells = [cell.identity for source in sources if isinstance(source, Recording) for cell in source.cells]
    found = dict.fromkeys(map(_family, cells))
    return sorted(found, key=lambda family: first is None or family != _family(first))


def _family(identity: CellIdentity) -> Works:
    """What sets works apart between which nothing of the one is told from the other."""
    return identity.tier, identity.mode


def _work(identity: CellIdentity) -> Works:
    """One length of a family."""
    return (*_family(identity), identity.actions, identity.length)


def _rows(sources: Sequence[Source], places: Sequence[Asked], works: Works, of: Kind) -> Rows:
    """The rows of some works, each place asked its own."""
    found: Rows = {}
    parts = [only(one, lambda identity: of(identity) == works) for one in sources if isinstance(one, Recording)]
    for number, place in enumerate(places):
        earlier = tuple(one.spec for one in places[:number])

        def wanted(identity: CellIdentity, spec: str = place.spec, earlier: Sequence[str] = earlier) -> bool:
            mine = not spec or meant(identity, spec)
            return of(identity) == works and mine and not any(meant(identity, one) for one in earlier)

        rows = project(parts, replace(place.demand, baseline=None), place.prices, wanted=wanted)
        found |= {(row.identity, row.provenance): row for row in rows}
    return found


def _identities(rows: Rows) -> frozenset[CellIdentity]:
    return frozenset(identity for identity, _ in rows)


def _whole(
    rows: Rows, sources: Sequence[Source], places: Sequence[Asked], *, partly: bool = False
) -> Sequence[Projection]:
    """The rows in the order of the recordings, series by series, against the baseline as far as it is there."""
    cells = [cell.identity for source in sources if isinstance(source, Recording) for cell in source.cells]
    place = {identity: number for number, identity in reversed(list(enumerate(cells)))}
    series = {_series(identity): number for number, identity in reversed(list(enumerate(cells)))}
    found = sorted(rows.values(), key=lambda row: (series[_series(row.identity)], place[row.identity]))
    demand = places[-1].demand
    if demand.baseline is None:
        return found
    return with_baseline(found, demand.baseline, required=not partly, run_sd=demand.run_sd)


def _series(identity: CellIdentity) -> CellIdentity:
    return identity._replace(actions=0)


def curves(asked: CurveAsked) -> list[Curve]:
    """One curve per place around an answer, of what needs no simulation."""
    answered, family = asked.answered, _family(asked.like)
    parts = [
        only(source, lambda identity: _family(identity) == family) if isinstance(source, Recording) else source
        for source in answered.sources
    ]
    demand = _quick(answered.asked[-1]).demand
    at = widths(demand) if asked.axis == "workers" else ()
    return curve(parts, replace(demand, baseline=None), asked.axis, at)


def widths(demand: Demand) -> list[int]:
    """Numbers of workers to look at: round ones from a tenth of those asked for up to one for each trajectory."""
    most = max(demand.trajectories, demand.workers)
    found = [step * 10**power for power in range(len(str(most))) for step in (1, 2, 5)]
    return sorted({demand.workers, *(number for number in found if demand.workers // 10 <= number <= most)})


def stops(rows: Sequence[Projection]) -> dict[str, tuple[str, ...]]:
    """The values of the options that name a substrate, a price sheet or a provider's limits."""
    labels = tuple(dict.fromkeys(row.identity.label for row in rows))
    sheets = tuple(sorted(path.stem for path in SHIPPED.glob("*.toml")))
    return {"baseline": labels, "full_speed": labels, "prices": sheets, "profile": tuple(known_profiles())}
