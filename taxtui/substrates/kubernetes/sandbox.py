"""Pods as sandboxes: state by the run's watch, commands, and removal."""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any, ClassVar, Final, Generic, NamedTuple

from taxtui.errors import CreateFailed, ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.shell.framed_shell import FramedShell
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.kubernetes import failure
from taxtui.substrates.kubernetes.api import PODS, ClusterApi, Kept, ObjectKind
from taxtui.substrates.kubernetes.exec import PodExec
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.pod import MILLISECOND_NS, Metadata, Pod
from taxtui.substrates.kubernetes.watch import ObjectWatch

QUIET_S: Final = 3.0
LONGEST_QUIET_S: Final = 24.0
"""Wait before the events of a slow pod are read for the reason: at first, and at most."""
LOOK_S: Final = 1.0
"""Longest wait for news of a slow pod."""
LOST_S: Final = 1.5
"""Wait for a pod status that explains a broken connection."""
KILLED: Final = 128 + 9
PULL_S: Final = 1.0
"""The events of a pod with a faster start are not read: a request less per pod with a cached image."""


class Reached(NamedTuple):
    """When the watch saw a step of a pod."""

    at_ns: int  # monotonic
    resolution_ns: int  # the step may be earlier by up to this


class FollowedSandbox(ABC, Generic[Kept]):
    """A sandbox in a pod, and the object that the watch follows: the pod itself, or a claim."""

    kind: ClassVar[ObjectKind[Any]]
    noun: ClassVar[str]
    _runner: PodExec
    _about: Metadata  # of the followed object, once accepted

    def __init__(
        self,
        name: str,
        api: ClusterApi,
        watch: ObjectWatch[Kept],
        marks: Marks,
        options: KubernetesOptions,
        alive: set[str],
    ) -> None:
        """Begin to follow the future object of this name. ``alive``: the names of all existing sandboxes."""
        self.name = name
        self.grace_s: float = options.grace_s
        self._api = api
        self._watch = watch
        self._namespace = watch.namespace
        self._marks = marks
        self._options = options
        self._alive = alive
        self._first: Pod | None = None  # the pod before any command
        self._ended: str | None = None  # the reason why the pod takes no more commands, read from the pod
        self._gone = asyncio.Event()
        self._news = asyncio.Event()
        self._blind: ApiRefused | None = None
        watch.follow(name, self)

    def accepted(self, made: Kept) -> None:
        """The control plane has accepted the object."""
        self._alive.add(self.name)
        self._marks("accepted")
        self._about = made.metadata

    def forget(self) -> None:
        """Stop following the object, which is gone or was never made."""
        self._watch.unfollow(self.name)
        self._alive.discard(self.name)

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: until the watch or a request reports the end of the object."""
        try:
            await self._api.remove(self.kind, self._about, self.grace_s, self._gone)
        finally:
            self._report_outage()
        self.forget()

    # ----------------------------------------------------------------------------------------- reports of the watch

    @abstractmethod
    def changed(self, now: Kept, at_ns: int, resolution_ns: int) -> None:
        """The object has a new state."""

    def deleted(self) -> None:
        """The object is gone."""
        self._gone.set()
        self._notify()

    def unwatched(self, error: ApiRefused) -> None:
        """The watch has ended for good."""
        self._blind = error
        self._news.set()

    def _notify(self) -> None:
        self._news.set()
        if self._lost():
            self._runner.hang_up()

    @abstractmethod
    def _lost(self) -> str | None:
        """The reason why the pod takes no more commands, as far as the watch knows."""

    # ------------------------------------------------------------------------------------------------------- ready

    @abstractmethod
    def _is_ready(self) -> bool: ...

    def _refusal(self, waited_s: float) -> str | None:
        """The reason why this sandbox will never be ready."""
        return f"the {self.noun} can't be watched: {self._blind}" if self._blind else None

    async def _obstacle(self) -> str:
        """The cluster's reason why the pod is not ready yet."""
        return await self._api.last_warning(self._namespace, self._pod_name)

    @property
    def _pod_name(self) -> str:
        return self.name

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``; without a node or without a started container, ``CreateFailed``."""
        self._marks = marks
        began_s = time.monotonic()
        quiet_s, ask_s = QUIET_S, began_s + QUIET_S
        try:
            while True:
                self._news.clear()
                if lost := self._lost():
                    raise SandboxLost(f"the pod {lost}")
                if self._is_ready():
                    return
                if refusal := self._refusal(time.monotonic() - began_s):
                    raise CreateFailed(refusal)
                if time.monotonic() >= ask_s:
                    quiet_s = min(LONGEST_QUIET_S, 2 * quiet_s)
                    ask_s = time.monotonic() + quiet_s
                    if obstacle := await self._obstacle():
                        marks.obstructed(obstacle)
                    continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(LOOK_S, quiet_s)):
                        await self._news.wait()
        finally:
            self._report_outage()

    def _report_outage(self) -> None:
        if outage_s := self._api.access.take_outage_s():
            self._marks.notice(
                f"the API server did not answer for at least {outage_s:.0f} s; "
                "cold starts and clean-ups during the outage include the wait"
            )

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
            return ExecResult(result.exit_code, result.stdout, result.stderr, began, ended)
        return result

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``: one websocket for all commands."""
        async with self._explained("opening a shell"):
            return await FramedShell.open(await self._runner.shell(), explain=self._reason)

    async def reset(self, marks: Marks) -> None:
        raise ExecFailed("kubernetes cannot reset a pod")

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
        await self._read_pod()
        return self._lost()

    async def _read_pod(self) -> None:
        """Compare the pod with its first state: a later pod of the same name, or container, is another sandbox."""
        try:
            pod = await self._api.get(PODS, self._namespace, self._pod_name)
        except ApiRefused as error:
            if error.status == 404:
                self._ended = "is gone"
            return
        self._first = first = self._first or pod
        if pod.metadata.uid != first.metadata.uid:
            self._ended = "was replaced by another pod of the same name"
        else:
            self._ended = "was restarted" if pod.restarts > first.restarts else failure.lost(pod)
        self._notify()


