"""Pods as sandboxes, through the SDK's asyncio client; exec by websocket, state by one watch per run."""

from __future__ import annotations

import asyncio
import contextlib
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
from taxtui.sandboxes.kit.retry import Retry
from taxtui.sandboxes.protocol import Availability, Capabilities, Effective, Found, Marks, Sandbox
from taxtui.substrates.kubernetes import pool as pools
from taxtui.substrates.kubernetes.api import PODS, ClusterApi, Kept, ObjectKind, remove
from taxtui.substrates.kubernetes.claim import CLAIMS, SANDBOX_PODS, claim
from taxtui.substrates.kubernetes.claimed import ClaimedSandbox
from taxtui.substrates.kubernetes.connect import Cluster, discover
from taxtui.substrates.kubernetes.exec import PodExec
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.options import NAME, KubernetesOptions, node_selector, tolerations
from taxtui.substrates.kubernetes.pod import CONTAINER, LABEL_NETWORK, Metadata, manifest
from taxtui.substrates.kubernetes.pool import TemplateObject
from taxtui.substrates.kubernetes.sandbox import KubernetesSandbox
from taxtui.substrates.kubernetes.watch import ObjectWatch

RIGHTS: Final = (
    *((verb, "pods", "") for verb in ("create", "get", "list", "watch", "delete")),
    *pools.EXEC,
)
"""The rights for a measurement: verb, resource, API group."""
STAND_IN: Final = "standin"
"""Part of the version of an emulated server."""
HOLD_S: Final = 60.0
"""Wait of one create for room under a quota."""


