"""A scenario file, TOML or JSON, becomes a ``Plan``; an error has the line of the file."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, TypeVar, get_args

import msgspec

from costmodel import MAX_INT, events, toml
from taxtui.errors import ScenarioError, UsageError
from taxtui.plan.arrivals import Arrival
from taxtui.plan.arrivals import parse as parse_arrival
from taxtui.plan.durations import parse_duration_ns
from taxtui.plan.notation import parse_ladder, parse_lifecycle, parse_substrate, parse_think
from taxtui.plan.spec import CellPlan, Label, Mode, Plan, Positive, RunSettings, ThinkTime, Tier

T = TypeVar("T")
STDIN: Final = "-"
"""The name of the scenario on standard input."""
MOST_LINE_BYTES: Final = 4 << 20
MAX_TRIALS: Final = 10_000_000
CHECKOUT: Final = Path(__file__).parents[2] / "scenarios"
BUNDLE: Final = Path(__file__).parents[1] / "_data" / "scenarios"


class CellBlock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[cells]]`` of a scenario: the product of the lists."""

    substrates: list[Label]
    tiers: list[Label]
    actions: list[Positive]
    modes: tuple[str, ...] = ("exec",)
    concurrency: list[Positive] | Positive = 1
    ladder: str = ""  # levels of concurrency, instead of ``concurrency``
    arrival: Label = ""  # the default at this concurrency
    think: Label = ""  # the tier's
    acquire: Label = "create"
    trials: Positive = 100
    warmup: Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)] = 1


