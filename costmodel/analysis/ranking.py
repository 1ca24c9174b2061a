"""Ranking of substrates by workload: the cheapest, the ratios with intervals, and the main cause of a difference.

A line per workload, a column per substrate. Only rows of one provenance are ranked: measured with measured, published
with published. Disturbed rows are not ranked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from costmodel.analysis.baseline import WORK_FIELDS, judge_rows, matching, times
from costmodel.projection import warnings
from costmodel.projection.row import Row
from costmodel.recording.trial import CellIdentity
from costmodel.statistics.intervals import Interval
from costmodel.statistics.verdict import Finding
from costmodel.training.length import Length

WORKER_HOURS: Final = "worker_hours"
HELD_PER_SUCCESS: Final = "held_per_success_s"
"""Measure of an answer, a field of a row: worker-hours of the run, or occupied seconds per delivered trajectory."""

EXEC, SESSION = "exec", "session"
"""Compared modes of a workload: a dispatch per action, and a persistent shell."""

GROUNDS: Final = ("measured", warnings.STAND_IN, warnings.IMPORTED, "composed", warnings.PUBLISHED)
"""Provenances, the most reliable first. Rows of the first with any row are ranked."""


class Work(NamedTuple):
    """Workload of a row; sorted by tier, number of actions, mode."""

    tier: str
    actions: float  # of one trajectory; the mean where lengths differ
    length: Length
    mode: str
    concurrency: int
    tier_digest: str
    arrival: str
    think: str
    acquire: str
    cpu_milli: int
    memory_mib: int

    @classmethod
    def of(cls, row: Row) -> Work:
        identity = row.identity
        return cls(
            actions=row.length.actions,
            length=row.length,
            **{name: getattr(identity, name) for name in cls._fields if name not in ("actions", "length")},
        )


class Place(NamedTuple):
    """A substrate as a column."""

    label: str
    provenance: str
    number: int = 0  # from 1 where several places have this label
    differs: str = ""  # differing fields: "environment 1e17…, image sha256:…"

    @property
    def name(self) -> str:
        return f"{self.label} #{self.number}" if self.number else self.label


class Entry(NamedTuple):
    """A workload on a substrate."""

    place: Place
    row: Row
    amount: Interval | None  # None: no success
    ratio: Interval | None = None  # to the line's reference; None of the reference itself, and where nothing is ranked
    verdict: Finding | None = None  # against the reference, likewise
    another_environment: bool = False  # another machine, region or kernel than the reference's


class WorkLine(NamedTuple):
    """A workload on all its substrates."""

    work: Work
    differences: tuple[str, ...]  # differences from workloads of the same tier, length and mode: "concurrency 8"
    entries: tuple[Entry, ...]  # in the order of the columns
    reference: Place | None  # the baseline, else the cheapest; None where nothing is ranked

    @property
    def name(self) -> str:
        """``T1 50 exec``."""
        parts = (self.work.tier, str(self.work.length), self.work.mode, *self.differences)
        return " ".join(part for part in parts if part)

    def at(self, place: Place) -> Entry | None:
        """Return the entry of a column; None where the substrate lacks this workload."""
        return next((entry for entry in self.entries if entry.place == place), None)

    @property
    def ranked(self) -> tuple[Entry, ...]:
        """Return the compared entries, the cheapest first."""
        compared = [entry for entry in self.entries if entry.ratio is not None or entry.place == self.reference]
        return tuple(sorted(compared, key=lambda entry: entry.amount.value if entry.amount else 0.0))


class ModeRatio(NamedTuple):
    """A workload on a substrate: the ratio of ``exec`` to ``session``."""

    work: Work  # by exec
    differences: tuple[str, ...]  # as in ``WorkLine``
    place: Place
    row: Row  # by exec
    session: Row
    ratio: Interval
    verdict: Finding

    @property
    def name(self) -> str:
        """``T1 50``."""
        return " ".join(part for part in (self.work.tier, str(self.work.length), *self.differences) if part)


class Answer(NamedTuple):
    """Ranking of the substrates of each workload."""

    measure: str  # ``WORKER_HOURS`` or ``HELD_PER_SUCCESS``
    places: tuple[Place, ...]
    lines: tuple[WorkLine, ...]
    ground: str  # provenance of the ranked rows
    baseline: str | None  # requested baseline; None: each line's cheapest is its reference
    modes: tuple[ModeRatio, ...] = ()  # each workload measured in both modes, in the order of the lines

    @property
    def unranked(self) -> tuple[Place, ...]:
        """Return the columns without a rank."""
        return tuple(place for place in self.places if place.provenance != self.ground)


def answer_of(
    rows: Sequence[Row], measure: str = WORKER_HOURS, *, run_sd: float | None = None, baseline: str | None = None
) -> Answer:
    """Group the rows of a training run by workload, and rank the rows of each.

    ``measure``: ``worker_hours`` or ``held_per_success_s``; both rank alike. ``run_sd`` and ``baseline`` are fields of
    ``TrainingRun``; by default the reference is the cheapest of each workload.

    Raises:
        TrainingRunError: the baseline is unknown.
    """
    ground = next((candidate for candidate in GROUNDS if any(row.provenance == candidate for row in rows)), "")
    baselines = None if baseline is None else matching(rows, baseline)
    placed = _placed(rows)
    columns = {id(row): place for place, members in placed.items() for row in members}
    works: dict[Work, list[Row]] = {}
    for row in rows:
        works.setdefault(Work.of(row), []).append(row)
    named = _named(works)
    order = {place: number for number, place in enumerate(placed)}
    lines = []
    for work, members in sorted(works.items()):
        ranked = {id(row): row for row in members if row.provenance == ground and _comparable(row, measure)}
        if baselines is None:
            reference = min(ranked.values(), key=lambda row: getattr(row, measure).value, default=None)
        else:
            reference = next((row for row in baselines if id(row) in ranked), None)
        entries = []
        for row in members:
            entry = Entry(columns[id(row)], row, getattr(row, measure))
            if reference is not None and row is not reference and id(row) in ranked:
                ratio, verdict = _against(row, reference, measure, run_sd)
                another = row.identity.environment != reference.identity.environment
                entry = entry._replace(ratio=ratio, verdict=verdict, another_environment=another)
            entries.append(entry)
        ordered = tuple(sorted(entries, key=lambda entry: order[entry.place]))
        reference_place = None if reference is None or len(ranked) < 2 else columns[id(reference)]
        lines.append(WorkLine(work, named[work], ordered, reference_place))
    modes = tuple(_modes(lines, ground, measure, run_sd))
    return Answer(measure, tuple(placed), tuple(lines), ground, baseline, modes)


def _modes(lines: Sequence[WorkLine], ground: str, measure: str, run_sd: float | None) -> Iterator[ModeRatio]:
    """Yield the ratio of each workload with rankable rows in both modes."""
    sessions = {line.work: line for line in lines if line.work.mode == SESSION}
    for line in lines:
        session_line = sessions.get(line.work._replace(mode=SESSION)) if line.work.mode == EXEC else None
        for entry in line.entries if session_line else ():
            assert session_line is not None
            session = session_line.at(entry.place)
            if session is None or entry.place.provenance != ground:
                continue
            if _comparable(entry.row, measure) and _comparable(session.row, measure):
                ratio, verdict = _against(entry.row, session.row, measure, run_sd)
                if ratio is not None:
                    yield ModeRatio(line.work, line.differences, entry.place, entry.row, session.row, ratio, verdict)


def _comparable(row: Row, measure: str) -> bool:
    return getattr(row, measure) is not None and warnings.DISTURBED not in row.flags


def _against(row: Row, reference: Row, measure: str, run_sd: float | None) -> tuple[Interval | None, Finding]:
    """Return the ratio of two comparable rows, and the verdict."""
    amounts = getattr(row, measure), getattr(reference, measure)
    return times(row, reference, *amounts, run_sd), judge_rows(row, reference, *amounts, run_sd).verdict


def _placed(rows: Sequence[Row]) -> dict[Place, list[Row]]:
    """Return rows by column. A label with two rows of a workload has a column per differing identity."""
    labelled: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        labelled.setdefault((row.provenance, row.label), []).append(row)
    order = sorted(labelled, key=lambda key: GROUNDS.index(key[0]) if key[0] in GROUNDS else len(GROUNDS))
    columns: dict[Place, list[Row]] = {}
    for provenance, label in order:
        members = labelled[provenance, label]
        if len({Work.of(row) for row in members}) == len(members):
            columns[Place(label, provenance)] = members
            continue
        common = (*WORK_FIELDS, "actions", "length", "substrate", "variant")
        fields = [name for name in CellIdentity._fields if name not in common]
        fields = [name for name in fields if len({getattr(row.identity, name) for row in members}) > 1]
        by_place: dict[tuple[object, ...], list[Row]] = {}
        for row in members:
            by_place.setdefault(tuple(getattr(row.identity, name) for name in fields), []).append(row)
        for number, (values, rows_of_place) in enumerate(by_place.items(), 1):
            differs = ", ".join(f"{name} {value}" for name, value in zip(fields, values, strict=True))
            columns[Place(label, provenance, number, differs)] = rows_of_place
    return columns


def _named(works: Iterable[Work]) -> dict[Work, tuple[str, ...]]:
    """Return the differences between workloads of the same tier, length and mode."""
    groups: dict[tuple[str, Length, str], list[Work]] = {}
    for work in works:
        groups.setdefault((work.tier, work.length, work.mode), []).append(work)
    names: dict[Work, tuple[str, ...]] = {}
    for alike in groups.values():
        fields = [name for name in WORK_FIELDS if len({getattr(work_of_group, name) for work_of_group in alike}) > 1]
        names |= {work: tuple(f"{name} {getattr(work, name)}" for name in fields) for work in alike}
    return names
