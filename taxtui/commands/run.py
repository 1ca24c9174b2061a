"""``taxtui run``: measure, and write a recording. The only command that makes sandboxes."""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taxtui import shipped
from taxtui.commands.run_shown import Shown, conclude, say, tell
from taxtui.commands.waiting import waiting
from taxtui.errors import UsageError
from taxtui.options.count import COUNT
from taxtui.plan import crowding
from taxtui.plan.arrivals import KINDS, notation
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from costmodel import Prices
    from taxtui.plan.scenario import ScenarioFile
    from taxtui.plan.spec import Plan, SubstrateRef
    from taxtui.runner.fanout.ray_launcher import RayOptions
    from taxtui.runner.progress import Progress
    from taxtui.runner.run import Run


PROGRESS_S = 0.5


@click.command("run")
@click.argument("scenario", required=False)
@click.option(
    "-s",
    "--substrate",
    "substrates",
    multiple=True,
    metavar="NAME[:key=value,…]",
    help="Measure this substrate, repeatable.  [local and docker, where they work]",
)
@click.option(
    "-t", "--tier", "tiers", multiple=True, help="Measure this tier, repeatable: T0, T1, T2, or the path of your own."
)
@click.option("-n", "--actions", multiple=True, type=COUNT, help="Actions per trajectory, repeatable.")
@click.option("--mode", "modes", multiple=True, help="Measure this mode, repeatable: exec or session.")
@click.option("--trials", type=COUNT, help="Trials per cell.")
@click.option("--warmup", type=COUNT, help="Trials per cell that are recorded but not counted.")
@click.option("--concurrency", multiple=True, type=COUNT, help="Trials in flight, repeatable.")
@click.option(
    "--ladder", metavar="LOW:HIGH[:xF]", help="Concurrencies to find the saturation point: 1:256, or 1:64:x4."
)
@click.option("--arrival", help=" | ".join(map(notation, KINDS)))
@click.option("--think", help="Idle time between actions: 8s, or lognormal:8s,0.6")
@click.option("--acquire", help="Origin of sandboxes: create, reset or pool:NAME.")
@click.option("--budget", help="Start no more trials after this time: 3m. Every cell gets its share.")
@click.option("--wait-idle", metavar="TIME", help="Wait at most this long until the machine is idle: 10m.")
@click.option("--repeat", type=COUNT, metavar="R", help="Repetitions of the whole measurement, in one recording.")
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="Set a value of the scenario, repeatable: timeout=60s."
)
@click.option("--processes", "workers", type=COUNT, metavar="K", help="Processes that share each cell's concurrency.")
@click.option(
    "--ray",
    metavar="ADDRESS",
    help="Start the processes on the nodes of a Ray cluster: auto, HOST:PORT or ray://HOST:PORT.",
)
@click.option("--max-sandboxes", type=COUNT, help="Create no more sandboxes than this.")
@click.option("--max-cost", type=float, metavar="USD", help="Stop before the estimated cost exceeds this.")
@click.option("--prices", type=click.Path(path_type=Path), help="Price sheet of --max-cost.")
@click.option("--yes", is_flag=True, help="Measure paid substrates; needs --max-cost or --max-sandboxes.")
@click.option("--dry-run", is_flag=True, help="Print the plan, its time and its cost; measure nothing.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="New file for the recording.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Continue a measurement that was cut short, with the same scenario and options.",
)
@click.option("--run-id", hidden=True, help="Run id, given by the interface that named the recording.")
@click.option(
    "--control",
    type=click.Choice(["stdin"]),
    hidden=True,
    help="Read pause, resume and cancel as JSON lines; EOF cancels.",
)
@click.option(
    "--progress",
    type=click.Choice(["auto", "plain", "json", "none"]),
    default="auto",
    show_default=True,
    help="Form of the progress on stderr.",
)
def command(
    scenario: str | None,
    output: Path | None,
    resume: Path | None,
    run_id: str | None,
    control: str | None,
    progress: str,
    **options: Any,
) -> None:
    """Measure substrates and write a recording; ends with the answer, and prints the path.

    SCENARIO is a TOML or JSON file, or the name of a shipped one; options replace its values. Without SCENARIO and
    -s, taxtui measures T1 in both modes on each of local and docker that works here: one to two minutes.
    Ctrl-C once: start nothing more, finish what runs; twice: abandon what runs. Both clean up.
    """
    if run_id is not None:  # it names sandboxes, folders and labels
        from taxtui import folders

        folders.require_run_id(run_id, "--run-id")
    if resume is not None and output is not None:
        raise UsageError("--resume goes on in its own file", fix="leave --output out")
    from taxtui.commands.run_plan import outline

    ray, options["changes"] = _ray(options["ray"], options["changes"])
    dry = options["dry_run"]
    chosen, left_out = "", list[str]()
    if scenario is None and not options["substrates"]:
        from taxtui.commands.run_plan import usable_here

        plan = _plan(None, options, usable_here(tell, left_out.append, build=not dry))
        chosen = "\n".join([*left_out, outline(plan)])  # printed once the run has begun: a refusal stays one line
    else:
        if scenario is not None and scenario.endswith(".msgpack"):
            raise UsageError(f"{scenario} is a recording, not a scenario", fix=f"print it: taxtui report {scenario}")
        plan = _plan(scenario, options)
    if dry:
        from taxtui.commands.run_plan import describe

        with waiting("estimating"):
            lines = describe(plan, str(options["prices"] or ""))
        for line in left_out:
            tell(f"taxtui: {line}")
        click.echo("\n".join(map(clean, lines)))
        return
    prices = _prices(plan, options["prices"])
    _confirm_paid(plan, prices, yes=options["yes"])
    _build_fixtures(plan)

    if options["ladder"]:
        levels = ", ".join(f"{width:,}" for width in sorted({cell.concurrency for cell in plan.cells}))
        tell(f"taxtui: {levels} at a time; in whole blocks that is {sum(cell.trials for cell in plan.cells):,} trials")
    if ray is None and (crowd := crowding.words(plan, crowding.cores())):
        tell(f"taxtui: {crowd}")

    load = _load(options["wait_idle"])
    software = {"ui": "tui" if control else "none", **({"engine": "ray"} if ray else {})}
    run = _run(plan, prices, output, resume, run_id, software, ray)
    shown = Shown(progress, plan.budget_s, controlled=control is not None, load=load, plan=chosen)
    asyncio.run(_execute(run, control, shown.show))
    shown.end(run.progress, run.outcome)
    conclude(run, shown)


