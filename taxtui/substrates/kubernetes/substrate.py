"""Pods as sandboxes, through the SDK's asyncio client; exec by websocket, state by one watch per run."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Any, ClassVar, Final, Literal, Self

import msgspec
from kubernetes.aio.client import ApiClient

from taxtui.errors import CreateFailed, QuotaExceeded, SubstrateUnavailable, Throttled
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit import backoff, labels
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.room import Room
from taxtui.sandboxes.protocol import Availability, Capabilities, Found, Marks, Sandbox
from taxtui.substrates.kubernetes.api import PodApi
from taxtui.substrates.kubernetes.connect import Cluster, discover
from taxtui.substrates.kubernetes.events import PodEvents
from taxtui.substrates.kubernetes.exec import PodExec
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.manifest import manifest
from taxtui.substrates.kubernetes.options import KubernetesOptions, node_selector, tolerations
from taxtui.substrates.kubernetes.pod import Metadata, Pod
from taxtui.substrates.kubernetes.sandbox import KubernetesSandbox, remove
from taxtui.substrates.kubernetes.watch import PodWatch

PERMISSIONS: Final = (
    ("create", "pods"),
    ("get", "pods"),
    ("list", "pods"),
    ("watch", "pods"),
    ("delete", "pods"),
    ("get", "pods/exec"),  # what a websocket's GET is checked as
    ("create", "pods/exec"),  # what newer servers ask for besides
)
STAND_IN: Final = "standin"
"""In the version of a server that only speaks the protocol: its latencies are nobody's."""


