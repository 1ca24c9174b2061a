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
from pydantic import ValidationError

from taxtui.cli import app

FOLDER = Path(__file__).parents[2] / "docs" / "in-cluster"
KINDS = {"Job": "V1Job", "CronJob": "V1CronJob", "PersistentVolumeClaim": "V1PersistentVolumeClaim", "RayJob": "RayJob"}
PLAIN: dict[str, type | tuple[type, ...]] = {"str": str, "int": int, "float": (int, float), "bool": bool}
POD = "V1PodTemplateSpec"
RAY: dict[str, dict[str, str]] = {
    "RayJob": {"apiVersion": "str", "kind": "str", "metadata": "V1ObjectMeta", "spec": "RayJobSpec"},
    "RayJobSpec": {
        "activeDeadlineSeconds": "int",
        "backoffLimit": "int",
        "rayClusterSpec": "RayClusterSpec",
        "submitterPodTemplate": POD,
        "metadata": "dict(str, str)",
        "clusterSelector": "dict(str, str)",
        "managedBy": "str",
        "entrypoint": "str",
        "runtimeEnvYAML": "str",
        "jobId": "str",
        "submissionMode": "str",
        "entrypointResources": "str",
        "entrypointNumCpus": "float",
        "entrypointNumGpus": "float",
        "ttlSecondsAfterFinished": "int",
        "shutdownAfterJobFinishes": "bool",
        "suspend": "bool",
    },
    "RayClusterSpec": {
        "headGroupSpec": "HeadGroupSpec",
        "workerGroupSpecs": "list[WorkerGroupSpec]",
        "rayVersion": "str",
        "enableInTreeAutoscaling": "bool",
        "headServiceAnnotations": "dict(str, str)",
        "suspend": "bool",
    },
    "HeadGroupSpec": {
        "serviceType": "str",
        "headService": "V1Service",
        "enableIngress": "bool",
        "rayStartParams": "dict(str, str)",
        "template": POD,
    },
    "WorkerGroupSpec": {
        "groupName": "str",
        "replicas": "int",
        "minReplicas": "int",
        "maxReplicas": "int",
        "numOfHosts": "int",
        "rayStartParams": "dict(str, str)",
        "template": POD,
    },
}
"""The fields of KubeRay's ray.io/v1 that have been there since 1.1, as its API reference has them."""
NEEDED = {
    "RayClusterSpec": {"headGroupSpec"},
    "HeadGroupSpec": {"rayStartParams", "template"},
    "WorkerGroupSpec": {"groupName", "minReplicas", "maxReplicas", "rayStartParams", "template"},
}
MODES = ("K8sJobMode", "HTTPMode", "InteractiveMode")


def wrong(value: Any, kind: str, where: str) -> list[str]:
    """What of a value is not as its type has it, with the place."""
    if many := re.fullmatch(r"list\[(.+)\]", kind):
        if not isinstance(value, list):
            return [f"{where}: not a list"]
        return [it for number, each in enumerate(value) for it in wrong(each, many[1], f"{where}[{number}]")]
    if named := re.fullmatch(r"dict\(str, (.+)\)", kind):
        if not isinstance(value, dict):
            return [f"{where}: not a mapping"]
        return [it for key, each in value.items() for it in wrong(each, named[1], f"{where}.{key}")]
    if kind in PLAIN:
        mistaken = isinstance(value, bool) and kind in ("int", "float")
        return [f"{where}: not a {kind}"] if mistaken or not isinstance(value, PLAIN[kind]) else []
    if kind.startswith("V1"):
        try:
            getattr(models, kind).model_validate(value, strict=True)  # refuses what it does not know
        except ValidationError as error:
            return [f"{where}.{'.'.join(map(str, it['loc']))}: {it['msg']}" for it in error.errors()]
        return []
    if not isinstance(value, dict):
        return [f"{where}: not a mapping"]
    fields, needed = RAY[kind], NEEDED.get(kind, set())
    found = [f"{where}.{key}: there is no such field" for key in value.keys() - fields.keys()]
    found += [f"{where}.{key}: is missing" for key in needed - value.keys()]
    for key in value.keys() & fields.keys():
        found += wrong(value[key], fields[key], f"{where}.{key}")
    return found


def manifest(name: str) -> dict[str, Any]:
    [document] = yaml.safe_load_all((FOLDER / name).read_text())
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.yaml")))
def test_a_manifest_has_known_fields_of_the_right_types(name: str) -> None:
    found = manifest(name)
    assert wrong(found, KINDS[found["kind"]], found["kind"]) == []


def test_a_wrong_field_is_found() -> None:
    job = manifest("job.yaml")
    pod = job["spec"]["template"]["spec"]
    pod["restartpolicy"] = pod.pop("restartPolicy")
    del pod["containers"][0]["name"]
    ray = manifest("rayjob.yaml")
    ray["spec"]["ttlSecondsAfterFinished"] = "300"
    del ray["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["groupName"]
    ray["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["volume"] = []
    faults = "\n".join([*wrong(job, "V1Job", "Job"), *wrong(ray, "RayJob", "RayJob")])
    for fault in (
        "spec.restartpolicy: Extra inputs",
        "containers.0.name: Field required",
        "RayJob.spec.ttlSecondsAfterFinished: not a int",
        "workerGroupSpecs[0].groupName: is missing",
        "headGroupSpec.template.spec.volume: Extra inputs",
    ):
        assert fault in faults


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
    assert ray["submissionMode"] in MODES


def test_the_ray_job_has_a_node_for_each_worker_and_the_ray_of_the_image() -> None:
    spec = manifest("rayjob.yaml")["spec"]
    [group] = spec["rayClusterSpec"]["workerGroupSpecs"]
    words = shlex.split(spec["entrypoint"])
    assert (
        int(words[words.index("--processes") + 1]) == group["replicas"] == group["minReplicas"] == group["maxReplicas"]
    )
    assert spec["rayClusterSpec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    image = (FOLDER / "Dockerfile").read_text()
    assert f"ARG RAY={spec['rayClusterSpec']['rayVersion']}\n" in image
    pinned = (FOLDER.parents[1] / ".ci" / "constraints.txt").read_text()
    assert f"\nray=={spec['rayClusterSpec']['rayVersion']} " in pinned


def test_the_image_copies_what_the_wheel_is_made_of() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (FOLDER / "Dockerfile").read_text(), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert names == {"pyproject.toml", "README.md", "LICENSE", "taxtui", "costmodel", "scenarios", "recordings"}
    assert [name for name in names if not (FOLDER.parents[1] / name).exists()] == []
