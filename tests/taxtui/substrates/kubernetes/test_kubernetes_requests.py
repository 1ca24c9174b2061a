"""What is asked of Kubernetes and of agent-sandbox, field by field, and where the cluster is looked for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from taxtui.errors import SubstrateUnavailable, UsageError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.substrates.kubernetes.claim import Claim, claim
from taxtui.substrates.kubernetes.connect import discover
from taxtui.substrates.kubernetes.options import KubernetesOptions, node_selector, tolerations
from taxtui.substrates.kubernetes.pod import manifest
from taxtui.substrates.kubernetes.pool import TemplateObject, named
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.standins.kubernetes_pool_standin import check, documented_template

SPEC = SandboxSpec(
    name="taxtui-r-1",
    labels={LABEL_RUN: "r"},
    limits=Limits(cpus=0.5, memory_mib=256),
    ttl_s=90.4,
    env={"LANG": "C.UTF-8"},
)
CRDS = os.environ.get("TAXTUI_AGENT_SANDBOX_CRDS", "")
"""A folder with the published ``CustomResourceDefinition`` files, where there is one."""


def pod(**options: Any) -> dict[str, Any]:
    made = manifest(KubernetesOptions(**options), SPEC)
    assert made["metadata"] == {"name": "taxtui-r-1", "labels": {LABEL_RUN: "r", "taxtui.network": "none"}}
    return dict(made["spec"])


def test_the_pod_is_limited_restricted_and_ends_by_itself() -> None:
    spec = pod()
    container = spec["containers"][0]
    assert container["resources"]["requests"] == container["resources"]["limits"] == {"cpu": "0.5", "memory": "256Mi"}
    assert (spec["activeDeadlineSeconds"], spec["restartPolicy"]) == (90, "Never")
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "fsGroup": 1000,
    }
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert "trap" in container["command"][2], "PID 1 has to handle TERM"
    assert "imagePullSecrets" not in spec


def test_our_own_image_keeps_its_user_and_folders() -> None:
    spec = pod(fixtures="/opt/taxtui")
    container = spec["containers"][0]
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    assert env == {"TAXTUI_FIXTURES": "/opt/taxtui", "LANG": "C.UTF-8"}
    assert "workingDir" not in container
    assert "volumes" not in spec
    assert "runAsUser" not in spec["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"] is True


def test_pull_secret_and_root_are_only_where_asked_for() -> None:
    spec = pod(pull_secret="one", user=0)
    assert spec["imagePullSecrets"] == [{"name": "one"}]
    assert spec["securityContext"]["runAsNonRoot"] is False


def test_runtime_node_and_shell_are_the_variant_and_the_image_is_not() -> None:
    assert KubernetesSubstrate(KubernetesOptions(image="a/b:c")).variant == ""
    options = KubernetesOptions(runtime_class="kata", node_selector="pool=x", shell="sh")
    substrate = KubernetesSubstrate(options)
    assert substrate.variant == "runtime=kata,node=pool=x,shell=sh"
    assert not substrate.capabilities.bash


def test_selectors_and_tolerations() -> None:
    assert node_selector("a=b; kubernetes.io/arch=amd64") == {"a": "b", "kubernetes.io/arch": "amd64"}
    assert tolerations("d=s:NoSchedule;spot:NoExecute;any") == [
        {"key": "d", "operator": "Equal", "value": "s", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists", "effect": "NoExecute"},
        {"key": "any", "operator": "Exists"},
    ]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"node_selector": "a"}, "kubernetes: "),
        ({"node_selector": "=b"}, "kubernetes: "),
        ({"tolerations": "a:Never"}, "kubernetes: "),
        ({"pull_secret": "a;b"}, "'a;b' is not the name of a secret"),
    ],
)
def test_a_malformed_option_is_refused_before_anything_is_contacted(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        KubernetesSubstrate(KubernetesOptions(**options))


def test_a_claim_is_ours_ends_itself_and_asks_for_nothing_that_needs_a_cold_start() -> None:
    made = claim(SPEC, "warm", 1_800_000_000.2)
    check(made)
    assert made["metadata"] == {"name": "taxtui-r-1", "labels": {LABEL_RUN: "r"}}
    assert made["spec"] == {
        "warmPoolRef": {"name": "warm"},
        "lifecycle": {"shutdownTime": "2027-01-15T08:01:31Z", "shutdownPolicy": "DeleteForeground"},
    }


@pytest.mark.skipif(not CRDS, reason="TAXTUI_AGENT_SANDBOX_CRDS names no folder with the published schemas")
def test_the_published_schemas_take_what_is_sent_and_what_is_documented() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for plural, body in (("sandboxclaims", claim(SPEC, "warm", 0.0)), ("sandboxtemplates", documented_template())):
        found = yaml.safe_load((Path(CRDS) / f"extensions.agents.x-k8s.io_{plural}.yaml").read_text())
        (version,) = (each for each in found["spec"]["versions"] if each["name"] == "v1beta1")
        jsonschema.validate(body, version["schema"]["openAPIV3Schema"])


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


def test_what_waiting_does_not_help_is_refused_and_what_is_no_more_has_ended() -> None:
    for reason in ("WarmPoolNotFound", "TemplateNotFound", "InvalidMetadata", "InvalidConfiguration", "MultiplePods"):
        assert said("False", reason).refused() == f"{reason}: because of it"
    for reason in ("ClaimExpired", "SandboxExpired", "PodFailed", "PodSucceeded", "SandboxSuspended"):
        assert said("False", reason).ended() == f"{reason}: because of it"
    assert said("True", "DependenciesReady", deletionTimestamp="2026-01-01T00:00:00Z").ended() == "is being deleted"


ONE_GIB: dict[str, Any] = {"limits": {"cpu": "1000m", "memory": "1024Mi"}}


@pytest.mark.parametrize(
    ("options", "limits", "resources", "told"),
    [
        ({}, Limits(), None, []),
        # Quantities are compared by their value.
        ({}, Limits(), ONE_GIB, []),
        ({}, Limits(), {"limits": {"cpu": 1, "memory": "1073741824"}}, []),
        (
            {},
            Limits(),
            {"limits": {"cpu": "odd"}},
            ["gives cpu odd to odd, not 1", "gives memory none to no limit, not 1024Mi"],
        ),
        # No option is ignored.
        ({"image": "a/b:c"}, Limits(), None, ["has the image docker.io/library/python:3.12-bookworm, not a/b:c"]),
        ({}, Limits(cpus=2), None, ["gives cpu 1 to 1, not 2"]),
        ({}, Limits(memory_mib=512), None, ["gives memory 1Gi to 1Gi, not 512Mi"]),
        ({"runtime_class": "gvisor"}, Limits(), None, ["has the runtime class of the cluster, not gvisor"]),
        ({"node_selector": "a=b"}, Limits(), None, ["has its own node_selector: leave out node_selector="]),
        ({"user": 0}, Limits(), None, ["has its own user: leave out user="]),
        ({"fixtures": "/opt/taxtui"}, Limits(), None, ["does not set TAXTUI_FIXTURES=/opt/taxtui"]),
    ],
)
def test_the_documented_template_fits_the_defaults_and_nothing_else(
    options: dict[str, Any], limits: Limits, resources: dict[str, Any] | None, told: list[str]
) -> None:
    template = documented_template()
    check(template)
    if resources:
        template["spec"]["podTemplate"]["spec"]["containers"][0]["resources"] = resources
    made = msgspec.convert(template, TemplateObject)
    assert list(made.differences(KubernetesOptions(**options), limits)) == told


@pytest.mark.parametrize("text", ["pool", "pool:", "pool:A", "pool:a/b", "pools:"])
def test_a_pool_has_a_name(text: str) -> None:
    with pytest.raises(UsageError, match="--acquire pool:NAME"):
        named(text)
    assert named("pool:warm-1") == "warm-1"


def config(folder: Path, name: str) -> str:
    contexts = [
        {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "space"}},
        {"name": "two", "context": {"cluster": "c", "user": "u"}},
    ]
    body = {
        "current-context": "one",
        "contexts": contexts,
        "clusters": [{"name": "c", "cluster": {"server": f"http://{name}.invalid"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    (folder / name).write_text(json.dumps(body))
    return str(folder / name)


@pytest.fixture
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


@pytest.mark.usefixtures("_nowhere")
async def test_the_option_wins_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", config(tmp_path, "env"))
    assert (await discover("", "")).configuration.host == "http://env.invalid"
    given = config(tmp_path, "given")
    found = await discover(given, "")
    assert (found.configuration.host, found.namespace) == ("http://given.invalid", "space")
    assert (found.configuration.retries, found.configuration.connection_pool_maxsize) == (None, 0)
    assert (await discover(given, "two")).namespace == "default"
    with pytest.raises(SubstrateUnavailable, match="three"):
        await discover(given, "three")


@pytest.mark.usefixtures("_nowhere")
async def test_no_cluster_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SubstrateUnavailable, match="set KUBECONFIG or kubeconfig=FILE"):
        await discover("", "")
    (tmp_path / "odd").write_text("- just\n- a list\n")
    with pytest.raises(SubstrateUnavailable, match="can't be used"):
        await discover(str(tmp_path / "odd"), "")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(SubstrateUnavailable, match="service account"):
        await discover("", "")
