"""A warm pool, compared with the run's request.

The pool's template decides the pod of a claim. A template with a difference from the substrate's options or the run's
limits is refused, because the recording would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from kubernetes.utils.quantity import parse_quantity

from taxtui.errors import SubstrateUnavailable, UsageError
from taxtui.plan.spec import FIXTURES_ENV, Limits
from taxtui.substrates.kubernetes.api import ClusterApi, Kept, ObjectKind
from taxtui.substrates.kubernetes.claim import CLAIMS, GROUP, SANDBOX_GROUP
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.options import NAME, KubernetesOptions
from taxtui.substrates.kubernetes.pod import ApiObject

PAGE: Final = "docs/substrates/kubernetes.md"
GRACE_S: Final = 30
"""Kubernetes' default."""
EXEC: Final = (
    ("get", "pods/exec", ""),  # checked for the GET of a websocket
    ("create", "pods/exec", ""),  # checked by newer servers too
)
RIGHTS: Final = (
    *((verb, "sandboxclaims", GROUP) for verb in ("create", "get", "list", "watch", "delete")),
    ("get", "sandboxwarmpools", GROUP),
    ("get", "sandboxtemplates", GROUP),
    *((verb, "pods", "") for verb in ("get", "list", "watch")),
    *EXEC,
)
"""The rights for a measurement through a pool: verb, resource, API group."""

SUSPEND: Final = ("patch", "sandboxes", SANDBOX_GROUP)
"""The right to suspend a sandbox of a pool."""


class PoolObject(ApiObject, frozen=True):
    """The used fields of a ``SandboxWarmPool``."""

    spec: dict[str, Any] = msgspec.field(default_factory=dict)


class TemplateObject(PoolObject, frozen=True):
    """The used fields of a ``SandboxTemplate``."""

    @property
    def pod(self) -> dict[str, Any]:
        spec = (self.spec.get("podTemplate") or {}).get("spec")
        return spec if isinstance(spec, dict) else {}

    @property
    def container(self) -> dict[str, Any]:
        """The container for commands: the first of the pod."""
        first: dict[str, Any] = (self.pod.get("containers") or [{}])[0]
        return first

    @property
    def grace_s(self) -> int:
        """The time between TERM and KILL at the deletion of a pod."""
        return int(self.pod.get("terminationGracePeriodSeconds", GRACE_S))

    @property
    def keeps_files(self) -> bool:
        """Whether the working directory is on a volume claim, which outlives a pod."""
        names = {(entry.get("metadata") or {}).get("name") for entry in self.spec.get("volumeClaimTemplates") or ()}
        folder = self.container.get("workingDir")
        mounts = self.container.get("volumeMounts") or ()
        return any(mount.get("name") in names and mount.get("mountPath") == folder for mount in mounts)

    def require(self, options: KubernetesOptions, limits: Limits) -> None:
        """Raise ``SubstrateUnavailable`` if the pods differ from the options or the run's limits."""
        if wrong := "; ".join(self.differences(options, limits)):
            raise SubstrateUnavailable(
                f"kubernetes: template {self.metadata.name} {wrong}",
                fix=f"use the template of {PAGE}, or equal options and limits",
            )

    def differences(self, options: KubernetesOptions, limits: Limits) -> Iterator[str]:
        """The differences from the options and limits, a phrase each."""
        container = self.container
        if (image := container.get("image")) != options.image:
            yield f"has the image {image}, not {options.image}"
        resources = container.get("resources") or {}
        for name, expected in (("cpu", f"{limits.cpus:g}"), ("memory", f"{limits.memory_mib}Mi")):
            limit = (resources.get("limits") or {}).get(name)
            request = (resources.get("requests") or {}).get(name, limit)
            if not _equal(limit, expected) or not _equal(request, expected):
                yield f"gives {name} {request or 'none'} to {limit or 'no limit'}, not {expected}"
        if (runtime := self.pod.get("runtimeClassName") or "") != options.runtime_class:
            yield f"has the runtime class {runtime or 'of the cluster'}, not {options.runtime_class or 'the default'}"
        for name in ("node_selector", "tolerations", "pull_secret", "pull_policy", "user"):
            if getattr(options, name) != getattr(KubernetesOptions(), name):
                yield f"has its own {name}: leave out {name}="
        values = {entry.get("name"): entry.get("value") for entry in container.get("env") or ()}
        if options.fixtures and values.get(FIXTURES_ENV) != options.fixtures:
            yield f"does not set {FIXTURES_ENV}={options.fixtures}"
        if options.suspend and not self.keeps_files:
            yield "has no volumeClaimTemplate for the working directory (needed for suspend=true)"


POOLS: Final = ObjectKind(CLAIMS.api, "sandboxwarmpools", PoolObject)
TEMPLATES: Final = ObjectKind(CLAIMS.api, "sandboxtemplates", TemplateObject)


def named(acquire: str) -> str:
    """The pool of ``pool:NAME``. Raises ``UsageError``."""
    name = acquire.partition(":")[2]
    if not NAME.fullmatch(name):
        raise UsageError(f"kubernetes: acquire {acquire!r} names no pool", fix="write --acquire pool:NAME")
    return name


async def look(api: ClusterApi, name: str) -> TemplateObject:
    """The template of a pool. Raises ``SubstrateUnavailable``."""
    pool = await _read(api, POOLS, name, "SandboxWarmPool")
    template_name = str((pool.spec.get("sandboxTemplateRef") or {}).get("name", ""))
    template = await _read(api, TEMPLATES, template_name, "SandboxTemplate")
    if not template.container.get("image") or not template.container.get("name"):
        raise SubstrateUnavailable(f"kubernetes: template {template_name} of pool {name} names no image")
    return template


async def _read(api: ClusterApi, kind: ObjectKind[Kept], name: str, kind_name: str) -> Kept:
    try:
        return await api.get(kind, name)
    except ApiRefused as error:
        if error.status != 404:
            raise error.as_error(SubstrateUnavailable, f"kubernetes: {kind_name} {name} can't be read") from error
        if f'"{name}" not found' in error.message:
            raise SubstrateUnavailable(
                f"kubernetes: there is no {kind_name} {name!r} in namespace {api.namespace!r}",
                fix=f"see: kubectl get {kind.plural} -n {api.namespace!r}",
            ) from error
        raise SubstrateUnavailable(
            f"kubernetes: this cluster does not have {kind.plural} ({GROUP})",
            fix=f"install agent-sandbox with extensions: {PAGE}",
        ) from error


def _equal(quantity: object, expected: str) -> bool:
    try:
        actual, wanted = (parse_quantity(str(entry)) for entry in (quantity or "", expected))  # type: ignore[no-untyped-call]
    except ValueError:
        return False
    return bool(actual == wanted)
