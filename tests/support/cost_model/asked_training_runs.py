"""Every field of a training run, asked for: a field that is not here fails the tests of what rows do with it."""

from __future__ import annotations

from typing import Any

from costmodel import Images, Precision, Think

ASKED: dict[str, dict[str, Any]] = {  # each field of a training run, with what it cannot be asked without
    "trajectories": {"trajectories": 2000},
    "workers": {"workers": 7},
    "actions": {"actions": 50},
    "baseline": {"baseline": "docker"},
    "full_speed": {"full_speed": "docker"},
    "max_attempts": {"max_attempts": 3},
    "backoff_s": {"backoff_s": 1.0},
    "timeout_s": {"timeout_s": 1.0},
    "think": {"think": Think(8_000_000_000)},
    "include_cleanup": {"include_cleanup": True},
    "quota": {"quota": 3},
    "create_rate": {"create_rate": 5.0},
    "create_burst": {"create_burst": 9, "create_rate": 5.0},
    "warm_pool": {"warm_pool": 5, "refill_s": 2.0},
    "refill_s": {"refill_s": 2.0, "warm_pool": 5},
    "refill_rate": {"refill_rate": 2.0, "warm_pool": 5},
    "group_size": {"group_size": 8, "warm_pool": 5},
    "batch": {"batch": 10},
    "train_s": {"train_s": 60.0, "batch": 10},
    "policy": {"policy": "async"},
    "over_provision": {"over_provision": 0.2, "batch": 10},
    "gpus": {"gpus": 8, "batch": 10},
    "gpu_usd_hour": {"gpu_usd_hour": 2.0, "gpus": 8, "batch": 10},
    "precision": {"precision": Precision(seed=7)},
    "run_sd": {"run_sd": 0.1},
}

_PODS = {"nodes": 4, "pods_per_node": 8}
_IMAGES = {"images": Images.between(2, 8, 50), "pull_gb_s": 0.5, "prompts": 5, "group_size": 8} | _PODS
_SUSPENDED = {"suspend_after_s": 4.0, "think": Think(8_000_000_000, 1.0), "batch": 40}
STEP_MODEL_ASKED: dict[str, dict[str, Any]] = {
    "prompts": {"prompts": 5, "group_size": 8},
    "staleness": {"staleness": 2, "policy": "async", "batch": 40},
    "think_correlation": {"think_correlation": 0.5, "think": Think(1, 1.0), "prompts": 5, "group_size": 8},
    "nodes": _PODS | {"batch": 40},
    "pods_per_node": _PODS | {"batch": 40},
    "node_usd_hour": {"node_usd_hour": 1.0, "batch": 40} | _PODS,
    "images": _IMAGES,
    "pull_gb_s": _IMAGES,
    "node_disk_gib": {"node_disk_gib": 100.0} | _IMAGES,
    "placement": {"placement": "colocated"} | _IMAGES,
    "failure_rate": {"failure_rate": 0.05, "batch": 40},
    "failure_hazard": {"failure_hazard": 0.1, "batch": 40},
    "failure_burst": {"failure_burst": 4, "failure_rate": 0.05, "batch": 40},
    "on_failure": {"on_failure": "mask", "batch": 40},
    "suspend_after_s": _SUSPENDED,
    "suspend_s": {"suspend_s": 4.0} | _SUSPENDED,
    "resume_s": {"resume_s": 1.0} | _SUSPENDED,
    "suspended_usd_hour": {"suspended_usd_hour": 0.01} | _SUSPENDED,
    "fork_s": {"fork_s": 0.5, "batch": 40},
    "recycle_s": {"recycle_s": 0.5, "batch": 40},
    "build_s": {"build_s": 600.0} | _IMAGES,
    "builders": _IMAGES | {"builders": 1, "build_s": 600.0, "prompts": 20, "group_size": 2},
    "built_images": {"built_images": 20, "build_s": 600.0} | _IMAGES,
}
