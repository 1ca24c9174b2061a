"""The plan of ``taxtui run``: its scenario and options, substrates without ``-s``, and the description."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from taxtui.errors import SubstrateUnavailable, TaxtuiError, UsageError
from taxtui.report.numbers import rough_duration

if TYPE_CHECKING:
    from taxtui.plan.scenario import ScenarioFile
    from taxtui.plan.spec import Plan

DEFAULT_SCENARIO: Final = "quick"
FREE_HERE: Final = ("local", "docker")
"""Free substrates with sandboxes on this machine."""
SET_KEYS: Final = {
    "timeout": str,
    "create_timeout": str,
    "seed": int,
    "bracket": bool,
    "lifecycle": str,
}
"""Keys of a scenario for ``--set``, with the types of the values."""


def plan_of(name: str | None, options: dict[str, Any], substrates: Sequence[str] = ()) -> Plan:
    """Return the plan of a scenario; options replace values in every block of cells.

    Without a ``name`` the scenario is ``quick``, on the given ``substrates``.
    """
    import msgspec

    from taxtui.plan import scenario

    file, folder = scenario.load_file(name or DEFAULT_SCENARIO)
    unchanged = not any(options[key] for key in ("substrates", "tiers", "actions", "trials"))
    if name is None:  # an error of an option does not name a scenario
        file = msgspec.structs.replace(file, name="", budget=file.budget if unchanged else "")
    # A tier or substrate on the command line is a new question, not the scenario's blocks once more.
    blocks = file.cells[:1] if options["substrates"] or options["tiers"] else file.cells
    whole: ScenarioFile = msgspec.structs.replace(
        file,
        cells=[msgspec.structs.replace(block, **_block_changes(options, substrates)) for block in blocks],
        **scenario_changes(options["changes"]),
        **{key: options[key] for key in ("budget", "max_sandboxes", "repeat", "workers") if options[key] is not None},
        **({} if options["max_cost"] is None else {"max_cost_usd": options["max_cost"]}),
    )
    plan = scenario.plan(whole, folder)
    return msgspec.structs.replace(plan, name=DEFAULT_SCENARIO) if name is None and unchanged else plan


def _block_changes(options: dict[str, Any], substrates: Sequence[str]) -> dict[str, Any]:
    """Return the values of options for each block of cells; paths are relative to the working directory."""
    changes: dict[str, Any] = {
        key: list(options[key]) for key in ("substrates", "tiers", "actions", "concurrency") if options[key]
    }
    changes |= {
        key: options[key]
        for key in ("trials", "warmup", "arrival", "think", "acquire", "ladder")
        if options[key] is not None
    }
    if substrates:
        changes["substrates"] = list(substrates)
    if options["modes"]:
        changes["modes"] = [mode for text in options["modes"] for mode in text.split(",")]
    if "tiers" in changes:  # tiers of a scenario are relative to the scenario's folder
        changes["tiers"] = [str(Path(tier).absolute()) if tier.endswith(".toml") else tier for tier in changes["tiers"]]
    if options["ladder"] and not options["concurrency"]:
        changes["concurrency"] = 1
    return changes


def scenario_changes(words: Sequence[str]) -> dict[str, Any]:
    """Return the values of ``KEY=VALUE`` words. Raises ``UsageError``: a key is unknown, or a value cannot be read."""
    values: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or key not in SET_KEYS:
            keys = f"KEY is one of {', '.join(SET_KEYS)}"
            raise UsageError(f"--set {word}: not KEY=VALUE of a scenario", fix=keys)
        kind = SET_KEYS[key]
        try:
            values[key] = {"true": True, "false": False}[text] if kind is bool else kind(text)
        except (KeyError, ValueError):
            wanted, example = ("true or false", "false") if kind is bool else ("a number", "1")
            raise UsageError(f"--set {word}: {key} is {wanted}", fix=f"write {key}={example}") from None
    return values


def usable_here(report: Callable[[str], None], *, build: bool = True) -> tuple[list[str], list[str]]:
    """Return the usable substrates of this machine, and a line for each omitted substrate.

    ``report`` gets the progress of a build. ``build``: build docker's image if only the image is missing.

    Raises:
        SubstrateUnavailable: no substrate can be used.
    """
    rows = {row["name"]: row for row in _checked(FREE_HERE)}
    if not rows["docker"]["ok"] and _lacks_image(rows["docker"]):
        rows["docker"] = _with_image(rows["docker"], report) if build else rows["docker"] | {"ok": True}
    usable = [name for name, row in rows.items() if row["ok"]]
    left_out = []
    for name, row in rows.items():
        if not row["ok"]:
            fix = f"; {row['fix']}" if row["fix"] else ""
            left_out.append(f"{name} is left out: {row['detail']}{fix}")
    if not usable:
        raise SubstrateUnavailable("no substrate of this machine can be used", fix="see why with: taxtui doctor")
    return usable, left_out


def _checked(names: Sequence[str]) -> list[dict[str, Any]]:
    from taxtui.commands.doctor_substrates import checked
    from taxtui.plan.notation import parse_substrate

    return asyncio.run(checked([parse_substrate(name) for name in names]))


def _lacks_image(row: dict[str, Any]) -> bool:
    """Whether the docker daemon answers and has no image of the fixtures."""
    from taxtui.workloads.image import DEFAULT_IMAGE

    return DEFAULT_IMAGE in row["detail"]


def _with_image(row: dict[str, Any], report: Callable[[str], None]) -> dict[str, Any]:
    """Build docker's image; the row has the reason of a failed build."""
    from taxtui.workloads import image

    try:
        image.build(progress=lambda line: report(f"taxtui: {line}"))
    except TaxtuiError as error:
        return row | {"detail": f"its image cannot be built: {error.problem}", "fix": error.fix}
    return row | {"ok": True}


