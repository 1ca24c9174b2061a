"""Tables of ``taxtui project``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from costmodel import NS_PER_HOUR, NS_PER_S, GpuWaiting, Published, Reference, Row, TrainingRun, TrainingRunError
from taxtui.report.cells import CellGroup, Content, TableCell, amount_cell, hours_cell
from taxtui.report.formats import Section
from taxtui.report.marks import FlagMarks
from taxtui.report.numbers import COUNT, DOLLARS, NOTHING, NS, SHARE, TIMES, UNSPLIT, WRAPPER, left_out
from taxtui.report.words import DO, TAXES, UNDECIDED
from taxtui.terminal_text import clean

CAUSES: Final = "Causes of the worker-hours"
MONEY: Final = "Money"


def sections(
    rows: Sequence[Row], training_run: TrainingRun, sources: Sequence[object], reference: Reference | None = None
) -> list[Section]:
    """Return all tables with rows, the main table first; ``reference``: dispatch for the limits of an unknown tax."""
    named = zip(_names(rows), rows, strict=True)
    by_cause = causes([(name, row) for name, row in named if row.by_cause_worker_hours], training_run)
    others = (part(rows, training_run) for part in (_money, _steps, _gpu, _pool))
    results = [section for section in (_main(rows, training_run), by_cause, *others) if section.rows]
    notes = [
        f"{clean(source.name)}: {clean(note)}"
        for source in sources
        if isinstance(source, Published)
        for note in source.notes
    ]
    notes += [
        f"{clean(source.name)}: from {clean(source.source)}" for source in sources if isinstance(source, Published)
    ]
    bounded = dict.fromkeys(row.identity.substrate for row in rows if row.tax_between_worker_hours)
    added = {results[0].title: notes, CAUSES: bound_notes(reference or {}, bounded)}
    return [section._replace(notes=section.notes + added.get(section.title, [])) for section in results]


def bound_notes(reference: Reference, substrates: Iterable[str]) -> list[str]:
    """Return the dispatch that bounds the tax of each substrate."""
    return [
        f"{clean(name)}: at least {median.ns / 1e6:,.3g} ms of each command is taken to be dispatch, "
        f"the median of {median.actions:,} actions in {median.source}"
        for name in substrates
        if (median := reference.get(name))
    ]


def check_reference_used(reference: Reference, unknown: Iterable[str]) -> None:
    """Check that a reference bounds some row with unknown in-sandbox time.

    Raises:
        TrainingRunError: there is no such row, or none on a substrate of the reference.
    """
    substrates = set(unknown)
    if not substrates:
        raise TrainingRunError("every row tells its commands' time inside the sandbox; leave --reference out")
    if substrates.isdisjoint(reference):
        measured, unbounded = ", ".join(sorted(reference)), ", ".join(sorted(substrates))
        raise TrainingRunError(
            f"the reference measured {measured}, and the rows that it could bound ran on {unbounded}"
        )


def marks_of(rows: Sequence[Row]) -> FlagMarks:
    """Return the letters of the rows' warnings."""
    return FlagMarks([row.flags for row in rows], DO)


def title(rows: Sequence[Row], training_run: TrainingRun) -> str:
    """Return the training run in one line."""
    lengths = {row.length for row in rows}
    length = f" of {min(lengths)} actions" if len(lengths) == 1 else ""
    plural = "s" if training_run.workers != 1 else ""
    return f"{training_run.trajectories:,} trajectories{length} on {training_run.workers:,} worker{plural}"


def _names(rows: Sequence[Row]) -> list[str]:
    """Return the shortest distinct names of the rows."""
    labels = [clean(row.label) for row in rows]
    return labels if len(set(labels)) == len(labels) else [name_of(row) for row in rows]


def name_of(row: Row) -> str:
    """Return the name of a row, on two lines."""
    details = [part for part in (row.identity.tier, str(row.length), row.identity.mode) if part]
    return f"{clean(row.label)}\n{clean(' '.join(details))}"


def _main(rows: Sequence[Row], training_run: TrainingRun) -> Section:
    baseline = next((row.versus.label for row in rows if row.versus), None)
    head = ["sandbox\ntier n mode", "trajectory\nmean", "worker-hours\n", "wall-clock\n"]
    table: list[list[Content]] = []
    for row in rows:
        latency, wall = row.trajectory_s, row.wall_clock_hours
        line: list[Content] = [
            name_of(row),
            amount_cell(latency.mean.times(NS_PER_S) if latency else None, NS),
            amount_cell(row.worker_hours),
            NOTHING if wall is None else hours_cell(wall.value, wall.low, wall.high),
        ]
        if baseline is not None:
            line.append(_versus(row))
        table.append(line)
    head += [] if baseline is None else [f"vs {clean(baseline)[:16]}\nworker-hours"]
    return Section(title(rows, training_run), head, table, at_least(rows))


