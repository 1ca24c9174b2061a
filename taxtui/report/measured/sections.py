"""Tables of ``taxtui report``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from costmodel import (
    DISTURBED_SHARE,
    FLOOR_LIMIT_NS,
    Answer,
    Prices,
    Recording,
    Reference,
    WorkerFitness,
    events,
    warnings,
)
from taxtui.report import variation, words
from taxtui.report.cells import CellGroup, Content, RowName, TableCell, duration_cell, percentile_cell
from taxtui.report.formats import Section
from taxtui.report.marks import MOST, FlagMarks
from taxtui.report.measured import distributions, failures, overview
from taxtui.report.measured.rows import PARTS, PRELOADED, MeasuredRow, column_of, namesakes
from taxtui.report.numbers import CLOSED_LOOP, COUNT, NOTHING, NS, SHARE, WRAPPER, duration
from taxtui.report.projected.sections import bound_notes, causes
from taxtui.terminal_text import clean

LATENCIES: Final = {
    "cold-start": {"cold_start": "Cold start: create request to the first command that returned"},
    "fresh": {"fresh_episode": "Fresh episode: cold start, preload and setup"},
    "completion": {"trajectory": "Completion: create request to the end of the last action"},
    "actions": {
        "amortized_per_action": "Per action, amortised: completion / actions",
        "action": "Action: submission to exit code and full output",
        "run": "Run: the part of an action inside the sandbox; actions only",
        "dispatch": "Dispatch: the rest of an action without wrapper time; actions only",
    },
    "response": {
        "response": "Response: scheduled start to the end of the last action",
        "held": "Held: first create request to the end of the last action",
        "start_delay": "Start delay: scheduled start to first create request; response − held",
    },
}
"""Table → columns of durations, with titles."""

TABLES: Final = (*LATENCIES, "breakdown", "tax")
RESPONSE: Final = "response"
DISTRIBUTIONS: Final = "distributions"
"""A table that is printed only by name."""

WORDS: Final = {
    **words.WORDS,
    warnings.NO_SUCCESS: "no trial succeeded, so there is no duration",
    PRELOADED: "each trial prepares the tier, because the image is not prepared",
    "arrival": "how trials were started: only rows with equal arrival are ranked",
    "think": "time between actions, by option or from the model; neither in a latency nor in the tax",
    "acquire": "sandboxes were acquired in another way than created fresh for each trial",
}
DO: Final = {
    **words.DO,
    warnings.NO_SUCCESS: "see how they failed: taxtui recordings info",
    warnings.DISTORTED: "record on an idle machine; see the clean trials in the breakdown",
    PRELOADED: "use taxtui's image, or compare completion without setup",
    **dict.fromkeys(("arrival", "think", "acquire"), "compare only rows with equal settings"),
}

_MEANS: Final = {
    "orchestration": "orchestration: create and ready until the sandbox's process started, if milestones are recorded.",
    "ready_again": "ready again: a second no-op.",
    "setup": "setup: the phase, whose commands are in work and dispatch above.",
    "queued": "queued: throttles.",
    "think": "",
    "verify": "verify: the task's own tests after the last action, in no sum.",
    "cleanup": "",
    "held": "held: occupied time of a worker.",
    "start_delay": "start delay: from a trial's scheduled start to its first create request.",
    "suspend": "suspend, resume: the sum over a trial's pauses, within model time; the wait for a resume is harness.",
    "resume": "",
    "snapshot": "snapshot, fork, build: once after the last action, in no sum. A fork uses the snapshot.",
    "fork": "",
    "build": "",
}
"""Column beside completion → note."""
_OPTIONAL: Final = {
    **dict.fromkeys(("verify", "suspend", "resume", "snapshot", "fork", "build"), 0.0),
    "start_delay": 1e6,
}
"""Column that is printed only if a mean is longer → that length in ns."""
HEAD: Final = "sandbox\ntier actions mode"
TAX: Final = "Tax of a delivered trajectory, and its occupied time by cause"


def sections(
    rows: Sequence[MeasuredRow],
    sources: Sequence[Recording],
    tables: Sequence[str],
    unfinished: int,
    answer: Answer | None = None,
    prices: Prices | None = None,
    reference: Reference | None = None,
) -> list[Section]:
    """Return the tables, then the recordings with all notes.

    Args:
        rows: the rows.
        sources: the recordings.
        tables: names of tables.
        unfinished: number of cells without a finished trial.
        answer: the answer about the rows, for the tax.
        prices: price sheet of the summary.
        reference: dispatch that bounds an unknown tax.
    """
    differing = namesakes(rows)
    marks = marks_of(rows)
    names = {row: name_of(row, marks, row.flags) for row in rows}
    results = []
    for table in tables:
        if table == RESPONSE:
            results += _response(names)
        elif table in LATENCIES:
            results += [_latencies(title, name, names) for name, title in LATENCIES[table].items()]
        elif table == "breakdown":
            results += [_breakdown(names), _other_means(names), *_bad_seconds(names)]
        elif table == DISTRIBUTIONS:
            results += distributions.sections(names, HEAD)
        elif table == failures.FAILURES:
            results += failures.sections(names, HEAD)
        elif table == overview.SUMMARY:
            results += overview.sections(names, prices)
        elif answer is not None:
            results += [_tax(names, answer, reference or {})]
    brief = marks.brief()
    basis = variation.in_words(row.basis for row in rows if row.basis)
    notes = [basis] if basis else []
    notes += [] if set(tables).isdisjoint(LATENCIES) else _HOW_TO_READ
    notes += marks.notes()
    coarse = {row.label: row.cell.resolution_ns for row in rows if row.cell.resolution_ns}
    notes += [f"{label}: the resolution of the source's clock is {duration(ns)}" for label, ns in coarse.items()]
    notes += [f"{name}: {fields}" for name, fields in differing.items()]
    notes += [f"Cells without a finished trial are not listed ({unfinished:,})."] if unfinished else []
    return [*(section._replace(notes=section.notes + brief) for section in results), files(sources, notes)]


def marks_of(rows: Sequence[MeasuredRow]) -> FlagMarks:
    """Return the letters of the rows' warnings."""
    return FlagMarks([row.flags for row in rows], DO)


