"""The tables of a report, as rows of text for the layouts in ``report.projection``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from costmodel import (
    DISTURBED_SHARE,
    FLOOR_LIMIT_NS,
    NS_PER_HOUR,
    Percentile,
    Prices,
    Recording,
    WorkerFitness,
    events,
    warnings,
)
from taxtui.report import variation
from taxtui.report.cells import COUNT, NS, SHARE, CellGroup, Content, RowName, TableCell, duration_cell
from taxtui.report.formats import Section
from taxtui.report.marks import FlagMarks
from taxtui.report.measured import distributions, failures, overview
from taxtui.report.measured.rows import PRELOADED, TAXES, MeasuredRow, namesakes
from taxtui.report.numbers import CLOSED_LOOP, NOTHING, UNSPLIT, WRAPPER, duration, left_out
from taxtui.terminal_text import clean

LATENCIES: Final = {
    "cold-start": {"cold_start": "Cold start: create request to the first command that returned"},
    "fresh": {"fresh_episode": "Fresh episode: cold start, preload and setup"},
    "completion": {"trajectory": "Completion: create request to the end of the last action"},
    "actions": {
        "amortized_per_action": "Per action, amortised: completion / actions",
        "action": "Action: submitted to its exit code and full output in our hands",
        "run": "Run: the part of an action inside the sandbox; actions only",
        "dispatch": "Dispatch: the rest of an action without wrapper time; actions only",
    },
    "response": {
        "response": "Response: a trial's turn to the end of what it held",
        "held": "Held, the service time: the first create request to the end of the last action",
        "start_delay": "Start delay: a trial's turn to its first create request; response less held",
    },
}
"""Table → its columns of durations, each with its title."""

TABLES: Final = (*LATENCIES, "breakdown", "tax")
RESPONSE: Final = "response"
DISTRIBUTIONS: Final = "distributions"
"""A table for models of a run, which is printed only where it is asked for."""

WORDS: Final = {
    **warnings.WORDS,
    warnings.NO_SUCCESS: "not one trial succeeded, so there is no duration to show",
    PRELOADED: "the image lacks what the tier needs; each trial prepares it, in its fresh episode",
    "arrival": "how trials were started: only rows with the same are ranked",
    "think": "time between actions: idle on purpose, or the model's where recorded; not in any latency, nor in the tax",
    "acquire": "how sandboxes were acquired, instead of made fresh for each trial",
}
DO: Final = {
    **warnings.DO,
    warnings.NO_SUCCESS: "see how they failed: taxtui recordings info",
    warnings.DISTORTED: "record on an idle machine; see the clean trials in the breakdown",
    PRELOADED: "use taxtui's image, or compare completion without setup",
    **dict.fromkeys(("arrival", "think", "acquire"), "rank such rows only with their like"),
}

PARTS: Final[dict[str, Callable[[MeasuredRow], float]]] = {
    "create": lambda row: row.mean_ns("create") or 0.0,
    "ready": lambda row: row.mean_ns("ready") or 0.0,
    "preload": lambda row: row.mean_ns("preload") or 0.0,
    "work": lambda row: row.mean_ns("work") or 0.0,
    "contention": lambda row: row.mean_ns("contention") or 0.0,
    "dispatch": lambda row: row.mean_ns("dispatch_total") or 0.0,
    "unsplit": lambda row: row.mean_ns("unsplit") or 0.0,
    "wrapper": lambda row: row.mean_ns("wrapper_total") or 0.0,
    "harness": lambda row: row.mean_ns("harness") or 0.0,
}
"""Part of a completion → its mean in ns."""

_LIFE_CYCLE: Final = ("suspend", "resume", "snapshot", "fork", "build")
HEAD: Final = "sandbox\ntier actions mode"
SHOWN_DELAY_NS: Final = 1_000_000


def sections(
    rows: Sequence[MeasuredRow],
    sources: Sequence[Recording],
    tables: Sequence[str],
    unfinished: int,
    *,
    arranged: bool = False,
    prices: Prices | None = None,
) -> list[Section]:
    """The tables asked for, then the recordings they come from, with the words that explain all marks.

    ``unfinished`` is the number of cells that are no row because no trial of theirs has ended. ``arranged``: the order
    of the rows was asked for; else tables of latencies have the smallest median first. ``prices`` are the summary's.
    """
    differing = namesakes(rows)
    marks = marks_of(rows)
    names = {row: name_of(row, marks, row.flags) for row in rows}
    results = []
    for table in tables:
        if table == RESPONSE:
            results += _response(names, arranged)
        elif table in LATENCIES:
            results += [_latencies(title, name, names, arranged) for name, title in LATENCIES[table].items()]
        elif table == "breakdown":
            results += [_breakdown(names), _beside(names), *_life_cycle(names), *_bad_seconds(names)]
        elif table == DISTRIBUTIONS:
            results += distributions.sections(names, HEAD)
        elif table == failures.FAILURES:
            results += failures.sections(names, HEAD)
        elif table == overview.SUMMARY:
            results += overview.sections(names, prices)
        else:
            results += [_tax(names)]
    if "completion" in tables:
        results += [section for section in [_in_time(names)] if section.rows]
    brief = marks.brief()
    told = variation.in_words(row.basis for row in rows if row.basis)
    notes = [told] if told else []
    notes += [] if set(tables).isdisjoint(LATENCIES) else _HOW_TO_READ
    notes += marks.notes()
    coarse = {row.label: row.cell.resolution_ns for row in rows if row.cell.resolution_ns}
    notes += [f"{label}: the source's clock tells {duration(ns)}" for label, ns in coarse.items()]
    notes += [f"{name}: {what}" for name, what in differing.items()]
    notes += [f"Not shown: cells without a finished trial ({unfinished:,})."] if unfinished else []
    return [*(section._replace(notes=section.notes + brief) for section in results), files(sources, notes)]


def marks_of(rows: Sequence[MeasuredRow]) -> FlagMarks:
    """How rows are marked with their flags."""
    return FlagMarks([row.flags for row in rows], DO)


def do_about(row: MeasuredRow) -> list[str]:
    """Return the advice about the warnings that could move a row most."""
    return [f"{flag}: {DO[flag.partition(' ')[0]]}" for flag in row.flags[: warnings.MOST]]


def name_of(row: MeasuredRow, marks: FlagMarks, doubts: Sequence[str]) -> RowName:
    """The name of a row, with the letters of ``doubts``."""
    return RowName(row.label, row.details, marks.of(doubts))


_HOW_TO_READ: Final = [
    "Below each value its interval: order statistics for percentiles (a trial's actions count as a cluster), "
    "Hall's for the mean, Wilson's for failures. needs n≥…: too few values to bound the percentile from above.",
    "rank: by the median, among rows of equal work; 1-2 means that the intervals cannot separate these places, a tie. "
    "Rows of the same runs are ranked within these runs.",
    "outl.: values with |0.6745·(x − median)| / MAD > 3.5; none is removed.",
]


def _latencies(title: str, name: str, names: dict[MeasuredRow, RowName], arranged: bool) -> Section:
    """One kind of duration, a line per row; among comparable rows the smallest median first, unless ``arranged``."""
    head = [HEAD, "n\nfailed", "p50\n", "p95\n", "p99\n", "mean\n", "rank\n", "outl.\n"]
    lines: list[list[Content]] = []
    for row in names if arranged else ranked(list(names), name):
        summary, rank = row.summary(name), row.rank(name)
        if summary is None:
            lines.append([names[row], _counted(0, row), *[NOTHING] * 4, "", ""])
            continue
        line: list[Content] = [names[row], _counted(summary.n, row)]
        line += [percentile(item) for item in (summary.p50, summary.p95, summary.p99)]
        places = "" if rank is None else "-".join(map(str, dict.fromkeys(rank)))
        lines.append([*line, duration_cell(*summary.mean), places, TableCell(summary.outliers, COUNT)])
    return Section(title, head, lines, [])


def _response(names: dict[MeasuredRow, RowName], arranged: bool) -> list[Section]:
    """Return the response times of rows with a schedule, and a note about rows without one."""
    scheduled = {row: named for row, named in names.items() if row.scheduled}
    unseen = [CLOSED_LOOP] if len(scheduled) < len(names) else []
    titles = LATENCIES[RESPONSE].items() if scheduled else ()
    results = [_latencies(title, name, scheduled, arranged) for name, title in titles]
    return [*results, *([Section("", [], [], unseen)] if unseen else [])]


def ranked(rows: Sequence[MeasuredRow], name: str) -> list[MeasuredRow]:
    """In the order of a table of latencies: comparable rows together, the smallest median first."""
    return sorted(rows, key=lambda row: (row.comparable, _median(row, name)))


def _median(row: MeasuredRow, name: str) -> float:
    summary = row.summary(name)
    return summary.p50.value or 0 if summary else math.inf


def _breakdown(names: dict[MeasuredRow, RowName]) -> Section:
    optional = ("preload", "contention", "unsplit", "wrapper")
    result = {part: mean for part, mean in PARTS.items() if part not in optional or any(map(mean, names))}
    columns = {"dispatch": "dispatch_total", "wrapper": "wrapper_total"}
    lines: list[list[Content]] = []
    for row, named in names.items():
        total = row.mean_ns("trajectory")
        if not row.cell.succeeded:
            lines.append([named, *[NOTHING] * (len(result) + 1)])
            continue
        shares = [
            NOTHING if columns.get(part, part) in row.untold else _share(mean(row), total)
            for part, mean in result.items()
        ]
        lines.append([named, *shares, duration_cell(total)])
    title = "Breakdown of completion: mean of each cause and its share"
    notes = [
        "work: the commands' own time in the sandbox, dispatch: the rest of theirs, for set-up and actions alike. "
        "harness: our own time between phases and commands."
    ]
    if "wrapper" in result:
        notes.append(WRAPPER)
    return Section(title, [HEAD, *(f"{part}\n" for part in result), "all\n"], lines, notes)


def _share(part_ns: float, total_ns: float | None) -> Content:
    """A duration and, where the whole is known, its share of the whole."""
    if total_ns is None:
        return TableCell(part_ns, NS)
    return CellGroup((TableCell(part_ns, NS), TableCell(part_ns / total_ns if total_ns else 0.0, SHARE)), below=True)


def _beside(names: dict[MeasuredRow, RowName]) -> Section:
    columns = ["orchestration", "ready_again", "setup", "queued", "think", "verify", "cleanup", "held"]
    if not any(row.mean_ns("verify") for row in names):
        columns.remove("verify")
    late = [row for row in names if (row.mean_ns("start_delay") or 0.0) > SHOWN_DELAY_NS]
    columns += ["start_delay"] * bool(late)
    lines = [[named, *(duration_cell(row.mean_ns(name)) for name in columns)] for row, named in names.items()]
    notes = [
        "orchestration: the part of create and ready before the sandbox's own process ran, where marks show it. "
        "ready again: a second no-op. setup: the phase, whose commands are in work and dispatch above. "
        "queued: throttles. held: what a worker is occupied for."
        + " verify: the task's own tests after the last action, in no sum."
        * ("verify" in columns)
    ]
    if late:
        notes.append("start delay: from a trial's turn to its start, before anything that is held.")
    head = [HEAD, *(f"{name.replace('_', ' ')}\n" for name in columns)]
    return Section("Beside completion: means", head, lines, notes)


def _life_cycle(names: dict[MeasuredRow, RowName]) -> list[Section]:
    """Means of a trial's suspensions and copies; no table where no row has any."""
    columns = [name for name in _LIFE_CYCLE if any(row.mean_ns(name) is not None for row in names)]
    lines = [
        [named, *(duration_cell(row.mean_ns(name)) for name in columns)]
        for row, named in names.items()
        if any(row.mean_ns(name) is not None for name in columns)
    ]
    notes = [
        "suspend, resume: the sum over a trial's pauses. A suspension lies within model time; the wait for a resume "
        "is part of harness. snapshot, fork, build: once after the last action, in no sum. A fork uses the snapshot."
    ]
    head = [HEAD, *(f"{name}\n" for name in columns)]
    return [Section("Life cycle: means per trial", head, lines, notes)] if lines else []


