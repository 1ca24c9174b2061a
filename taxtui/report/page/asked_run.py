"""The training run that a training run asks for, on a page: its projection, what the sandbox costs it, and its
tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from costmodel import (
    Answer,
    CellIdentity,
    Provider,
    Published,
    Recording,
    Reference,
    Row,
    SubstrateRun,
    matches_spec,
    project_per_substrate,
    warnings,
)
from taxtui.options.rows import RowChoice
from taxtui.report.answer import projected, table
from taxtui.report.formats import Section
from taxtui.report.measured.rows import PROVENANCES
from taxtui.report.projected import attributed
from taxtui.report.projected.sections import name_of, sections, title
from taxtui.terminal_text import clean

MOST_HEADLINES: Final = 4
ELSEWHERE: Final = {warnings.COMPOSED: ["COMPOSED"], **{how: [told] for how, told in PROVENANCES.items()}}
"""Beginning of a sentence about a row that was not measured here."""


class AskedRun(NamedTuple):
    """Rows of one training run, or of one for each place."""

    rows: list[Row]
    places: list[SubstrateRun]  # the last one is for all that no other means
    sources: list[Recording | Published]
    bounds: Reference | None
    answer: Answer  # of the rows, as ``taxtui project`` has it

    @property
    def title(self) -> str:
        return title(self.rows, self.places[-1].training_run)

    @property
    def headlines(self) -> list[str]:
        """A sentence for each row whose run is one of steps: what the sandbox costs it; none where these are many."""
        if sum(row.attribution is not None for row in self.rows) > MOST_HEADLINES:
            return []
        results = []
        for row in self.rows:
            if row.attribution is not None:
                name = " ".join([*ELSEWHERE.get(row.provenance, ()), *name_of(row).split("\n")])
                results.append(f"{name}: {clean(attributed.headline(row.attribution))}.")
        return results

    def sections(self) -> list[Section]:
        """The answer, what it costs by cause, then every table of the projection; each once."""
        training_run = self.places[-1].training_run
        answered = table.sections(self.answer, self.title, workers=training_run.workers, reference=self.bounds)
        first = [*answered, *attributed.sections(self.rows, training_run)]
        titles = {section.title for section in first}
        others = sections(self.rows, training_run, self.sources, self.bounds)
        return [*first, *(section for section in others if section.title not in titles)]


def asked_run(
    sources: Sequence[Recording | Published],
    places: Sequence[SubstrateRun],
    bounds: Reference | None,
    providers: Sequence[Provider],
    wanted: Callable[[CellIdentity], bool],
    sort: str | None = None,
) -> AskedRun:
    """Project what was asked, of the cells that are ``wanted``; ``providers`` are composed, ``sort`` orders the answer.

    Raises:
        costmodel.errors.CostModelError: it cannot be answered.
    """
    training_run = places[-1].training_run
    baseline = training_run.baseline

    def needed(identity: CellIdentity) -> bool:
        return wanted(identity) or (baseline is not None and matches_spec(identity, baseline))

    every = project_per_substrate(sources, places, bounds, providers, needed)
    rows = [row for row in every if wanted(row.identity)]
    answer = projected.answer(every, rows, training_run, RowChoice(sort=sort))
    return AskedRun(rows, list(places), list(sources), bounds, answer)