def do_about(row: MeasuredRow) -> list[str]:
    """Return the advice about the most important warnings of a row."""
    return [f"{flag}: {DO[flag.partition(' ')[0]]}" for flag in row.flags[:MOST]]


def name_of(row: MeasuredRow, marks: FlagMarks, doubts: Sequence[str]) -> RowName:
    """Return the name of a row, with the letters of ``doubts``."""
    return RowName(row.label, row.details, marks.of(doubts))


_HOW_TO_READ: Final = [
    "Intervals: order statistics for percentiles (a trial's actions are a cluster), Hall's for the mean, Wilson's for "
    "failures. needs n≥…: too few values for an upper limit of the percentile.",
]


def _latencies(title: str, name: str, names: dict[MeasuredRow, RowName]) -> Section:
    """Return one kind of duration, a line per row, the smallest median first."""
    head = [HEAD, "n\nfailed", "p50\n", "p95\n", "p99\n", "mean\n"]
    lines: list[list[Content]] = []
    for row in ranked(list(names), name):
        summary = row.summary(name)
        if summary is None:
            lines.append([names[row], _counted(0, row), *[NOTHING] * 4])
            continue
        percentiles = map(percentile_cell, (summary.p50, summary.p95, summary.p99))
        lines.append([names[row], _counted(summary.n, row), *percentiles, duration_cell(*summary.mean)])
    return Section(title, head, lines, [])


def _response(names: dict[MeasuredRow, RowName]) -> list[Section]:
    scheduled = {row: named for row, named in names.items() if row.scheduled}
    unseen = [CLOSED_LOOP] if len(scheduled) < len(names) else []
    titles = LATENCIES[RESPONSE].items() if scheduled else ()
    results = [_latencies(title, name, scheduled) for name, title in titles]
    return [*results, *([Section("", [], [], unseen)] if unseen else [])]


def ranked(rows: Sequence[MeasuredRow], name: str) -> list[MeasuredRow]:
    """Return comparable rows together, the smallest median first."""
    return sorted(rows, key=lambda row: (row.comparable, _median(row, name)))


def _median(row: MeasuredRow, name: str) -> float:
    summary = row.summary(name)
    return summary.p50.value or 0 if summary else math.inf


def _breakdown(names: dict[MeasuredRow, RowName]) -> Section:
    optional = ("preload", "contention", "unsplit", "wrapper")
    parts = [part for part in PARTS if part not in optional or any(row.part_ns(part) for row in names)]
    lines: list[list[Content]] = []
    for row, named in names.items():
        total = row.mean_ns("trajectory")
        if not row.cell.succeeded:
            lines.append([named, *[NOTHING] * (len(parts) + 1)])
            continue
        shares = [
            NOTHING if column_of(part) in row.missing else _share(row.part_ns(part) or 0.0, total) for part in parts
        ]
        lines.append([named, *shares, duration_cell(total)])
    title = "Breakdown of completion: mean of each cause and its share"
    notes = [
        "work: the commands' own time in the sandbox; dispatch: the rest of a command; both for set-up and actions. "
        "harness: taxtui's time between phases and commands."
    ]
    if "wrapper" in parts:
        notes.append(WRAPPER)
    return Section(title, [HEAD, *(f"{part}\n" for part in parts), "all\n"], lines, notes)