def _in_time(names: dict[MeasuredRow, RowName]) -> Section:
    """The rows whose completions are not alike in time, with what was found and its size."""
    lines: list[list[Content]] = []
    for row, named in names.items():
        stability = row.stability
        if not any(stability):
            continue
        drift, first = (NOTHING if size is None else f"{size:+.0%}" for size in (stability.drift, stability.first))
        neighbours = modes = NOTHING
        if stability.correlation is not None and stability.worth is not None:
            neighbours = f"{stability.correlation:.2f}\n1 worth {stability.worth:.2g}"
        if stability.modes is not None:
            modes = f"{stability.modes.share:.0%} slower\n{stability.modes.ratio:.2g}x"
        lines.append([named, drift, neighbours, first, modes])
    notes = [
        "Completions in time order, tested at 1 % each; cells that are not here show nothing of it. drift: from the "
        "beginning of a run to its end. neighbours: how trials in a row correlate, and how many independent "
        "trials one is worth, which the intervals of means allow for. first: a run's first trial against its others. "
        "modes: two groups of trials with little between them; their mean is the time of neither."
    ]
    return Section("In time", [HEAD, "drift\n", "neighbours\n", "first\n", "modes\n"], lines, notes)


def _bad_seconds(names: dict[MeasuredRow, RowName]) -> list[Section]:
    """Rows with trials in seconds in which the measuring process was not fit; no table where there are none."""
    lines: list[list[Content]] = []
    for row, named in names.items():
        exposure = row.exposure
        if exposure is None:
            continue
        low, high = exposure.every_ns.low, exposure.every_ns.high
        resolved = None if low is None or high is None else (high - low) / 2
        counts = CellGroup(
            (TableCell(exposure.exposed, COUNT), TableCell(note=f"of {exposure.successes:,}")), below=True
        )
        line: list[Content] = [named, counts, duration_cell(exposure.every_ns.value)]
        line += [duration_cell(exposure.clean_ns.value), duration_cell(exposure.difference_ns), duration_cell(resolved)]
        line.append(TableCell(exposure.share, SHARE))
        lines.append([*line, "unknown" if exposure.throughout else "yes" if exposure.matters else "no"])
    head = [
        HEAD,
        "trials in\nbad seconds",
        "all\n",
        "clean\n",
        "difference\n",
        "resolved\n±",
        "bad share\n",
        "matters\n",
    ]
    notes = [
        "Mean completion of all trials beside the clean ones: those in no second with a loop lag above 5 ms or a busy "
        "runner; where these are few, the less exposed half. matters: the difference is more than the row resolves. "
        f"bad share: of the median trial's time. Above {DISTURBED_SHARE:.0%} no clean half is left to compare with. "
        f"All seconds of a process are bad if its floor is above {FLOOR_LIMIT_NS / 1e6:g} ms."
    ]
    return [Section("Trials in bad seconds of the runner", head, lines, notes)] if lines else []


