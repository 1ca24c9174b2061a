"""A pod that a watch tells of, and the commands that run in it: what made it, or had it made, is elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.framed_shell import FramedShell
from taxtui.sandboxes.kit.session import ExplainedSession
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.kubernetes import failure
from taxtui.substrates.kubernetes.api import PODS, ClusterApi
from taxtui.substrates.kubernetes.events import MILLISECOND_NS, PodEvents
from taxtui.substrates.kubernetes.exec import PodExec
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.pod import Metadata, Pod

LOST_S: Final = 1.5
"""A connection breaks before the pod's status says why: how long we wait for the reason."""
KILLED: Final = 128 + 9
PULL_S: Final = 1.0
"""A pod that ran sooner after its node took it is not asked what it pulled: one list less for each warm pod."""
REPLACED: Final = "was replaced by another of its name"


class Reached(NamedTuple):
    """When our watch saw that a pod had come somewhere."""

    at_ns: int  # monotonic
    resolution_ns: int  # how much earlier it may have been


class FollowedPod:
    """A pod, and what its watch has told; a follower of ``ObjectWatch``."""

    def __init__(self, api: ClusterApi, events: PodEvents, marks: Marks, options: KubernetesOptions) -> None:
        """Nothing is known of it yet, not even its name; ``_runner`` is set with that."""
        self._api = api
        self._events = events
        self._marks = marks
        self._options = options
        self._pull_asked = False
        self._runner: PodExec
        self._identity: Metadata | None = None
        self._pod: Pod | None = None
        self._reached: dict[str, Reached] = {}
        self._gone = asyncio.Event()
        self._news = asyncio.Event()
        self._replaced = False
        self._blind: ApiRefused | None = None

    # ------------------------------------------------------------------------------------------- what the watch says

    def changed(self, now: Pod, at_ns: int, resolution_ns: int) -> None:
        """As ``ObjectFollower.changed``."""
        if self._identity is not None and now.metadata.uid != self._identity.uid:
            self._replaced = True
            self._tell()
            return
        self._pod = now
        if now.spec.node_name and not self._marks.node:
            self._marks.on(now.spec.node_name)
        for mark in now.reached():
            if mark not in self._reached:
                self._reached[mark] = Reached(at_ns, resolution_ns)
                self._passed(mark, at_ns, resolution_ns)
        self._tell()

    def _passed(self, mark: str, at_ns: int, resolution_ns: int) -> None:
        self._marks(mark, at_ns=at_ns, resolution_ns=resolution_ns)

    def deleted(self, at_ns: int) -> None:
        """As ``ObjectFollower.deleted``."""
        self._gone.set()
        self._tell()

    def unwatched(self, error: ApiRefused) -> None:
        """As ``ObjectFollower.unwatched``."""
        self._blind = error
        self._news.set()

    def _tell(self) -> None:
        self._news.set()
        if self._lost():
            self._runner.hang_up()

    def _lost(self) -> str | None:
        if self._gone.is_set():
            return "was deleted"
        if self._replaced:
            return REPLACED
        return failure.lost(self._pod) if self._pod else None

    # -------------------------------------------------------------------------------------------- commands

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

    # -------------------------------------------------------------------------------------------- what it pulled

    @contextlib.asynccontextmanager
    async def _asked_what_was_pulled(self) -> AsyncIterator[None]:
        """Ask for it while the pod is removed.

        Events outlive their pod, and nothing is measured in it any more: that delays no command, nor the removal.
        """
        pull = asyncio.ensure_future(self._mark_pull())
        try:
            yield
        finally:
            pull.cancel()
            await asyncio.wait({pull})

    async def _mark_pull(self) -> None:
        """Marks ``pulling`` and ``pulled``, as far apart as the kubelet says, where it had to pull the image.

        Only that duration is the kubelet's. The pull lay between "scheduled" and "running" as our watch saw them; it is
        put at the end of that time, and what is left of the time is how much earlier it may have been.
        """
        node, runs = self._reached.get("scheduled"), self._reached.get("running")
        if self._pull_asked or self._identity is None or not node or not runs or runs.at_ns - node.at_ns < PULL_S * 1e9:
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
        if self._identity is None:
            return None
        try:
            pod = await self._api.get(PODS, self._identity.namespace, self._identity.name)
            return failure.lost(pod) if pod.metadata.uid == self._identity.uid else REPLACED
        except ApiRefused as error:
            return "is gone" if error.status == 404 else None
