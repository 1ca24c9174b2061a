"""What the published schemas of agent-sandbox (v1beta1) take, as far as anything here sends or is sent it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

NAME = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
LABEL = Annotated[str, Meta(pattern=r"^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$")]
WHEN = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]


class Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Takes no field but those that it names: an API server prunes the others without a word."""


class About(Strict):
    name: NAME
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: WHEN = "2026-01-01T00:00:00Z"
    deletion_timestamp: WHEN = "2026-01-01T00:00:00Z"
    labels: dict[str, LABEL] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []


class NameOf(Strict):
    name: str


class Lifecycle(Strict):
    shutdown_time: WHEN = "2026-01-01T00:00:00Z"
    shutdown_policy: Literal["Delete", "DeleteForeground", "Retain"] = "Retain"


class ClaimSpec(Strict):
    warm_pool_ref: NameOf
    lifecycle: Lifecycle | None = None


class Told(Strict):
    type: str
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    message: Annotated[str, Meta(max_length=32768)]
    last_transition_time: WHEN


class Given(Strict):
    name: str = ""
    pod_ips: list[str] = msgspec.field(default_factory=list, name="podIPs")


class ClaimStatus(Strict):
    conditions: list[Told] = []
    sandbox: Given | None = None


class SandboxClaim(Strict):
    api_version: Literal["extensions.agents.x-k8s.io/v1beta1"]
    kind: Literal["SandboxClaim"]
    metadata: About
    spec: ClaimSpec
    status: ClaimStatus | None = None


class PoolSpec(Strict):
    sandbox_template_ref: NameOf
    replicas: Annotated[int, Meta(ge=0)] = 1


class PoolStatus(Strict):
    replicas: int = 0
    ready_replicas: int = 0


class SandboxWarmPool(Strict):
    api_version: Literal["extensions.agents.x-k8s.io/v1beta1"]
    kind: Literal["SandboxWarmPool"]
    metadata: About
    spec: PoolSpec
    status: PoolStatus | None = None


class PodTemplate(Strict):
    spec: dict[str, Any]  # a pod's, which the kubernetes package has a model of
    metadata: dict[str, dict[str, str]] = {}


class TemplateSpec(Strict):
    pod_template: PodTemplate
    volume_claim_templates: list[dict[str, Any]] = []
    service: bool = False
    network_policy_management: Literal["Managed", "Unmanaged"] = "Managed"
    env_vars_injection_policy: Literal["Allowed", "Overrides", "Disallowed"] = "Disallowed"


class SandboxTemplate(Strict):
    api_version: Literal["extensions.agents.x-k8s.io/v1beta1"]
    kind: Literal["SandboxTemplate"]
    metadata: About
    spec: TemplateSpec


KINDS = {kind.__name__: kind for kind in (SandboxClaim, SandboxWarmPool, SandboxTemplate)}


def check(body: dict[str, Any]) -> None:
    """Raise ``msgspec.ValidationError`` for a body that its schema does not take."""
    msgspec.convert(body, KINDS[body["kind"]])
