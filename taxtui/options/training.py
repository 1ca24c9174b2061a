"""Options of a training run, for ``taxtui project``, ``taxtui decide`` and the Projection screen.

An option's group is a heading of the help and a table of the training file. Its field of ``TrainingRun`` is the key
there: ``--train-seconds 60`` is ``train_s = 60`` under ``[trainer]``. A command takes the most
common options, and ``--set KEY=VALUE`` for all remaining keys.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from costmodel import ON_FAILURE, PLACEMENTS, POLICIES
from taxtui.errors import UsageError
from taxtui.options.numbers import COUNT, RUN_SD, SHARE
from taxtui.options.rows import MODE, TIER
from taxtui.options.set_command import SetCommand
from taxtui.options.training_file import changes, field_of, load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from costmodel import TrainingRun


class OptionGroup(NamedTuple):
    """Options under one heading."""

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
            _option("--think", "TIME", "Model time between two actions, else as recorded: 8s, or lognormal:8s,0.6"),
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
            _option("--group-size", "G", "Rollouts of a prompt, started together (GRPO).", type=COUNT),
            _option("--batch", "B", "Trajectories per training step, without prompts; steps wait for all.", type=COUNT),
            _option(
                "--policy", None, "When steps wait for rollouts.  [sync with steps]", type=click.Choice(tuple(POLICIES))
            ),
            _option("--staleness", "K", "Most steps of async rollouts ahead of training.", type=COUNT),
            _option("--over-provision", "X", "Launch B(1+X) rollouts per step and keep the first B.", type=float),
        ),
    ),
    "trainer": OptionGroup(
        "The trainer",
        (
            _option("--train-seconds", "T", "Training time per step, in seconds.", type=float),
            _option("--gpus", "G", "GPUs of the training run, idle while rollouts run.", type=COUNT),
            _option("--gpu-usd-hour", "X", "Price of a GPU, in dollars per hour.", type=float),
        ),
    ),
    "images": OptionGroup(
        "Images",
        (
            _option("--images", "SET", "Image sizes, one image per prompt: 500:2-8 (500 of 2 to 8 GB)."),
            _option(
                "--placement", None, "Choice of the node of a new sandbox.  [spread]", type=click.Choice(PLACEMENTS)
            ),
        ),
    ),
    "nodes": OptionGroup(
        "Nodes",
        (
            _option("--nodes", "N", "Nodes for sandboxes.", type=COUNT),
            _option("--pods-per-node", "P", "Sandboxes per node.", type=COUNT),
            _option("--node-usd-hour", "X", "Price of a node, in dollars per hour.", type=float),
            _option("--node-disk-gib", "D", "Disk of a node for images.  [enough for all]", type=float),
            _option("--pull-gb-s", "R", "GB of images pulled and unpacked by a node per second.", type=float),
        ),
    ),
    "failures": OptionGroup(
        "Failures",
        (
            _option("--failure-rate", "SHARE", "Share of failed attempts, instead of the recorded: 5%.", type=SHARE),
            _option("--failure-burst", "K", "Sandboxes failing together, with failure_rate. Default: 1.", type=COUNT),
            _option("--failure-hazard", "H", "Failures per hour of a sandbox, instead of a share.", type=float),
            _option(
                "--on-failure",
                None,
                "Retry, drop the rollout, redo the group, or keep with reward 0.  [as recorded; failure_rate: retry]",
                type=click.Choice(ON_FAILURE),
            ),
            _option("--max-attempts", "A", "Attempts before a trajectory is given up.", type=COUNT),
            _option("--backoff-seconds", "S", "Wait before each new attempt, in seconds.", type=float),
            _option("--timeout-seconds", "S", "Limit of an attempt after its create token, in seconds.", type=float),
        ),
    ),
    "limits": OptionGroup(
        "The provider's limits",
        (
            _option("--profile", "NAME", "Limits of a provider's plan, such as e2b-pro, or a file."),
            _option("--quota", "Q", "Sandboxes at a time.", type=COUNT),
            _option("--create-rate", "R", "Limit of creates per second.", type=float),
            _option("--create-burst", "B", "Creates at once before the rate limit applies.", type=COUNT),
        ),
    ),
    "pool": OptionGroup(
        "A warm pool",
        (
            _option("--warm-pool", "P", "Sandboxes kept ready (per image, with --group-size).", type=COUNT),
            _option("--refill-seconds", "S", "Seconds until a slot of the pool is ready again.", type=float),
            _option("--refill-rate", "R", "Sandboxes of the pool becoming ready per second.", type=float),
        ),
    ),
    "life_cycle": OptionGroup(
        "Life cycle of a sandbox",
        (
            _option("--suspend-after-seconds", "S", "Suspend a sandbox after this wait for the model.", type=float),
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
            _option("--built-images", "N", "Images built before the run.  [0]", type=COUNT),
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
"""Options on the command line; the training file and ``--set`` take all further options too."""


def asked_of(context: click.Context, options: Sequence[click.Option]) -> list[click.Option]:
    """Return the options without the unused options of the command."""
    return [option for option in options if option.name not in getattr(context.command, "unused", ())]


def _tables(context: click.Context) -> dict[str, list[click.Option]]:
    return {table: asked_of(context, group.options) for table, group in GROUPS.items()}


def _from_file(context: click.Context, parameter: click.Parameter, name: str | None) -> object:
    """Make the values of the training file the defaults of the options."""
    if name is None:
        return None
    file = load(name, _tables(context))
    _set_defaults(context, {**file.values, **context.meta.get(CHANGES, {})})
    return file


def _from_words(context: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> object:
    """Make the values of ``--set`` the defaults of the options, before values of the training file."""
    context.meta[SET_WORDS] = words
    values = context.meta[CHANGES] = changes(words, _tables(context))
    _set_defaults(context, values)
    return values


def _set_defaults(context: click.Context, values: Mapping[str, Any]) -> None:
    context.default_map = {**(context.default_map or {}), **values}


COMMANDLINE: Final = click.core.ParameterSource.COMMANDLINE
CHANGES: Final = "taxtui.options.training.changes"
SET_WORDS: Final = "taxtui.options.training.set_words"
"""Key of the words of ``--set`` in a context's ``meta``."""
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
"""All options, in the order of the help."""
NO_FIELDS: Final = ("file", "changes", "tiers", "modes", "compose", "prices")
"""Options without a field of ``TrainingRun``."""
TYPED: Final = tuple(option for option in OPTIONS if option in (TRAINING, SET) or option.name in ON_COMMAND_LINE)
"""Options on the command line."""


