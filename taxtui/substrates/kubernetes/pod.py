"""What we look at of a pod, and which marks its state proves."""

from __future__ import annotations

from typing import Any

import msgspec


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

    name: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()


class Status(Camel, frozen=True):
    """A pod's status."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None


class Spec(Camel, frozen=True):
    """Where a pod was put."""

    node_name: str | None = None


class Event(Camel, frozen=True):
    """Something that a component of the cluster tells about a pod."""

    reason: str | None = None
    message: str | None = None
    last_timestamp: str | None = None  # None where a newer kind of reporter fills ``event_time``
    event_time: str | None = None

    @property
    def when(self) -> str:
        """Its last occurrence, in a form that sorts."""
        return self.last_timestamp or self.event_time or ""


class Events(Camel, frozen=True):
    """A list of them."""

    items: list[Event] | None = None


class Pod(Camel, frozen=True):
    """What we look at of a pod."""

    metadata: Metadata
    status: Status = Status()
    spec: Spec = Spec()

    def reached(self) -> list[str]:
        """The marks that this state proves, in the order in which pods pass them."""
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
