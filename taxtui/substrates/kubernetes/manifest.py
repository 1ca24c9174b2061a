"""What a pod is made of: the manifest that the substrate's options and a sandbox's spec give."""

from __future__ import annotations

from typing import Any, Final

from taxtui.plan.spec import FIXTURES_ENV, SandboxSpec
from taxtui.substrates.kubernetes.exec import CONTAINER
from taxtui.substrates.kubernetes.options import KubernetesOptions, node_selector, pull_secrets, tolerations

WORK: Final = "/workspace"
LABEL_NETWORK: Final = "taxtui.network"
"""``none`` or ``pod``: for a NetworkPolicy to select by; Kubernetes can't cut a single pod off."""

_IDLE: Final = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"
"""PID 1 has to handle TERM itself: ``sleep`` as PID 1 ignores it and is only killed when the grace period is over."""


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
    if secrets := pull_secrets(options.pull_secret):
        pod["imagePullSecrets"] = secrets
    labels = {**spec.labels, LABEL_NETWORK: "pod" if spec.network else "none"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": spec.name, "labels": labels}, "spec": pod}