class KubernetesSandbox(FollowedSandbox[Pod]):
    """A pod, made by taxtui."""

    kind = PODS
    noun = "pod"

    def __init__(self, runner: PodExec, *about: Any) -> None:
        """``about``: as ``FollowedSandbox``."""
        self._runner = runner
        self._pod: Pod | None = None
        self._reached: dict[str, Reached] = {}
        super().__init__(*about)

    def accepted(self, made: Pod) -> None:
        super().accepted(made)
        self._first = made

    def changed(self, now: Pod, at_ns: int, resolution_ns: int) -> None:
        self._pod = now
        if now.spec.node_name and not self._marks.node:
            self._marks.on(now.spec.node_name)
        for mark in now.reached():
            if mark not in self._reached:
                self._reached[mark] = Reached(at_ns, resolution_ns)
                self._marks(mark, at_ns=at_ns, resolution_ns=resolution_ns)
        self._notify()

    def _lost(self) -> str | None:
        if self._gone.is_set():
            return "was deleted"
        return self._ended or (failure.lost(self._pod) if self._pod else None)

    def _is_ready(self) -> bool:
        return "ready" in self._reached

    def _refusal(self, waited_s: float) -> str | None:
        if blocked := self._pod and failure.blocked(self._pod):
            return f"the container can't start: {blocked}"
        stuck = self._pod and failure.unschedulable(self._pod)
        if stuck and waited_s >= self._options.unschedulable_s:
            return f"no node takes the pod: {stuck}"
        return super()._refusal(waited_s)

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``. The events of the pull are read meanwhile: neither commands nor removal wait."""
        pull = asyncio.ensure_future(self._mark_pull())
        try:
            await super().destroy()
        finally:
            pull.cancel()
            await asyncio.wait({pull})

    async def _mark_pull(self) -> None:
        """Mark ``pulling`` and ``pulled`` if the kubelet had to pull the image.

        Only the duration is the kubelet's. The watch has two bounds: the pull lies between "sandbox ready" (before
        Kubernetes 1.29 "scheduled") and "running". Both marks are as late as possible; the resolution is the rest.
        """
        scheduled, runs = self._reached.get("scheduled"), self._reached.get("running")
        if "pulled" in self._reached or not scheduled or not runs or runs.at_ns - scheduled.at_ns < PULL_S * 1e9:
            return
        pull = await self._api.last_pull(self._namespace, self.name)
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
        self._reached["pulled"] = runs
        self._marks("pulling", at_ns=runs.at_ns - pull.took_ns, resolution_ns=coarse_ns)
        self._marks("pulled", at_ns=runs.at_ns, resolution_ns=coarse_ns, moved_bytes=size)
