"""What a pod's state means: which marks it proves, and why it will never run or does not run any more."""

from __future__ import annotations

from typing import Any, Final

import msgspec

_BLOCKED: Final = frozenset(
    {
        "ImagePullBackOff",  # the kubelet's second failure; a single ErrImagePull may be a hiccup
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "CrashLoopBackOff",
    }
)


class Camel(msgspec.Struct, rename="camel", frozen=True):
    """Base of what is decoded from the API's JSON; fields that are not named here are skipped."""


class Metadata(Camel, frozen=True):
    """Who an object is."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None


class Condition(Camel, frozen=True):
    """One of a pod's conditions."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None


class Stopped(Camel, frozen=True):
    """Why a container waits or has ended."""

    reason: str | None = None
    message: str | None = None


class ContainerState(Camel, frozen=True):
    """Exactly one of the three is set."""

    waiting: Stopped | None = None
    running: dict[str, Any] | None = None
    terminated: Stopped | None = None


class ContainerStatus(Camel, frozen=True):
    """One container of a pod."""

    state: ContainerState = ContainerState()


class Status(Camel, frozen=True):
    """A pod's status."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None


class Pod(Camel, frozen=True):
    """What we look at of a pod."""

    metadata: Metadata
    status: Status = Status()

    def reached(self) -> list[str]:
        """The marks that this state proves, in the order in which pods pass them."""
        true = {condition.type for condition in self.status.conditions or () if condition.status == "True"}
        running = any(container.state.running is not None for container in self.status.container_statuses or ())
        steps = {
            "scheduled": "PodScheduled" in true,
            "initialized": "Initialized" in true,
            "running": running,
            "ready": "Ready" in true,
        }
        return [name for name, seen in steps.items() if seen]

    def lost(self) -> str | None:
        """Why no command can run in it any more, or None."""
        disrupted = next((c for c in self.status.conditions or () if c.type == "DisruptionTarget"), None)
        ended = [c.state.terminated for c in self.status.container_statuses or () if c.state.terminated is not None]
        if self.status.phase not in ("Failed", "Succeeded") and not ended:
            if self.metadata.deletion_timestamp is None:
                return None
            return f"is being deleted ({disrupted.reason})" if disrupted else "is being deleted by someone else"
        reason = self.status.reason or (ended[0].reason if ended else None) or "for no given reason"
        return f"ended: {reason}" + (f", {self.status.message}" if self.status.message else "")

    def blocked(self) -> str | None:
        """Why its container cannot start, where waiting will not help, or None."""
        for container in self.status.container_statuses or ():
            waiting = container.state.waiting
            if waiting is not None and waiting.reason in _BLOCKED:
                return f"{waiting.reason}: {waiting.message or 'no further reason given'}"
        return None

    def unschedulable(self) -> str | None:
        """What the scheduler says while no node takes the pod, or None."""
        for condition in self.status.conditions or ():
            if condition.type == "PodScheduled" and condition.status == "False":
                return condition.message or condition.reason or "no reason given"
        return None
