"""A sandbox from a warm pool: a claim and a pod.

Two watches report the state: the watch of the run's claims, and the watch of sandbox pods. Until the claim is ready,
the controller may replace a dead pod; later a second pod is a second sandbox.
"""

from __future__ import annotations

import time
from typing import Final

from taxtui.errors import ExecFailed, SandboxLost
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.lifecycle import Usage
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes.api import PODS
from taxtui.substrates.kubernetes.claim import CLAIMS, SANDBOXES, Claim
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.pod import Metadata, Pod
from taxtui.substrates.kubernetes.sandbox import KubernetesSandbox
from taxtui.substrates.kubernetes.watch import ObjectFollower, ObjectWatch

ADOPTED: Final = "adopted"
"""Milestone: the claim got a sandbox from the pool."""
MADE: Final = "made"
"""Milestone: the pool was empty, and the controller makes a sandbox for the claim."""


class ClaimedSandbox(KubernetesSandbox):
    """A claim, and the pod of the claim."""

    kind = CLAIMS

    _claims: ObjectWatch[Claim]
    _claim: Claim | None = None
    _suspended = False  # or about to be, by taxtui
    _operated = False  # a suspension in the claim's status may be taxtui's own
    _claim_gone = False

    def follow_claim(self, claims: ObjectWatch[Claim]) -> None:
        """Begin to follow the future claim of this name, before the request for the claim."""
        self._claims = claims
        claims.follow(self.name, ObjectFollower(self.claimed, self.unclaimed, self.unwatched))

    def forget(self) -> None:
        self._claims.unfollow(self.name)
        super().forget()

    # ------------------------------------------------------------------------------------------- reports of the watches

    def claimed(self, claim: Claim, at_ns: int, resolution_ns: int) -> None:
        """The claim is now in this state."""
        before, self._claim = self._claim.pod if self._claim else "", claim
        if claim.pod and claim.pod != before and not self._ready:
            self._marks(ADOPTED if claim.warm else MADE, at_ns=at_ns, resolution_ns=resolution_ns)
            if claim.pod != self._runner.pod:
                self._take(claim.pod)
        if claim.ready and not self._ready and not self._suspended:
            self._ready = True
            self._marks("ready", at_ns=at_ns, resolution_ns=resolution_ns)
        self._notify()

    def unclaimed(self) -> None:
        """The claim is gone."""
        self._claim_gone = True
        self._notify()

    def _take(self, pod: str) -> None:
        """Follow the pod of this name as the claim's pod."""
        self._pod = self._first_state = None
        self._reached.clear()
        self._gone = False
        if seen := self._follow(pod):
            self.changed(seen, time.monotonic_ns(), 0)

    def changed(self, now: Pod, at_ns: int, resolution_ns: int) -> None:
        """As ``KubernetesSandbox.changed``; the controller may replace the pod until the claim is ready."""
        if not self._ready or self._first_state is None:
            self._first_state = now
        self._gone = False
        super().changed(now, at_ns, resolution_ns)

    def _nothing_left(self) -> bool:
        return self._claim_gone and (self._pod is None or self._gone)

    def _lost(self) -> str | None:
        if self._claim_gone:
            return "was deleted with the claim"
        if self._suspended:
            return "is suspended"
        if self._claim and (ended := self._claim.ended()) and not (self._operated and self._claim.suspended):
            return f"ended with the claim: {ended}"
        if not self._ready:
            return None
        if self._first_state and self._pod and _restarts(self._pod) > _restarts(self._first_state):
            return "was restarted"
        return super()._lost()

    # ------------------------------------------------------------------------------------------------------- ready

    def _refusal(self) -> str | None:
        refused = self._claim and self._claim.refused()
        return f"the claim gets no sandbox: {refused}" if refused else super()._refusal()

    async def _obstacle(self) -> str:
        """The pod's last warning, else the claim's reason."""
        return await super()._obstacle() or (self._claim or Claim(self._about)).waits()

    # --------------------------------------------------------------------------------------------------- suspension

    async def suspend(self, marks: Marks) -> None:
        """Delete the pod and keep the volumes, by the sandbox's operating mode. Returns when the pod is gone.

        Source: ``spec.operatingMode`` in ``sandbox_types.go`` (kubernetes-sigs/agent-sandbox, v1beta1, KEP 694).
        """
        if not self._suspended:
            self._suspended = self._operated = True
            self._ready = False
            self._notify()
        await self._operate("Suspended")
        while True:
            self._news.clear()
            if self._claim_gone:
                raise SandboxLost("the pod was deleted with the claim")
            if refusal := self._refusal():
                raise ExecFailed(refusal)
            if self._claim and not self._claim.ready and await self._has_no_pod():
                return
            await self._news.wait()

    async def _has_no_pod(self) -> bool:
        """Whether the pod is gone; a request looks if the watch has seen no pod since the last resume."""
        if self._pod is not None:
            return self._gone
        try:
            return not await self._api.exists(PODS, Metadata(name=self._runner.pod))
        except ApiRefused as error:
            raise error.as_error(ExecFailed, "the pod can't be read") from error

    async def resume(self, marks: Marks) -> None:
        """Let the controller create a new pod with the same volumes; return when the pod is ready."""
        if self._suspended:
            if not (self._gone and self._claim and not self._claim.ready):  # a cancelled suspension
                await self.suspend(marks)
            self._suspended = False
            self._take(self._runner.pod)
        if not self._ready:
            await self._operate("Running")
        await self._wait_ready(marks)

    async def usage(self) -> Usage:
        """Unknown: a suspended sandbox has no pod."""
        return Usage()

    async def _operate(self, mode: str) -> None:
        """Set the operating mode of the sandbox, ``Suspended`` or ``Running``; sandbox and pod have one name."""
        request = self._api.patch(SANDBOXES, self._runner.pod, {"spec": {"operatingMode": mode}})
        try:
            await finish_despite_cancel(request)
        except ApiRefused as error:
            if error.status == 404:
                raise SandboxLost("the sandbox no longer exists") from error
            raise error.as_error(ExecFailed, f"the sandbox cannot become {mode}") from error


def _restarts(pod: Pod) -> int:
    return sum(container.restart_count for container in pod.status.container_statuses or ())
