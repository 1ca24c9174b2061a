"""``taxtui run``: measure substrates and write a recording."""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taxtui import gc_tuning, shipped
from taxtui.commands.files import require_absent
from taxtui.commands.progress import progress as show_progress
from taxtui.commands.run_output import RunOutput, conclude, say, say_clean
from taxtui.errors import SubstrateUnavailable, UsageError
from taxtui.options.numbers import COUNT_OR_ZERO, POSITIVE_COUNT
from taxtui.options.set_command import SetCommand
from taxtui.plan import crowding
from taxtui.plan.arrivals import NOTATIONS
from taxtui.plan.durations import parse_duration_ns
from taxtui.plan.notation import parse_ladder, parse_think
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from costmodel import Prices
    from taxtui.plan.spec import Plan, SubstrateRef
    from taxtui.runner.run import Run
    from taxtui.runner.run_control import Progress

PROGRESS_S: Final = 0.5


def _notation(parse: Callable[[str], object]) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Return a callback that checks the notation of an option's value."""

    def check(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
        if text is not None:
            try:
                parse(text)
            except UsageError as error:
                raise UsageError(f"{option.opts[-1]}: {error.problem}", fix=error.fix) from error
        return text

    return check


class _RunCommand(SetCommand):
    def set_keys(self) -> dict[str, str]:
        from taxtui.commands.run_plan import SET_KEYS

        return {f"--{key.replace('_', '-')}": key for key in SET_KEYS}


@click.command("run", cls=_RunCommand)
@click.argument("scenario", required=False)
@click.option(
    "-s",
    "--substrate",
    "substrates",
    multiple=True,
    metavar="NAME[:key=value,…]",
    help="Measure this substrate, repeatable.  [local and docker, if usable]",
)
@click.option(
    "-t", "--tier", "tiers", multiple=True, help="Measure this tier, repeatable: T0, T1, T2, or the path of your own."
)
@click.option("-n", "--actions", multiple=True, type=POSITIVE_COUNT, help="Actions per trajectory, repeatable.")
@click.option("--mode", "modes", multiple=True, help="Measure this mode, repeatable: exec or session.")
@click.option("--trials", type=POSITIVE_COUNT, help="Trials per cell.")
@click.option("--warmup", type=COUNT_OR_ZERO, help="Warm-up trials per cell: recorded, but not counted.")
@click.option("--concurrency", multiple=True, type=POSITIVE_COUNT, help="Trials in flight, repeatable.")
@click.option(
    "--ladder",
    metavar="LOW:HIGH",
    callback=_notation(parse_ladder),
    help="Concurrencies to find the saturation point, each twice the last: 1:256.",
)
@click.option("--arrival", help=" | ".join(NOTATIONS))
@click.option("--think", callback=_notation(parse_think), help="Idle time between actions: 8s, or lognormal:8s,0.6")
@click.option("--acquire", help="Origin of sandboxes: create, reset or pool:NAME.")
@click.option(
    "--budget",
    callback=_notation(parse_duration_ns),
    help="Start no more trials after this time: 3m. Every cell gets its share.",
)
@click.option(
    "--wait-idle",
    metavar="TIME",
    callback=_notation(parse_duration_ns),
    help="Wait at most this long until the machine is idle: 10m.",
)
@click.option(
    "--repeat", type=POSITIVE_COUNT, metavar="R", help="Repetitions of the whole measurement, in one recording."
)
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="Set a value of the scenario, repeatable: timeout=60s."
)
@click.option(
    "--processes",
    "workers",
    type=POSITIVE_COUNT,
    metavar="K",
    help="Processes, each with a share of a cell's concurrency.",
)
@click.option(
    "--ray",
    metavar="ADDRESS",
    help="Start the processes on the nodes of a Ray cluster: auto, HOST:PORT or ray://HOST:PORT.",
)
@click.option("--max-sandboxes", type=POSITIVE_COUNT, help="Create no more sandboxes than this.")
@click.option("--max-cost", type=float, metavar="USD", help="Stop before the estimated cost exceeds this.")
@click.option("--prices", type=click.Path(path_type=Path), help="Price sheet of --max-cost.")
@click.option("--yes", is_flag=True, help="Measure paid substrates; needs --max-cost or --max-sandboxes.")
@click.option("--dry-run", is_flag=True, help="Print the plan, its time and its cost; measure nothing.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="New file for the recording.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Continue an interrupted measurement, with the same scenario and options.",
)
@click.option("--run-id", hidden=True, help="Run id of the interface's recording.")
@click.option(
    "--control",
    type=click.Choice(["stdin"]),
    hidden=True,
    help="Read pause, resume and cancel as JSON lines; EOF cancels.",
)
@click.option(
    "--progress",
    type=click.Choice(["auto", "plain", "none"]),
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

    SCENARIO is a TOML or JSON file, or the name of a shipped scenario; options replace values. Without SCENARIO and
    -s, taxtui measures T1 in both modes on each of local and docker that works here: one to two minutes.
    Ctrl-C once: start nothing more, finish running trials; twice: abandon running trials. Both clean up.
    """
    from taxtui import folders
    from taxtui.commands.run_plan import describe, outline, plan_of, usable_here
    from taxtui.runner.fanout.resume import ResumeState
    from taxtui.runner.preflight import require
    from taxtui.runner.run import Run
    from taxtui.sandboxes.protocol import Availability
    from taxtui.sandboxes.registry import build

    if run_id is not None:  # the id names sandboxes, folders and labels
        folders.require_run_id(run_id, "--run-id")
    if resume is not None and output is not None:
        raise UsageError("--resume continues its own file", fix="leave --output out")
    ray = options["ray"]
    dry_run = options["dry_run"]
    chosen, left_out = "", list[str]()
    if scenario is None and not options["substrates"]:
        substrates, left_out = usable_here(say_clean, build=not dry_run)
        plan = plan_of(None, options, substrates)
        chosen = "\n".join([*left_out, outline(plan)])  # printed once the run has begun: a refusal stays one line
    else:
        if scenario is not None and scenario.endswith(".msgpack"):
            raise UsageError(f"{scenario} is a recording, not a scenario", fix=f"print it: taxtui report {scenario}")
        plan = plan_of(scenario, options)
        if any(cell.think.mean_ns for cell in plan.cells):  # hours may pass without a word
            chosen = outline(plan)
    prices = _prices(plan, options["prices"])
    resumed = None if resume is None else ResumeState(resume, plan)
    if output is not None:
        require_absent(output, "-o")
    if dry_run:
        for cell in plan.cells:
            with contextlib.suppress(SubstrateUnavailable):  # a note of the dry run
                require(cell, build(cell.substrate), Availability(ok=True, detail=""), plan.lifecycle)
        with show_progress("estimating"):
            lines = describe(plan, str(options["prices"] or ""))
        for line in left_out:
            say_clean(f"taxtui: {line}")
        click.echo("\n".join(map(clean, lines)))
        return
    _confirm_paid(plan, prices, yes=options["yes"])
    _build_fixtures(plan)
    if options["ladder"]:
        levels = ", ".join(f"{width:,}" for width in sorted({cell.concurrency for cell in plan.cells}))
        trials = sum(cell.trials for cell in plan.cells)
        say_clean(f"taxtui: concurrencies {levels}, in whole blocks: {trials:,} trials")
    if ray is None and (crowd := crowding.crowding_warning(plan)):
        say_clean(f"taxtui: {crowd}")
    if options["wait_idle"] is not None and crowding.load_warning():
        say_clean(f"taxtui: waiting until the load is at most {crowding.LOAD_LIMIT:g} per core")
        crowding.wait_until_idle(parse_duration_ns(options["wait_idle"]) / 1e9)
    software = {"ui": "tui" if control else "none", **({"engine": "ray"} if ray else {})}
    run_id = resumed.run_id if resumed else run_id or folders.new_run_id()
    path = resume or output or folders.new_recording(run_id)
    run = Run(plan, path, run_id, ray=ray, prices=prices, software=software, resumed=resumed)
    run_output = RunOutput(
        progress, plan.budget_s, controlled=control is not None, load=crowding.load_warning(), plan=chosen
    )
    asyncio.run(_execute(run, control, run_output.show))
    run_output.end()
    conclude(run, run_output)


def _prices(plan: Plan, sheet: Path | None) -> Prices | None:
    """Return the price sheet of a limit in dollars. Raises ``UsageError``: the plan has a limit and no sheet."""
    if sheet is None:
        if plan.max_cost_usd is not None:
            sheets = {_price_sheet(cell.substrate) for cell in plan.cells} - {""}
            name = sheets.pop() if len(sheets) == 1 else "SHEET, as in --prices aws-fargate"
            raise UsageError("--max-cost needs to know prices", fix=f"add --prices {name}")
        return None
    from costmodel import load_prices

    return load_prices(sheet)


def _price_sheet(substrate: SubstrateRef) -> str:
    """Return the shipped price sheet of a substrate, or of the provider behind a harness; "" if none ships."""
    from costmodel import SHIPPED_PRICES

    provider = substrate.options.get("environment", "")
    has_sheet = provider.isalnum() and (SHIPPED_PRICES / f"{provider}.toml").is_file()
    return shipped.row_of(substrate.name).price_sheet or (provider if has_sheet else "")


def _confirm_paid(plan: Plan, prices: Prices | None, *, yes: bool) -> None:
    """Require ``--yes`` and a limit for paid substrates. Raises ``UsageError``: an option is missing."""
    from taxtui.sandboxes.registry import build

    references = {str(cell.substrate): cell.substrate for cell in plan.cells}
    substrates = {text: build(reference) for text, reference in references.items()}
    paid = {text: substrate for text, substrate in substrates.items() if substrate.capabilities.paid}
    if not paid:
        return
    names = ", ".join(paid)
    cells = [cell for cell in plan.cells if str(cell.substrate) in paid]
    sandboxes = plan.repeat * sum(cell.trials + plan.warm_ups(cell) for cell in cells)
    if prices is None:
        estimate, limit = "no price is known", f"--max-sandboxes {sandboxes}"
    else:
        from taxtui.runner.spend_limit import least_usd

        once_usd = sum(
            (cell.trials + plan.warm_ups(cell)) * least_usd(prices, paid[str(cell.substrate)], plan.limits)
            for cell in cells
        )
        total_usd = plan.repeat * once_usd
        if plan.repeat > 1 and plan.max_cost_usd is not None and total_usd > plan.max_cost_usd:
            raise UsageError(
                f"{plan.repeat} repetitions of at least {once_usd:.2f} USD are {total_usd:.2f} USD by {prices.title}, "
                f"and max_cost_usd is {plan.max_cost_usd:g}",
                fix="raise the limit, plan fewer trials or repeat less",
            )
        estimate = f"at least {total_usd:.2f} USD by {prices.title}"
        limit = f"--max-cost {math.ceil(200 * total_usd) / 100:.2f}"
    say_clean(f"{names}: up to {sandboxes} sandboxes that cost money, {estimate}")
    if not yes or (plan.max_sandboxes is None and plan.max_cost_usd is None):
        raise UsageError(f"{names} costs money", fix=f"repeat with --yes {limit}")


def _build_fixtures(plan: Plan) -> None:
    """Build the fixtures of local sandboxes before the measurement."""
    from taxtui.workloads import fixtures

    if fixtures.wanted_here(plan):
        fixtures.ensure(progress=say)


async def _execute(run: Run, control: str | None, show: Callable[[Progress], None]) -> None:
    """Measure; obey signals and ``--control``, and show the progress twice a second."""
    loop = asyncio.get_running_loop()
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
