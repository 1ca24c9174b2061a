"""The training run on a page: its projection, the costs of the sandbox, and all tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from costmodel import (
    Answer,
    Published,
    Recording,
    Reference,
    Row,
    SubstrateRun,
    warnings,
)
from taxtui.report.answer import sections as answer_sections
from taxtui.report.formats import Section
from taxtui.report.measured.rows import PROVENANCES
from taxtui.report.projected import attributed
from taxtui.report.projected.sections import name_of, sections, title
from taxtui.terminal_text import clean

MOST_HEADLINES: Final = 4
UNMEASURED: Final = {warnings.COMPOSED: ["COMPOSED"], **{name: [prefix] for name, prefix in PROVENANCES.items()}}
"""Provenance of an unmeasured row → prefix of its headline."""


class ProjectedRun(NamedTuple):
    """Rows of one training run, or of one for each substrate."""

    rows: list[Row]
    places: Sequence[SubstrateRun]  # the last one is the default
    sources: list[Recording | Published]
    bounds: Reference | None
    answer: Answer

    @property
    def title(self) -> str:
        return title(self.rows, self.places[-1].training_run)

    @property
    def headlines(self) -> list[str]:
        """The costs of the sandbox in a sentence per row with steps; none if there are many rows."""
        if sum(row.attribution is not None for row in self.rows) > MOST_HEADLINES:
            return []
        results = []
        for row in self.rows:
            if row.attribution is not None:
                name = " ".join([*UNMEASURED.get(row.provenance, ()), *name_of(row).split("\n")])
                results.append(f"{name}: {clean(attributed.headline(row.attribution))}.")
        return results

    def sections(self) -> list[Section]:
        """Return the answer, the costs by cause, and every other table of the projection."""
        training_run = self.places[-1].training_run
        answer = answer_sections.sections(self.answer, self.title, full=True)
        first = [*answer, *attributed.sections(self.rows, training_run)]
        titles = {section.title for section in first}
        remaining = sections(self.rows, training_run, self.sources, self.bounds)
        return [*first, *(section for section in remaining if section.title not in titles)]
