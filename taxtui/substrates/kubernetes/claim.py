"""A claim on a sandbox of a warm pool (kubernetes-sigs/agent-sandbox, v1beta1), as plain data.

The controller copies a sandbox's ``Ready`` condition to the claim. Source of the reasons:
``sandboxclaim_controller.go``, ``sandbox_types.go``, and the client 1.0.8.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from taxtui.plan.spec import SandboxSpec
from taxtui.substrates.kubernetes.api import ObjectKind
from taxtui.substrates.kubernetes.pod import ApiObject, Camel, Condition

GROUP: Final = "extensions.agents.x-k8s.io"
VERSION: Final = "v1beta1"
SANDBOX_PODS: Final = "agents.x-k8s.io/sandbox-name-hash"
"""The label of every sandbox's pod, pre-warmed or made for a claim, before and after the claim."""

SUSPENDED: Final = "SandboxSuspended"
_REFUSED: Final = frozenset(
    {
        "WarmPoolNotFound",
        "TemplateNotFound",
        "InvalidMetadata",
        "InvalidConfiguration",  # of the sandbox, since agent-sandbox 1.0
        "EnvVarsInjectionRejected",
        "VolumeClaimTemplatesError",
        "MultiplePods",
    }
)
"""Reasons for no sandbox, ever."""
_ENDED: Final = frozenset({"ClaimExpired", "SandboxExpired", "PodSucceeded", "PodFailed", SUSPENDED})
"""Reasons for the end of a sandbox."""


class Bound(Camel, frozen=True):
    """The sandbox of a claim; sandbox and pod have one name."""

    name: str = ""


class ClaimStatus(Camel, frozen=True):
    """The status of a claim."""

    conditions: list[Condition] | None = None
    sandbox: Bound = Bound()


class Claim(ApiObject, frozen=True):
    """The used fields of a claim."""

    status: ClaimStatus = ClaimStatus()

    @property
    def _ready(self) -> Condition | None:
        return next((condition for condition in self.status.conditions or () if condition.type == "Ready"), None)

    @property
    def pod(self) -> str:
        """The name of the pod, "" before there is a pod."""
        return self.status.sandbox.name

    @property
    def warm(self) -> bool:
        """Whether the pod is from the pool: a pod made for a claim has the claim's name."""
        return self.pod not in ("", self.metadata.name)

    @property
    def ready(self) -> bool:
        return self.pod != "" and self._ready is not None and self._ready.status == "True"

    def refused(self) -> str | None:
        """The reason why the claim gets no sandbox, or None."""
        return self._because(_REFUSED)

    def ended(self) -> str | None:
        """The reason why the sandbox has ended, or None."""
        return "is being deleted" if self.metadata.deletion_timestamp else self._because(_ENDED)

    @property
    def suspended(self) -> bool:
        return self._ready is not None and self._ready.reason == SUSPENDED

    def waits(self) -> str:
        """The reason why the claim is not ready, in one line."""
        if self._ready is None:
            return "no controller has looked at the claim: does agent-sandbox run with its extensions?"
        return self._ready.text("not ready")

    def _because(self, reasons: frozenset[str]) -> str | None:
        condition = self._ready
        return condition.text() if condition and condition.status != "True" and condition.reason in reasons else None


CLAIMS: Final = ObjectKind(f"/apis/{GROUP}/{VERSION}", "sandboxclaims", Claim)
SANDBOX_GROUP: Final = "agents.x-k8s.io"
SANDBOXES: Final = ObjectKind(f"/apis/{SANDBOX_GROUP}/{VERSION}", "sandboxes", Claim)


def claim(spec: SandboxSpec, pool: str, now_s: float) -> dict[str, Any]:
    """The claim to create. The controller ends claim and pod at the deadline.

    There are no environment variables: a claim with variables never gets a pod from the pool.

    Args:
        now_s: the server's Unix time, the clock of the deadline.
    """
    deadline = datetime.fromtimestamp(int(now_s + spec.ttl_s) + 1, UTC)
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "SandboxClaim",
        "metadata": {"name": spec.name, "labels": dict(spec.labels)},
        "spec": {
            "warmPoolRef": {"name": pool},
            "lifecycle": {
                "shutdownTime": deadline.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "shutdownPolicy": "DeleteForeground",
            },
        },
    }
