"""``taxtui project``: what recordings mean for a training run of any size."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from costmodel.policies import POLICIES
from taxtui.errors import UsageError
from taxtui.report.formats import BY_NAME, NAMES, Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costmodel import Demand, Projection, Published, Recording
    from taxtui.report.formats import Section


@click.command("project")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@click.option("--trajectories", type=int, required=True, metavar="N", help="Trajectories of the training run.")
@click.option("--workers", type=int, required=True, metavar="W", help="Rollout workers, one trajectory each at a time.")
@click.option("-n", "--actions", type=int, help="Actions per trajectory; other than recorded: cut or prolonged.")
@click.option("--baseline", metavar="SUBSTRATE", help="Compare every row with this substrate's.")
@click.option("--reference", metavar="SUBSTRATE[:key=value]", help="Whose commands count as full speed.")
@click.option("--cell", "cells", multiple=True, metavar="ID", help="Show only this row; repeat for several.")
@click.option("--max-attempts", type=int, metavar="A", help="Give a trajectory up after this many failures.")
@click.option("--backoff-seconds", type=float, default=0.0, metavar="S", help="Wait before each new attempt.")
@click.option("--timeout-seconds", type=float, metavar="S", help="Kill an attempt that is held longer.")
@click.option("--think", metavar="TIME", help="Idle time per action instead of the recorded: 8s, or lognormal:8s,0.6")
@click.option("--include-cleanup", is_flag=True, help="Workers wait for the clean-up too.")
@click.option("--quota", type=int, metavar="Q", help="Sandboxes that may exist at a time.")
@click.option("--create-rate", type=float, metavar="R", help="Sandboxes that may be created per second.")
@click.option("--create-burst", type=int, default=1, metavar="B", help="... after this many at once.")
@click.option("--warm-pool", type=int, metavar="P", help="Sandboxes kept ready (per image, with --group-size).")
@click.option("--refill-seconds", type=float, metavar="S", help="How long a slot of the pool takes to be ready again.")
@click.option("--refill-rate", type=float, metavar="R", help="... or how many become ready per second.")
@click.option("--group-size", type=int, metavar="G", help="... or rollouts of one image that start together (GRPO).")
@click.option("--batch", type=int, metavar="B", help="Trajectories per training step; steps wait for all of them.")
@click.option("--train-seconds", type=float, default=0.0, metavar="T", help="Training per step.")
@click.option("--policy", type=click.Choice(tuple(POLICIES)), help="Default: sync with a batch.")
@click.option("--over-provision", type=float, default=0.0, metavar="X", help="Launch B(1+X), keep the first B.")
@click.option("--partial-rollouts", is_flag=True, help="... and carry the unfinished into the next step.")
@click.option("--gpus", type=int, metavar="G", help="GPUs that train; how long they wait, generation included.")
@click.option("--gpu-usd-hour", type=float, metavar="X", help="Price of one.")
@click.option("--prices", metavar="FILE", help="Price sheet (TOML), or a shipped one: aws-fargate.")
@click.option(
    "--delta", "deltas", multiple=True, metavar="TIME/UNIT", help="Your own change: 250ms/action, 2s/rollout."
)
@click.option("--seed", type=int, default=0, help="Of the simulations, where one is needed.")
@click.option("--explain", is_flag=True, help="Every input, formula and intermediate value of each row.")
@click.option("--plot", is_flag=True, help="Curves in the terminal.")
@click.option(
    "--over", type=click.Choice(["trajectories", "workers", "actions"]), default="trajectories", help="... over this."
)
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True)
def command(
    recordings: tuple[str, ...],
    prices: str | None,
    cells: tuple[str, ...],
    explain: bool,
    plot: bool,
    over: str,
    form: str,
    **question: Any,
) -> None:
    """Project recordings to N trajectories on W workers: worker-hours, wall-clock, tax, money, how sure.

    RECORDING is a file that `taxtui run` wrote, or published latencies (a .toml file); shipped ones go by name, as
    scenarios/published/essay.toml. Recordings of the same cells are pooled. A published latency answers how many
    trajectories on how many workers, and for how much; an option that it cannot use is refused by name.
    """
    from costmodel.pricing import load_prices
    from costmodel.projection import project
    from taxtui.commands.opening import opened

    if (explain or plot) and not BY_NAME[form].people:
        raise UsageError(f"--explain and --plot are for people; they do not go with --format {form}")
    demand = demand_of(question)
    sources = [opened(name) for name in recordings]
    rows = project(sources, demand, None if prices is None else load_prices(prices))
    if cells:
        if unknown := set(cells) - {row.identity.cell_id for row in rows}:
            known = ", ".join(row.identity.cell_id for row in rows)
            raise UsageError(f"no row has the cell id {min(unknown)}", fix=f"there are {known}")
        rows = [row for row in rows if row.identity.cell_id in cells]
    click.echo(BY_NAME[form].render(_told(rows, demand, sources)))
    if explain:
        from taxtui.report.projected import explain as explanation

        for row in rows:
            click.echo(f"\n{explanation.to_text(row, demand)}")
    if plot:
        _plot(sources, demand, over, {row.identity._replace(actions=0) for row in rows})


def demand_of(question: dict[str, Any]) -> Demand:
    """The demand that the options describe, as click has parsed them; takes them out of ``question``.

    Raises:
        UsageError: a think time or a change cannot be read.
        costmodel.errors.DemandError: the options contradict each other, or cannot be answered.
    """
    from costmodel.demand import Delta, Demand, Think
    from taxtui.plan.durations import parse_duration_ns
    from taxtui.plan.notation import parse_think

    for seconds in ("backoff", "timeout", "refill", "train"):
        question[f"{seconds}_s"] = question.pop(f"{seconds}_seconds")
    if (think := question.pop("think")) is not None:
        parsed = parse_think(think)
        question["think"] = Think(parsed.median_ns, parsed.sigma)
    deltas = []
    for text in question.pop("deltas"):
        amount, slash, unit = text.partition("/")
        if not slash or unit not in ("action", "rollout"):
            raise UsageError(f"{text!r} is not a change", fix="write 250ms/action or 2s/rollout")
        sign = -1 if amount.startswith("-") else 1
        deltas.append(Delta(sign * parse_duration_ns(amount.lstrip("+-")), unit == "action"))
    return Demand(**question, deltas=tuple(deltas))


def _told(rows: Sequence[Projection], demand: Demand, sources: Sequence[Recording | Published]) -> Report:
    def sections() -> Sequence[Section]:
        from taxtui.report.projected.sections import sections

        return sections(rows, demand, sources)

    def records() -> list[dict[str, Any]]:
        from taxtui.report.projected.record import record

        return [record(row) for row in rows]

    return Report(sections, records)


def _plot(sources: Sequence[Recording | Published], demand: Demand, over: str, wanted: set[Any]) -> None:
    from costmodel.whatif import curve
    from taxtui.report.projected import plot

    axis: Any = over
    curves = [one for one in curve(sources, demand, axis) if one.identity._replace(actions=0) in wanted]
    click.echo(f"\n{plot.to_text(curves, axis, color=sys.stdout.isatty())}")