def _share(part_ns: float, total_ns: float | None) -> Content:
    if total_ns is None:
        return TableCell(part_ns, NS)
    return CellGroup((TableCell(part_ns, NS), TableCell(part_ns / total_ns if total_ns else 0.0, SHARE)), below=True)


def _other_means(names: dict[MeasuredRow, RowName]) -> Section:
    """Return means beside completion; optional columns only with data."""
    columns = [
        name
        for name in _MEANS
        if name not in _OPTIONAL or any((row.mean_ns(name) or 0) > _OPTIONAL[name] for row in names)
    ]
    lines: list[list[Content]] = [
        [named, *(duration_cell(row.mean_ns(name)) for name in columns)] for row, named in names.items()
    ]
    notes = [text for name, text in _MEANS.items() if text and name in columns]
    head = [HEAD, *(f"{name.replace('_', ' ')}\n" for name in columns)]
    return Section("Beside completion: means", head, lines, notes)


def _bad_seconds(names: dict[MeasuredRow, RowName]) -> list[Section]:
    """Return the rows with trials in seconds of a late or busy runner; no table without any."""
    lines: list[list[Content]] = []
    for row, named in names.items():
        exposure = row.exposure
        if exposure is None:
            continue
        of_all = TableCell(note=f"of {exposure.successes:,}")
        counts = CellGroup((TableCell(exposure.exposed, COUNT), of_all), below=True)
        means = [duration_cell(exposure.every_ns.value), duration_cell(exposure.clean_ns.value)]
        lines.append([named, counts, *means, TableCell(exposure.share, SHARE)])
    notes = [
        "Mean completion of all trials and of clean trials. Clean trials have no second with a loop lag above 5 ms or "
        "a busy runner; if they are few, the less exposed half counts as clean. bad share: of the median trial's time; "
        f"above {DISTURBED_SHARE:.0%} there is no clean half. All seconds of a process are bad if its floor is above "
        f"{FLOOR_LIMIT_NS / 1e6:g} ms."
    ]
    head = [HEAD, "trials in\nbad seconds", "all\n", "clean\n", "bad share\n"]
    return [Section("Trials in bad seconds of the runner", head, lines, notes)] if lines else []


def _tax(names: dict[MeasuredRow, RowName], answer: Answer, reference: Reference) -> Section:
    """Return the tax of a delivered trajectory and the occupied time by cause."""
    entries = [entry.row for line in answer.lines for entry in line.entries]
    rows = {(row.identity, row.provenance, row.length.actions): row for row in entries}
    section = causes([(name, rows.get(row.key)) for row, name in names.items()], unit=NS)
    substrates = dict.fromkeys(row.identity.substrate for row in names)
    notes = [*section.notes, *bound_notes(reference, substrates)]
    return section._replace(title=TAX, head=[HEAD, *section.head[1:]], notes=notes)


def files(sources: Sequence[Recording], notes: list[str]) -> Section:
    """Return the recordings, with the load of the measuring process."""
    lines: list[list[Content]] = []
    for source in sources:
        floor = duration_cell(None if source.floor_ns == events.UNKNOWN else source.floor_ns)
        state = "complete" if source.whole else "INCOMPLETE"
        name = f"{clean(source.name)}\n{clean(source.run_id)}"
        lag, cpu = duration_cell(source.lag_p99_ns), TableCell(source.cpu_permille / 1000, SHARE)
        lines.append([name, TableCell(source.trials, COUNT), lag, cpu, floor, state])
        if source.at_once > 1:
            lines += [_worker(number, fitness) for number, fitness in sorted(source.workers.items())]
    if any(source.at_once > 1 for source in sources):
        notes = [*notes, "With several workers, the first line has the worst value of all."]
    head = ["recording\nrun", "trials\n", "loop lag\np99", "client\nCPU", "floor\n", "state\n"]
    return Section("Recordings", head, lines, notes)


def _worker(number: int, fitness: WorkerFitness) -> list[Content]:
    cpu, state = TableCell(fitness.cpu_permille / 1000, SHARE), ", ".join(fitness.problems) or "fit"
    return [f"worker {number}\n", "", duration_cell(fitness.lag_p99_ns), cpu, "", state]


def _counted(count: int, row: MeasuredRow) -> CellGroup:
    """Return a number of values and, on a second line, the share of failed trials."""
    rate, low, high = row.failures
    return CellGroup((TableCell(count, COUNT), TableCell(rate, SHARE, low, high)), below=True)
