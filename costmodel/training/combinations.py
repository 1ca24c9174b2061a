"""Combinations of settings without an answer: a table of the settings that need or exclude another setting.

A setting is a field or a property of ``TrainingRun``; ``field=value`` means this value, and ``!setting`` that it is not
set. A message is formatted with the training run as ``run``, the refused ``setting``, and the ``other`` one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, NamedTuple

from costmodel.errors import TrainingRunError

PREPULLED: Final = "prepulled"
STEP_MODEL: Final = (
    "staleness think_correlation nodes images failure_rate failure_hazard failure_burst on_failure "
    "suspend_after_s fork_s recycle_s build_s"
)
"""Fields for the simulation of steps only."""


class Needs(NamedTuple):
    """Each of the settings needs all of ``needed``; ``a|b`` means either."""

    settings: str
    needed: str
    message: str


class Contradiction(NamedTuple):
    """Contradictory numbers."""

    contradicts: Callable[[Any], bool]
    message: str


_STEPS = "training steps, GPUs and over-provisioning need a batch: add --batch B"
_REFILL = "a warm pool needs exactly one of --refill-seconds S, --refill-rate R and --group-size G"
_NODES = "nodes need their number of pods, and pods a number of nodes: give --nodes N and --pods-per-node P"
_THINK = (
    "think_correlation needs varying think times and prompts: add --think lognormal:8s,0.6 "
    "and --prompts P --group-size G"
)
_IMAGES = "images lie on nodes, one for each prompt: add --nodes N --pods-per-node P --prompts P --group-size G"
_PULL = "images are pulled at a rate, or prepulled: give one of --pull-gb-s and --placement prepulled"
_BARRIER = "over-provisioning needs the barrier of a step, and --policy {run.policy} has none"
_RESAMPLE = "resample does not go with over-provisioning, async or a warm pool: leave them out"
_CAPPED = "when it fails: leave --max-attempts and --backoff-seconds out"

RULES: Final[tuple[Needs | Contradiction, ...]] = (
    # training steps
    Needs("train_s over_provision gpus effective_policy.barrier", "step_rollouts", _STEPS),
    Needs("gpu_usd_hour", "gpus", "a GPU price needs a number of GPUs: add --gpus G"),
    Needs("prompts", "group_size", "prompts need a number of rollouts each: add --group-size G"),
    Contradiction(
        lambda run: run.prompts is not None and run.batch not in (None, run.step_rollouts),
        "{run.prompts} prompts of {run.group_size} rollouts are a batch of {run.step_rollouts}, not {run.batch}; "
        "leave --batch out",
    ),
    Needs(
        "group_size",
        "step_rollouts|warm_pool",
        "a group needs steps or a pool: add --prompts P (or --batch B), or --warm-pool P",
    ),
    Needs("think_correlation", "think_varies group_size", _THINK),
    Needs(
        "staleness",
        "!effective_policy.barrier step_rollouts",
        "staleness limits async rollouts: add --policy async --batch B",
    ),
    Contradiction(
        lambda run: run.step_rollouts is not None and run.step_rollouts > run.trajectories > 0,
        "a batch of {run.step_rollouts} is more than the {run.trajectories} trajectories of the run",
    ),
    Needs("over_provision", "effective_policy.barrier", _BARRIER),
    # limits and pool
    Needs("create_burst", "create_rate", "a burst is an exception to a rate: add --create-rate R"),
    Needs("refill_s refill_rate", "warm_pool", "a refill describes a warm pool: add --warm-pool P"),
    Needs("image_pool", "group_size", _REFILL),
    Needs("refill_s", "!refill_rate", _REFILL),
    Needs("refill_s refill_rate", "prompts|!group_size", _REFILL),  # a group without steps is a pool for each image
    Needs("images", "!refill_s !refill_rate", "a refilled pool has one image: leave --images or the refill out"),
    Needs(STEP_MODEL, "step_rollouts", "{setting} needs training steps: add --prompts P --group-size G, or --batch B"),
    # nodes and images
    Needs("nodes pods_per_node", "nodes pods_per_node", _NODES),
    Needs("node_usd_hour", "nodes", "a price per node needs their number: add --nodes N --pods-per-node P"),
    Contradiction(
        lambda run: run.pods is not None and run.group_size is not None and run.pods < run.group_size,
        "{run.nodes} nodes of {run.pods_per_node} pods cannot hold one group of {run.group_size} rollouts",
    ),
    Needs("placement pull_gb_s node_disk_gib", "images", "{setting} is about images: add --images"),
    Needs("images", "nodes group_size", _IMAGES),
    Needs("images", "pull_gb_s|placement=prepulled", _PULL),
    Needs("pull_gb_s", "!placement=prepulled", _PULL),
    Contradiction(
        lambda run: run.images is not None and run.images.largest_gb > run.disk_gb,
        "an image of {run.images.largest_gb:g} GB does not fit a disk of {run.disk_gb:g} GB",
    ),
    Contradiction(
        lambda run: run.images is not None and run.placement == PREPULLED and run.images.total_gb > run.disk_gb,
        "{run.images.total_gb:g} GB of images do not fit a disk of {run.disk_gb:g} GB",
    ),
    # failures
    Needs(
        "failure_rate",
        "!failure_hazard",
        "failures come per attempt or per hour: give one of --failure-rate and --failure-hazard",
    ),
    Contradiction(
        lambda run: run.failure_burst > 1 and not run.failure_rate,
        "a burst of failures needs their rate: add --failure-rate SHARE",
    ),
    Needs("on_failure=mask", "!max_attempts !backoff_s", f"mask drops a rollout {_CAPPED}"),
    Needs("on_failure=keep", "!max_attempts !backoff_s", f"keep delivers a rollout with reward 0 {_CAPPED}"),
    Needs("on_failure=resample", "group_size", "resample redoes a whole group: add --prompts P --group-size G"),
    Needs("on_failure=resample", "!backoff_s", "a redone group does not wait: leave --backoff-seconds out"),
    Needs("on_failure=resample", "!over_provision effective_policy.barrier !warm_pool", _RESAMPLE),
    # life cycle of a sandbox
    Needs(
        "suspend_s resume_s suspended_usd_hour",
        "suspend_after_s",
        "a suspension needs its threshold: add --suspend-after-seconds S",
    ),
    Needs("suspend_after_s", "think", "a suspension depends on each pause of the model: add --think lognormal:8s,1.2"),
    Needs(
        "recycle_s",
        "!include_cleanup !warm_pool !over_provision !on_failure=resample",
        "--recycle-seconds does not go with {other}: leave either out",
    ),
    Needs(
        "builders built_images", "build_s", "builders and built images need the time of a build: add --build-seconds S"
    ),
    Needs(
        "build_s", "images", "each image is built on its first use: add --images SET, --nodes N and --pods-per-node P"
    ),
    Contradiction(
        lambda run: run.images is not None and run.built_images > run.images.count,
        "built_images must be at most the {run.images.count} images, not {run.built_images}",
    ),
)


def check_combinations(run: Any) -> None:
    """Refuse settings of a ``TrainingRun`` that contradict each other, or lack a needed setting.

    Raises:
        TrainingRunError: the first broken rule of the table.
    """
    defaults = {field.name: field.default for field in fields(run)}

    def is_set(setting: str) -> bool:
        if setting.startswith("!"):
            return not is_set(setting[1:])
        name, _, wanted = setting.partition("=")
        value = attrgetter(name)(run)
        if wanted:
            return bool(value == wanted)
        return value is not None and value is not False and value != defaults.get(name)

    for rule in RULES:
        if isinstance(rule, Contradiction):
            if rule.contradicts(run):
                raise TrainingRunError(rule.message.format(run=run))
            continue
        for setting in filter(is_set, rule.settings.split()):
            for needed in rule.needed.split():
                if not any(map(is_set, needed.split("|"))):
                    missing = needed.lstrip("!").replace("=", " ")
                    raise TrainingRunError(rule.message.format(run=run, setting=setting, other=missing))
