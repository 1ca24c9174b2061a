"""What is asked of agent-sandbox, what its claims say, and what a template has to be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from taxtui.errors import UsageError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.substrates.kubernetes.claim import Claim, claim
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.pool import differences, named
from tests.support.standins.agent_sandbox_schema import check
from tests.support.standins.kubernetes_pool_standin import documented_template

SPEC = SandboxSpec(name="taxtui-r-1", labels={LABEL_RUN: "r"}, limits=Limits(), ttl_s=90.4, env={"A": "b"})
CRDS = os.environ.get("TAXTUI_AGENT_SANDBOX_CRDS", "")
"""A folder with the published ``CustomResourceDefinition`` files, where there is one."""


def test_a_claim_is_ours_ends_itself_and_asks_for_nothing_that_needs_a_cold_start() -> None:
    made = claim(SPEC, "warm", 1_800_000_000.2)
    check(made)
    assert made["metadata"] == {"name": "taxtui-r-1", "labels": {LABEL_RUN: "r"}}
    assert made["spec"] == {
        "warmPoolRef": {"name": "warm"},
        "lifecycle": {"shutdownTime": "2027-01-15T08:01:31Z", "shutdownPolicy": "DeleteForeground"},
    }


@pytest.mark.skipif(not CRDS, reason="TAXTUI_AGENT_SANDBOX_CRDS names no folder with the published schemas")
@pytest.mark.parametrize("plural", ["sandboxclaims", "sandboxtemplates"])
def test_the_published_schemas_take_what_is_sent_and_what_is_documented(plural: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    found = yaml.safe_load((Path(CRDS) / f"extensions.agents.x-k8s.io_{plural}.yaml").read_text())
    (schema,) = (each["schema"]["openAPIV3Schema"] for each in found["spec"]["versions"] if each["name"] == "v1beta1")
    jsonschema.validate(
        claim(SPEC, "warm", 0.0) if plural == "sandboxclaims" else documented_template(), _closed(schema)
    )


def _closed(schema: Any) -> Any:
    """The same, but a field that is not named is refused, where an API server would drop it."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        closed["additionalProperties"] = False
    return closed


def said(status: str, reason: str, pod: str = "p", **about: str) -> Claim:
    ready = {"type": "Ready", "status": status, "reason": reason, "message": "because\nof it"}
    body = {
        "metadata": {"name": "mine", **about},
        "status": {"conditions": [{"type": "Finished", "status": "True"}, ready], "sandbox": {"name": pod}},
    }
    return msgspec.convert(body, Claim)


def test_a_claim_that_waits_is_neither_ready_nor_refused() -> None:
    new = Claim(msgspec.convert({"name": "mine"}, type(said("True", "x").metadata)))
    assert (new.ready, new.warm, new.refused(), new.ended()) == (False, False, None, None)
    assert "does agent-sandbox run" in new.waits()
    waits = said("False", "DependenciesNotReady")
    assert (waits.ready, waits.refused(), waits.ended()) == (False, None, None)
    assert waits.waits() == "DependenciesNotReady: because of it"


def test_warm_is_what_has_another_name_than_the_claim() -> None:
    assert said("True", "DependenciesReady", "pool-x").warm
    assert not said("True", "DependenciesReady", "mine").warm
    assert not said("True", "DependenciesReady", "").ready, "a claim that names no pod gives none"


@pytest.mark.parametrize(
    "reason", ["WarmPoolNotFound", "TemplateNotFound", "InvalidMetadata", "InvalidConfiguration", "MultiplePods"]
)
def test_what_waiting_does_not_help(reason: str) -> None:
    assert said("False", reason).refused() == f"{reason}: because of it"


@pytest.mark.parametrize("reason", ["ClaimExpired", "SandboxExpired", "PodFailed", "PodSucceeded", "SandboxSuspended"])
def test_what_is_no_more(reason: str) -> None:
    assert said("False", reason).ended() == f"{reason}: because of it"
    assert said("True", "DependenciesReady", deletionTimestamp="2026-01-01T00:00:00Z").ended() == "is being deleted"


def test_the_documented_template_fits_the_defaults() -> None:
    template = documented_template()
    check(template)
    assert list(differences(template["spec"]["podTemplate"]["spec"], KubernetesOptions(), Limits())) == []


@pytest.mark.parametrize(
    ("options", "limits", "told"),
    [
        ({"image": "a/b:c"}, Limits(), "has the image docker.io/library/python:3.12-bookworm, not a/b:c"),
        ({}, Limits(cpus=2), "gives cpu 1 to 1, not 2"),
        ({}, Limits(memory_mib=512), "gives memory 1Gi to 1Gi, not 512Mi"),
        ({"runtime_class": "gvisor"}, Limits(), "has the runtime class of the cluster, not gvisor"),
        ({"node_selector": "a=b"}, Limits(), "has its own node_selector: leave out node_selector="),
        ({"user": 0}, Limits(), "has its own user: leave out user="),
        ({"fixtures": "/opt/taxtui"}, Limits(), "does not set TAXTUI_FIXTURES=/opt/taxtui"),
    ],
)
def test_no_option_is_ignored(options: dict[str, Any], limits: Limits, told: str) -> None:
    pod = documented_template()["spec"]["podTemplate"]["spec"]
    assert list(differences(pod, KubernetesOptions(**options), limits)) == [told]


def test_quantities_are_compared_by_value() -> None:
    pod = documented_template()["spec"]["podTemplate"]["spec"]
    for resources in ({"limits": {"cpu": "1000m", "memory": "1024Mi"}}, {"limits": {"cpu": 1, "memory": "1073741824"}}):
        pod["containers"][0]["resources"] = resources
        assert list(differences(pod, KubernetesOptions(), Limits())) == []
    pod["containers"][0]["resources"] = {"limits": {"cpu": "odd"}}
    assert list(differences(pod, KubernetesOptions(), Limits())) == [
        "gives cpu odd to odd, not 1",
        "gives memory none to no limit, not 1024Mi",
    ]


@pytest.mark.parametrize("text", ["pool", "pool:", "pool:A", "pool:a/b", "pools:"])
def test_a_pool_has_a_name(text: str) -> None:
    with pytest.raises(UsageError, match="--acquire pool:NAME"):
        named(text)
    assert named("pool:warm-1") == "warm-1"
