"""A pod that we made, as a sandbox: told by the run's watch what becomes of it, and removed until it is really gone."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import Final

from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, SandboxLost, SubstrateError, Throttled
from taxtui.sandboxes.kit import removal
from taxtui.sandboxes.kit.room import Room
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes import failure
from taxtui.substrates.kubernetes.api import PODS, ClusterApi
from taxtui.substrates.kubernetes.events import PodEvents
from taxtui.substrates.kubernetes.exec import PodExec
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.followed import FollowedPod
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.pod import Metadata, Pod
from taxtui.substrates.kubernetes.watch import ObjectWatch

QUIET_S: Final = 3.0
LONGEST_QUIET_S: Final = 24.0
"""How long a pod may take until its events are asked for the reason: at first, and at most between two times."""


class KubernetesSandbox(FollowedPod):
    """A pod, and what its watch has told."""

    _identity: Metadata

    def __init__(
        self,
        name: str,
        api: ClusterApi,
        events: PodEvents,
        runner: PodExec,
        watch: ObjectWatch[Pod],
        marks: Marks,
        options: KubernetesOptions,
        room: Room,
    ) -> None:
        """Begin to follow the pod of this name, which is about to be made."""
        super().__init__(api, events, marks, options)
        self.name = name
        self._watch = watch
        self._runner = runner
        self._room = room
        watch.follow(name, self)

    def made(self, pod: Metadata) -> None:
        """The control plane has accepted it."""
        self._room.taken(self.name)
        self._marks("accepted")
        self._identity = pod

    def forget(self) -> None:
        """Stop following it: it is gone, or was never made."""
        self._watch.unfollow(self.name)
        self._room.left(self.name)

    # -------------------------------------------------------------------------------------------- as a Sandbox

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``; a pod that no node takes or whose container can't start is a ``CreateFailed``."""
        self._marks = marks
        patience_ends = time.monotonic() + self._options.unschedulable_s
        quiet_s = QUIET_S
        ask_at = time.monotonic() + quiet_s
        while "ready" not in self._reached:
            self._news.clear()
            if lost := self._lost():
                raise SandboxLost(f"the pod {lost}")
            if self._blind:
                raise CreateFailed(f"the pod can't be watched: {self._blind}")
            if blocked := self._pod and failure.blocked(self._pod):
                raise CreateFailed(f"the container can't start: {blocked}")
            stuck = self._pod and failure.unschedulable(self._pod)
            left_s = patience_ends - time.monotonic() if stuck else math.inf
            if left_s <= 0:
                raise CreateFailed(f"no node takes the pod: {stuck}")
            if time.monotonic() >= ask_at:
                quiet_s = min(LONGEST_QUIET_S, 2 * quiet_s)
                ask_at = time.monotonic() + quiet_s
                if why := await self._events.last_warning(self._identity):
                    marks.obstructed(why)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, ask_at - time.monotonic())):
                    await self._news.wait()

    async def reset(self, marks: Marks) -> None:
        """Not offered: a pod's processes can't be told from those that its image started."""
        raise ExecFailed("kubernetes pods are made anew for each trial, not reset")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: until the watch, or a look, says that the object is gone."""
        async with self._asked_what_was_pulled():
            await remove(self._api, self._identity, self._options.grace_s, self._gone, look_s=removal.LOOK_S)
        self.forget()


async def remove(api: ClusterApi, pod: Metadata, grace_s: int, gone: asyncio.Event, *, look_s: float) -> None:
    """Delete exactly this pod, and return when its object is gone: the kubelet removes it after its processes.

    ``gone`` may be set by a watch; without one we look, at first after ``look_s``. Raises ``CleanupFailed``: no
    permission, or still there when its grace period and ``removal.REMOVE_S`` are over.
    """

    async def ask() -> bool:
        try:
            return await api.delete(PODS, pod, {"gracePeriodSeconds": grace_s})
        except ApiRefused as error:
            raise worth_repeating(error) from error

    async def ended() -> bool:
        try:
            return (await api.get(PODS, pod.namespace, pod.name)).metadata.uid != pod.uid
        except ApiRefused as error:
            if error.status == 404:
                return True
            raise worth_repeating(error) from error

    stuck = "its deletion was accepted but has not ended; look at its node and its finalizers"
    await removal.remove(f"pod {pod.name}", ask, ended, gone=gone, look_s=look_s, more_s=grace_s, stuck=stuck)


def worth_repeating(error: ApiRefused) -> SubstrateError:
    """``Throttled``, unless the refusal is final."""
    return CleanupFailed(str(error)) if error.final else Throttled(str(error), error.retry_after_s)
