"""What a projection can be asked, as options: of ``taxtui project`` and ``decide``, and of the Projection screen.

One table: an option's group is its heading in the help and its table in a demand file; the field of ``Demand`` that it
fills is its key there, so ``--train-seconds 60`` is ``train_s = 60`` under ``[trainer]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from costmodel.training.policies import POLICIES
from costmodel.training.run import ON_FAILURE, PLACEMENTS
from taxtui.errors import UsageError
from taxtui.plan.count_option import COUNT
from taxtui.report.projected.demand_file import field_of, load
from taxtui.report.run_spread import OPTION as RUN_SD
from taxtui.report.run_spread import SHARE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from costmodel import Demand


class OptionGroup(NamedTuple):
    """Options that belong together."""

    heading: str
    options: tuple[click.Option, ...]


def _option(flags: str, metavar: str | None, about: str, **more: Any) -> click.Option:
    return click.Option(flags.split(), metavar=metavar, help=about, **more)


GROUPS: Final[Mapping[str, OptionGroup]] = {
    "run": OptionGroup(
        "The run",
        (
            _option("--trajectories", "N", "Trajectories of the training run.", type=COUNT, required=True),
            _option("--workers", "W", "Rollout workers, one trajectory each at a time.", type=COUNT, required=True),
            _option("--baseline", "SUBSTRATE", "Compare every row with this substrate's."),
            _option("--full-speed", "SUBSTRATE[:key=value]", "Whose commands count as full speed."),
            _option("--include-cleanup", None, "Workers wait for the clean-up too.", is_flag=True),
            RUN_SD,
            _option(
                "--delta deltas", "TIME/UNIT", "Your own change, repeatable: 250ms/action, 2s/rollout.", multiple=True
            ),
            _option("--seed", "N", "Of the simulations, where one is needed.", type=int),
        ),
    ),
    "length": OptionGroup(
        "Length",
        (_option("-n --actions", "N", "Actions per trajectory: 50, 20-120, 10:3,50:1 by weight; or recorded."),),
    ),
    "think": OptionGroup(
        "The model's time",
        (
            _option("--think", "TIME", "Idle time per action instead of the recorded: 8s, or lognormal:8s,0.6"),
            _option(
                "--think-correlation",
                "R",
                "Of log think time between rollouts of one prompt, 0 to 1.",
                type=float,
            ),
        ),
    ),
    "policy": OptionGroup(
        "Training steps",
        (
            _option("--prompts", "P", "Prompts per training step, of --group-size rollouts each.", type=COUNT),
            _option("--group-size", "G", "Rollouts of one prompt, and image, that start together (GRPO).", type=COUNT),
            _option("--batch", "B", "Or: trajectories per training step; steps wait for all of them.", type=COUNT),
            _option("--policy", None, "Default: sync with steps.", type=click.Choice(tuple(POLICIES))),
            _option("--staleness", "K", "async: rollouts start once the step K before theirs is trained.", type=COUNT),
            _option("--over-provision", "X", "Launch B(1+X), keep the first B.", type=float),
            _option("--partial-rollouts", None, "... and carry the unfinished into the next step.", is_flag=True),
        ),
    ),
    "trainer": OptionGroup(
        "The trainer",
        (
            _option("--train-seconds", "T", "Training per step.", type=float),
            _option("--gpus", "G", "GPUs that train; how long they wait, generation included.", type=COUNT),
            _option("--gpu-usd-hour", "X", "Price of one.", type=float),
        ),
    ),
    "images": OptionGroup(
        "Images",
        (
            _option("--images", "SET", "One for each prompt: 500:2-8 (500 of 2 to 8 GB), 2,4,8, or a file of sizes."),
            _option("--placement", None, "Default: spread.", type=click.Choice(PLACEMENTS)),
        ),
    ),
    "nodes": OptionGroup(
        "Nodes",
        (
            _option("--nodes", "N", "Nodes that sandboxes run on.", type=COUNT),
            _option("--pods-per-node", "P", "Sandboxes that one of them holds.", type=COUNT),
            _option("--node-usd-hour", "X", "Price of one.", type=float),
            _option("--node-disk-gib", "D", "Its disk for images. Default: enough for all.", type=float),
            _option("--pull-gb-s", "R", "GB of images that it pulls and unpacks per second.", type=float),
        ),
    ),
    "failures": OptionGroup(
        "Failures",
        (
            _option("--failure-rate", "SHARE", "Of attempts, instead of the recorded: 5% or 0.05.", type=SHARE),
            _option("--failure-hazard", "H", "Or: failures per hour of a sandbox.", type=float),
            _option(
                "--failure-burst", "K", "Sandboxes that fail together, with --failure-rate. Default: 1.", type=COUNT
            ),
            _option(
                "--on-failure",
                None,
                "Try again (the default), drop the rollout, redo its group, or keep it with reward 0.",
                type=click.Choice(ON_FAILURE),
            ),
            _option("--max-attempts", "A", "Give a trajectory up after this many failures.", type=COUNT),
            _option("--backoff-seconds", "S", "Wait before each new attempt.", type=float),
            _option("--timeout-seconds", "S", "Kill an attempt that is held longer.", type=float),
        ),
    ),
    "limits": OptionGroup(
        "The provider's limits",
        (
            _option("--profile", "NAME", "Fills the next three with a provider's limits: e2b-pro, or a file."),
            _option("--quota", "Q", "Sandboxes that may exist at a time.", type=COUNT),
            _option("--create-rate", "R", "Sandboxes that may be created per second.", type=float),
            _option("--create-burst", "B", "... after this many at once.", type=COUNT),
        ),
    ),
    "pool": OptionGroup(
        "A warm pool",
        (
            _option("--warm-pool", "P", "Sandboxes kept ready (per image, with --group-size).", type=COUNT),
            _option("--refill-seconds", "S", "How long a slot of the pool takes to be ready again.", type=float),
            _option("--refill-rate", "R", "... or how many become ready per second.", type=float),
            _option("--instant-claim", None, "Who finds none ready may take the next one.", is_flag=True),
        ),
    ),
    "providers": OptionGroup(
        "Providers that were not measured",
        (
            _option(
                "--compose",
                "NAME[:key=value]",
                "The recorded work with a provider's published start, limits and prices, repeatable: e2b, "
                "daytona:dispatch=100ms..300ms",
                multiple=True,
            ),
        ),
    ),
    "prices": OptionGroup(
        "Prices", (_option("--prices", "FILE", "Price sheet (TOML), or a shipped one: aws-fargate."),)
    ),
}
"""Table of a demand file → its options."""


def asked_of(context: click.Context, options: Sequence[click.Option]) -> list[click.Option]:
    """Those that the command takes."""
    taken = set(map(id, context.command.params))
    return [option for option in options if id(option) in taken]


def _from_file(context: click.Context, parameter: click.Parameter, name: str | None) -> object:
    """What is in the file is what the other options are unless they are given."""
    if name is None:
        return None
    found = load(name, {table: asked_of(context, group.options) for table, group in GROUPS.items()})
    context.default_map = {**(context.default_map or {}), **found.values}
    return found


DEMAND: Final = click.Option(
    ["--demand", "file"],
    metavar="FILE",
    is_eager=True,
    callback=_from_file,
    help="A TOML file with any of the options below, in groups; options given here override it.",
)
OPTIONS: Final = (DEMAND, *(option for group in GROUPS.values() for option in group.options))
"""In the order of the help. ``demand_of`` takes what all but ``prices`` and ``compose`` are; None: not asked for."""


class AskingCommand(click.Command):
    """A command whose help has the options above under their headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own first, then group by group."""
        grouped = {id(option) for group in GROUPS.values() for option in group.options}
        own = [one for one in self.get_params(ctx) if isinstance(one, click.Option) and id(one) not in grouped]
        for heading, options in (("Options", own), *GROUPS.values()):
            lines = [line for option in options if (line := option.get_help_record(ctx)) is not None]
            with formatter.section(heading):
                formatter.write_dl(lines)


def asked_at(spec: str, context: click.Context) -> dict[str, Any]:
    """What is asked of one substrate, SUBSTRATE[:key=value]: the options, but for what the demand file says of it.

    What is given on the command line holds everywhere.
    """
    asked = {str(option.name): context.params[str(option.name)] for option in asked_of(context, OPTIONS)}
    given = click.core.ParameterSource.COMMANDLINE
    own = {} if asked["file"] is None else asked["file"].at.get(spec, {})
    return asked | {name: value for name, value in own.items() if context.get_parameter_source(name) != given}


def demand_of(asked: dict[str, Any]) -> Demand:
    """The demand that the options describe, as click has parsed them.

    Raises:
        UsageError: a length, a think time or a change cannot be read.
        costmodel.errors.DemandError: a profile is unknown, or the options contradict each other.
    """
    from costmodel.errors import DemandError
    from costmodel.training.run import Delta, Demand, Think
    from taxtui.plan.durations import parse_duration_ns
    from taxtui.plan.notation import parse_images, parse_length, parse_think

    file = asked.pop("file")
    asked = {name: value for name, value in asked.items() if value is not None}
    for option in OPTIONS:
        if (name := str(option.name)) in asked:
            asked[field_of(option)] = asked.pop(name)
    if asked.pop("compose", ()):
        raise UsageError("a demand says nothing of providers", fix="compose them with taxtui project --compose")
    if (actions := asked.pop("actions", None)) is not None:
        asked["actions"] = parse_length(actions)
    if (think := asked.pop("think", None)) is not None:
        parsed = parse_think(think)
        asked["think"] = Think(parsed.median_ns, parsed.sigma)
    if (images := asked.pop("images", None)) is not None:
        asked["images"] = parse_images(images)
    deltas = []
    for text in asked.pop("deltas", ()):
        amount, slash, unit = text.partition("/")
        if not slash or unit not in ("action", "rollout"):
            raise UsageError(f"{text!r} is not a change", fix="write 250ms/action or 2s/rollout")
        sign = -1 if amount.startswith("-") else 1
        deltas.append(Delta(sign * parse_duration_ns(amount.lstrip("+-")), unit == "action"))
    if (profile := asked.pop("profile", None)) is not None:
        from costmodel.providers.limits import load_profile

        asked = load_profile(profile).filled(asked)
    try:
        return Demand(**asked, deltas=tuple(deltas))
    except DemandError as error:
        raise error if file is None else file.contradicted(error) from error
