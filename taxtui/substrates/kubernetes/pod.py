"""Pods as plain data: the manifest to create, and the used fields of the API's objects."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import msgspec

from taxtui.plan.spec import FIXTURES_ENV, SandboxSpec
from taxtui.substrates.kubernetes.options import KubernetesOptions, node_selector, tolerations


class Camel(msgspec.Struct, rename="camel", frozen=True):
    """Base of decoded API objects; other fields are skipped."""


class Reason(Camel, frozen=True):
    """The reason of a state, an event or a refusal: a word for programs, and a message for people."""

    reason: str | None = None
    message: str | None = None

    def text(self, otherwise: str = "") -> str:
        """Both on one line; ``otherwise`` instead of a missing word."""
        message = " ".join((self.message or "").split())
        return f"{self.reason or otherwise}: {message or 'no further reason given'}"


class Metadata(Camel, frozen=True):
    """The identity of an object."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None


class ApiObject(Camel, frozen=True):
    """Any object of the API."""

    metadata: Metadata


class Condition(Reason, frozen=True):
    """A condition of a pod or claim."""

    type: str = ""
    status: str = ""


class ContainerState(Camel, frozen=True):
    """The state of a container; exactly one field is set."""

    waiting: Reason | None = None
    running: dict[str, Any] | None = None
    terminated: Reason | None = None


class ContainerStatus(Camel, frozen=True):
    """The status of a container."""

    restart_count: int = 0
    state: ContainerState = ContainerState()


class Status(Reason, frozen=True):
    """A pod's status."""

    phase: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None


class Spec(Camel, frozen=True):
    """The node of a pod."""

    node_name: str | None = None


class Event(Reason, frozen=True):
    """An event about a pod."""

    last_timestamp: str | None = None  # None from newer reporters, which fill ``event_time``
    event_time: str | None = None

    def reports_failure(self) -> bool:
        """Whether the event reports a failed step. ``FailedScheduling`` stays after a node has taken the pod."""
        reason = self.reason or ""
        return reason.startswith(("Failed", "BackOff")) and reason != "FailedScheduling"

    @property
    def when(self) -> str:
        """The time of the last occurrence, in a sortable form."""
        return self.last_timestamp or self.event_time or ""


class Pod(ApiObject, frozen=True):
    """The used fields of a pod."""

    status: Status = Status()
    spec: Spec = Spec()

    def reached(self) -> list[str]:
        """The milestones proved by this state, in the usual order."""
        true = {condition.type for condition in self.status.conditions or () if condition.status == "True"}
        running = any(container.state.running is not None for container in self.status.container_statuses or ())
        steps = {
            "scheduled": "PodScheduled" in true,
            "initialized": "Initialized" in true,
            "sandbox ready": "PodReadyToStartContainers" in true,
            "running": running,
            "ready": "Ready" in true,
        }
        return [name for name, seen in steps.items() if seen]


MILLISECOND_NS: Final = 1_000_000
_PULLED: Final = re.compile(
    r'Successfully pulled image ".*" in (?P<took>[0-9.hms]+)(?: \([0-9.hms]+ including waiting\))?'
    r"(?:\. Image size: (?P<size>[0-9]{1,18}) bytes\.)?"  # older kubelets report neither
)
_TOOK: Final = re.compile(r"(?:(\d{1,3})h)?(?:(\d{1,2})m(?!s))?(?:(\d{1,2}(?:\.\d{1,3})?)s)?|(\d{1,3})ms")


class Pull(NamedTuple):
    """An image pull for a pod."""

    took_ns: int  # by the kubelet's clock, without the wait for other pulls; cut to whole milliseconds
    image_bytes: int | None  # by the node's container runtime, with layers from before the pull


def pull(message: str) -> Pull | None:
    """The pull in an event with the reason ``Pulled`` (kubelet, image_manager.go); None if the node had the image."""
    match = _PULLED.fullmatch(message)
    took = match and _TOOK.fullmatch(match["took"])
    if not match or not took:
        return None
    hours, minutes, seconds, milliseconds = (float(part or 0) for part in took.groups())
    took_ms = round(((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds)
    return Pull(took_ms * MILLISECOND_NS, int(match["size"]) if match["size"] else None)


CONTAINER: Final = "sandbox"
WORK: Final = "/workspace"
LABEL_NETWORK: Final = "taxtui.network"
"""``none`` or ``pod``, for the selector of a NetworkPolicy; Kubernetes can't isolate a single pod."""

_IDLE: Final = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"
"""PID 1 has to handle TERM: ``sleep`` as PID 1 ignores TERM until the end of the grace period."""


def manifest(options: KubernetesOptions, spec: SandboxSpec) -> dict[str, Any]:
    """The pod to create."""
    resources = {"cpu": f"{spec.limits.cpus:g}", "memory": f"{spec.limits.memory_mib}Mi"}
    own_image = options.fixtures != ""
    env = {**({FIXTURES_ENV: options.fixtures} if own_image else {"HOME": WORK}), **spec.env}
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
    if not own_image:
        container |= {"workingDir": WORK, "volumeMounts": [{"name": "work", "mountPath": WORK}]}
        pod["volumes"] = [{"name": "work", "emptyDir": {}}]
        pod["securityContext"] |= {"runAsUser": options.user, "fsGroup": options.user}
    if options.runtime_class:
        pod["runtimeClassName"] = options.runtime_class
    if options.pull_secret:
        pod["imagePullSecrets"] = [{"name": options.pull_secret}]
    labels = {**spec.labels, LABEL_NETWORK: "pod" if spec.network else "none"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": spec.name, "labels": labels}, "spec": pod}
