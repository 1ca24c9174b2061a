"""Pods as sandboxes, through the SDK's asyncio client; exec by websocket, state by one watch per run."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Any, ClassVar, Final, Literal, Self

import msgspec
from kubernetes.aio.client import ApiClient

from taxtui.errors import CreateFailed, QuotaExceeded, SubstrateUnavailable, Throttled, UsageError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit import labels, retry
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.refusal import check_opened
from taxtui.sandboxes.protocol import Availability, Capabilities, Effective, Found, Marks, Sandbox
from taxtui.substrates.kubernetes import pool as pools
from taxtui.substrates.kubernetes.access import Room
from taxtui.substrates.kubernetes.api import PODS, ClusterApi, Kept, ObjectKind
from taxtui.substrates.kubernetes.claim import CLAIMS, FOREGROUND, SANDBOX_PODS, claim
from taxtui.substrates.kubernetes.claimed import ClaimedSandbox
from taxtui.substrates.kubernetes.connect import Cluster, discover
from taxtui.substrates.kubernetes.exec import PodExec
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.options import KubernetesOptions, node_selector, pull_secrets, tolerations
from taxtui.substrates.kubernetes.pod import LABEL_NETWORK, Metadata, manifest
from taxtui.substrates.kubernetes.pool import ClaimPool
from taxtui.substrates.kubernetes.removal import remove
from taxtui.substrates.kubernetes.sandbox import KubernetesSandbox
from taxtui.substrates.kubernetes.watch import ObjectWatch

RIGHTS: Final = (
    *((verb, "pods", "") for verb in ("create", "get", "list", "watch", "delete")),
    ("get", "pods/exec", ""),  # checked for the GET of a websocket
    ("create", "pods/exec", ""),  # checked by newer servers too
)
"""The rights for a measurement: verb, resource, API group."""
STAND_IN: Final = "standin"
"""Part of the version of an emulated server."""


class KubernetesSubstrate:
    """Sandboxes are pods of one namespace."""

    name: ClassVar[str] = "kubernetes"
    Options: ClassVar[type[msgspec.Struct]] = KubernetesOptions

    def __init__(self, options: KubernetesOptions | None = None) -> None:
        """Check the options. Raises ``UsageError``."""
        self._options = options or KubernetesOptions()
        node_selector(self._options.node_selector)
        tolerations(self._options.tolerations)
        pull_secrets(self._options.pull_secret)
        self.capabilities = Capabilities(
            deadline="provider",
            bash=self._options.shell == "bash",
            acquire=("create", "pool"),
            lifecycle=("suspend",) if self._options.suspend else (),
            suspend_loses=("processes", "sessions") if self._options.suspend else (),
        )
        self.variant = self._options.variant
        self.provenance: Literal["measured", "stand_in"] = "measured"
        self._watches: dict[tuple[str, str], ObjectWatch[Any]] = {}
        self._pools: dict[str, ClaimPool] = {}
        self._client: Any = None
        self._room = Room()

    async def __aenter__(self) -> Self:
        """Find the cluster and request the version. Raises ``SubstrateUnavailable``."""
        self._cluster: Cluster = await discover(self._options.kubeconfig, self._options.context)
        self._namespace = self._options.namespace or self._cluster.namespace
        self._client = ApiClient(self._cluster.configuration)
        self._api = ClusterApi(self._client)
        try:
            server, _ = await self._api.version()
        except BaseException as error:
            await self._hang_up()
            if isinstance(error, ApiRefused):
                raise SubstrateUnavailable(f"kubernetes: {error}", fix="try: kubectl version") from error
            raise
        # Else aiohttp would repeat an exec, a GET, after a broken connection, and run the command twice.
        self._client.rest_client.pool_manager._retry_connection = False
        if STAND_IN in server:
            self.provenance = "stand_in"
        self._renewal = asyncio.get_running_loop().create_task(self._cluster.stay_authenticated())
        return self

    async def __aexit__(self, *exc: object) -> None:
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
        """Version, permissions and quota by the API server; makes nothing."""
        if self._client is None:
            return await check_opened(KubernetesSubstrate(self._options), "see docs/substrates/kubernetes.md")
        try:
            server, latency_ns = await self._api.version()
            missing = await self._api.missing(self._namespace, RIGHTS)
        except ApiRefused as error:
            return Availability(ok=False, detail=f"kubernetes: {error}", fix="try: kubectl auth whoami")
        try:
            quota = await self._api.quota(self._namespace)
        except ApiRefused:
            quota = {"quota": "unknown: no permission to list resourcequotas"}
        events = await self._may_read_events()
        image, _, digest = self._options.image.partition("@")
        return Availability(
            ok=not missing,
            detail=f"not allowed in namespace {self._namespace!r}: {missing}" if missing else f"ready, {server}",
            fix="apply the role of docs/substrates/kubernetes.md" if missing else "",
            version=server,
            image=digest or image,
            cache="node" if self._options.pull_policy == "Never" else "unknown",
            holds_fixtures=bool(self._options.fixtures),
            limits="requests = limits for CPU and memory; processes as the kubelet limits them",
            effective=Effective(network=None if await self._network_denied() else "full"),
            latency_ns=latency_ns,
            facts={
                "kubernetes_sdk": version("kubernetes"),
                "image_reference": self._options.image,
                "network": "the pod network, unless a NetworkPolicy selects taxtui.network=none",
                "events": "read of stuck pods and pulls" if events else "may not be read: no reason for a stuck pod",
                **quota,
            },
        )

    async def _network_denied(self) -> bool:
        """Whether a NetworkPolicy denies egress to pods of tiers without network."""
        with contextlib.suppress(ApiRefused):
            return await self._api.denies_egress(self._namespace, {LABEL_NETWORK: "none"})
        return False

    async def _may_read_events(self) -> bool:
        with contextlib.suppress(ApiRefused):
            return await self._api.may(self._namespace, "list", "events")
        return False

    async def check_acquire(self, acquire: str, limits: Limits) -> None:
        """As ``ChecksAcquire.check_acquire``: the pool, its template and the rights."""
        if not acquire.startswith("pool"):
            if self._options.suspend:
                raise UsageError("kubernetes: suspend=true needs a warm pool", fix="add --acquire pool:NAME")
            return
        name = pools.named(acquire)
        try:
            rights = (*pools.RIGHTS, pools.SUSPEND) if self._options.suspend else pools.RIGHTS
            missing = await self._api.missing(self._namespace, rights)
        except ApiRefused as error:
            raise SubstrateUnavailable(f"kubernetes: {error}", fix="try: kubectl auth whoami") from error
        if missing:
            raise SubstrateUnavailable(
                f"kubernetes: not allowed in namespace {self._namespace!r}: {missing}",
                fix="apply the role for pools of docs/substrates/kubernetes.md",
            )
        pool = await pools.look(self._api, self._namespace, name)
        pool.require(self._options, limits)
        self._pools[name] = pool

    async def create(self, spec: SandboxSpec, marks: Marks) -> Sandbox:
        """As ``Substrate.create``; the first create begins the run's watch."""
        kind = spec.acquire.partition(":")[0]
        if kind == "pool":
            return await self._claim(spec, marks)
        if kind != "create":
            raise CreateFailed(f"kubernetes creates a pod per sandbox; acquire={spec.acquire} is not possible")
        watch = self._watch(PODS, f"{LABEL_RUN}={spec.labels.get(LABEL_RUN, '')}")
        runner = PodExec(self._client, self._api.access, self._namespace, spec.name, self._options.shell)
        sandbox = KubernetesSandbox(spec.name, self._api, runner, watch, marks, self._options, self._room)
        try:
            pod = await self._make(PODS, manifest(self._options, spec), marks)
        except BaseException:
            sandbox.forget()
            raise
        sandbox.accepted(pod.metadata)
        return sandbox

    async def _claim(self, spec: SandboxSpec, marks: Marks) -> Sandbox:
        """A sandbox of a warm pool."""
        name = pools.named(spec.acquire)
        if name not in self._pools:
            await self.check_acquire(spec.acquire, spec.limits)
        pool, settings, client = self._pools[name], self._options, self._client

        def runner(pod: str) -> PodExec:
            access, where = self._api.access, self._namespace
            return PodExec(client, access, where, pod, settings.shell, pool.container, spec.env)

        claims = self._watch(CLAIMS, f"{LABEL_RUN}={spec.labels.get(LABEL_RUN, '')}")
        stand = self._watch(PODS, SANDBOX_PODS)
        sandbox = ClaimedSandbox(spec.name, self._api, runner, claims, stand, marks, settings, self._room, pool.grace_s)
        try:
            accepted_claim = await self._make(CLAIMS, claim(spec, name, self._api.now_s()), marks)
        except BaseException:
            sandbox.forget()
            raise
        sandbox.accepted(accepted_claim.metadata)
        return sandbox

    def _watch(self, kind: ObjectKind[Kept], selector: str) -> ObjectWatch[Kept]:
        """The watch for a selector; a new watch after the end of the last."""
        watch = self._watches.get((kind.plural, selector))
        if watch is None or watch.ended:
            watch = ObjectWatch(self._api, kind, self._namespace, selector)
            self._watches[kind.plural, selector] = watch
        return watch

    async def _make(self, kind: ObjectKind[Kept], wanted: Mapping[str, Any], marks: Marks) -> Kept:
        """Create an object; while taxtui's own sandboxes use up the quota, wait for a removal.

        Raises ``Throttled`` if none is removed within ``HOLD_S``, and ``QuotaExceeded`` if taxtui has no sandbox.
        """
        while True:
            freed, began_ns = self._room.next(), time.monotonic_ns()
            try:
                return await self._api.create(kind, self._namespace, wanted, marks)
            except ApiRefused as error:
                refusal = error.as_error(CreateFailed, f"the {wanted['kind'].lower()} could not be created")
                full = isinstance(refusal, QuotaExceeded) and (self._room.size or freed.is_set())
                if not full:
                    raise refusal from error
            marks.notice(f"{refusal.problem}; waits for the removal of one of {self._room.size} sandboxes")
            if not await self._room.wait(freed):
                raise Throttled(f"{refusal.problem}; none of {self._room.size} sandboxes was removed", 0.0)
            marks.queued(time.monotonic_ns() - began_ns)

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``: pods and claims, in every namespace if listing is allowed, else in the configured one.

        In a cluster without claims, or without the right to read them, taxtui has made none.
        """
        selector = LABEL_RUN if run_id is None else f"{LABEL_RUN}={run_id}"
        pods, now_s = await self._labelled(PODS, selector)
        entries = [_entry(pod.metadata, now_s) for pod in pods]
        try:
            claims, now_s = await self._labelled(CLAIMS, selector)
        except SubstrateUnavailable as error:
            if not _none(error):
                raise
            return entries
        return [*entries, *(_entry(item.metadata, now_s, CLAIMS.plural) for item in claims)]

    async def _labelled(self, kind: ObjectKind[Kept], selector: str) -> tuple[list[Kept], float]:
        try:
            return await retry.find(lambda: self._list(kind, None, selector))
        except SubstrateUnavailable as error:
            if not (isinstance(error.__cause__, ApiRefused) and error.__cause__.status == 403):
                raise
            return await retry.find(lambda: self._list(kind, self._namespace, selector))

    async def _list(self, kind: ObjectKind[Kept], namespace: str | None, selector: str) -> tuple[list[Kept], float]:
        try:
            objects, _, now_s = await self._api.list(kind, namespace, selector)
        except ApiRefused as error:
            doing = f"kubernetes: {kind.plural} can't be listed"
            if error.status == 404:  # unknown kind
                raise SubstrateUnavailable(error.describe(doing)) from error
            raise error.unless_final(SubstrateUnavailable, doing) from error
        return objects, now_s

    async def reap(self, entry: Found) -> None:
        namespace, uid, *kind = entry.handle.split("/")
        about = Metadata(name=entry.name, namespace=namespace, uid=uid)
        if kind:
            await remove(self._api, CLAIMS, about, FOREGROUND, look_s=0.1, more_s=pools.GRACE_S)
        else:
            grace_s = self._options.grace_s
            await remove(self._api, PODS, about, {"gracePeriodSeconds": grace_s}, look_s=0.1, more_s=grace_s)


def _none(error: SubstrateUnavailable) -> bool:
    """Whether the kind is unknown, or may not be read."""
    return isinstance(error.__cause__, ApiRefused) and error.__cause__.status in (403, 404)


def _entry(about: Metadata, now_s: float, kind: str = "") -> Found:
    made_s = datetime.fromisoformat(about.creation_timestamp).timestamp() if about.creation_timestamp else now_s
    handle = "/".join(filter(None, (about.namespace, about.uid, kind)))
    return labels.found(about.labels or {}, name=about.name, handle=handle, age_s=now_s - made_s)
