"""Answers what the Projection screen asks, with the cost model; meant to be called off the event loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from costmodel import Demand, Projection, Published, Recording
from costmodel.pricing import SHIPPED, load_prices
from costmodel.projection import project
from costmodel.reading import read
from costmodel.whatif import Axis, Curve, curve
from taxtui.errors import RecordingError
from taxtui.tui.projection.form import Typed, parsed
from taxtui.tui.recordings import catalogue


class ProjectionAsked(NamedTuple):
    """What is to be answered."""

    paths: tuple[Path, ...]
    typed: Typed


class Answered(NamedTuple):
    """The rows of a projection, and what they were computed from."""

    rows: Sequence[Projection]
    demand: Demand
    sources: Sequence[Recording | Published]


class CurveAsked(NamedTuple):
    """Curves around an answer."""

    answered: Answered
    axis: Axis


class Projector:
    """Reads each recording once, until it changes."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._read: dict[Path, tuple[tuple[int, int], Recording | Published]] = {}

    def answer(self, asked: ProjectionAsked) -> Answered:
        """Project.

        Raises:
            TaxtuiError, CostModelError: a recording or a price sheet cannot be used, or what was typed not answered.
        """
        demand, sheet = parsed(asked.typed)
        if not asked.paths:
            raise RecordingError("there is no recording yet", fix="1 measures, 5 lists what there is")
        self._read = {path: read for path, read in self._read.items() if path in asked.paths}
        sources = [self._source(path) for path in asked.paths]
        return Answered(project(sources, demand, None if sheet is None else load_prices(sheet)), demand, sources)

    def _source(self, path: Path) -> Recording | Published:
        state = catalogue.stamp(path)
        known = self._read.get(path)
        if known is None or known[0] != state:
            self._read[path] = known = (state, read(path))
        return known[1]


def curves(asked: CurveAsked) -> list[Curve]:
    """One curve per cell around an answer."""
    return curve(asked.answered.sources, asked.answered.demand, asked.axis)


def stops(rows: Sequence[Projection]) -> dict[str, tuple[str, ...]]:
    """The values of the options that name a substrate or a price sheet."""
    labels = tuple(dict.fromkeys(row.identity.label for row in rows))
    sheets = tuple(sorted(path.stem for path in SHIPPED.glob("*.toml")))
    return {"baseline": labels, "full_speed": labels, "prices": sheets}
