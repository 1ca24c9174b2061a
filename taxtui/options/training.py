"""Options that describe a training run: of ``taxtui project`` and ``decide``, and of the Projection screen.

One table: an option's group is its heading in the help and its table in a training file; the field of ``TrainingRun``
that it fills is its key there, so ``--train-seconds 60`` is ``train_s = 60`` under ``[trainer]``. A command takes the
options that most training runs need, and ``--set KEY=VALUE`` for the other keys.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from costmodel import ON_FAILURE, PLACEMENTS, POLICIES
from taxtui.errors import UsageError
from taxtui.options.count import COUNT
from taxtui.options.rows import MODE, TIER
from taxtui.options.run_spread import OPTION as RUN_SD
from taxtui.options.run_spread import SHARE
from taxtui.options.training_file import changes, field_of, load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from costmodel import TrainingRun


class OptionGroup(NamedTuple):
    """Options that belong together."""

    heading: str
    options: tuple[click.Option, ...]


def _option(flags: str, metavar: str | None, about: str, **more: Any) -> click.Option:
    return click.Option(flags.split(), metavar=metavar, help=about, **more)


GROUPS: Final[Mapping[str, OptionGroup]] = {
    "workload": OptionGroup("Workload", (TIER, MODE)),
    "run": OptionGroup(
        "The training run",
        (
            _option(
                "--trajectories", "N", "Trajectories of the training run.", type=COUNT, default="1M", show_default=True
            ),
            _option(
                "--workers",
                "W",
                "Rollout workers, each with one trajectory at a time.",
                type=COUNT,
                default="500",
                show_default=True,
            ),
            _option("--baseline", "SUBSTRATE", "Compare every row with this substrate."),
            _option("--full-speed", "SUBSTRATE[:key=value]", "Substrate whose commands count as full speed."),
            _option("--include-cleanup", None, "Rollout workers wait for the clean-up too.", is_flag=True),
            RUN_SD,
            _option("--seed", "N", "Seed of the simulation.", type=int),
        ),
    ),
    "length": OptionGroup(
        "Length",
        (_option("--length actions", "N", "Actions per trajectory: 50, 20-120, 10:3,50:1 by weight.  [as recorded]"),),
    ),
    "think": OptionGroup(
        "The model's time",
        (
            _option("--think", "TIME", "Model time per action, instead of the recorded: 8s, or lognormal:8s,0.6"),
            _option(
                "--think-correlation",
                "R",
                "Correlation of log think times between rollouts of one prompt, 0 to 1.",
                type=float,
            ),
        ),
    ),
    "policy": OptionGroup(
        "Training steps",
        (
            _option("--prompts", "P", "Prompts per training step, of --group-size rollouts each.", type=COUNT),
            _option("--group-size", "G", "Rollouts of a prompt, which start together (GRPO).", type=COUNT),
            _option("--batch", "B", "Trajectories per training step, without prompts; steps wait for all.", type=COUNT),
            _option(
                "--policy", None, "When steps wait for rollouts.  [sync with steps]", type=click.Choice(tuple(POLICIES))
            ),
            _option("--staleness", "K", "Steps that async rollouts may run ahead of training.", type=COUNT),
            _option("--over-provision", "X", "Launch B(1+X) rollouts per step and keep the first B.", type=float),
            _option("--partial-rollouts", None, "Carry unfinished rollouts into the next step.", is_flag=True),
        ),
    ),
    "trainer": OptionGroup(
        "The trainer",
        (
            _option("--train-seconds", "T", "Training time per step, in seconds.", type=float),
            _option("--gpus", "G", "GPUs of the training run; they wait while rollouts run.", type=COUNT),
            _option("--gpu-usd-hour", "X", "Price of one GPU, in dollars per hour.", type=float),
        ),
    ),
    "images": OptionGroup(
        "Images",
        (
            _option("--images", "SET", "Image sizes, one image per prompt: 500:2-8 (500 of 2 to 8 GB), or a file."),
            _option("--placement", None, "Node that a sandbox starts on.  [spread]", type=click.Choice(PLACEMENTS)),
        ),
    ),
    "nodes": OptionGroup(
        "Nodes",
        (
            _option("--nodes", "N", "Nodes that sandboxes run on.", type=COUNT),
            _option("--pods-per-node", "P", "Sandboxes per node.", type=COUNT),
            _option("--node-usd-hour", "X", "Price of one node, in dollars per hour.", type=float),
            _option("--node-disk-gib", "D", "Disk of a node for images.  [enough for all]", type=float),
            _option("--pull-gb-s", "R", "GB of images that a node pulls and unpacks per second.", type=float),
        ),
    ),
    "failures": OptionGroup(
        "Failures",
        (
            _option("--failure-rate", "SHARE", "Share of attempts that fail, instead of the recorded: 5%.", type=SHARE),
            _option(
                "--failure-burst", "K", "Sandboxes that fail together, with --failure-rate. Default: 1.", type=COUNT
            ),
            _option("--failure-hazard", "H", "Failures per hour of a sandbox, instead of a share.", type=float),
            _option(
                "--on-failure",
                None,
                "After a failure: retry (the default), drop the rollout, redo its group, or keep it with reward 0.",
                type=click.Choice(ON_FAILURE),
            ),
            _option("--max-attempts", "A", "Attempts after which a trajectory is given up.", type=COUNT),
            _option("--backoff-seconds", "S", "Wait before each new attempt, in seconds.", type=float),
            _option("--timeout-seconds", "S", "Kill an attempt that occupies a worker longer.", type=float),
        ),
    ),
    "limits": OptionGroup(
        "The provider's limits",
        (
            _option("--profile", "NAME", "Limits of a provider's plan, such as e2b-pro, or a file."),
            _option("--quota", "Q", "Sandboxes that may exist at a time.", type=COUNT),
            _option("--create-rate", "R", "Sandboxes that may be created per second.", type=float),
            _option("--create-burst", "B", "Sandboxes that may be created at once before the rate holds.", type=COUNT),
        ),
    ),
    "pool": OptionGroup(
        "A warm pool",
        (
            _option("--warm-pool", "P", "Sandboxes kept ready (per image, with --group-size).", type=COUNT),
            _option("--refill-seconds", "S", "Seconds until a slot of the pool is ready again.", type=float),
            _option("--refill-rate", "R", "Sandboxes of the pool that become ready per second.", type=float),
            _option("--instant-claim", None, "Claim the next sandbox to be ready if the pool is empty.", is_flag=True),
        ),
    ),
    "life_cycle": OptionGroup(
        "Life cycle of a sandbox",
        (
            _option("--suspend-after-seconds", "S", "Suspend a sandbox that waits longer for the model.", type=float),
            _option("--suspend-seconds", "S", "Time to suspend a sandbox.  [0]", type=float),
            _option("--resume-seconds", "S", "Time to resume a sandbox before the next action.  [0]", type=float),
            _option(
                "--suspended-usd-hour",
                "X",
                "Price of a suspended sandbox, in dollars per hour.  [its disk, by the price sheet]",
                type=float,
            ),
            _option("--fork-seconds", "S", "Start of a sandbox from a snapshot of its prompt.", type=float),
            _option("--recycle-seconds", "S", "Reset of a sandbox for the next rollout of its image.", type=float),
            _option("--build-seconds", "S", "Build of an image on its first use.", type=float),
            _option("--builders", "N", "Builds at a time.  [without limit]", type=COUNT),
            _option("--built-images", "N", "Images that are built before the run.  [0]", type=COUNT),
        ),
    ),
    "providers": OptionGroup(
        "Unmeasured providers",
        (
            _option(
                "--compose",
                "NAME[:key=value]",
                "Estimate a provider from published start-up, limits and prices, repeatable: e2b, "
                "daytona:dispatch=100ms..300ms",
                multiple=True,
            ),
        ),
    ),
    "prices": OptionGroup(
        "Prices", (_option("--prices", "FILE", "Price sheet (TOML), or a shipped one: aws-fargate."),)
    ),
}
"""Table of a training file → its options."""

ON_COMMAND_LINE: Final = (
    *("trajectories", "workers", "actions", "think", "prompts", "group_size", "batch", "train_seconds", "gpus"),
    *("compose", "prices", "tiers", "modes"),
)
"""Options of a command; the training file and ``--set`` take all others too."""


def asked_of(context: click.Context, options: Sequence[click.Option]) -> list[click.Option]:
    """Return those of some options that the command knows: as its own, or as keys of its training file."""
    return [option for option in options if option.name not in getattr(context.command, "unknown", ())]


def _tables(context: click.Context) -> dict[str, list[click.Option]]:
    return {table: asked_of(context, group.options) for table, group in GROUPS.items()}


def _from_file(context: click.Context, parameter: click.Parameter, name: str | None) -> object:
    """Values of the file are the defaults of the options."""
    if name is None:
        return None
    result = load(name, _tables(context))
    _stand_in(context, {**result.values, **context.meta.get(CHANGES, {})})
    return result


def _from_words(context: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> object:
    """Values of ``--set`` replace those of the file."""
    result = context.meta[CHANGES] = changes(words, _tables(context))
    _stand_in(context, result)
    return result


def _stand_in(context: click.Context, values: Mapping[str, Any]) -> None:
    context.default_map = {**(context.default_map or {}), **values}


CHANGES: Final = "taxtui.options.training.changes"
TRAINING: Final = click.Option(
    ["--training", "file"],
    metavar="FILE",
    is_eager=True,
    callback=_from_file,
    help="Training file (TOML); options on the command line override the file. See project --init.",
)
SET: Final = click.Option(
    ["--set", "changes"],
    metavar="KEY=VALUE",
    multiple=True,
    is_eager=True,
    callback=_from_words,
    help="Set any key of the training file, repeatable: nodes=125, failure_rate=5%.",
)
OPTIONS: Final = (TRAINING, SET, *(option for group in GROUPS.values() for option in group.options))
"""In the order of the help. ``training_run_of`` takes all but ``prices`` and ``compose``; None: not given."""
TYPED: Final = tuple(one for one in OPTIONS if one in (TRAINING, SET) or one.name in ON_COMMAND_LINE)
"""Options that a command takes."""


class AskingCommand(click.Command):
    """A command that takes a training file: its help has headings, its errors name what it takes."""

    def __init__(self, *args: Any, unknown: tuple[str, ...] = (), **more: Any) -> None:
        """``unknown``: names of options that make no sense here, not in the training file either."""
        super().__init__(*args, **more)
        self.unknown = unknown

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options first, then group by group."""
        grouped = {id(option) for group in GROUPS.values() for option in group.options}
        params = self.get_params(ctx)
        members = [param for param in params if isinstance(param, click.Option) and id(param) not in grouped]
        taken = set(map(id, params))
        for heading, options in (("Options", members), *GROUPS.values()):
            records = [option.get_help_record(ctx) for option in options if option in members or id(option) in taken]
            if lines := [line for line in records if line is not None]:
                with formatter.section(heading):
                    formatter.write_dl(lines)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error names options as this command takes them."""
        from costmodel import TrainingRunError

        try:
            return super().invoke(ctx)
        except TrainingRunError as error:
            raise type(error)(as_typed(str(error))) from error


def as_typed(text: str) -> str:
    """Return a message with ``--set nodes=N`` in the place of ``--nodes N`` where a command lacks the option."""
    keys = {option.opts[-1]: field_of(option) for option in OPTIONS if option not in TYPED}

    def key(match: re.Match[str]) -> str:
        flag, value = match.groups()
        if flag not in keys:
            return match.group()
        return f"--set {keys[flag]}={value}" if value else keys[flag]

    return re.sub(r"(--[a-z][a-z-]+)(?: ([A-Z]+|[a-z]+(?= --))\b)?", key, text)


def value_of(context: click.Context, option: click.Option) -> Any:
    """Return what an option was set to: on the command line, by ``--set``, in the training file, or by default."""
    name = str(option.name)
    if name in context.params:
        return context.params[name]
    file = context.params["file"]
    values = {**(file.values if file else {}), **context.params["changes"]}
    return values.get(name, () if option.multiple else False if option.is_flag else None)


def is_typed(context: click.Context, name: str) -> bool:
    """Whether the command line sets an option, so that no table of the training file overrides it."""
    given = click.core.ParameterSource.COMMANDLINE
    return name in context.params["changes"] or (name in context.params and context.get_parameter_source(name) == given)


def asked_at(spec: str, context: click.Context) -> dict[str, Any]:
    """Return what is asked of one substrate, SUBSTRATE[:key=value]: the options, but for its tables in the file.

    A value on the command line holds for every substrate.
    """
    asked = {str(option.name): value_of(context, option) for option in asked_of(context, OPTIONS)}
    tables = {} if asked["file"] is None else asked["file"].at.get(spec, {})
    return asked | {name: value for name, value in tables.items() if not is_typed(context, name)}


def training_run_of(asked: dict[str, Any]) -> TrainingRun:
    """The training run that the options describe, as click has parsed them.

    Raises:
        UsageError: a length, a think time or a change cannot be read.
        costmodel.errors.TrainingRunError: a profile is unknown, or the options contradict each other.
    """
    from costmodel import Precision, Think, TrainingRun, TrainingRunError
    from taxtui.plan.notation import parse_images, parse_length, parse_think

    file = asked.pop("file")
    for name in ("changes", "tiers", "modes"):
        asked.pop(name, None)
    asked = {name: value for name, value in asked.items() if value is not None}
    for option in OPTIONS:
        if (name := str(option.name)) in asked:
            asked[field_of(option)] = asked.pop(name)
    if asked.pop("compose", ()):
        raise UsageError("a training run names no providers", fix="compose them with taxtui project --compose")
    if (actions := asked.pop("actions", None)) is not None:
        asked["actions"] = parse_length(actions)
    if (think := asked.pop("think", None)) is not None:
        parsed = parse_think(think)
        asked["think"] = Think(parsed.median_ns, parsed.sigma)
    if (seed := asked.pop("seed", None)) is not None:
        asked["precision"] = Precision(seed=seed)
    if (images := asked.pop("images", None)) is not None:
        asked["images"] = parse_images(images)
    if (profile := asked.pop("profile", None)) is not None:
        from costmodel import load_profile

        asked = load_profile(profile).filled(asked)
    try:
        return TrainingRun(**asked)
    except TrainingRunError as error:
        raise error if file is None else file.contradicted(error) from error
