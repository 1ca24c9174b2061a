"""One pod as a sandbox: told by the run's watch what becomes of it, and removed until it is really gone."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import Final, NamedTuple

from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, ExecTimeout, SandboxLost, SubstrateError, Throttled
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit import removal
from taxtui.sandboxes.kit.framed_shell import FramedShell
from taxtui.sandboxes.kit.room import Room
from taxtui.sandboxes.kit.session import ExplainedSession
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.kubernetes import failure
from taxtui.substrates.kubernetes.api import PodApi
from taxtui.substrates.kubernetes.events import MILLISECOND_NS, PodEvents
from taxtui.substrates.kubernetes.exec import PodExec
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.pod import Metadata, Pod
from taxtui.substrates.kubernetes.watch import PodWatch

LOST_S: Final = 1.5
"""A connection breaks before the pod's status says why: how long we wait for the reason."""
KILLED: Final = 128 + 9
QUIET_S: Final = 3.0
LONGEST_QUIET_S: Final = 24.0
"""How long a pod may take until its events are asked for the reason: at first, and at most between two times."""
PULL_S: Final = 1.0
"""A pod that ran sooner after its node took it is not asked what it pulled: one list less for each warm pod."""


class Reached(NamedTuple):
    """When our watch saw that a pod had come somewhere."""

    at_ns: int  # monotonic
    resolution_ns: int  # how much earlier it may have been


