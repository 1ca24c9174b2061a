"""What is asked: images, and the questions that contradict themselves."""

from __future__ import annotations

import math

import pytest

from costmodel import Images, Think, TrainingRun, TrainingRunError

STEPS: dict[str, object] = {"prompts": 5, "group_size": 4}
PODS: dict[str, object] = {"nodes": 3, "pods_per_node": 4}
IMAGES = Images.between(2, 8, 10)
THERE: dict[str, object] = PODS | {"images": IMAGES, "placement": "prepulled"}


def test_images_of_a_range_lie_evenly_in_it_and_nonsense_is_refused() -> None:
    assert Images.between(2, 8, 3).sizes_gb == (3, 5, 7)
    assert (IMAGES.count, IMAGES.total_gb, str(Images.between(4, 4, 2))) == (10, pytest.approx(50), "2 of 4 GB")
    with pytest.raises(TrainingRunError, match="smaller size comes first"):
        Images.between(8, 2, 3)
    for sizes, message in (([], "1 to"), ([2, 0], "above 0"), ([-1.0], "above 0")):
        with pytest.raises(TrainingRunError, match=message):
            Images.of(sizes)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trajectories": -1}, "trajectories must be"),
        ({"workers": 0}, "workers must be"),
        ({"trajectories": 1.5}, "trajectories must be"),
        ({"workers": True}, "workers must be"),
        ({"actions": 0}, "actions must be"),
        ({"quota": 0}, "quota must be"),
        ({"timeout_s": 0.0}, "timeout_s must be"),
        ({"timeout_s": math.nan}, "timeout_s must be"),
        ({"create_rate": math.inf}, "create_rate must be"),
        ({"backoff_s": -1.0}, "backoff_s must be"),
        ({"think": Think(-1)}, "think time must be"),
        ({"think": Think(1, math.nan)}, "think time must be"),
        ({"train_s": 5.0}, "--batch"),
        ({"gpus": 8}, "--batch"),
        ({"policy": "sync"}, "--batch"),
        ({"policy": "later"}, "sync, one-step-off, async"),
        ({"batch": 10, "gpu_usd_hour": 2.0}, "--gpus"),
        ({"batch": 1000}, "more than the 100 trajectories"),
        ({"batch": 10, "over_provision": 0.1, "policy": "async"}, "barrier"),
        ({"refill_s": 1.0}, "--warm-pool"),
        ({"warm_pool": 5}, "exactly one of"),
        ({"warm_pool": 5, "refill_s": 1.0, "group_size": 8}, "exactly one of"),
        ({"create_burst": 5}, "--create-rate"),
        ({"group_size": 4}, "--prompts"),
        ({"prompts": 5}, "--group-size"),
        ({"prompts": 0, "group_size": 4}, "prompts must be"),
        ({"batch": 8, "prompts": 5, "group_size": 4}, "a batch of 20, not 8"),
        ({"prompts": 50, "group_size": 4}, "a batch of 200 is more than the 100 trajectories"),
        ({"failure_rate": 0.1}, "--prompts"),
        (STEPS | {"failure_rate": 1.0}, "below 1"),
        (STEPS | {"failure_rate": -0.1}, "failure_rate must be"),
        (STEPS | {"failure_rate": 0.1, "failure_hazard": 0.1}, "give one of"),
        (STEPS | {"on_failure": "ignore"}, "retry, mask, resample"),
        (STEPS | {"on_failure": "mask", "max_attempts": 3}, "--max-attempts"),
        (STEPS | {"on_failure": "resample", "backoff_s": 1.0}, "--backoff-seconds"),
        (STEPS | {"on_failure": "resample", "over_provision": 0.1}, "over-provisioning"),
        ({"batch": 20, "on_failure": "resample"}, "--group-size"),
        (STEPS | {"think_correlation": 0.5}, "--think"),
        (STEPS | {"think_correlation": 1.5}, "from 0 to 1"),
        (STEPS | {"staleness": 1}, "--policy async"),
        (STEPS | {"nodes": 2}, "--pods-per-node"),
        (STEPS | {"nodes": 0, "pods_per_node": 9}, "nodes must be"),
        (STEPS | {"nodes": 1, "pods_per_node": 3}, "one group of 4"),
        (STEPS | {"node_usd_hour": 1.0}, "--nodes"),
        (STEPS | {"placement": "spread"}, "--images"),
        (STEPS | {"pull_gb_s": 1.0}, "--images"),
        (STEPS | {"images": IMAGES}, "--nodes"),
        (STEPS | PODS | {"images": IMAGES}, "--pull-gb-s"),
        (STEPS | THERE | {"pull_gb_s": 1.0}, "one of --pull-gb-s"),
        (STEPS | PODS | {"images": IMAGES, "pull_gb_s": 1.0, "node_disk_gib": 5.0}, "does not fit"),
        (STEPS | THERE | {"node_disk_gib": 20.0}, "do not fit"),
        (STEPS | PODS | {"images": IMAGES, "pull_gb_s": 1.0, "warm_pool": 5, "refill_s": 1.0}, "--images"),
        (STEPS | {"resume_s": 1.0}, "a suspension needs its threshold"),
        (STEPS | {"suspend_after_s": 1.0}, "depends on each pause of the model: add --think"),
        (STEPS | {"recycle_s": 1.0, "include_cleanup": True}, "does not go with include_cleanup"),
        (STEPS | {"recycle_s": 1.0, "warm_pool": 2, "refill_s": 1.0}, "does not go with warm_pool"),
        (STEPS | {"build_s": 1.0}, "each image is built on its first use: add --images"),
        (STEPS | {"builders": 2}, "add --build-seconds"),
        (STEPS | THERE | {"build_s": 1.0, "built_images": 11}, "at most the 10 images"),
        ({"run_sd": -0.1}, "run_sd must be a number of at least 0"),
    ],
)
def test_contradictory_training_runs_are_one_line(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(TrainingRunError, match=message) as error:
        TrainingRun(**{"trajectories": 100, "workers": 5} | wrong)
    assert "\n" not in str(error.value)