def at_least(rows: Sequence[Row]) -> list[str]:
    """Return the note about lower limits of the wall-clock, if any."""
    needs = sorted({row.wall_clock_hours.needs_trials or 0 for row in rows if row.wall_clock_hours} - {0})
    if not needs:
        return []
    counts = " to ".join(f"{count:,}" for count in dict.fromkeys((needs[0], needs[-1])))
    return [f"≥: at least; an upper limit takes {counts} successes, or a bound on the longest: --set timeout_s=S."]


def _versus(row: Row) -> Content:
    if row.versus is None:
        return NOTHING
    value, low, high = row.versus.worker_hours
    return TableCell(value, "", low, high, UNDECIDED.get(row.versus.verdict.kind, ""), signed=True)


def _table(
    name: str,
    head: list[str],
    rows: Sequence[Row],
    cells: Callable[[Row], list[Content] | None],
    *notes: str,
) -> Section:
    """Return a section with a line for each row that has ``cells``."""
    lines: list[list[Content]] = [
        [name, *line] for name, row in zip(_names(rows), rows, strict=True) if (line := cells(row)) is not None
    ]
    return Section(name, ["sandbox\n", *head], lines, list(notes))


def causes(
    named: Sequence[tuple[Content, Row | None]], training_run: TrainingRun | None = None, unit: str = ""
) -> Section:
    """Return the tax and the worker-hours by cause of named rows, – if unknown; ``unit`` NS: as durations."""
    scale = NS_PER_HOUR if unit == NS else 1.0

    def cell(hours: float | None) -> TableCell:
        return TableCell() if hours is None else TableCell(hours * scale, unit)

    rows = [row for _, row in named if row is not None]
    parts = [row.by_cause_worker_hours for row in rows if row.by_cause_worker_hours]
    present = {cause for part in parts for cause, hours in part._asdict().items() if hours is not None}
    head = ["tax\n", "share\n", "startup\nqueued", "dispatch\nharness"]
    head += ["slowdown\ncontention" if "contention" in present else "slowdown\n", "work\n", "think\n", "failed\n"]
    head += [f"{cause}\n" for cause in ("unsplit", "wrapper", "cleanup") if cause in present]
    lines: list[list[Content]] = []
    for name, row in named:
        if row is None:
            lines.append([name, *[NOTHING] * len(head)])
            continue
        tax, total, limits = row.tax_worker_hours, row.worker_hours, row.tax_between_worker_hours
        amounts: list[Content] = [NOTHING, NOTHING]
        if tax is not None and total is not None and total.value:
            amounts = [amount_cell(tax.times(scale), unit), TableCell(tax.value / total.value, SHARE)]
        elif limits is not None:
            amounts[0] = TableCell(None, unit, limits.low * scale, limits.high * scale)
        if row.by_cause_worker_hours is None:
            lines.append([name, *amounts, *[NOTHING] * (len(head) - len(amounts))])
            continue
        hours = row.by_cause_worker_hours._asdict()
        groups = ([hours[cause] for cause in column.split()] for column in head[2:])
        stacks = (CellGroup(tuple(cell(amount) for amount in group), below=True) for group in groups)
        lines.append([name, *amounts, *stacks])
    return Section(CAUSES, ["sandbox\n", *head], lines, _cause_notes(rows, training_run, present))


def _cause_notes(rows: Sequence[Row], training_run: TrainingRun | None, present: Collection[str]) -> list[str]:
    taxes = [*TAXES, *["cleanup"] * ("cleanup" in present)]
    notes = [
        f"tax = {' + '.join(taxes)}: the occupied time without think time and the commands' own time in the sandbox. "
        "dispatch, slowdown and work include the set-up. harness: taxtui's time "
        "between phases and commands."
    ]
    notes += [text for cause, text in (("unsplit", UNSPLIT), ("wrapper", WRAPPER)) if cause in present]
    if "contention" in present:
        notes.append("contention: waiting beyond that of the same cell at concurrency 1; –: unknown, part of work.")
    if "slowdown" in present and training_run is not None:
        notes.append(f"slowdown: the commands' own time beyond their time on {clean(training_run.full_speed or '')}.")
    else:
        notes.append("slowdown is unknown and part of work; taxtui project --set full_speed=SUBSTRATE separates it.")
    if shares := [row.cleanup_share_left_out for row in rows if row.cleanup_share_left_out]:
        more = "" if training_run is None else "; --set include_cleanup=true includes clean-up"
        notes.append(f"{left_out(shares)}{more}.")
    return notes