def _load(wait: str | None) -> str:
    """A line about the machine's load where it is high, after waiting for it as long as ``--wait-idle`` allows."""
    from taxtui.plan.durations import parse_duration_ns
    from taxtui.runner import machine_load

    if wait is not None:
        machine_load.wait(parse_duration_ns(wait) / 1e9, lambda text: tell(f"taxtui: {text}"))
    return machine_load.words(machine_load.load_per_core())


def _ray(address: str | None, changes: Sequence[str]) -> tuple[RayOptions | None, list[str]]:
    """Return the cluster of ``--ray``, and the words of ``--set`` without ``per_node``, which belongs to the cluster.

    Raises ``UsageError``: ``per_node`` is not a count, or stands without ``--ray``.
    """
    words = [word for word in changes if not word.startswith("per_node=")]
    limits = [word.removeprefix("per_node=") for word in changes if word.startswith("per_node=")]
    if address is None:
        if limits:
            raise UsageError("--set per_node is for a cluster", fix="add --ray auto, or leave it out")
        return None, words
    from taxtui.plan.notation import parse_count
    from taxtui.runner.fanout.ray_launcher import RayOptions

    return RayOptions(address=address, per_node=parse_count(limits[-1]) if limits else None), words


def _run(
    plan: Plan,
    prices: Prices | None,
    output: Path | None,
    resume: Path | None,
    run_id: str | None,
    software: dict[str, str],
    ray: RayOptions | None,
) -> Run:
    """Return the run that measures the plan.

    Raises ``UsageError``: what is to be resumed is of another plan, or there is nothing left to do.
    """
    from taxtui import folders

    unfinished = None
    if resume is None:
        run_id = run_id or folders.new_run_id()
        path = output or folders.new_recording(run_id)
    else:
        from taxtui.runner.fanout.resume import ResumeState

        unfinished = ResumeState(resume, plan)
        run_id, path = unfinished.run_id, resume
    from taxtui.runner.run import Run

    return Run(plan, path, run_id, ray=ray, prices=prices, software=software, resumed=unfinished)


def _plan(name: str | None, options: dict[str, Any], usual: Sequence[str] = ()) -> Plan:
    """Return the plan of a scenario, with the options in place of its values in every block of cells.

    ``usual``: the substrates of the shipped scenario ``quick``, which stands in where ``name`` is None.
    """
    import msgspec

    from taxtui.commands.run_plan import scenario_changes
    from taxtui.plan import scenario

    file, folder = scenario.load_file(name or "quick")
    if name is None and any(options[key] for key in ("substrates", "tiers", "actions", "trials")):
        file = msgspec.structs.replace(file, name="", budget="")  # quick's budget is for its own trials
    # A tier or substrate on the command line is a new question, not the scenario's blocks asked once more.
    blocks = file.cells[:1] if options["substrates"] or options["tiers"] else file.cells
    changes: dict[str, Any] = {}
    for key in ("substrates", "tiers", "actions", "modes", "concurrency"):
        if options[key]:
            changes[key] = list(options[key])
    changes |= {"modes": [mode for text in options["modes"] for mode in text.split(",")]} if options["modes"] else {}
    if usual:
        changes["substrates"] = list(usual)
    if "tiers" in changes:  # typed here, so relative to here; the scenario's own are relative to its folder
        changes["tiers"] = [str(Path(tier).absolute()) if tier.endswith(".toml") else tier for tier in changes["tiers"]]
    for key in ("trials", "warmup", "arrival", "think", "acquire", "ladder"):
        if options[key] is not None:
            changes[key] = options[key]
    if options["ladder"] and not options["concurrency"]:  # in place of the scenario's
        changes["concurrency"] = 1
    kind, colon, argument = (options["arrival"] or "").partition(":")
    if Path(argument).is_file():  # a trace of start times
        changes["arrival"] = f"{kind}{colon}{Path(argument).absolute()}"
    top: dict[str, Any] = {"cells": [msgspec.structs.replace(block, **changes) for block in blocks]}
    top |= scenario_changes(options["changes"])
    for key in ("budget", "max_sandboxes", "repeat", "workers"):
        if options[key] is not None:
            top[key] = options[key]
    if options["max_cost"] is not None:
        top["max_cost_usd"] = options["max_cost"]
    whole: ScenarioFile = msgspec.structs.replace(file, **top)
    return scenario.plan(whole, folder)