class KubernetesSandbox:
    """A pod, and what its watch has told."""

    def __init__(
        self,
        name: str,
        api: PodApi,
        events: PodEvents,
        runner: PodExec,
        watch: PodWatch,
        marks: Marks,
        options: KubernetesOptions,
        room: Room,
    ) -> None:
        """Begin to follow the pod of this name, which is about to be made."""
        self.name = name
        self._api = api
        self._events = events
        self._watch = watch
        self._marks = marks
        self._options = options
        self._pod: Pod | None = None
        self._reached: dict[str, Reached] = {}
        self._gone = asyncio.Event()
        self._news = asyncio.Event()
        self._blind: ApiRefused | None = None
        self._pull_asked = False
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

    # ------------------------------------------------------------------------------------------- what the watch says

    def changed(self, pod: Pod, at_ns: int, resolution_ns: int) -> None:
        """As ``Follower.changed``."""
        self._pod = pod
        if pod.spec.node_name and not self._marks.node:
            self._marks.on(pod.spec.node_name)
        for mark in pod.reached():
            if mark not in self._reached:
                self._reached[mark] = Reached(at_ns, resolution_ns)
                self._marks(mark, at_ns=at_ns, resolution_ns=resolution_ns)
        self._tell()

    def deleted(self, at_ns: int) -> None:
        """As ``Follower.deleted``."""
        self._gone.set()
        self._tell()

    def unwatched(self, error: ApiRefused) -> None:
        """As ``Follower.unwatched``."""
        self._blind = error
        self._news.set()

    def _tell(self) -> None:
        self._news.set()
        if self._lost():
            self._runner.hang_up()

    def _lost(self) -> str | None:
        return "was deleted" if self._gone.is_set() else failure.lost(self._pod) if self._pod else None

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

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: a websocket of its own."""
        if lost := self._lost():
            raise SandboxLost(f"the pod {lost}")
        began = time.monotonic_ns()
        try:
            result = await self._runner.run(command)
        except ApiRefused as error:
            raise await self._reason(error.as_error(ExecFailed, "exec")) from error
        except ExecTimeout:
            raise
        except ExecFailed as error:
            raise await self._reason(error) from error
        if result.exit_code == KILLED:  # by the command itself, or with the whole container?
            ended = time.monotonic_ns()
            if lost := await self.lost_soon():
                raise SandboxLost(f"the pod {lost}")
            return ExecResult(result.exit_code, result.stdout, result.stderr, began, ended)
        return result

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``: one websocket for all commands."""
        try:
            shell = await FramedShell.open(await self._runner.shell())
            return ExplainedSession(shell, self._reason)
        except ApiRefused as error:
            raise await self._reason(error.as_error(ExecFailed, "opening a shell")) from error
        except SandboxLost as error:
            raise await self._reason(ExecFailed(str(error))) from error
        except ExecTimeout:
            raise
        except ExecFailed as error:
            raise await self._reason(error) from error

    async def reset(self, marks: Marks) -> None:
        """Not offered: a pod's processes can't be told from those that its image started."""
        raise ExecFailed("kubernetes pods are made anew for each trial, not reset")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: until the watch, or a look, says that the object is gone."""
        # Events outlive their pod, and nothing is measured in it any more: asking delays no command, nor the removal.
        pull = asyncio.ensure_future(self._mark_pull())
        try:
            await remove(self._api, self._identity, self._options.grace_s, self._gone, look_s=removal.LOOK_S)
        finally:
            pull.cancel()
            await asyncio.wait({pull})
        self.forget()

    async def _mark_pull(self) -> None:
        """Marks ``pulling`` and ``pulled``, as far apart as the kubelet says, where it had to pull the image.

        Only that duration is the kubelet's. The pull lay between "scheduled" and "running" as our watch saw them; it is
        put at the end of that time, and what is left of the time is how much earlier it may have been.
        """
        node, runs = self._reached.get("scheduled"), self._reached.get("running")
        if self._pull_asked or not node or not runs or runs.at_ns - node.at_ns < PULL_S * 1e9:
            return
        self._pull_asked = True
        pull = await self._events.last_pull(self._identity)
        room_ns = runs.at_ns - (node.at_ns - node.resolution_ns)
        if pull is None or pull.took_ns > room_ns:  # what cannot have been is not recorded
            return
        coarse_ns = room_ns - pull.took_ns + MILLISECOND_NS
        # With Always the kubelet says "pulled", and the whole size, of an image that it only had to check.
        size = None if self._options.pull_policy == "Always" else pull.image_bytes
        self._marks("pulling", at_ns=runs.at_ns - pull.took_ns, resolution_ns=coarse_ns)
        self._marks("pulled", at_ns=runs.at_ns, resolution_ns=coarse_ns, moved_bytes=size)

    # ----------------------------------------------------------------------------------------------------- what broke

    async def _reason(self, error: SubstrateError) -> SubstrateError:
        """``error``, or ``SandboxLost`` where the pod's own fate explains it."""
        lost = await self.lost_soon() if isinstance(error, ExecFailed | SandboxLost) else None
        return SandboxLost(f"the pod {lost}") if lost else error

    async def lost_soon(self) -> str | None:
        """Why no command can run in it any more, waiting a little for the news; None where it seems well."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOST_S):
                while not (lost := self._lost()):
                    self._news.clear()
                    await self._news.wait()
                return lost
        try:
            return failure.lost(await self._api.get(self._identity.namespace, self.name))
        except ApiRefused as error:
            return "is gone" if error.status == 404 else None


async def remove(api: PodApi, pod: Metadata, grace_s: int, gone: asyncio.Event, *, look_s: float) -> None:
    """Delete exactly this pod, and return when its object is gone: the kubelet removes it after its processes.

    ``gone`` may be set by a watch; without one we look, at first after ``look_s``. Raises ``CleanupFailed``: no
    permission, or still there when its grace period and ``removal.REMOVE_S`` are over.
    """

    async def ask() -> bool:
        try:
            return await api.delete(pod, grace_s)
        except ApiRefused as error:
            raise _worth_repeating(error) from error

    async def ended() -> bool:
        try:
            return (await api.get(pod.namespace, pod.name)).metadata.uid != pod.uid
        except ApiRefused as error:
            if error.status == 404:
                return True
            raise _worth_repeating(error) from error

    stuck = "its deletion was accepted but has not ended; look at its node and its finalizers"
    await removal.remove(f"pod {pod.name}", ask, ended, gone=gone, look_s=look_s, more_s=grace_s, stuck=stuck)


def _worth_repeating(error: ApiRefused) -> SubstrateError:
    """``Throttled``, unless the refusal is final."""
    return CleanupFailed(str(error)) if error.final else Throttled(str(error), error.retry_after_s)
