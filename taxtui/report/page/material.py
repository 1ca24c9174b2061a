"""The content of a page: rows, projections, and their names and colours in figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

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
from taxtui.report.marks import FlagMarks
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.measured.sections import marks_of
from taxtui.report.page.palette import colours
from taxtui.report.page.panels import PanelRows, count_text, fitting_panels, kind_of, panels_of
from taxtui.report.page.training_run import ProjectedRun


@dataclass(eq=False)
class Material:
    """The recordings of one page. Values for several figures are computed once."""

    rows: Sequence[MeasuredRow]
    sources: Sequence[Recording]
    paths: Sequence[Path]  # of the sources
    unfinished: int  # cells without a finished trial
    run_sd: float | None = None  # between-repetition sd, as in ``TrainingRun``
    bounds: Reference | None = None  # dispatch of a reference, for limits of an unknown tax
    published: Sequence[Published] = ()  # latencies, never ranked with the rows
    places: Sequence[SubstrateRun] = ()  # the training run of each substrate; () without a training run
    providers: Sequence[Provider] = ()  # estimated providers of the training run

    @cached_property
    def marks(self) -> FlagMarks:
        return marks_of(self.rows)

    @cached_property
    def colours(self) -> dict[str, str]:
        """Label → role of its colour, the same in all figures."""
        return colours(sorted(row.own_label for row in self.rows))

    @cached_property
    def _fitting(self) -> tuple[list[PanelRows], list[str]]:
        return fitting_panels(panels_of(self.rows))

    @property
    def panels(self) -> list[PanelRows]:
        return self._fitting[0]

    @property
    def omissions(self) -> list[str]:
        """Notes about rows outside of the panels."""
        return self._fitting[1]

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
        return ProjectedRun(rows, self.places, sources, self.bounds, projected.answer(every, rows, training_run))

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
        return measured.answer(self.rows, self.sources, self.run_sd, self.bounds, self.published)

    def letters(self, row: MeasuredRow) -> str:
        return self.marks.of(row.flags)

    def kinds(self, rows: Sequence[MeasuredRow]) -> dict[tuple[str, str], str]:
        """Return label and mode → legend with trials and letters of warnings."""
        groups: dict[tuple[str, str], list[MeasuredRow]] = {}
        for row in rows:
            groups.setdefault((row.own_label, row.identity.mode), []).append(row)
        return {kind: self._legend(group) for kind, group in groups.items()}

    def _legend(self, rows: Sequence[MeasuredRow]) -> str:
        letters = "".join(sorted({letter for row in rows for letter in self.letters(row)}))
        return f"{kind_of(rows[0])}{f' [{letters}]' if letters else ''}, {count_text(rows)}"

    def notes(self, text: str) -> list[str]:
        """Return the notes of a figure: its explanation, the letters, and the omitted rows."""
        return [text, *self.marks.brief(), *self.omissions]