def _prices(plan: Plan, sheet: Path | None) -> Prices | None:
    """The price sheet that a limit in dollars is counted by."""
    if sheet is None:
        if plan.max_cost_usd is not None:
            sheets = {_price_sheet(cell.substrate) for cell in plan.cells} - {""}
            named = sheets.pop() if len(sheets) == 1 else "SHEET, as in --prices aws-fargate"
            raise UsageError("--max-cost needs to know prices", fix=f"add --prices {named}")
        return None
    from costmodel import load_prices

    return load_prices(sheet)


def _price_sheet(substrate: SubstrateRef) -> str:
    """The shipped price sheet of a substrate, or of the provider behind a harness; "" where there is none."""
    from costmodel import SHIPPED_PRICES

    behind = substrate.options.get("environment", "")
    shipped_one = behind.isalnum() and (SHIPPED_PRICES / f"{behind}.toml").is_file()
    return shipped.row_of(substrate.name).price_sheet or (behind if shipped_one else "")


def _confirm_paid(plan: Plan, prices: Prices | None, *, yes: bool) -> None:
    """A substrate that costs money is only used when that was said, and how much of it may be used."""
    from taxtui.sandboxes.registry import build

    refs = {str(cell.substrate): cell.substrate for cell in plan.cells}
    paid = {text: substrate for text, ref in refs.items() if (substrate := build(ref)).capabilities.paid}
    if not paid:
        return
    names = ", ".join(paid)
    costly = [cell for cell in plan.cells if str(cell.substrate) in paid]
    sandboxes = plan.repeat * sum(cell.trials + plan.warm_ups(cell) for cell in costly)
    if prices is None:
        estimate, limit = "no price is known", f"--max-sandboxes {sandboxes}"
    else:
        from taxtui.runner.spend_limit import least_usd

        once_usd = sum(
            (cell.trials + plan.warm_ups(cell)) * least_usd(prices, paid[str(cell.substrate)], plan.limits)
            for cell in costly
        )
        total_usd = plan.repeat * once_usd
        if plan.repeated and plan.max_cost_usd is not None and total_usd > plan.max_cost_usd and plan.until is None:
            raise UsageError(
                f"{plan.repeat} runs of at least {once_usd:.2f} USD are {total_usd:.2f} USD by {prices.title}, "
                f"and max_cost_usd is {plan.max_cost_usd:g}",
                fix="raise it, plan fewer trials or repeat less",
            )
        estimate, limit = (
            f"at least {total_usd:.2f} USD by {prices.title}",
            f"--max-cost {math.ceil(200 * total_usd) / 100:.2f}",
        )
    tell(f"{names}: up to {sandboxes} sandboxes that cost money, {estimate}")
    if not yes or (plan.max_sandboxes is None and plan.max_cost_usd is None):
        raise UsageError(f"{names} costs money", fix=f"repeat with --yes {limit}")


def _build_fixtures(plan: Plan) -> None:
    """Build the fixtures of local sandboxes before anything is timed."""
    from taxtui.workloads import fixtures

    if fixtures.wanted_here(plan):
        fixtures.ensure(progress=say)


async def _execute(run: Run, control: str | None, show: Callable[[Progress], None]) -> None:
    loop = asyncio.get_running_loop()
    from taxtui.runner import gc_tuning as gc_tuning

    gc_tuning.settle()

    def interrupt() -> None:
        if run.control.stopping:
            run.control.abandon("interrupted")
        else:
            run.control.stop("interrupted")
            say("\ntaxtui: finishing what runs; Ctrl-C again abandons it. Sandboxes are removed either way")

    loop.add_signal_handler(signal.SIGINT, interrupt)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, run.control.abandon, "interrupted")
    if control is not None:
        from taxtui.runner.run_control import read_commands

        orders = {
            "pause": lambda: run.control.pause(True),
            "resume": lambda: run.control.pause(False),
            "cancel": lambda: run.control.abandon("cancelled"),
        }
        read_commands(orders, orders["cancel"], lambda line: say(f"taxtui: --control: not understood: {line}"))

    async def keep_showing() -> None:
        while True:
            await asyncio.sleep(PROGRESS_S)
            show(run.progress)

    showing = asyncio.ensure_future(keep_showing())
    try:
        await run.execute()
    finally:
        showing.cancel()
