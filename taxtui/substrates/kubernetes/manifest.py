"""What a pod is made of: the options of the substrate, and the manifest that they and a sandbox's spec give."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from taxtui.errors import UsageError
from taxtui.plan.spec import FIXTURES_ENV, SandboxSpec
from taxtui.substrates.kubernetes.exec import CONTAINER

WORK: Final = "/workspace"
LABEL_NETWORK: Final = "taxtui.network"
"""``none`` or ``pod``: for a NetworkPolicy to select by; Kubernetes can't cut a single pod off."""

_IDLE: Final = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"
"""PID 1 has to handle TERM itself: ``sleep`` as PID 1 ignores it and is only killed when the grace period is over."""


class KubernetesOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where pods are made, and of what. Empty means: as kubectl would choose, or nothing special."""

    kubeconfig: str = ""  # else $KUBECONFIG, ~/.kube/config, or the service account of the pod we run in
    context: str = ""
    namespace: str = ""  # else the context's
    image: str = "docker.io/library/python:3.12-bookworm"  # has bash, git, venv and pip
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    pull_secret: str = ""
    runtime_class: str = ""  # gvisor, kata …: whatever the cluster calls it
    node_selector: str = ""  # "pool=sandboxes;kubernetes.io/arch=amd64"
    tolerations: str = ""  # "dedicated=sandboxes:NoSchedule;spot:NoExecute"
    fixtures: str = ""  # /opt/taxtui for taxtui's own image, whose user, home and working directory are then kept
    user: int = 1000  # 0 runs as root, for images that need it
    shell: Literal["bash", "sh"] = "bash"
    grace_s: int = 5  # between TERM and KILL when a pod is deleted
    unschedulable_s: float = 60.0  # how long a pod may wait for a node, say for an autoscaler


def manifest(options: KubernetesOptions, spec: SandboxSpec) -> dict[str, Any]:
    """The pod to create."""
    resources = {"cpu": f"{spec.limits.cpus:g}", "memory": f"{spec.limits.memory_mib}Mi"}
    own = options.fixtures != ""
    env = {**({FIXTURES_ENV: options.fixtures} if own else {"HOME": WORK}), **spec.env}
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": options.image,
        "imagePullPolicy": options.pull_policy,
        "command": ["sh", "-c", _IDLE],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": max(1, round(spec.ttl_s)),
        "terminationGracePeriodSeconds": options.grace_s,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "runAsNonRoot": options.user != 0},
        "containers": [container],
        "nodeSelector": node_selector(options.node_selector),
        "tolerations": tolerations(options.tolerations),
    }
    if not own:
        container |= {"workingDir": WORK, "volumeMounts": [{"name": "work", "mountPath": WORK}]}
        pod["volumes"] = [{"name": "work", "emptyDir": {}}]
        pod["securityContext"] |= {"runAsUser": options.user, "fsGroup": options.user}
    if options.runtime_class:
        pod["runtimeClassName"] = options.runtime_class
    if options.pull_secret:
        pod["imagePullSecrets"] = [{"name": options.pull_secret}]
    labels = {**spec.labels, LABEL_NETWORK: "pod" if spec.network else "none"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": spec.name, "labels": labels}, "spec": pod}


def node_selector(text: str) -> dict[str, str]:
    """``a=b;c=d`` as a node selector. Raises ``UsageError``."""
    selector: dict[str, str] = {}
    for part in filter(None, text.split(";")):
        key, equals, value = part.strip().partition("=")
        if not key or not equals:
            raise UsageError(f"kubernetes: node_selector {part!r} is not key=value", fix="write node_selector=a=b;c=d")
        selector[key] = value
    return selector


def tolerations(text: str) -> list[dict[str, str]]:
    """``key=value:NoSchedule;key:NoExecute`` as tolerations. Raises ``UsageError``."""
    result: list[dict[str, str]] = []
    for part in filter(None, text.split(";")):
        taint, colon, effect = part.strip().partition(":")
        key, equals, value = taint.partition("=")
        if not key or (colon and effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute")):
            raise UsageError(f"kubernetes: toleration {part!r} is not key[=value][:NoSchedule|:NoExecute]")
        toleration = {"key": key, "operator": "Equal" if equals else "Exists"}
        if equals:
            toleration["value"] = value
        if colon:
            toleration["effect"] = effect
        result.append(toleration)
    return result
