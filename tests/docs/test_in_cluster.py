"""The manifests of docs/in-cluster are what their APIs take: each field is known there, and of its type."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from kubernetes.client import models

from taxtui.cli import app

FOLDER = Path(__file__).parents[2] / "docs" / "in-cluster"
KINDS = {"Job": "V1Job", "CronJob": "V1CronJob", "PersistentVolumeClaim": "V1PersistentVolumeClaim"}


def manifest(name: str) -> dict[str, Any]:
    [document] = yaml.safe_load_all((FOLDER / name).read_text())
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.yaml")))
def test_a_manifest_has_known_fields_of_the_right_types(name: str) -> None:
    found = manifest(name)
    if found["kind"] != "RayJob":
        getattr(models, KINDS[found["kind"]]).model_validate(found, strict=True)  # refuses unknown fields
        return
    cluster = found["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        models.V1PodTemplateSpec.model_validate(group["template"], strict=True)


def test_what_they_run_is_a_command_of_taxtui() -> None:
    [container] = manifest("job.yaml")["spec"]["template"]["spec"]["containers"]
    ray = manifest("rayjob.yaml")["spec"]
    job = manifest("canary.yaml")["spec"]["jobTemplate"]["spec"]
    [canary] = job["template"]["spec"]["containers"]
    assert job["backoffLimit"] == 0  # a canary above its limit is a result
    for words in (container["args"], canary["args"], shlex.split(ray["entrypoint"])):
        assert words[0] == "taxtui"
        told = CliRunner().invoke(app, [*words[1:], "--help"])
        assert told.exit_code == 0, told.output
        asked = {word.partition("=")[0] for word in words[2:] if word.startswith("--")}
        assert [option for option in asked if option not in told.output] == []


def test_the_ray_job_has_a_node_for_each_worker_and_the_ray_of_the_image() -> None:
    spec = manifest("rayjob.yaml")["spec"]
    [group] = spec["rayClusterSpec"]["workerGroupSpecs"]
    words = shlex.split(spec["entrypoint"])
    assert (
        int(words[words.index("--processes") + 1]) == group["replicas"] == group["minReplicas"] == group["maxReplicas"]
    )
    assert spec["rayClusterSpec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert f"ARG RAY={spec['rayClusterSpec']['rayVersion']}\n" in (FOLDER / "Dockerfile").read_text()
    pinned = (FOLDER.parents[1] / ".ci" / "constraints.txt").read_text()
    assert f"\nray=={spec['rayClusterSpec']['rayVersion']} " in pinned


def test_the_image_copies_what_the_wheel_is_made_of() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (FOLDER / "Dockerfile").read_text(), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert names == {"pyproject.toml", "README.md", "LICENSE", "taxtui", "costmodel", "scenarios", "recordings"}
    assert [name for name in names if not (FOLDER.parents[1] / name).exists()] == []
