"""A scenario file, TOML or JSON, becomes a ``Plan``; an error has the line of the file."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar, get_args

import msgspec

from costmodel import MAX_INT, events, toml
from taxtui.errors import ScenarioError, UsageError
from taxtui.plan import arrivals
from taxtui.plan.durations import parse_duration_ns
from taxtui.plan.notation import parse_ladder, parse_lifecycle, parse_substrate, parse_think
from taxtui.plan.repeating import parse_share, repeating
from taxtui.plan.spec import CellPlan, Limits, Mode, Plan, Recordable, ThinkTime, Tier
from taxtui.terminal_text import is_utf8

T = TypeVar("T")
STDIN: Final = "-"
"""The name of the scenario on standard input."""
MOST_LINE_BYTES: Final = 4 << 20
CHECKOUT: Final = Path(__file__).parents[2] / "scenarios"
BUNDLE: Final = Path(__file__).parents[1] / "_data" / "scenarios"


class CellBlock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[cells]]`` of a scenario: the product of the lists."""

    substrates: list[str]
    tiers: list[str]
    actions: list[Recordable]
    modes: tuple[str, ...] = ("exec",)
    concurrency: list[Recordable] | Recordable = 1
    ladder: str = ""  # levels of concurrency, instead of ``concurrency``
    arrival: str = ""  # the default at this concurrency
    think: str = ""  # the tier's
    acquire: str = "create"
    trials: Recordable = 100
    warmup: Recordable = 1


class ScenarioFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The top level of a scenario."""

    cells: list[CellBlock]
    name: str = ""
    limits: Limits = Limits()
    timeout: str = "120s"
    create_timeout: str = "300s"
    seed: Recordable = 0
    bracket: bool = True
    budget: str = ""
    side_by_side: bool = False
    max_cost_usd: float | None = None
    max_sandboxes: Recordable | None = None
    repeat: Recordable | None = None  # once, or as often as ``until`` takes
    gap: str = ""
    until: str = ""
    workers: Recordable = 1  # processes
    lifecycle: str = ""  # operations to measure: suspend:5s,snapshot,build


def bundled(relative: str) -> Path | None:
    """Return a shipped file, for example ``published/essay.toml``: from the checkout, else from the wheel."""
    for root in (CHECKOUT, BUNDLE):
        if (path := root / relative).is_file():
            return path
    return None


def load(name: str) -> Plan:
    """Return the plan of a scenario, by path or by the bare name of a shipped scenario.

    Raises:
        ScenarioError: no such file, not TOML or JSON, or an invalid value.
    """
    scenario, folder = load_file(name)
    return plan(scenario, folder)


def load_file(name: str) -> tuple[ScenarioFile, Path]:
    """Return a scenario file, and the folder for relative paths of tiers. Raises as ``load``.

    ``-`` is one line of JSON on standard input. The TUI passes scenarios this way, without a file.
    """
    if name == STDIN:
        return _scenario_of_stdin(), Path()
    path = Path(name)
    if not path.is_file():
        shipped = bundled(name if path.suffix else f"{name}.toml")
        if shipped is None:
            raise ScenarioError(
                f"no scenario {name!r}",
                fix=f"{toml.hint(name, shipped_names())}, or give the path of a .toml or .json file",
            )
        path = shipped
    scenario = _converted(_document(path), ScenarioFile)
    if scenario.name == "":
        scenario = msgspec.structs.replace(scenario, name=path.stem)
    return scenario, path.parent


def _scenario_of_stdin() -> ScenarioFile:
    """Read byte by byte: the next lines are for another reader."""
    line = bytearray()
    while len(line) <= MOST_LINE_BYTES and (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    try:
        return msgspec.json.decode(bytes(line), type=ScenarioFile)
    except msgspec.DecodeError as error:
        raise ScenarioError(f"standard input: {error}", fix="write the scenario as JSON in the first line") from error


def shipped_names() -> list[str]:
    """Return the bare names of the shipped scenarios."""
    root = CHECKOUT if CHECKOUT.is_dir() else BUNDLE
    return sorted(path.stem for path in root.glob("*.toml"))


def load_tier(name: str, folder: Path | None = None) -> Tier:
    """Return a shipped tier by name, or a tier from a TOML file by path, relative to ``folder``.

    Raises:
        ScenarioError: no such tier, or an invalid value.
    """
    path = bundled(f"tiers/{name}.toml")
    if name.endswith(".toml"):
        path = (folder or Path()) / name
    if path is None or not path.is_file():
        root = CHECKOUT if CHECKOUT.is_dir() else BUNDLE
        names = sorted(file.stem for file in root.glob("tiers/*.toml"))
        raise ScenarioError(f"no tier {name!r}", fix=f"{toml.hint(name, names)}, or give the path of a .toml file")
    tier = _converted(_document(path), Tier)
    try:
        parse_think(tier.think or "0s")
    except UsageError as error:
        raise ScenarioError(f"{path}: think: {error.problem}", fix=error.fix) from error
    if not tier.cycle:
        raise ScenarioError(f"{path}: the cycle is empty", fix="a tier needs at least one step to repeat")
    return tier


def _document(path: Path) -> toml.Document:
    try:
        return toml.Document(path)
    except OSError as error:
        raise ScenarioError(f"cannot read {path}: {error.strerror}") from error
    except toml.MalformedDocument as error:
        raise ScenarioError(error.problem, fix=error.fix) from error


def _converted(document: toml.Document, kind: type[T]) -> T:
    try:
        return document.convert(kind)
    except toml.MalformedDocument as error:
        raise ScenarioError(error.problem, fix=error.fix) from error


def plan(scenario: ScenarioFile, folder: Path) -> Plan:
    """Return the plan of a scenario from a file or from memory; paths of tiers are relative to ``folder``.

    Raises:
        ScenarioError: an invalid value.
    """
    where = f"{scenario.name}: " if scenario.name else ""
    try:  # a scenario from memory is unchecked
        msgspec.convert(msgspec.to_builtins(scenario), ScenarioFile)
    except msgspec.ValidationError as error:
        steps, problem, fix = toml.complaint(error, ScenarioFile)
        raise ScenarioError(f"{where}{toml.written(steps)}{problem}", fix=fix) from error
    for text in (notation_text for block in scenario.cells for notation_text in (*block.substrates, block.acquire)):
        if not is_utf8(text):
            raise ScenarioError(f"{where}{text!r} is no UTF-8, and a recording could not hold it")
    too_long = (text for text in (scenario.name, *_names(scenario)) if len(text) > events.MAX_LABEL)
    if (name := next(too_long, None)) is not None:
        raise ScenarioError(f"{name[:40]}… is longer than {events.MAX_LABEL} characters", fix="choose a shorter name")
    tiers: dict[str, Tier] = {}
    cells: list[CellPlan] = []

    def checked(parse: Callable[[str], T], text: str) -> T:
        try:
            return parse(text)
        except UsageError as error:
            raise ScenarioError(f"{where}{error.problem}", fix=error.fix) from error

    def positive(field: str, value: float) -> None:
        if not 0 < value < math.inf:
            raise ScenarioError(f"{where}{field} must be above 0, not {value:g}")

    def seconds(field: str, text: str) -> float:
        value = checked(parse_duration_ns, text) / 1e9
        positive(field, value)
        return value

    operations, suspend_after_ns = checked(parse_lifecycle, scenario.lifecycle)
    for block in scenario.cells:
        widths = [block.concurrency] if isinstance(block.concurrency, int) else block.concurrency
        if block.ladder:
            widths = _levels(block, checked(parse_ladder, block.ladder), where)
        for field, count in [("trials", block.trials), *(("actions", n) for n in block.actions)]:
            positive(field, count)
        for width in widths:
            positive("concurrency", width)
        if block.warmup < 0:
            raise ScenarioError(f"{where}warmup must be 0 or more, not {block.warmup}")
        for name in block.tiers:
            if name not in tiers:
                tiers[name] = checked(lambda tier: load_tier(tier, folder), name)
        for mode in block.modes:
            if mode not in get_args(Mode):
                raise ScenarioError(f"{where}unknown mode {mode!r}", fix=toml.hint(mode, list(get_args(Mode))))
        arrival = checked(lambda text: arrivals.parse(text, folder), block.arrival) if block.arrival else None
        arrival = arrivals.Closed() if block.ladder else arrival
        product = itertools.product(block.substrates, block.tiers, block.actions, block.modes, widths)
        for substrate, name, actions, mode, width in product:
            if len(cells) == events.MAX_CELLS:
                raise ScenarioError(
                    f"{where}more than {events.MAX_CELLS} cells", fix="split the cells into several scenarios"
                )
            cells.append(
                CellPlan(
                    substrate=checked(parse_substrate, substrate),
                    tier=tiers[name],
                    actions=actions,
                    mode=mode,  # type: ignore[arg-type]  # checked above
                    concurrency=width,
                    arrival=arrival or arrivals.usual(width),
                    think=_suspending(
                        checked(parse_think, block.think or tiers[name].think or "0s"), suspend_after_ns, where
                    ),
                    acquire=block.acquire,
                    trials=_filled(block.trials, width) if block.ladder else block.trials,
                    warmup=block.warmup,
                )
            )
    if not cells:
        raise ScenarioError(
            f"{where}the scenario has no cells", fix="a [[cells]] block needs substrates, tiers and actions"
        )
    _check_cells(cells, where)
    positive("limits.cpus", scenario.limits.cpus)
    if scenario.limits.cpus > MAX_INT / 1000:  # thousandths are recorded
        raise ScenarioError(f"{where}limits.cpus must be at most {MAX_INT // 1000}, not {scenario.limits.cpus:g}")
    positive("limits.memory_mib", scenario.limits.memory_mib)
    positive("limits.pids", scenario.limits.pids)
    if scenario.max_sandboxes is not None:
        positive("max_sandboxes", scenario.max_sandboxes)
    positive("workers", scenario.workers)
    if scenario.workers > (widest := max(cell.concurrency for cell in cells)):
        raise ScenarioError(
            f"{where}{scenario.workers} workers share concurrency {widest}, and some would have nothing to do",
            fix=f"raise the concurrency, or ask for at most {widest}",
        )
    if scenario.max_cost_usd is not None:
        positive("max_cost_usd", scenario.max_cost_usd)
    result = Plan(
        name=scenario.name,
        cells=tuple(cells),
        limits=scenario.limits,
        timeout_s=seconds("timeout", scenario.timeout),
        create_timeout_s=seconds("create_timeout", scenario.create_timeout),
        seed=scenario.seed,
        bracket=scenario.bracket,
        budget_s=seconds("budget", scenario.budget) if scenario.budget else None,
        side_by_side=scenario.side_by_side,
        max_cost_usd=scenario.max_cost_usd,
        max_sandboxes=scenario.max_sandboxes,
        gap_s=checked(parse_duration_ns, scenario.gap) / 1e9 if scenario.gap else 0.0,
        until=checked(parse_share, scenario.until) if scenario.until else None,
        workers=scenario.workers,
        lifecycle=operations,
    )
    return checked(lambda _: repeating(result, scenario.repeat), "")


def _names(scenario: ScenarioFile) -> Iterator[str]:
    """Yield the texts of a scenario for labels in a recording."""
    for block in scenario.cells:
        yield from (*block.substrates, *block.tiers, block.arrival, block.think, block.acquire)


def _suspending(think: ThinkTime, after_ns: int | None, where: str) -> ThinkTime:
    """Return pauses with a suspension after ``after_ns``. Raises ``ScenarioError``: every pause is shorter."""
    if after_ns is not None and (not think.median_ns or (not think.sigma and think.median_ns <= after_ns)):
        pause = f"{after_ns / 1e9:g}s"
        raise ScenarioError(
            f"{where}suspend:{pause} needs pauses between actions longer than {pause}, and they are {think}",
            fix=f"add --think {2 * after_ns / 1e9 or 1:g}s, or suspend earlier",
        )
    return msgspec.structs.replace(think, suspend_after_ns=after_ns)


def _check_cells(cells: list[CellPlan], where: str) -> None:
    seen = set()
    for cell in cells:
        _check_arrival(cell, where)
        key = msgspec.json.encode(msgspec.structs.replace(cell, trials=0, warmup=0))
        if key in seen:
            raise ScenarioError(
                f"{where}{cell.substrate} {cell.tier.name} x {cell.actions} {cell.mode} is planned twice",
                fix="remove one cell, or raise trials",
            )
        seen.add(key)


def _levels(block: CellBlock, levels: list[int], where: str) -> list[int]:
    """Return the concurrencies of a ladder. Raises ``ScenarioError`` where another key sets concurrency or arrival."""
    if block.concurrency != 1:
        raise ScenarioError(f"{where}a ladder is the concurrency", fix="leave concurrency out, or the ladder")
    if block.arrival not in ("", arrivals.Closed.name()):
        raise ScenarioError(f"{where}a ladder keeps its lanes full: arrival closed", fix="leave arrival out")
    return levels


def _filled(trials: int, width: int) -> int:
    """Round trials up to whole blocks: part of a block has a lower concurrency."""
    block = arrivals.Closed().block(width)
    return math.ceil(trials / block) * block


def _check_arrival(cell: CellPlan, where: str) -> None:
    arrival = cell.arrival
    if cell.concurrency > arrival.widest:
        wider = arrivals.one_of(kind for kind in arrivals.KINDS if kind.widest > arrival.widest)
        raise ScenarioError(
            f"{where}arrival {arrival} means concurrency {arrival.widest:g}, not {cell.concurrency}",
            fix=f"write arrival {wider}",
        )
    if cell.concurrency < arrival.narrowest:
        raise ScenarioError(
            f"{where}arrival {arrival} does not say how many trials may be in flight",
            fix="add a concurrency above the schedule's need, as 256; trials without a free slot start late",
        )
    if cell.trials > arrival.max_trials:
        raise ScenarioError(
            f"{where}arrival {arrival} has {arrival.max_trials:,} start times, for {cell.trials:,} trials",
            fix=f"plan {arrival.max_trials:,} trials, or give a longer trace",
        )