class KubernetesSubstrate:
    """Sandboxes are pods of one namespace."""

    name: ClassVar[str] = "kubernetes"
    Options: ClassVar[type[msgspec.Struct]] = KubernetesOptions

    def __init__(self, options: KubernetesOptions | None = None) -> None:
        """Take the options; nothing is contacted yet. Raises ``UsageError``."""
        self._options = options or KubernetesOptions()
        node_selector(self._options.node_selector)
        tolerations(self._options.tolerations)
        self.capabilities = Capabilities(bash=self._options.shell == "bash")
        self.variant = self._options.variant
        self.provenance: Literal["measured", "stand_in"] = "measured"
        self._watches: dict[str, PodWatch] = {}
        self._client: Any = None
        self._room = Room()

    async def __aenter__(self) -> Self:
        """Find the cluster and say hello. Raises ``SubstrateUnavailable``."""
        self._cluster: Cluster = await discover(self._options.kubeconfig, self._options.context)
        self._namespace = self._options.namespace or self._cluster.namespace
        self._client = ApiClient(self._cluster.configuration)
        self._api = PodApi(self._client)
        self._events = PodEvents(self._api)
        try:
            server, _ = await self._api.version()
        except BaseException as error:
            await self._hang_up()
            if isinstance(error, ApiRefused):
                raise SubstrateUnavailable(f"kubernetes: {error}", fix="try: kubectl version") from error
            raise
        # Or aiohttp would send an exec, being a GET, again where its connection breaks, and run its command twice.
        self._client.rest_client.pool_manager._retry_connection = False
        if STAND_IN in server:
            self.provenance = "stand_in"
        self._renewal = asyncio.get_running_loop().create_task(self._cluster.stay_authenticated())
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Stop watching and hang up."""
        self._renewal.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._renewal
        for watch in self._watches.values():
            await watch.close()
        self._watches.clear()
        await self._hang_up()

    async def _hang_up(self) -> None:
        client, self._client = self._client, None
        await client.close()

    async def check(self) -> Availability:
        """Version, permissions and quota, as the API server tells them; makes nothing."""
        if self._client is None:
            try:
                async with KubernetesSubstrate(self._options) as opened:
                    return await opened.check()
            except SubstrateUnavailable as error:
                return Availability.refused(error, "see docs/substrates/kubernetes.md")
        try:
            server, latency_ns = await self._api.version()
            allowed = [await self._api.may(self._namespace, verb, what) for verb, what in PERMISSIONS]
        except ApiRefused as error:
            return Availability(ok=False, detail=f"kubernetes: {error}", fix="try: kubectl auth whoami")
        missing = ", ".join(f"{verb} {what}" for (verb, what), ok in zip(PERMISSIONS, allowed, strict=True) if not ok)
        try:
            quota = await self._api.quota(self._namespace)
        except ApiRefused:
            quota = {"quota": "unknown: no permission to list resourcequotas"}
        events = await self._may_read_events()
        image, _, digest = self._options.image.partition("@")
        return Availability(
            ok=not missing,
            detail=f"not allowed in namespace {self._namespace}: {missing}" if missing else f"ready, {server}",
            fix="apply the role of docs/substrates/kubernetes.md" if missing else "",
            version=server,
            image=digest or image,
            cache="node" if self._options.pull_policy == "Never" else "unknown",
            holds_fixtures=bool(self._options.fixtures),
            limits="requests = limits for CPU and memory; processes as the kubelet limits them",
            latency_ns=latency_ns,
            facts={
                "kubernetes_sdk": version("kubernetes"),
                "image_reference": self._options.image,
                "network": "the pod network, unless a NetworkPolicy selects taxtui.network=none",
                "events": "read of stuck pods and pulls" if events else "may not be read: a stuck pod says less",
                **quota,
            },
        )

    async def _may_read_events(self) -> bool:
        with contextlib.suppress(ApiRefused):
            return await self._api.may(self._namespace, "list", "events")
        return False

    async def create(self, spec: SandboxSpec, marks: Marks) -> Sandbox:
        """As ``Substrate.create``; the run's watch begins with its first pod, and anew after it has ended."""
        if spec.acquire != "create":
            raise CreateFailed(f"kubernetes makes every pod anew; acquire={spec.acquire} is not possible")
        run = spec.labels.get(LABEL_RUN, "")
        watch = self._watches.get(run)
        if watch is None or watch.ended:
            watch = self._watches[run] = PodWatch(self._api, self._namespace, f"{LABEL_RUN}={run}")
        runner = PodExec(self._client, self._api.access, self._namespace, spec.name, self._options.shell)
        sandbox = KubernetesSandbox(spec.name, self._api, self._events, runner, watch, marks, self._options, self._room)
        try:
            pod = await self._make(spec, marks)
        except BaseException:
            sandbox.forget()
            raise
        sandbox.made(pod.metadata)
        return sandbox

    async def _make(self, spec: SandboxSpec, marks: Marks) -> Pod:
        """Ask for the pod; where our own ones use up the quota, again when one of them has gone.

        Raises ``Throttled`` where none has gone for ``room.HOLD_S``, and ``QuotaExceeded`` where none of ours stands.
        """
        wanted = manifest(self._options, spec)
        while True:
            freed, began_ns = self._room.next(), time.monotonic_ns()
            try:
                return await self._api.create(self._namespace, wanted, marks)
            except ApiRefused as error:
                refusal = error.as_error(CreateFailed, "the pod could not be created")
                full = isinstance(refusal, QuotaExceeded) and (self._room.standing or freed.is_set())
                if not full:
                    raise refusal from error
            marks.notice(f"{refusal.problem}; waits until one of {self._room.standing} sandboxes has gone")
            if not await self._room.wait(freed):
                raise Throttled(f"{refusal.problem}; none of {self._room.standing} sandboxes has gone", 0.0)
            marks.queued(time.monotonic_ns() - began_ns)

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``: in every namespace where listing is allowed, else in ours."""
        selector = LABEL_RUN if run_id is None else f"{LABEL_RUN}={run_id}"
        try:
            pods, now_s = await backoff.find(lambda: self._list(None, selector))
        except SubstrateUnavailable as error:
            if not (isinstance(error.__cause__, ApiRefused) and error.__cause__.status == 403):
                raise
            pods, now_s = await backoff.find(lambda: self._list(self._namespace, selector))
        return [_found(pod, now_s) for pod in pods]

    async def _list(self, namespace: str | None, selector: str) -> tuple[list[Pod], float]:
        try:
            pods, _, now_s = await self._api.list(namespace, selector)
        except ApiRefused as error:
            said = f"kubernetes: pods can't be listed: {error}"
            raise (SubstrateUnavailable(said) if error.final else Throttled(said, error.retry_after_s)) from error
        return pods, now_s

    async def reap(self, found: Found) -> None:
        """As ``Substrate.reap``."""
        namespace, _, uid = found.handle.partition("/")
        pod = Metadata(name=found.name, namespace=namespace, uid=uid)
        await remove(self._api, pod, self._options.grace_s, asyncio.Event(), look_s=0.1)


def _found(pod: Pod, now_s: float) -> Found:
    about = pod.metadata
    made_s = datetime.fromisoformat(about.creation_timestamp).timestamp() if about.creation_timestamp else now_s
    handle = f"{about.namespace}/{about.uid}"
    return labels.found(about.labels or {}, name=about.name, handle=handle, age_s=now_s - made_s)