class TrainingCommand(SetCommand):
    """A command with a training file: its help has headings, and its errors name options of this command."""

    def __init__(self, *args: Any, unused: tuple[str, ...] = (), **more: Any) -> None:
        """``unused``: names of options that are missing from the training file too."""
        super().__init__(*args, **more)
        self.unused = unused

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the command alone, then the options of each group."""
        params = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        grouped = {id(option) for group in GROUPS.values() for option in group.options}
        ungrouped = [option for option in params if id(option) not in grouped]
        for heading, options in (("Options", ungrouped), *GROUPS.values()):
            records = [option.get_help_record(ctx) for option in params if option in options]
            if lines := [record for record in records if record is not None]:
                with formatter.section(heading):
                    formatter.write_dl(lines)

    def set_keys(self) -> dict[str, str]:
        return _without_option()

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        from costmodel import TrainingRunError

        for option in OPTIONS:
            if option.name in ctx.params["changes"] and ctx.get_parameter_source(option.name) == COMMANDLINE:
                raise UsageError(f"{option.opts[-1]} and --set {field_of(option)} are both given", fix="leave one out")
        try:
            return super().invoke(ctx)
        except TrainingRunError as error:
            raise type(error)(as_typed(str(error))) from error


def _without_option() -> dict[str, str]:
    return {option.opts[-1]: field_of(option) for option in OPTIONS if option not in TYPED}


def as_typed(text: str) -> str:
    """Return a message with ``--set nodes=N`` instead of ``--nodes N``."""
    keys = _without_option()

    def key(match: re.Match[str]) -> str:
        flag, value = match.groups()
        if flag not in keys:
            return match.group()
        return f"--set {keys[flag]}={value}" if value else keys[flag]

    return re.sub(r"(--[a-z][a-z-]+)(?: ([A-Z]+|[a-z]+(?= --))\b)?", key, text)


def value_of(context: click.Context, option: click.Option) -> Any:
    """Return the value of an option: on the command line, by ``--set``, in the training file, or by default."""
    name = str(option.name)
    if name in context.params:
        return context.params[name]
    file = context.params["file"]
    values = {**(file.values if file else {}), **context.params["changes"]}
    return values.get(name, () if option.multiple else False if option.is_flag else None)


def is_typed(context: click.Context, name: str) -> bool:
    """Whether the command line sets an option, so that the training file cannot override the option."""
    source = context.get_parameter_source(name) if name in context.params else None
    return name in context.params["changes"] or source == COMMANDLINE


def asked_at(spec: str, context: click.Context) -> dict[str, Any]:
    """Return the values of all options for a substrate, SUBSTRATE[:key=value].

    A section of the training file for this substrate replaces values, except on the command line.
    """
    values = {str(option.name): value_of(context, option) for option in asked_of(context, OPTIONS)}
    section = {} if values["file"] is None else values["file"].at.get(spec, {})
    return values | {name: value for name, value in section.items() if not is_typed(context, name)}


def training_run_of(values: dict[str, Any]) -> TrainingRun:
    """Return the training run of parsed options, without ``prices``; None: the option has no value.

    Raises:
        UsageError: a length or a think time cannot be read, or providers are named.
        costmodel.errors.TrainingRunError: a profile is unknown, or the options contradict each other.
    """
    from costmodel import Precision, Think, TrainingRun, TrainingRunError
    from taxtui.plan.notation import parse_images, parse_length, parse_think

    file = values["file"]
    if values.get("compose"):
        raise UsageError("a training run names no providers", fix="compose them with taxtui project --compose")
    fields: dict[str, Any] = {
        field_of(option): values[name]
        for option in OPTIONS
        if (name := str(option.name)) not in NO_FIELDS and values.get(name) is not None
    }
    if "actions" in fields:
        fields["actions"] = parse_length(fields["actions"])
    if "think" in fields:
        think = parse_think(fields["think"])
        fields["think"] = Think(think.median_ns, think.sigma)
    if (seed := fields.pop("seed", None)) is not None:
        fields["precision"] = Precision(seed=seed)
    if "images" in fields:
        fields["images"] = parse_images(fields["images"])
    if (profile := fields.pop("profile", None)) is not None:
        from costmodel import load_profile

        fields = load_profile(profile).filled(fields)
    try:
        return TrainingRun(**fields)
    except TrainingRunError as error:
        raise error if file is None else file.contradicted(error) from error