def _tax(names: dict[MeasuredRow, RowName]) -> Section:
    known = any(row.cell.contended is not None for row in names)
    columns = ["startup\nqueued", "dispatch\nharness", "failed\ncontention" if known else "failed\n"]
    lines: list[list[Content]] = []
    unsplit = any(row.mean_ns("unsplit") for row in names)
    for row, named in names.items():
        held, tax = row.held_ns, row.tax
        own = NOTHING if held is None else _below(held, row.work_ns)
        if held is None or tax is None:
            limits = row.tax_between_ns
            bounds = NOTHING if limits is None else TableCell(None, NS, *limits)
            empty = [NOTHING] * (2 + len(columns))
            lines.append([named, own, bounds, *empty, *[TableCell(row.mean_ns("unsplit") or 0, NS)] * unsplit])
            continue
        causes = [[tax.causes[cause] for cause in column.split("\n") if cause] for column in columns]
        lines.append(
            [
                named,
                own,
                duration_cell(*tax.total),
                TableCell(tax.share, SHARE),
                *(_below(*means) for means in causes),
                TableCell(tax.total.value * 1e6 / NS_PER_HOUR),
                *[NOTHING] * unsplit,
            ]
        )
    head = [HEAD, "held\nwork", "tax\n", "share\n", *columns, "h per 1M\n", *["unsplit\n"] * unsplit]
    notes = [
        f"Per successful trial. tax = held − think − work − wrapper = {' + '.join(TAXES)} trials; work: the commands' "
        "own time in the sandbox less contention, slowed down or not (`full_speed` of a training run tells slowdown "
        "apart). Both work and dispatch are of the set-up too. harness: our own time between phases and commands. "
        "share: of held. contention: waiting in the sandbox beyond the same cell's alone; –: not known, part of work. "
        "h per 1M: worker-hours of tax in a million trajectories."
    ]
    if shares := [cleanup / row.held_ns for row in names if (cleanup := row.mean_ns("cleanup")) and row.held_ns]:
        notes.append(f"{left_out(shares)}.")
    return Section("Tax", head, lines, notes + [UNSPLIT] * unsplit + references(names))