def _money(rows: Sequence[Row], training_run: TrainingRun) -> Section:
    def cells(row: Row) -> list[Content] | None:
        if row.cost is None:
            return None
        cost = row.cost
        more_usd = (cost.idle_pool_usd, cost.worker_usd, cost.total_usd)
        return [
            TableCell(cost.usd_per_sandbox_hour),
            TableCell(cost.billed_ratio, TIMES),
            amount_cell(cost.sandbox_usd, DOLLARS),
            *(NOTHING if amount is None else TableCell(amount, DOLLARS) for amount in more_usd),
        ]

    head = ["sandbox\n$/h", "billed\n/ used", "sandboxes\n$", "idle pool\n$", "workers\n$", "total\n$"]
    sheets = dict.fromkeys(row.cost.sheet for row in rows if row.cost)
    return _table(MONEY, head, rows, cells, *(f"Prices: {clean(sheet)}." for sheet in sheets))


def _steps(rows: Sequence[Row], training_run: TrainingRun) -> Section:
    def cells(row: Row) -> list[Content] | None:
        if row.steps is None:
            return None
        steps = row.steps
        value, error = steps.step.value_ns, steps.step.error_ns
        low, high = (None if limit is None else limit * NS_PER_S for limit in (steps.low_s, steps.high_s))
        step = TableCell(value, NS, value - error, value + error) if low is None else TableCell(value, NS, low, high)
        amounts = (steps.idle_worker_hours, steps.wasted_worker_hours)
        counts = (TableCell(steps.steps, COUNT), TableCell(steps.launched, COUNT))
        return [*counts, step, *(NOTHING if amount is None else TableCell(amount) for amount in amounts)]

    head = ["steps\n", "launched\nper step", "rollouts\nof a step", "barrier idle\nworker-hours"]
    head += ["thrown away\nworker-hours"]
    policy = (
        f"Training steps of {training_run.step_rollouts:,}, {training_run.effective_policy.name}"
        if training_run.step_rollouts
        else ""
    )
    return _table(policy, head, rows, cells)


def _gpu(rows: Sequence[Row], training_run: TrainingRun) -> Section:
    return gpu_waiting(list(zip(_names(rows), rows, strict=True)), training_run)


def gpu_waiting(rows: Sequence[tuple[str, Row]], training_run: TrainingRun) -> Section:
    """Return the GPU waiting of named rows by part, a line per row and policy; no lines without waiting."""
    results = [(name, policy, item) for name, row in rows for policy, item in _waits(row, training_run).items()]
    lines: list[list[Content]] = [
        [name, policy, hours_cell(item.wall_clock_hours), *(_waiting_cell(item, part) for part in WAITING_PARTS)]
        for name, policy, item in results
    ]
    unit = "GPU-hours" if training_run.gpu_usd_hour is None else "GPU-h, $"
    head = ["sandbox\n", "policy\n", "wall-clock\n", *(f"{part}\n{unit}" for part in WAITING_PARTS)]
    notes = [
        "waiting: not training, for any reason. generation: waiting for the model; commands: for useful commands; "
        "stalled: for the sandbox, and only this part is tax."
    ]
    if any(item.generation_gpu_hours is None for _, _, item in results):
        notes.append("generation –: the row has no think time; --think TIME adds some.")
    if any(item.stalled_gpu_hours is None for _, _, item in results):
        notes.append("stalled –: the commands' own time is unknown, so commands and stalled are not separated.")
    return Section(f"Waiting time of {training_run.gpus} GPUs", head, lines, notes)


WAITING_PARTS: Final = ("waiting", "generation", "commands", "stalled")


def _waits(row: Row, training_run: TrainingRun) -> dict[str, GpuWaiting]:
    if row.attribution is not None and row.attribution.waiting is not None:
        return {training_run.effective_policy.name: row.attribution.waiting}
    return row.gpu or {}


def _waiting_cell(item: GpuWaiting, part: str) -> Content:
    amount, price = getattr(item, f"{part}_gpu_hours"), getattr(item, f"{part}_usd")
    if amount is None:
        return NOTHING
    return TableCell(amount) if price is None else CellGroup((TableCell(amount), TableCell(price, DOLLARS)), below=True)


def _pool(rows: Sequence[Row], training_run: TrainingRun) -> Section:
    def cells(row: Row) -> list[Content] | None:
        if row.warm_pool is None:
            return None
        return [TableCell(row.warm_pool.hit, SHARE), TableCell(row.warm_pool.idle_sandboxes), row.warm_pool.rule]

    note = "A hit skips create and ready, but not the set-up."
    return _table(f"Warm pool of {training_run.warm_pool}", ["hits\n", "idle\nsandboxes", "rule\n"], rows, cells, note)
