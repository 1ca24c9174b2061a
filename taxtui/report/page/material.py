"""The content of a page: rows and projections, with their names and colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from costmodel import (
    HELD_PER_SUCCESS,
    Answer,
    CellIdentity,
    Provider,
    Published,
    Recording,
    Reference,
    Row,
    SubstrateRun,
    TrainingRun,
    answer_of,
    project,
)
from taxtui.report.answer.order import sorted_by
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.measured.tables import marks_of
from taxtui.report.page.asked_run import AskedRun, asked_run
from taxtui.report.page.palette import Look, looks
from taxtui.report.page.settings import Setting, counted, drawn, kind_of, settings

MILLION = 1_000_000


class Material:
    """The recordings of one page. Values that several figures need are computed once."""

    def __init__(
        self,
        rows: Sequence[MeasuredRow],
        sources: Sequence[Recording],
        paths: Sequence[Path],
        unfinished: int,
        *,
        run_sd: float | None = None,
        bounds: Reference | None = None,
        sort: str | None = None,
        published: Sequence[Published] = (),
        places: Sequence[SubstrateRun] = (),
        providers: Sequence[Provider] = (),
    ) -> None:
        """``rows`` are those to show of the cells of ``sources``, read from ``paths``; ``unfinished`` cells are none.

        ``run_sd`` is as ``TrainingRun`` has it, ``bounds`` what bounds an unknown tax, ``sort`` the order of the
        answer. ``published`` latencies stand beside the rows; ``places`` are what a training run asks of each, if one
        is given, and ``providers`` those that it composes.
        """
        self.run_sd = run_sd
        self.bounds = bounds
        self.sort = sort
        self.published = list(published)
        self.places = list(places)
        self.providers = list(providers)
        self.rows = list(rows)
        self.sources = list(sources)
        self.paths = list(paths)
        self.unfinished = unfinished
        self.marks = marks_of(self.rows)

    @cached_property
    def looks(self) -> dict[str, Look]:
        """The look of every label, so that a substrate looks alike in all pictures."""
        return looks(sorted(row.own_label for row in self.rows))

    def look(self, row: MeasuredRow) -> Look:
        return self.looks[row.own_label]

    @cached_property
    def _drawn(self) -> tuple[list[Setting], list[str]]:
        return drawn(settings(self.rows))

    @property
    def settings(self) -> list[Setting]:
        return self._drawn[0]

    @property
    def not_drawn(self) -> list[str]:
        """Notes of what they leave out."""
        return self._drawn[1]

    @cached_property
    def per_million(self) -> list[Row]:
        """A million trajectories of every row; worker-hours do not depend on how many workers there are."""
        training_run = TrainingRun(trajectories=MILLION, workers=1)
        printed = project(self.published, training_run) if self.published else []
        if not any(row.good for row in self.rows):
            return printed
        kept = {(row.identity, row.cell.provenance) for row in self.rows}
        training_run = replace(training_run, run_sd=self.run_sd)
        shown = {identity for identity, _ in kept}
        result = project(
            self.sources,
            training_run,
            None,
            self.bounds,
            each_level=True,
            wanted=shown.__contains__,
            checked=False,
            stressed=False,
        )
        return [*(row for row in result if (row.identity, row.provenance) in kept), *printed]

    @cached_property
    def run(self) -> AskedRun | None:
        """The run of the training run; None without one."""
        if not self.places:
            return None
        sources: list[Recording | Published] = [*self.sources, *self.published]
        return asked_run(sources, self.places, self.bounds, self.providers, self._wanted, self.sort)

    def _wanted(self, identity: CellIdentity) -> bool:
        """Whether its work is shown, and its place, unless that is one which was recorded and is not."""
        works = {(item.tier, item.tier_digest, item.actions, item.mode) for item in self._identities}
        hidden = {cell.identity.label for source in self.sources for cell in source.cells}
        hidden -= {item.label for item in self._identities}
        work = identity.tier, identity.tier_digest, identity.actions, identity.mode
        return work in works and identity.label not in hidden

    @property
    def _identities(self) -> list[CellIdentity]:
        return [row.identity for row in self.rows]

    @cached_property
    def answer(self) -> Answer:
        """The answer about occupied time, as ``taxtui report`` prints it."""
        return sorted_by(answer_of(self.per_million, HELD_PER_SUCCESS, run_sd=self.run_sd), self.sort)

    def letters(self, row: MeasuredRow) -> str:
        return self.marks.of(row.flags)

    def kinds(self, rows: Sequence[MeasuredRow]) -> dict[tuple[str, str], str]:
        """Label and mode → what a legend calls all rows that have them, with their trials and flags."""
        result: dict[tuple[str, str], list[MeasuredRow]] = {}
        for row in rows:
            result.setdefault((row.own_label, row.identity.mode), []).append(row)
        return {kind: self._kind(group) for kind, group in result.items()}

    def _kind(self, rows: Sequence[MeasuredRow]) -> str:
        return f"{kind_of(rows[0])}{self.lettered(rows)}, {counted(rows)}"

    def lettered(self, rows: Sequence[MeasuredRow]) -> str:
        letters = "".join(sorted({letter for row in rows for letter in self.letters(row)}))
        return f" [{letters}]" if letters else ""

    def notes(self, words: str) -> list[str]:
        """Below a figure: what it shows, what the letters stand for, and what it leaves out."""
        return [words, *self.marks.brief(), *self.not_drawn]