def _below(*durations_ns: float | None) -> CellGroup:
    """Durations below one another; a dash where one is unknown."""
    return CellGroup(tuple(TableCell() if ns is None else TableCell(ns, NS) for ns in durations_ns), below=True)


def references(rows: Iterable[MeasuredRow]) -> list[str]:
    """Which dispatch bounds the tax, by substrate."""
    result = {row.identity.substrate: row.median_dispatch for row in rows if row.median_dispatch and row.tax_between_ns}
    return [median.in_words(clean(substrate)) for substrate, median in result.items()]


def files(sources: Sequence[Recording], notes: list[str]) -> Section:
    """The recordings, and how fit the process was that measured."""
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
        notes = [*notes, "With several workers the worst counts; each has its line."]
    head = ["recording\nrun", "trials\n", "loop lag\np99", "client\nCPU", "floor\n", "state\n"]
    return Section("Recordings", head, lines, notes)


def _worker(number: int, fitness: WorkerFitness) -> list[Content]:
    """How fit one of several processes was."""
    cpu, state = TableCell(fitness.cpu_permille / 1000, SHARE), ", ".join(fitness.problems) or "fit"
    return [f"worker {number}\n", "", duration_cell(fitness.lag_p99_ns), cpu, "", state]


def _counted(count: int, row: MeasuredRow) -> CellGroup:
    """A number of values, and below it the share of trials that failed."""
    rate, low, high = row.failures
    return CellGroup((TableCell(count, COUNT), TableCell(rate, SHARE, low, high)), below=True)


def percentile(one: Percentile) -> TableCell:
    """A percentile with its interval, or how many values it needs."""
    return (
        TableCell(note=f"needs\nn≥{one.needs:,}") if one.value is None else TableCell(one.value, NS, one.low, one.high)
    )