class NoRoom(Throttled):
    """taxtui's own sandboxes use up a quota."""


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
        self._templates: dict[str, TemplateObject] = {}  # by pool
        self._client: Any = None
        self._alive: set[str] = set()  # the names of existing sandboxes

    async def __aenter__(self) -> Self:
        """Find the cluster and request the version. Raises ``SubstrateUnavailable``."""
        self._cluster: Cluster = await discover(self._options.kubeconfig, self._options.context)
        self._client = ApiClient(self._cluster.configuration)
        self._api = ClusterApi(self._client, self._options.namespace or self._cluster.namespace)
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
            missing = await self._api.missing(RIGHTS)
        except ApiRefused as error:
            return Availability(ok=False, detail=f"kubernetes: {error}", fix="try: kubectl auth whoami")
        image, _, digest = self._options.image.partition("@")
        return Availability(
            ok=not missing,
            detail=f"not allowed in namespace {self._api.namespace!r}: {missing}" if missing else f"ready, {server}",
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
            },
        )

    async def _network_denied(self) -> bool:
        """Whether a NetworkPolicy denies egress to pods of tiers without network."""
        with contextlib.suppress(ApiRefused):
            return await self._api.denies_egress({LABEL_NETWORK: "none"})
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
            missing = await self._api.missing(rights)
        except ApiRefused as error:
            raise SubstrateUnavailable(f"kubernetes: {error}", fix="try: kubectl auth whoami") from error
        if missing:
            raise SubstrateUnavailable(
                f"kubernetes: not allowed in namespace {self._api.namespace!r}: {missing}",
                fix="apply the role for pools of docs/substrates/kubernetes.md",
            )
        template = await pools.look(self._api, name)
        template.require(self._options, limits)
        self._templates[name] = template

    async def create(self, spec: SandboxSpec, marks: Marks) -> Sandbox:
        """As ``Substrate.create``; the first create begins the run's watch."""
        kind = spec.acquire.partition(":")[0]
        if kind == "pool":
            return await self._claim(spec, marks)
        if kind != "create":
            raise CreateFailed(f"kubernetes creates a pod per sandbox; acquire={spec.acquire} is not possible")
        runner = PodExec(self._api, self._options.shell, CONTAINER, {})
        pods = self._watch(PODS, _of_run(spec))
        sandbox = KubernetesSandbox(
            spec.name, self._api, self._options, self._alive, marks, runner, pods, self._options.grace_s
        )
        return await self._make(sandbox, manifest(self._options, spec), marks)

    async def _claim(self, spec: SandboxSpec, marks: Marks) -> Sandbox:
        """A sandbox of a warm pool."""
        name = pools.named(spec.acquire)
        if name not in self._templates:
            await self.check_acquire(spec.acquire, spec.limits)
        template = self._templates[name]
        runner = PodExec(self._api, self._options.shell, str(template.container["name"]), spec.env)
        claims, pods = self._watch(CLAIMS, _of_run(spec)), self._watch(PODS, SANDBOX_PODS)
        sandbox = ClaimedSandbox(
            spec.name, self._api, self._options, self._alive, marks, runner, pods, template.grace_s
        )
        sandbox.follow_claim(claims)
        return await self._make(sandbox, claim(spec, name, self._api.now_s()), marks)

    def _watch(self, kind: ObjectKind[Kept], selector: str) -> ObjectWatch[Kept]:
        """The watch for a selector; a new watch after the end of the last."""
        watch = self._watches.get((kind.plural, selector))
        if watch is None or watch.ended:
            watch = ObjectWatch(self._api, kind, selector)
            self._watches[kind.plural, selector] = watch
        return watch

    async def _make(self, sandbox: KubernetesSandbox, wanted: Mapping[str, Any], marks: Marks) -> Sandbox:
        """Create the object of a sandbox; while taxtui's own sandboxes use up the quota, wait for a removal.

        Raises ``NoRoom`` if none is removed within ``HOLD_S``, and ``QuotaExceeded`` if taxtui has no sandbox.
        """

        async def ask() -> Any:
            sandboxes = len(self._alive)
            try:
                return await self._api.create(sandbox.kind, wanted, marks)
            except ApiRefused as error:
                refusal = error.as_error(CreateFailed, f"the {wanted['kind'].lower()} could not be created")
                # The last sandbox may be removed during the request, and the quota's status may lag behind.
                if not ((sandboxes or self._alive or room.refusals) and isinstance(refusal, QuotaExceeded)):
                    raise refusal from error
                if not room.refusals:
                    marks.notice(
                        f"{refusal.problem}; waits for the removal of one of {sandboxes or len(self._alive)} sandboxes"
                    )
                raise NoRoom(refusal.problem) from error

        room = Retry(longest_s=2.0, within_s=HOLD_S, on=NoRoom)
        try:
            created = await room(ask)
        except BaseException:
            sandbox.forget()
            raise
        marks.queued(room.queued_ns)
        sandbox.accepted(created)
        return sandbox

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``: pods and claims of the namespace.

        In a cluster without claims, or without the right to read them, taxtui has made none.
        """
        selector = LABEL_RUN if run_id is None else f"{LABEL_RUN}={run_id}"
        pods = await retry.find(lambda: self._list(PODS, selector))
        claims = await retry.find(lambda: self._list(CLAIMS, selector, (403, 404)))
        return [
            *(self._entry(pod.metadata) for pod in pods),
            *(self._entry(item.metadata, CLAIMS.plural) for item in claims),
        ]

    def _entry(self, about: Metadata, kind: str = "") -> Found:
        now_s = self._api.now_s()
        made_s = datetime.fromisoformat(about.creation_timestamp).timestamp() if about.creation_timestamp else now_s
        handle = "/".join(filter(None, (self._api.namespace, about.uid, kind)))
        return labels.found(about.labels or {}, name=about.name, handle=handle, age_s=now_s - made_s)

    async def _list(self, kind: ObjectKind[Kept], selector: str, none: Collection[int] = ()) -> list[Kept]:
        """``none``: the final refusals that mean an empty list."""
        try:
            objects, _ = await self._api.list(kind, selector)
        except ApiRefused as error:
            if error.status in none and not error.in_doubt:
                return []
            raise error.unless_final(SubstrateUnavailable, f"kubernetes: {kind.plural} can't be listed") from error
        return objects

    async def reap(self, entry: Found) -> None:
        _, uid, *kind = entry.handle.split("/")
        about = Metadata(name=entry.name, uid=uid)
        if kind:
            await remove(self._api, CLAIMS, about, pools.GRACE_S)
        else:
            await remove(self._api, PODS, about, self._options.grace_s)


def _of_run(spec: SandboxSpec) -> str:
    """The label selector of a sandbox's run."""
    return f"{LABEL_RUN}={spec.labels.get(LABEL_RUN, '')}"
