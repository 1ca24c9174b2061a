"""Pods as sandboxes, through the SDK's asyncio client; exec by websocket, state by one watch per run."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Mapping, Sequence
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
from taxtui.substrates.kubernetes.api import PODS, ClusterApi, Kept, ObjectKind
from taxtui.substrates.kubernetes.claim import CLAIMS, ClaimedSandbox, claim
from taxtui.substrates.kubernetes.connect import Cluster, discover
from taxtui.substrates.kubernetes.exec import PodExec
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.options import NAME, KubernetesOptions, node_selector, tolerations
from taxtui.substrates.kubernetes.pod import LABEL_NETWORK, Metadata, manifest
from taxtui.substrates.kubernetes.pool import PoolObject
from taxtui.substrates.kubernetes.sandbox import FollowedSandbox, KubernetesSandbox
from taxtui.substrates.kubernetes.watch import ObjectWatch

COMMANDS: Final = (
    ("get", "pods/exec", ""),  # checked for the GET of a websocket
    ("create", "pods/exec", ""),  # checked by newer servers too
)
"""The rights for commands: verb, resource, API group."""
RIGHTS: Final = (*((verb, "pods", "") for verb in ("create", "get", "list", "watch", "delete")), *COMMANDS)
"""The rights for a measurement without a pool."""
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
        if (secret := self._options.pull_secret) and not NAME.fullmatch(secret):
            raise UsageError(f"kubernetes: pull_secret {secret!r} is not the name of a secret", fix="name one secret")
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
        self._templates: dict[str, PoolObject] = {}  # by pool
        self._client: Any = None
        self._alive: set[str] = set()  # the names of existing sandboxes

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
        """Version and permissions by the API server; makes nothing."""
        if self._client is None:
            return await check_opened(KubernetesSubstrate(self._options), "see docs/substrates/kubernetes.md")
        try:
            server, latency_ns = await self._api.version()
            missing = await self._api.missing(self._namespace, RIGHTS)
        except ApiRefused as error:
            return Availability(ok=False, detail=f"kubernetes: {error}", fix="try: kubectl auth whoami")
        image, _, digest = self._options.image.partition("@")
        network_denied = await self._api.denies_egress(self._namespace, {LABEL_NETWORK: "none"})
        return Availability(
            ok=not missing,
            detail=f"not allowed in namespace {self._namespace!r}: {missing}" if missing else f"ready, {server}",
            fix="apply the role of docs/substrates/kubernetes.md" if missing else "",
            version=server,
            image=digest or image,
            cache="node" if self._options.pull_policy == "Never" else "unknown",
            holds_fixtures=bool(self._options.fixtures),
            limits="requests = limits for CPU and memory; processes as the kubelet limits them",
            effective=Effective(network=None if network_denied else "full"),
            latency_ns=latency_ns,
            facts={
                "kubernetes_sdk": version("kubernetes"),
                "image_reference": self._options.image,
                "network": "the pod network, unless a NetworkPolicy selects taxtui.network=none",
            },
        )

    async def check_acquire(self, acquire: str, limits: Limits) -> None:
        """As ``ChecksAcquire.check_acquire``: the pool, its template and the rights."""
        if not acquire.startswith("pool"):
            if self._options.suspend:
                raise UsageError("kubernetes: suspend=true needs a warm pool", fix="add --acquire pool:NAME")
            return
        name = pools.named(acquire)
        rights = (*pools.RIGHTS, ("get", "pods", ""), *COMMANDS, *((pools.SUSPEND,) if self._options.suspend else ()))
        try:
            missing = await self._api.missing(self._namespace, rights)
        except ApiRefused as error:
            raise SubstrateUnavailable(f"kubernetes: {error}", fix="try: kubectl auth whoami") from error
        if missing:
            raise SubstrateUnavailable(
                f"kubernetes: not allowed in namespace {self._namespace!r}: {missing}",
                fix="apply the role for pools of docs/substrates/kubernetes.md",
            )
        template = await pools.look(self._api, self._namespace, name)
        template.require(self._options, limits)
        self._templates[name] = template

    async def create(self, spec: SandboxSpec, marks: Marks) -> Sandbox:
        """As ``Substrate.create``; the first create begins the run's watch."""
        kind = spec.acquire.partition(":")[0]
        api, where, shell = self._api, self._namespace, self._options.shell
        if kind == "create":
            runner = PodExec(api, where, spec.name, shell)
            pod = KubernetesSandbox(runner, spec.name, api, self._watch(PODS, spec), marks, self._options, self._alive)
            return await self._make(pod, manifest(self._options, spec), marks)
        if kind != "pool":
            raise CreateFailed(f"kubernetes creates a pod per sandbox; acquire={spec.acquire} is not possible")
        name = pools.named(spec.acquire)
        if name not in self._templates:
            await self.check_acquire(spec.acquire, spec.limits)
        template = self._templates[name]
        claimed = ClaimedSandbox(
            lambda pod: PodExec(api, where, pod, shell, template.container, spec.env),
            template.grace_s,
            *(spec.name, api, self._watch(CLAIMS, spec), marks, self._options, self._alive),
        )
        return await self._make(claimed, claim(spec, name), marks)

    def _watch(self, kind: ObjectKind[Kept], spec: SandboxSpec) -> ObjectWatch[Kept]:
        """The watch for a run's objects; a new watch after the end of the last."""
        selector = f"{LABEL_RUN}={spec.labels.get(LABEL_RUN, '')}"
        watch = self._watches.get((kind.plural, selector))
        if watch is None or watch.ended:
            watch = ObjectWatch(self._api, kind, self._namespace, selector)
            self._watches[kind.plural, selector] = watch
        return watch

    async def _make(self, sandbox: FollowedSandbox[Kept], wanted: Mapping[str, Any], marks: Marks) -> Sandbox:
        """Create the object of a sandbox. ``Throttled`` while taxtui's own sandboxes use up the quota."""
        own = len(self._alive)
        try:
            made = await self._api.create(sandbox.kind, self._namespace, wanted, marks)
        except BaseException as error:
            sandbox.forget()
            if not isinstance(error, ApiRefused):
                raise
            refusal = error.as_error(CreateFailed, f"the {wanted['kind'].lower()} could not be created")
            # The last sandbox may be removed during the request, and the quota's status may lag behind.
            if isinstance(refusal, QuotaExceeded) and (own or self._alive or marks.obstacle):
                marks.obstructed(f"{refusal.problem}; waits for the removal of other sandboxes")
                refusal = Throttled(refusal.problem)
            raise refusal from error
        sandbox.accepted(made)
        return sandbox

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``: pods and claims of the namespace.

        In a cluster without claims, or without the right to read them, taxtui has made none.
        """
        selector = LABEL_RUN if run_id is None else f"{LABEL_RUN}={run_id}"
        pods = await retry.find(lambda: self._list(PODS, selector))
        claims = await retry.find(lambda: self._list(CLAIMS, selector, (403, 404)))
        return [*(_entry(pod.metadata) for pod in pods), *(_entry(item.metadata, CLAIMS.plural) for item in claims)]

    async def _list(self, kind: ObjectKind[Kept], selector: str, none: Collection[int] = ()) -> list[Kept]:
        """``none``: the final refusals that mean an empty list."""
        try:
            objects, _ = await self._api.list(kind, self._namespace, selector)
        except ApiRefused as error:
            if error.status in none and not error.in_doubt:
                return []
            raise error.unless_final(SubstrateUnavailable, f"kubernetes: {kind.plural} can't be listed") from error
        return objects

    async def reap(self, entry: Found) -> None:
        namespace, uid, *claimed = entry.handle.split("/")
        about = Metadata(name=entry.name, namespace=namespace, uid=uid)
        kind, grace_s = (CLAIMS, pools.GRACE_S) if claimed else (PODS, self._options.grace_s)
        await self._api.remove(kind, about, grace_s)


def _entry(about: Metadata, kind: str = "") -> Found:
    now_s = time.time()
    made_s = datetime.fromisoformat(about.creation_timestamp).timestamp() if about.creation_timestamp else now_s
    handle = "/".join(filter(None, (about.namespace, about.uid, kind)))
    return labels.found(about.labels or {}, name=about.name, handle=handle, age_s=now_s - made_s)
