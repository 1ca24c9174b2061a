"""The content of a page: rows, projections, and their colours in figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from costmodel import (
    Answer,
    CellIdentity,
    Provider,
    Published,
    Recording,
    Reference,
    SubstrateRun,
    matches_spec,
    project_per_substrate,
)
from taxtui.report.answer import measured, projected
from taxtui.report.formats import Section
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.page.palette import colours
from taxtui.report.projected.sections import title


class ProjectedRun(NamedTuple):
    """The projection of a training run."""

    title: str
    answer: Answer
    sections: Sequence[Section]


@dataclass(eq=False)
class Material:
    """The recordings of one page. Values for several parts are computed once."""

    rows: Sequence[MeasuredRow]
    sources: Sequence[Recording]
    paths: Sequence[Path]  # of the sources
    unfinished: int  # cells without a finished trial
    run_sd: float | None = None  # between-repetition sd, as in ``TrainingRun``
    bounds: Reference | None = None  # dispatch of a reference, for limits of an unknown tax
    published: Sequence[Published] = ()  # latencies of the training run
    places: Sequence[SubstrateRun] = ()  # the training run of each substrate; () without a training run
    providers: Sequence[Provider] = ()  # estimated providers of the training run

    @cached_property
    def colours(self) -> dict[str, str]:
        """Label → role of its colour, the same in all figures."""
        return colours(sorted(row.own_label for row in self.rows))

    @cached_property
    def run(self) -> ProjectedRun | None:
        """The projection of the training run; None without a training run.

        Raises:
            costmodel.errors.CostModelError: the projection is refused.
        """
        if not self.places:
            return None
        training_run = self.places[-1].training_run

        def needed(identity: CellIdentity) -> bool:
            baseline = training_run.baseline
            return self._wanted(identity) or (baseline is not None and matches_spec(identity, baseline))

        sources: list[Recording | Published] = [*self.sources, *self.published]
        every = project_per_substrate(sources, self.places, self.bounds, self.providers, needed)
        rows = [row for row in every if self._wanted(row.identity)]
        answer = projected.answer(every, rows, training_run)
        tables = projected.all_sections(rows, answer, training_run, sources, self.bounds)
        return ProjectedRun(title(rows, training_run), answer, tables)

    def _wanted(self, identity: CellIdentity) -> bool:
        identities = [row.identity for row in self.rows]
        workloads = {(item.tier, item.tier_digest, item.actions, item.mode) for item in identities}
        hidden = {cell.identity.label for source in self.sources for cell in source.cells}
        hidden -= {item.label for item in identities}
        workload = identity.tier, identity.tier_digest, identity.actions, identity.mode
        return workload in workloads and identity.label not in hidden

    @cached_property
    def answer(self) -> Answer:
        """The answer about occupied time, as in ``taxtui report``."""
        return measured.answer(self.rows, self.sources, self.run_sd, self.bounds)