def outline(plan: Plan) -> str:
    """Return a line about a plan: ``local, docker: T1 x 50, exec and session; 80 trials, at most 2 min``."""
    cells = plan.cells
    substrates = ", ".join(dict.fromkeys(str(cell.substrate) for cell in cells))
    workloads = ", ".join(dict.fromkeys(f"{cell.tier.name} x {cell.actions}" for cell in cells))
    modes = " and ".join(dict.fromkeys(cell.mode for cell in cells))
    limit = f", at most {rough_duration(plan.budget_s * 1e9)}" if plan.budget_s else ""
    trials = plan.repeat * sum(cell.trials for cell in cells)
    think_ns = plan.repeat * sum(cell.trials * cell.actions * cell.think.mean_ns / cell.concurrency for cell in cells)
    thinking = f", {rough_duration(think_ns)} of it think time" if think_ns else ""
    return f"{substrates}: {workloads}, {modes}; {trials:,} trials{thinking}{limit}"


def describe(plan: Plan, price_sheet: str) -> list[str]:
    """Return the lines of ``--dry-run``: cells and trials, time, money. ``price_sheet``: name or path, or ""."""
    import msgspec

    from taxtui.plan.crowding import crowding_warning
    from taxtui.report import plan_time
    from taxtui.report.plan_cost import CheckedSubstrate, expense

    names = list(dict.fromkeys(str(cell.substrate) for cell in plan.cells))
    answers = {row["name"]: msgspec.convert(row, CheckedSubstrate) for row in _checked(names)}
    variants = {name: answer.variant for name, answer in answers.items() if answer.variant is not None}
    expected = plan_time.expect(plan, plan_time.HistoryReader().read(lambda: False), variants)
    rows: list[tuple[str, ...]] = [("substrate", "tier", "n", "mode", "concurrency", "trials", "time")]
    for item in expected:
        cell, time = item.cell, "unknown" if item.wall_ns is None else f"~{rough_duration(item.wall_ns)}"
        texts = (cell.tier.name, cell.actions, cell.mode, cell.concurrency, cell.trials)
        rows.append((str(cell.substrate), *map(str, texts), time))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    trials = plan.repeat * sum(cell.trials for cell in plan.cells)
    lines += ["", f"trials  {trials:,}{f' in {plan.repeat} repetitions' if plan.repeat > 1 else ''}"]
    lines += [f"time    {plan_time.time_words(plan, expected)}"]
    lines += [f"money   {expense(plan, expected, answers, price_sheet).words}"]
    lines += [f"note    {crowd}"] if (crowd := crowding_warning(plan)) else []
    for name, answer in answers.items():
        if not answer.ok:
            lines.append(f"note    {name} cannot be used now: {answer.detail}{f'; {answer.fix}' if answer.fix else ''}")
    return lines