class ScenarioFile(RunSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The top level of a scenario."""

    cells: list[CellBlock]
    timeout: str = "120s"
    create_timeout: str = "300s"
    budget: str = ""
    lifecycle: str = ""  # operations to measure: suspend:5s,snapshot,build


def bundled(relative: str) -> Path | None:
    """Return a shipped file, for example ``published/essay.toml``: from the checkout, else from the wheel."""
    for root in (CHECKOUT, BUNDLE):
        if (path := root / relative).is_file():
            return path
    return None


def load_file(name: str) -> tuple[ScenarioFile, Path]:
    """Return a scenario by path or by the bare name of a shipped scenario, and the folder for relative paths of tiers.

    ``-`` is one line of JSON on standard input. The TUI passes scenarios this way, without a file.

    Raises:
        ScenarioError: no such file, not TOML or JSON, or an invalid value.
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
    scenario = _read(path, ScenarioFile)
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


def shipped_names(pattern: str = "*.toml") -> list[str]:
    """Return the bare names of the shipped scenarios, or of other shipped files."""
    root = CHECKOUT if CHECKOUT.is_dir() else BUNDLE
    return sorted(path.stem for path in root.glob(pattern))


def load_tier(name: str, folder: Path | None = None) -> Tier:
    """Return a shipped tier by name, or a tier from a TOML file by path, relative to ``folder``.

    Raises:
        ScenarioError: no such tier, or an invalid value.
    """
    path = bundled(f"tiers/{name}.toml")
    if name.endswith(".toml"):
        path = (folder or Path()) / name
    if path is None or not path.is_file():
        hint = toml.hint(name, shipped_names("tiers/*.toml"))
        raise ScenarioError(f"no tier {name!r}", fix=f"{hint}, or give the path of a .toml file")
    tier = _read(path, Tier)
    try:
        parse_think(tier.think or "0s")
    except UsageError as error:
        raise ScenarioError(f"{path}: think: {error.problem}", fix=error.fix) from error
    if not tier.cycle:
        raise ScenarioError(f"{path}: the cycle is empty", fix="a tier needs at least one step to repeat")
    return tier


def _read(path: Path, kind: type[T]) -> T:
    try:
        return toml.Document(path).convert(kind)
    except OSError as error:
        raise ScenarioError(f"cannot read {path}: {error.strerror}") from error
    except toml.MalformedDocument as error:
        raise ScenarioError(error.problem, fix=error.fix) from error


def plan(scenario: ScenarioFile, folder: Path) -> Plan:
    """Return the plan of a scenario from a file or from memory; paths of tiers are relative to ``folder``.

    Raises:
        ScenarioError: an invalid value.
    """
    where = f"{scenario.name}: " if len(scenario.name) in range(1, events.MAX_LABEL + 1) else ""
    try:
        msgspec.convert(msgspec.to_builtins(scenario), ScenarioFile)  # a scenario from memory is unchecked
        scenario.name.encode()
        return _checked(scenario, folder)
    except UnicodeEncodeError as error:
        raise ScenarioError(f"{error.object!r} is no UTF-8, and a recording could not hold it") from error
    except msgspec.ValidationError as error:
        steps, problem, fix = toml.complaint(error, ScenarioFile)
        raise ScenarioError(f"{where}{toml.written(steps)}{problem}", fix=fix) from error
    except UsageError as error:
        raise ScenarioError(f"{where}{error.problem}", fix=error.fix) from error


def _checked(scenario: ScenarioFile, folder: Path) -> Plan:
    """As ``plan``. Raises ``UsageError``."""
    operations, suspend_after_ns = parse_lifecycle(scenario.lifecycle)
    cells: list[CellPlan] = []
    for cell in itertools.chain.from_iterable(_cells(block, folder, suspend_after_ns) for block in scenario.cells):
        if len(cells) == events.MAX_CELLS:
            raise UsageError(f"more than {events.MAX_CELLS} cells", fix="split the cells into several scenarios")
        cells.append(cell)
    if not cells:
        raise UsageError("the scenario has no cells", fix="a [[cells]] block needs substrates, tiers and actions")
    seen = set()
    for cell in cells:
        key = msgspec.json.encode(msgspec.structs.replace(cell, trials=0, warmup=0))
        if key in seen:
            raise UsageError(
                f"{cell.substrate} {cell.tier.name} x {cell.actions} {cell.mode} is planned twice",
                fix="remove one cell, or raise trials",
            )
        seen.add(key)
    if scenario.max_sandboxes is not None and any(cell.acquire == "reset" for cell in cells):
        raise UsageError(
            "max_sandboxes counts new sandboxes, and acquire reset reuses sandboxes", fix="leave one of them out"
        )
    if scenario.workers > (widest := max(cell.concurrency for cell in cells)):
        raise UsageError(
            f"{scenario.workers} processes share concurrency {widest}, and some would have nothing to do",
            fix=f"raise the concurrency, or ask for at most {widest} processes",
        )
    if scenario.repeat * sum(cell.trials + cell.warmup for cell in cells) > MAX_TRIALS:
        raise UsageError(f"more than {MAX_TRIALS:,} trials", fix="lower trials, warmup or repeat")
    return Plan(
        **{name: getattr(scenario, name) for name in RunSettings.__struct_fields__},
        cells=tuple(cells),
        timeout_s=_seconds("timeout", scenario.timeout),
        create_timeout_s=_seconds("create_timeout", scenario.create_timeout),
        budget_s=_seconds("budget", scenario.budget) if scenario.budget else None,
        lifecycle=operations,
    )


def _seconds(field: str, text: str) -> float:
    if not (duration_ns := parse_duration_ns(text)):
        raise UsageError(f"{field} must be above 0, not 0")
    return duration_ns / 1e9


def _cells(block: CellBlock, folder: Path, suspend_after_ns: int | None) -> Iterator[CellPlan]:
    """Yield the cells of a block. Raises ``UsageError``."""
    widths = [block.concurrency] if isinstance(block.concurrency, int) else block.concurrency
    arrival = parse_arrival(block.arrival) if block.arrival else None
    if block.ladder:
        if block.concurrency != 1:
            raise UsageError("a ladder is the concurrency", fix="leave concurrency out, or the ladder")
        if block.arrival not in ("", "closed"):
            raise UsageError("a ladder keeps its lanes full: arrival closed", fix="leave arrival out")
        widths, arrival = parse_ladder(block.ladder), Arrival(kind="closed")
    for mode in block.modes:
        if mode not in get_args(Mode):
            raise UsageError(f"unknown mode {mode!r}", fix=toml.hint(mode, list(get_args(Mode))))
    tiers = [load_tier(name, folder) for name in block.tiers]
    substrates = [parse_substrate(text) for text in block.substrates]
    for substrate, tier, actions, mode, width in itertools.product(
        substrates, tiers, block.actions, block.modes, widths
    ):
        starts = arrival or Arrival(kind="sequential" if width == 1 else "closed")
        _check_arrival(starts, width)
        whole = starts.block(width) if block.ladder else 1  # part of a block has a lower concurrency
        yield CellPlan(
            substrate=substrate,
            tier=tier,
            actions=actions,
            mode=mode,  # type: ignore[arg-type]  # checked above
            concurrency=width,
            arrival=starts,
            think=_suspending(parse_think(block.think or tier.think or "0s"), suspend_after_ns),
            acquire=block.acquire,
            trials=-(-block.trials // whole) * whole,
            warmup=block.warmup,
        )


def _check_arrival(arrival: Arrival, width: int) -> None:
    """Refuse a concurrency that contradicts the arrival. Raises ``UsageError``."""
    if arrival.kind == "sequential" and width > 1:
        raise UsageError(f"arrival sequential means concurrency 1, not {width}", fix="write arrival closed or burst")
    if arrival.kind == "open" and width == 1:
        raise UsageError(
            f"arrival {arrival} does not say how many trials may be in flight",
            fix="add a concurrency above the schedule's need, as 256; trials without a free slot start late",
        )


def _suspending(think: ThinkTime, after_ns: int | None) -> ThinkTime:
    """Return pauses with a suspension after ``after_ns``. Raises ``UsageError``: every pause is shorter."""
    if after_ns is not None and (not think.median_ns or (not think.sigma and think.median_ns <= after_ns)):
        pause = f"{after_ns / 1e9:g}s"
        raise UsageError(
            f"suspend:{pause} needs pauses between actions longer than {pause}, and they are {think}",
            fix=f"add --think {2 * after_ns / 1e9 or 1:g}s, or suspend earlier",
        )
    return msgspec.structs.replace(think, suspend_after_ns=after_ns)
