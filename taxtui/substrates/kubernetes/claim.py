"""A sandbox from a warm pool (kubernetes-sigs/agent-sandbox, v1beta1): a claim and its pod.

The watch of the run's claims reports the state: the controller copies a sandbox's ``Ready`` condition to the claim.
Source of the reasons: ``sandboxclaim_controller.go``, ``sandbox_types.go``, and the client 1.0.8.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from taxtui.errors import ExecFailed, SandboxLost
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.lifecycle import Usage
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes.api import PODS, ObjectKind
from taxtui.substrates.kubernetes.exec import PodExec
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.pod import Camel, Condition, Described, Metadata
from taxtui.substrates.kubernetes.sandbox import FollowedSandbox

ADOPTED: Final = "adopted"
"""Milestone: the claim got a sandbox from the pool."""
MADE: Final = "made"
"""Milestone: the pool was empty, and the controller makes a sandbox for the claim."""
SUSPENDING_S: Final = 0.05
"""Between two looks at the pod of a sandbox that is being suspended."""

GROUP: Final = "extensions.agents.x-k8s.io"
SANDBOX_GROUP: Final = "agents.x-k8s.io"
VERSION: Final = "v1beta1"

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


class ClaimStatus(Camel, frozen=True):
    """The status of a claim; sandbox and pod have one name."""

    conditions: list[Condition] | None = None
    sandbox: Metadata = Metadata()


class Claim(Described, frozen=True):
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
        return self._ready.text()

    def _because(self, reasons: frozenset[str]) -> str | None:
        ready = self._ready
        return ready.text() if ready and ready.status != "True" and ready.reason in reasons else None


CLAIMS: Final = ObjectKind(f"/apis/{GROUP}/{VERSION}", "sandboxclaims", Claim)
SANDBOXES: Final = ObjectKind(f"/apis/{SANDBOX_GROUP}/{VERSION}", "sandboxes", Claim)


def claim(spec: SandboxSpec, pool: str) -> dict[str, Any]:
    """The claim to create. The controller ends claim and pod at the deadline.

    There are no environment variables: a claim with variables never gets a pod from the pool.
    """
    deadline = datetime.fromtimestamp(int(time.time() + spec.ttl_s) + 1, UTC)
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


class ClaimedSandbox(FollowedSandbox[Claim]):
    """A claim, and the pod of the claim."""

    kind = CLAIMS
    noun = "claim"

    def __init__(self, runner: Callable[[str], PodExec], grace_s: float, *about: Any) -> None:
        """Begin to follow the future claim of this name.

        Args:
            runner: makes the runner of commands in a pod, by the pod's name.
            grace_s: the grace period of the pod.
            about: as ``FollowedSandbox``.
        """
        super().__init__(*about)
        self.grace_s = grace_s
        self._runner_of = runner
        self._runner = runner(self.name)
        self._claim: Claim | None = None
        self._ready = False
        self._suspended = False  # or about to be, by taxtui
        self._stopped = False  # suspended, and the pod is gone
        self._operated = False  # a suspension in the claim's status may be taxtui's own
        self._reading: asyncio.Task[None] | None = None

    def forget(self) -> None:
        super().forget()
        if self._reading:
            self._reading.cancel()

    def changed(self, now: Claim, at_ns: int, resolution_ns: int) -> None:
        before, self._claim = self._claim.pod if self._claim else "", now
        if now.pod and now.pod != before and not self._ready:
            self._marks(ADOPTED if now.warm else MADE, at_ns=at_ns, resolution_ns=resolution_ns)
            self._runner = self._runner_of(now.pod)
        if now.ready and not self._ready and not self._suspended:
            self._ready, self._first, self._ended = True, None, None
            self._marks("ready", at_ns=at_ns, resolution_ns=resolution_ns)
            self._look()
        elif self._ready and not now.ready:  # the controller replaces a dead pod
            self._look()
        self._notify()

    def _look(self) -> None:
        """Read the pod meanwhile: no command waits for the answer."""
        self._reading = asyncio.get_running_loop().create_task(self._read_pod())

    async def _read_pod(self) -> None:
        await super()._read_pod()
        if self._first and self._first.spec.node_name:
            self._marks.on(self._first.spec.node_name)

    @property
    def _pod_name(self) -> str:
        return (self._claim and self._claim.pod) or self.name

    def _lost(self) -> str | None:
        if self._gone.is_set():
            return "was deleted with the claim"
        if self._suspended:
            return "is suspended"
        if self._claim and (ended := self._claim.ended()) and not (self._operated and self._claim.suspended):
            return f"ended with the claim: {ended}"
        return self._ended

    def _is_ready(self) -> bool:
        return self._ready

    def _refusal(self, waited_s: float) -> str | None:
        refused = self._claim and self._claim.refused()
        return f"the claim gets no sandbox: {refused}" if refused else super()._refusal(waited_s)

    async def _obstacle(self) -> str:
        """The pod's last warning, else the claim's reason."""
        return await super()._obstacle() or (self._claim or Claim(self._about)).waits()

    # --------------------------------------------------------------------------------------------------- suspension

    async def suspend(self, marks: Marks) -> None:
        """Delete the pod and keep the volumes, by the sandbox's operating mode. Returns when the pod is gone.

        Source: ``spec.operatingMode`` in ``sandbox_types.go`` (kubernetes-sigs/agent-sandbox, v1beta1, KEP 694).
        """
        self._suspended = self._operated = True
        self._ready = False
        if self._reading:
            self._reading.cancel()
        self._notify()
        await self._operate("Suspended")
        pod = Metadata(name=self._pod_name, namespace=self._namespace)
        while not self._stopped:
            if self._gone.is_set():
                raise SandboxLost("the pod was deleted with the claim")
            if refusal := self._refusal(0.0):
                raise ExecFailed(refusal)
            try:
                self._stopped = not await self._api.exists(PODS, pod) and not (self._claim and self._claim.ready)
            except ApiRefused as error:
                raise error.as_error(ExecFailed, "the pod can't be read") from error
            if not self._stopped:
                await asyncio.sleep(SUSPENDING_S)

    async def resume(self, marks: Marks) -> None:
        """Let the controller create a new pod with the same volumes; return when the pod is ready."""
        if self._suspended:
            if not self._stopped:  # a cancelled suspension
                await self.suspend(marks)
            self._suspended = self._stopped = False
        if not self._ready:
            await self._operate("Running")
        await self.wait_ready(marks)

    async def usage(self) -> Usage:
        """Unknown: a suspended sandbox has no pod."""
        return Usage()

    async def _operate(self, mode: str) -> None:
        """Set the operating mode of the sandbox, ``Suspended`` or ``Running``; sandbox and pod have one name."""
        change = {"spec": {"operatingMode": mode}}
        request = self._api.patch(SANDBOXES, self._namespace, self._pod_name, change)
        try:
            await finish_despite_cancel(request)
        except ApiRefused as error:
            if error.status == 404:
                raise SandboxLost("the sandbox no longer exists") from error
            raise error.as_error(ExecFailed, f"the sandbox cannot become {mode}") from error
