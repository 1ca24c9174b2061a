"""What a projection can be asked, as options: of ``taxtui project``, and of the form on the Projection screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from costmodel.policies import POLICIES
from taxtui.errors import UsageError

if TYPE_CHECKING:
    from costmodel import Demand

OPTIONS: Final = (
    click.Option(["--trajectories"], type=int, required=True, metavar="N", help="Trajectories of the training run."),
    click.Option(
        ["--workers"], type=int, required=True, metavar="W", help="Rollout workers, one trajectory each at a time."
    ),
    click.Option(
        ["-n", "--actions"], metavar="N", help="Actions per trajectory: 50, 20-120, 10:3,50:1 by weight; or recorded."
    ),
    click.Option(["--baseline"], metavar="SUBSTRATE", help="Compare every row with this substrate's."),
    click.Option(["--full-speed"], metavar="SUBSTRATE[:key=value]", help="Whose commands count as full speed."),
    click.Option(["--max-attempts"], type=int, metavar="A", help="Give a trajectory up after this many failures."),
    click.Option(["--backoff-seconds"], type=float, default=0.0, metavar="S", help="Wait before each new attempt."),
    click.Option(["--timeout-seconds"], type=float, metavar="S", help="Kill an attempt that is held longer."),
    click.Option(
        ["--think"], metavar="TIME", help="Idle time per action instead of the recorded: 8s, or lognormal:8s,0.6"
    ),
    click.Option(["--include-cleanup"], is_flag=True, help="Workers wait for the clean-up too."),
    click.Option(["--quota"], type=int, metavar="Q", help="Sandboxes that may exist at a time."),
    click.Option(["--create-rate"], type=float, metavar="R", help="Sandboxes that may be created per second."),
    click.Option(["--create-burst"], type=int, default=1, metavar="B", help="... after this many at once."),
    click.Option(["--warm-pool"], type=int, metavar="P", help="Sandboxes kept ready (per image, with --group-size)."),
    click.Option(
        ["--refill-seconds"], type=float, metavar="S", help="How long a slot of the pool takes to be ready again."
    ),
    click.Option(["--refill-rate"], type=float, metavar="R", help="... or how many become ready per second."),
    click.Option(
        ["--group-size"], type=int, metavar="G", help="... or rollouts of one image that start together (GRPO)."
    ),
    click.Option(
        ["--batch"], type=int, metavar="B", help="Trajectories per training step; steps wait for all of them."
    ),
    click.Option(["--train-seconds"], type=float, default=0.0, metavar="T", help="Training per step."),
    click.Option(["--policy"], type=click.Choice(tuple(POLICIES)), help="Default: sync with a batch."),
    click.Option(["--over-provision"], type=float, default=0.0, metavar="X", help="Launch B(1+X), keep the first B."),
    click.Option(["--partial-rollouts"], is_flag=True, help="... and carry the unfinished into the next step."),
    click.Option(["--gpus"], type=int, metavar="G", help="GPUs that train; how long they wait, generation included."),
    click.Option(["--gpu-usd-hour"], type=float, metavar="X", help="Price of one."),
    click.Option(["--prices"], metavar="FILE", help="Price sheet (TOML), or a shipped one: aws-fargate."),
    click.Option(
        ["--delta", "deltas"], multiple=True, metavar="TIME/UNIT", help="Your own change: 250ms/action, 2s/rollout."
    ),
    click.Option(["--seed"], type=int, default=0, help="Of the simulations, where one is needed."),
)
"""In the order of the help. ``demand_of`` takes the values of all but ``prices``."""


def demand_of(asked: dict[str, Any]) -> Demand:
    """The demand that the options describe, as click has parsed them; takes them out of ``asked``.

    Raises:
        UsageError: a length, a think time or a change cannot be read.
        costmodel.errors.DemandError: the options contradict each other, or cannot be answered.
    """
    from costmodel.demand import Delta, Demand, Think
    from taxtui.plan.durations import parse_duration_ns
    from taxtui.plan.notation import parse_length, parse_think

    for seconds in ("backoff", "timeout", "refill", "train"):
        asked[f"{seconds}_s"] = asked.pop(f"{seconds}_seconds")
    if (actions := asked.pop("actions")) is not None:
        asked["actions"] = parse_length(actions)
    if (think := asked.pop("think")) is not None:
        parsed = parse_think(think)
        asked["think"] = Think(parsed.median_ns, parsed.sigma)
    deltas = []
    for text in asked.pop("deltas"):
        amount, slash, unit = text.partition("/")
        if not slash or unit not in ("action", "rollout"):
            raise UsageError(f"{text!r} is not a change", fix="write 250ms/action or 2s/rollout")
        sign = -1 if amount.startswith("-") else 1
        deltas.append(Delta(sign * parse_duration_ns(amount.lstrip("+-")), unit == "action"))
    return Demand(**asked, deltas=tuple(deltas))
