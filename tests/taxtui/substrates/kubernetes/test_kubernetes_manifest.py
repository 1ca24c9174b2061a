"""What is asked of Kubernetes, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from taxtui.errors import UsageError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.substrates.kubernetes.options import KubernetesOptions, node_selector, tolerations
from taxtui.substrates.kubernetes.pod import manifest
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate

SPEC = SandboxSpec(
    name="taxtui-r-1",
    labels={LABEL_RUN: "r"},
    limits=Limits(cpus=0.5, memory_mib=256),
    ttl_s=90.4,
    env={"LANG": "C.UTF-8"},
)


def pod(**options: Any) -> dict[str, Any]:
    made = manifest(KubernetesOptions(**options), SPEC)
    assert made["metadata"]["name"] == "taxtui-r-1"
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


def test_our_own_image_keeps_its_user_and_folders() -> None:
    spec = pod(fixtures="/opt/taxtui")
    container = spec["containers"][0]
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    assert env == {"TAXTUI_FIXTURES": "/opt/taxtui", "LANG": "C.UTF-8"}
    assert "workingDir" not in container
    assert "volumes" not in spec
    assert "runAsUser" not in spec["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"] is True


def test_the_pull_secret_is_named() -> None:
    assert pod(pull_secret="one")["imagePullSecrets"] == [{"name": "one"}]
    assert "imagePullSecrets" not in pod()


def test_root_only_where_asked_for() -> None:
    assert pod(user=0)["securityContext"]["runAsNonRoot"] is False


def test_what_a_network_policy_selects_by() -> None:
    assert manifest(KubernetesOptions(), SPEC)["metadata"]["labels"] == {LABEL_RUN: "r", "taxtui.network": "none"}


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
    "options",
    [
        {"node_selector": "a"},
        {"node_selector": "=b"},
        {"tolerations": "a:Never"},
    ],
)
def test_a_malformed_selector_is_refused_before_anything_is_contacted(options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="kubernetes: "):
        KubernetesSubstrate(KubernetesOptions(**options))  # type: ignore[arg-type]


def test_several_pull_secrets_are_refused() -> None:
    with pytest.raises(UsageError, match="'a;b' is not the name of a secret"):
        KubernetesSubstrate(KubernetesOptions(pull_secret="a;b"))
