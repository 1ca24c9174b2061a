"""The options of the kubernetes substrate, and the notation of options with several values."""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

from taxtui.errors import UsageError

NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""The name of a Kubernetes object: a DNS subdomain."""


class KubernetesOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cluster and the pods. An empty value is kubectl's choice, or the default."""

    kubeconfig: str = ""  # else $KUBECONFIG, ~/.kube/config, or the service account of taxtui's pod
    context: str = ""
    namespace: str = ""  # else the namespace of the context
    image: str = "docker.io/library/python:3.12-bookworm"  # has bash, git, venv and pip
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    pull_secret: str = ""  # the name of a secret in the namespace
    runtime_class: str = ""  # gvisor, kata …: a RuntimeClass of the cluster
    node_selector: str = ""  # "pool=sandboxes;kubernetes.io/arch=amd64"
    tolerations: str = ""  # "dedicated=sandboxes:NoSchedule;spot:NoExecute"
    fixtures: str = ""  # /opt/taxtui for taxtui's own image, with the image's user, home and working directory
    user: int = 1000  # 0 is root
    shell: Literal["bash", "sh"] = "bash"
    suspend: bool = False  # sandboxes of a warm pool can be suspended; the template needs a volume claim
    grace_s: int = 5  # between TERM and KILL when a pod is deleted
    unschedulable_s: float = 60.0  # longest wait of a pod for a node, for example for an autoscaler

    @property
    def variant(self) -> str:
        """The options that distinguish one measurement from another; "" for the defaults."""
        parts = {"runtime": self.runtime_class, "node": self.node_selector, "shell": self.shell}
        usual = {"runtime": "", "node": "", "shell": "bash"}
        return ",".join(f"{key}={value}" for key, value in parts.items() if value != usual[key])


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
