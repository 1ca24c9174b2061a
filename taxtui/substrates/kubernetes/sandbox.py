"""Pods as sandboxes: state by the run's watch, commands, and removal."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from taxtui.errors import CreateFailed, ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.shell.framed_shell import FramedShell
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.kubernetes import failure
from taxtui.substrates.kubernetes.api import PODS, ClusterApi, ObjectKind, remove
from taxtui.substrates.kubernetes.exec import PodExec
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.pod import MILLISECOND_NS, ApiObject, Metadata, Pod
from taxtui.substrates.kubernetes.watch import ObjectFollower, ObjectWatch

QUIET_S: Final = 3.0
LONGEST_QUIET_S: Final = 24.0
"""Wait before the events of a slow pod are read for the reason: at first, and at most."""
LOST_S: Final = 1.5
"""Wait for a pod status that explains a broken connection."""
KILLED: Final = 128 + 9
PULL_S: Final = 1.0
"""The events of a pod with a faster start are not read: a request less per pod with a cached image."""
REPLACED: Final = "was replaced by another pod of the same name"


class Reached(NamedTuple):
    """When the watch saw a step of a pod."""

    at_ns: int  # monotonic
    resolution_ns: int  # the step may be earlier by up to this


class KubernetesSandbox:
    """The pod of a sandbox, followed by a watch."""

    kind: ClassVar[ObjectKind[Any]] = PODS
    """The object to create and to remove."""

    def __init__(
        self,
        name: str,
        api: ClusterApi,
        options: KubernetesOptions,
        alive: set[str],
        marks: Marks,
        runner: PodExec,
        pods: ObjectWatch[Pod],
        grace_s: int,
    ) -> None:
        """Begin to follow the future pod of this name.

        Args:
            alive: the names of existing sandboxes.
            runner: of commands, here for this pod.
            grace_s: the grace period of the pod.
        """
        self.name = name
        self._api = api
        self._options = options
        self._alive = alive
        self._marks = marks
        self._runner = runner
        self._pods = pods
        self._grace_s = grace_s
        self._about: Metadata  # of the object to remove
        self._first_state: Pod | None = None  # of the pod that is the sandbox
        self._pod: Pod | None = None  # the last known state
        self._reached: dict[str, Reached] = {}
        self._ready = self._gone = self._replaced = False
        self._removed = asyncio.Event()
        self._news = asyncio.Event()
        self._blind: ApiRefused | None = None
        self._pull_asked = False
        self._follow(name)

    def accepted(self, created: ApiObject) -> None:
        """The control plane has accepted the object."""
        self._alive.add(self.name)
        self._marks("accepted")
        self._about = created.metadata
        if isinstance(created, Pod):
            self._first_state = created

    def forget(self) -> None:
        """Stop following the object, which is gone or was never made."""
        self._pods.unfollow(self._runner.pod)
        self._alive.discard(self.name)

    def _follow(self, pod: str) -> Pod | None:
        """Follow the pod of this name from now on; return its last known state."""
        self._pods.unfollow(self._runner.pod)
        self._runner.pod = pod
        return self._pods.follow(pod, ObjectFollower(self.changed, self.deleted, self.unwatched))

    # ----------------------------------------------------------------------------------------- reports of the watch

    def changed(self, now: Pod, at_ns: int, resolution_ns: int) -> None:
        """The pod has a new state."""
        if self._first_state is not None and now.metadata.uid != self._first_state.metadata.uid:
            self._replaced = True
            self._notify()
            return
        self._pod = now
        if now.spec.node_name and not self._marks.node:
            self._marks.on(now.spec.node_name)
        for mark in now.reached():
            if mark not in self._reached:
                self._reached[mark] = Reached(at_ns, resolution_ns)
                if self.kind is PODS:  # a claim has other milestones
                    self._ready = self._ready or mark == "ready"
                    self._marks(mark, at_ns=at_ns, resolution_ns=resolution_ns)
        self._notify()

    def deleted(self) -> None:
        """The pod is gone."""
        self._gone = True
        self._notify()

    def unwatched(self, error: ApiRefused) -> None:
        """The watch has ended for good."""
        self._blind = error
        self._news.set()

    def _notify(self) -> None:
        self._news.set()
        if self._nothing_left():
            self._removed.set()
        if self._lost():
            self._runner.hang_up()

    def _nothing_left(self) -> bool:
        return self._gone

    def _lost(self) -> str | None:
        if self._gone:
            return "was deleted"
        if self._replaced:
            return REPLACED
        return failure.lost(self._pod) if self._pod else None

    # ------------------------------------------------------------------------------------------------------- ready

    def _refusal(self) -> str | None:
        """The reason why this sandbox will never be ready."""
        if self._blind:
            return f"the {self.kind.noun} can't be watched: {self._blind}"
        if blocked := self._pod and failure.blocked(self._pod):
            return f"the container can't start: {blocked}"
        return None

    async def _obstacle(self) -> str:
        """The cluster's reason why the pod is not ready yet."""
        return await self._api.last_warning(self._first_state.metadata) if self._first_state else ""

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``; without a node or without a started container, ``CreateFailed``."""
        self._marks = marks
        try:
            await self._wait_ready(marks)
        finally:
            self._report_outage()

    def _report_outage(self) -> None:
        if outage_s := self._api.access.take_outage_s():
            self._marks.notice(
                f"the API server did not answer for at least {outage_s:.0f} s; "
                "cold starts and clean-ups during the outage include the wait"
            )

    async def _wait_ready(self, marks: Marks) -> None:
        patience_ends = time.monotonic() + self._options.unschedulable_s
        quiet_s = QUIET_S
        ask_at = time.monotonic() + quiet_s
        while True:
            self._news.clear()
            if lost := self._lost():
                raise SandboxLost(f"the pod {lost}")
            if self._ready:
                return
            if refusal := self._refusal():
                raise CreateFailed(refusal)
            stuck = self._pod and failure.unschedulable(self._pod)
            left_s = patience_ends - time.monotonic() if stuck else math.inf
            if left_s <= 0:
                raise CreateFailed(f"no node takes the pod: {stuck}")
            if time.monotonic() >= ask_at:
                quiet_s = min(LONGEST_QUIET_S, 2 * quiet_s)
                ask_at = time.monotonic() + quiet_s
                if obstacle := await self._obstacle():
                    marks.obstructed(obstacle)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, ask_at - time.monotonic())):
                    await self._news.wait()

    # -------------------------------------------------------------------------------------------- commands

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``, by a new websocket."""
        if lost := self._lost():
            raise SandboxLost(f"the pod {lost}")
        began = time.monotonic_ns()
        async with self._explained("exec"):
            result = await self._runner.run(command)
        if result.exit_code == KILLED:  # by the command, or with the whole container?
            ended = time.monotonic_ns()
            if lost := await self.lost_soon():
                raise SandboxLost(f"the pod {lost}")
            return msgspec.structs.replace(result, started_ns=began, ended_ns=ended)
        return result

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``: one websocket for all commands."""
        async with self._explained("opening a shell"):
            return await FramedShell(await self._runner.shell(), explain=self._reason).open()

    # -------------------------------------------------------------------------------------------------- image pull

    async def _mark_pull(self) -> None:
        """Mark ``pulling`` and ``pulled`` if the kubelet had to pull the image.

        Only the duration is the kubelet's. The watch has two bounds: the pull lies between "sandbox ready" (before
        Kubernetes 1.29 "scheduled") and "running". Both marks are as late as possible; the resolution is the rest.
        """
        scheduled, runs = self._reached.get("scheduled"), self._reached.get("running")
        if self._pull_asked or self._first_state is None or not scheduled or not runs:
            return
        if runs.at_ns - scheduled.at_ns < PULL_S * 1e9:
            return
        self._pull_asked = True
        pull = await self._api.last_pull(self._first_state.metadata)
        if pull is None:
            return
        bounds = [bound for bound in (self._reached.get("sandbox ready"), scheduled) if bound is not None]
        rooms_ns = [runs.at_ns - (bound.at_ns - bound.resolution_ns) for bound in bounds]
        room_ns = next((room_ns for room_ns in rooms_ns if pull.took_ns <= room_ns), None)
        if room_ns is None:  # the events contradict the watch
            return
        coarse_ns = room_ns - pull.took_ns + MILLISECOND_NS
        # With Always the kubelet reports "pulled" and the whole size even after a mere check of the image.
        size = None if self._options.pull_policy == "Always" else pull.image_bytes
        self._marks("pulling", at_ns=runs.at_ns - pull.took_ns, resolution_ns=coarse_ns)
        self._marks("pulled", at_ns=runs.at_ns, resolution_ns=coarse_ns, moved_bytes=size)

    # ---------------------------------------------------------------------------------------------------- failures

    @contextlib.asynccontextmanager
    async def _explained(self, doing: str) -> AsyncIterator[None]:
        """Raise the reason of a failure."""
        try:
            yield
        except ApiRefused as error:
            raise await self._reason(error.as_error(ExecFailed, doing)) from error
        except ExecTimeout:
            raise
        except (ExecFailed, SandboxLost) as error:
            raise await self._reason(ExecFailed(str(error))) from error

    async def _reason(self, error: SubstrateError) -> SubstrateError:
        """``SandboxLost`` if the pod has ended, else ``error``."""
        lost = await self.lost_soon() if isinstance(error, ExecFailed | SandboxLost) else None
        return SandboxLost(f"the pod {lost}") if lost else error

    async def lost_soon(self) -> str | None:
        """The reason why the pod takes no more commands, after a short wait for it; None without one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOST_S):
                while not (lost := self._lost()):
                    self._news.clear()
                    await self._news.wait()
                return lost
        if self._first_state is None:
            return None
        try:
            pod = await self._api.get(PODS, self._first_state.metadata.name)
            return failure.lost(pod) if pod.metadata.uid == self._first_state.metadata.uid else REPLACED
        except ApiRefused as error:
            return "is gone" if error.status == 404 else None

    # ----------------------------------------------------------------------------------------------------- removal

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: until the watch or a request reports the end of the object, and of a claim's pod.

        The events of the image pull are read meanwhile, so that neither commands nor the removal wait.
        """
        pull = asyncio.ensure_future(self._mark_pull())
        try:
            pod = "" if self.kind is PODS else self._runner.pod
            await remove(self._api, self.kind, self._about, self._grace_s, self._removed, pod)
        finally:
            pull.cancel()
            await asyncio.wait({pull})
            self._report_outage()
        self.forget()
