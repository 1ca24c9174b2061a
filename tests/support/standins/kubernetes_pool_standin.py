"""The Kubernetes stand-in with agent-sandbox installed: its published schemas, its controllers, and what it serves.

Its controllers look at all objects again and again, and keep no other state. A deleted pod of a sandbox is made again.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec
import yaml
from aiohttp import web
from msgspec import Meta

from tests.support import waiting
from tests.support.standins.kubernetes_cluster import Histories, Json, Pods, Refused, now
from tests.support.standins.kubernetes_standin import KubernetesStandin, asked_for, selected
from tests.support.standins.standin_place import Handler

GROUP = "extensions.agents.x-k8s.io"
VERSION = f"{GROUP}/v1beta1"
NAME_HASH, OF_POOL, CLAIM = (
    f"agents.x-k8s.io/{name}" for name in ("sandbox-name-hash", "warm-pool-sandbox", "sandbox-name")
)
LOOK_S = 0.02
LAG_S = 0.005  # before each step of the controllers
GRACE_S = 2.0  # how long a claim waits for a candidate that has no address yet
API = f"/apis/{VERSION}"
POOL = "warm"
ACQUIRE = f"pool:{POOL}"
REPLICAS = 3
DOCUMENTED = Path(__file__).parents[3] / "docs" / "substrates" / "kubernetes.md"

# -- what the published schemas (v1beta1) take, as far as we send it

NAME = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
LABEL = Annotated[str, Meta(pattern=r"^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$")]
WHEN = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]


class Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Takes no field but those that it names: an API server prunes the others without a word."""


class About(Strict):
    name: NAME
    namespace: str = ""
    uid: str = ""
    creation_timestamp: WHEN = "2026-01-01T00:00:00Z"
    labels: dict[str, LABEL] = {}


class NameOf(Strict):
    name: str


class Lifecycle(Strict):
    shutdown_time: WHEN = "2026-01-01T00:00:00Z"
    shutdown_policy: Literal["Delete", "DeleteForeground", "Retain"] = "Retain"


class ClaimSpec(Strict):
    warm_pool_ref: NameOf
    lifecycle: Lifecycle | None = None


class SandboxClaim(Strict):
    api_version: Literal["extensions.agents.x-k8s.io/v1beta1"]
    kind: Literal["SandboxClaim"]
    metadata: About
    spec: ClaimSpec


class Told(Strict):
    type: str
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Meta(max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    message: Annotated[str, Meta(max_length=32768)]
    last_transition_time: WHEN


class Given(Strict):
    name: str = ""
    pod_ips: list[str] = msgspec.field(default_factory=list, name="podIPs")


class ClaimStatus(Strict):
    conditions: list[Told] = []
    sandbox: Given | None = None


class PodTemplate(Strict):
    spec: dict[str, Any]  # a pod's, which the kubernetes package has a model of
    metadata: dict[str, dict[str, str]] = {}


class TemplateSpec(Strict):
    pod_template: PodTemplate
    volume_claim_templates: list[dict[str, Any]] = []
    service: bool = False
    network_policy_management: Literal["Managed", "Unmanaged"] = "Managed"
    env_vars_injection_policy: Literal["Allowed", "Overrides", "Disallowed"] = "Disallowed"


class SandboxTemplate(Strict):
    api_version: Literal["extensions.agents.x-k8s.io/v1beta1"]
    kind: Literal["SandboxTemplate"]
    metadata: About
    spec: TemplateSpec


KINDS = {kind.__name__: kind for kind in (SandboxClaim, SandboxTemplate)}


def check(body: dict[str, Any]) -> None:
    """Raise ``msgspec.ValidationError`` for a body that its schema does not take."""
    msgspec.convert(body, KINDS[body["kind"]])


class Sandboxes:
    """What the controllers keep, and the controllers themselves.

    Settings: ``refills`` of a pool after a claim, ``late_s`` between a deletion and the work, ``pods_quota``.
    """

    def __init__(self, pods: Pods, namespace: str) -> None:
        self.pods = pods
        self.namespace = namespace
        self.claims = Histories(f"sandboxclaims.{GROUP}")
        self.pools: dict[str, Json] = {}
        self.templates: dict[str, Json] = {}
        self.sandboxes: dict[str, Json] = {}  # by name: {"owner": ("pool" | "claim", name), "template": …}
        self.late_s = 0.0
        self.refills = True
        self.pods_quota: int | None = None
        self._running: asyncio.Task[None] | None = None
        self._filled: set[str] = set()  # pools
        self._since_s: dict[str, float] = {}  # by uid: when a claim was first looked at, or its deletion asked for

    # ----------------------------------------------------------------------------------------------------- from outside

    def start(self) -> None:
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """As when their pod dies: what they were about to do is not done."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def drop_volumes(self) -> None:
        for sandbox in self.sandboxes.values():
            if volume := sandbox.get("volume"):
                shutil.rmtree(volume, ignore_errors=True)

    def keep(self, name: str, template: Json, replicas: int) -> None:
        pool = {
            "apiVersion": VERSION,
            "kind": "SandboxWarmPool",
            "metadata": self._about(name),
            "spec": {"replicas": replicas, "sandboxTemplateRef": {"name": template["metadata"]["name"]}},
            "status": {"replicas": 0, "readyReplicas": 0},
        }
        kept = copy.deepcopy(template)
        kept["metadata"] = self._about(template["metadata"]["name"])
        check(kept)
        self.pools[name], self.templates[kept["metadata"]["name"]] = pool, kept

    def claim(self, namespace: str, body: Json) -> Json:
        made = self.claims.accept(namespace, body)
        self.claims.emit("ADDED", made)
        return made

    def delete(self, namespace: str, name: str, uid: str | None = None, *, foreground: bool = True) -> Json:
        """Begin to end a claim."""
        claim = self.claims.one(namespace, name, uid)
        if foreground:
            if "deletionTimestamp" not in claim["metadata"]:
                claim["metadata"] |= {"deletionTimestamp": now(), "finalizers": ["foregroundDeletion"]}
                self._since_s[claim["metadata"]["uid"]] = time.monotonic()
                self.claims.emit("MODIFIED", claim)
        else:
            self._drop(claim)
        return claim

    def ready(self, pool: str) -> int:
        return sum(self._is_ready(name) for name, _ in self.of("pool", pool))

    # ----------------------------------------------------------------------------------------------------- controllers

    async def _run(self) -> None:
        news: asyncio.Queue[None] = asyncio.Queue()
        for kept in (self.pods, self.claims):
            kept.watchers.add(news)
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await news.get()
                while not news.empty():
                    news.get_nowait()
                await asyncio.sleep(LAG_S)
                for claim in list(self.claims.objects.values()):
                    self._look_at_claim(claim)
                for name in list(self.pools):
                    self._look_at_pool(name)
                for name in list(self.sandboxes):
                    self._look_at_sandbox(name)
        finally:
            for kept in (self.pods, self.claims):
                kept.watchers.discard(news)

    def _look_at_pool(self, name: str) -> None:
        mine = list(self.of("pool", name))
        pool = self.pools[name]
        if self.refills or name not in self._filled:
            for _ in range(pool["spec"]["replicas"] - len(mine)):
                self._make(f"{name}-{uuid.uuid4().hex[:5]}", ("pool", name), pool["spec"]["sandboxTemplateRef"]["name"])
            self._filled.add(name)
        pool["status"] = {"replicas": len(mine), "readyReplicas": self.ready(name)}

    def _look_at_sandbox(self, name: str) -> None:
        sandbox = self.sandboxes[name]
        kind, owner = sandbox["owner"]
        stands = owner in self.pools if kind == "pool" else (self.namespace, owner) in self.claims.objects
        pod = self.pods.objects.get((self.namespace, name))
        if not stands or sandbox.get("ends"):
            if pod is None:
                if volume := self.sandboxes.pop(name).get("volume"):
                    shutil.rmtree(volume)
            elif "deletionTimestamp" not in pod["metadata"]:
                self.pods.delete(self.namespace, name)
            return
        if sandbox.get("mode") == "Suspended":
            if pod is not None and "deletionTimestamp" not in pod["metadata"]:
                self.pods.delete(self.namespace, name)
            return
        if pod is None:
            self._make_pod(name, sandbox)
        elif kind == "claim" and OF_POOL in pod["metadata"]["labels"]:
            del pod["metadata"]["labels"][OF_POOL]  # after its claim has been told that it is ready
            self.pods.emit("MODIFIED", pod)

    def _look_at_claim(self, claim: Json) -> None:
        about = claim["metadata"]
        if "deletionTimestamp" in about:
            mine = [sandbox for _, sandbox in self.of("claim", about["name"])]
            if time.monotonic() - self._since_s[about["uid"]] < self.late_s:
                return
            for sandbox in mine:
                sandbox["ends"] = True
            if not mine:
                self._drop(claim)
            return
        ends = claim["spec"].get("lifecycle", {}).get("shutdownTime")
        if ends and ends <= now():
            self._say(claim, "False", "ClaimExpired", "Claim expired")
            self.delete(about["namespace"], about["name"])
            return
        name = next((name for name, _ in self.of("claim", about["name"])), None) or self._give(claim)
        if name is not None:
            self._hand_on(claim, name)

    def _give(self, claim: Json) -> str | None:
        """Adopt a sandbox of the pool, else make one; None where that has to wait."""
        about, pool = claim["metadata"], self.pools.get(claim["spec"]["warmPoolRef"]["name"])
        if pool is None:
            self._say(claim, "False", "WarmPoolNotFound", "SandboxWarmPool not found")
            return None
        template = self.templates.get(pool["spec"]["sandboxTemplateRef"]["name"])
        if template is None:
            self._say(claim, "False", "TemplateNotFound", "SandboxTemplate not found")
            return None
        candidates = [name for name, sandbox in self.of("pool", pool["metadata"]["name"]) if not sandbox.get("ends")]
        with_address = [name for name in candidates if "podIPs" in self._status(name)]
        for name in sorted(with_address, key=lambda one: not self._is_ready(one)):
            about["annotations"] = {CLAIM: name}
            self.claims.emit("MODIFIED", claim)
            self.sandboxes[name]["owner"] = ("claim", about["name"])
            return name
        first_s = self._since_s.setdefault(about["uid"], time.monotonic())
        if candidates and time.monotonic() - first_s < GRACE_S:
            return None
        self._make(about["name"], ("claim", about["name"]), template["metadata"]["name"])
        return str(about["name"])

    def _hand_on(self, claim: Json, name: str) -> None:
        status = self._status(name)
        given = {"name": name, **({"podIPs": ["10.0.0.1"]} if "podIPs" in status else {})}
        if self.sandboxes[name].get("refused"):
            self._say(claim, "False", "ReconcilerError", f"Error seen: {self.sandboxes[name]['refused']}", given)
        elif self.sandboxes[name].get("mode") == "Suspended":
            self._say(claim, "False", "SandboxSuspended", "Sandbox is suspended", given)
        elif status.get("phase") == "Failed":
            self._say(claim, "False", "PodFailed", "Pod failed", given)
        elif self._is_ready(name):
            self._say(claim, "True", "DependenciesReady", "Pod is Ready", given)
        else:
            text = f"Pod exists with phase: {status['phase']}" if status else "Pod does not exist"
            self._say(claim, "False", "DependenciesNotReady", text, given)

    # ----------------------------------------------------------------------------------------------------- objects

    def _make(self, name: str, owner: tuple[str, str], template: str) -> None:
        sandbox: Json = {"owner": owner, "template": template}
        self.sandboxes[name] = sandbox
        if self.templates[template]["spec"].get("volumeClaimTemplates"):
            sandbox["volume"] = Path(tempfile.mkdtemp(prefix="pvc-"))
        self._make_pod(name, sandbox)

    def _make_pod(self, name: str, sandbox: Json) -> None:
        if self.pods_quota is not None and len(self.pods.objects) >= self.pods_quota:
            sandbox["refused"] = f'pods "{name}" is forbidden: exceeded quota: compute, limited: pods={self.pods_quota}'
            return
        sandbox.pop("refused", None)
        kind, owner = sandbox["owner"]
        labels = {NAME_HASH: f"{hash(name) & 0xFFFFFFFF:08x}"} | ({OF_POOL: owner} if kind == "pool" else {})
        spec = copy.deepcopy(self.templates[sandbox["template"]]["spec"]["podTemplate"]["spec"])
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
        with contextlib.suppress(Refused):  # the one before it still ends
            self.pods.create(self.namespace, pod, sandbox.get("volume"))

    def of(self, kind: str, owner: str) -> Iterator[tuple[str, Json]]:
        return ((name, each) for name, each in list(self.sandboxes.items()) if each["owner"] == (kind, owner))

    def _status(self, name: str) -> Json:
        pod = self.pods.objects.get((self.namespace, name))
        status: Json = pod["status"] if pod else {}
        return status

    def _is_ready(self, name: str) -> bool:
        told = {each["type"]: each["status"] for each in self._status(name).get("conditions", ())}
        return told.get("Ready") == "True"

    def _say(self, claim: Json, status: str, reason: str, message: str, given: Json | None = None) -> None:
        ready = {"type": "Ready", "status": status, "reason": reason, "message": message}
        before = claim.get("status", {}).get("conditions", [{}])[0]
        same = {key: before.get(key) for key in ready} == ready
        ready["lastTransitionTime"] = before["lastTransitionTime"] if same else now()
        told = {"conditions": [ready], **({"sandbox": given} if given else {})}
        if claim.get("status") != told:
            msgspec.convert(told, ClaimStatus)
            claim["status"] = told
            self.claims.emit("MODIFIED", claim)

    def _drop(self, claim: Json) -> None:
        about = claim["metadata"]
        if self.claims.objects.pop((about["namespace"], about["name"]), None) is not None:
            self.claims.emit("DELETED", claim)

    def _about(self, name: str) -> Json:
        return {"name": name, "namespace": self.namespace, "uid": str(uuid.uuid4()), "creationTimestamp": now()}


def documented_template() -> Json:
    text = DOCUMENTED.read_text()
    block = next(part for part in text.split("```yaml\n")[1:] if "kind: SandboxTemplate" in part)
    objects = yaml.safe_load_all(block.partition("```")[0])
    return next(each for each in objects if each["kind"] == "SandboxTemplate")


class PoolStandin(KubernetesStandin):
    """A server that has claims, pools and templates; a pool called ``POOL`` of the documented template."""

    verbs = {
        **KubernetesStandin.verbs,
        **{f"claims.{verb}": f"{verb} sandboxclaims" for verb in ("create", "get", "list", "watch", "delete")},
        "sandboxes.patch": "patch sandboxes",
        "pools.get": "get sandboxwarmpools",
        "templates.get": "get sandboxtemplates",
    }

    def __init__(self, *, volume: bool = False) -> None:
        super().__init__()
        self.sandboxes = Sandboxes(self.pods, self.namespace)
        self.claims_quota: int | None = None
        self.installed = True
        self._applied = documented_template()
        if volume:  # in place of the documented emptyDir
            del self._applied["spec"]["podTemplate"]["spec"]["volumes"]
            claimed = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            self._applied["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "work"}, "spec": claimed}]

    async def __aenter__(self) -> Self:
        """Start serving; the pool is filled by and by."""
        await super().__aenter__()
        self.sandboxes.keep(POOL, self._applied, REPLICAS)
        self.sandboxes.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.sandboxes.stop()
        await super().__aexit__(*exc)
        self.sandboxes.drop_volumes()

    async def filled(self) -> None:
        await waiting.until(lambda: self.sandboxes.ready(POOL) == REPLICAS, "the pool is filled")

    async def emptied(self) -> None:
        """From now on the pool keeps nothing."""
        self.sandboxes.pools[POOL]["spec"]["replicas"] = 0
        for _, sandbox in self.sandboxes.of("pool", POOL):
            sandbox["ends"] = True
        await waiting.until(lambda: not self.sandboxes.sandboxes, "the pool is empty")

    def pod_of(self, claim: str) -> Json:
        name = self.sandboxes.claims.objects[self.namespace, claim]["status"]["sandbox"]["name"]
        return self.pods.objects[self.namespace, name]

    def left(self) -> tuple[int, int]:
        made = [
            name
            for (_, name) in self.pods.objects
            if self.sandboxes.sandboxes.get(name, {"owner": ("claim", "")})["owner"][0] == "claim"
        ]
        return len(self.sandboxes.claims.objects), len(made)

    def more_routes(self) -> list[web.RouteDef]:
        space = f"{API}/namespaces/{{space}}"
        return [
            web.post(f"{space}/sandboxclaims", self._claim, name="claims.create"),
            web.get(f"{space}/sandboxclaims", self._claims, name="claims.list"),
            web.get(f"{space}/sandboxclaims/{{name}}", self._one_claim, name="claims.get"),
            web.delete(f"{space}/sandboxclaims/{{name}}", self._unclaim, name="claims.delete"),
            web.patch(
                "/apis/agents.x-k8s.io/v1beta1/namespaces/{space}/sandboxes/{name}",
                self._operate,
                name="sandboxes.patch",
            ),
            web.get(f"{space}/sandboxwarmpools/{{name}}", self._pool, name="pools.get"),
            web.get(f"{space}/sandboxtemplates/{{name}}", self._template, name="templates.get"),
        ]

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self.installed and GROUP in request.path:
            return self._no(404, "NotFound", "the server could not find the requested resource")
        return await super()._answer(request, handler)

    async def _claim(self, request: web.Request) -> web.Response:
        body = await request.json()
        try:
            check(body)
        except msgspec.ValidationError as error:
            raise Refused(422, "Invalid", str(error)) from None
        if self.claims_quota is not None and len(self.sandboxes.claims.objects) >= self.claims_quota:
            used = f"count/sandboxclaims.{GROUP}={self.claims_quota}"
            text = f"exceeded quota: compute, requested: count/sandboxclaims.{GROUP}=1, used: {used}, limited: {used}"
            raise Refused(403, "Forbidden", f'sandboxclaims.{GROUP} "{body["metadata"]["name"]}" is forbidden: {text}')
        return web.json_response(self.sandboxes.claim(request.match_info["space"], body), status=201)

    async def _claims(self, request: web.Request) -> web.StreamResponse:
        matches = selected(request)
        kept = self.sandboxes.claims
        if request.query.get("watch") == "true":
            return await self.watched(request, matches, kept)
        items = [each for each in kept.objects.values() if matches(each)]
        about = {"resourceVersion": str(kept.version)}
        return web.json_response({"kind": "SandboxClaimList", "apiVersion": API, "metadata": about, "items": items})

    async def _one_claim(self, request: web.Request) -> web.Response:
        return web.json_response(self.sandboxes.claims.one(*asked_for(request)))

    async def _unclaim(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else {}
        uid = (body.get("preconditions") or {}).get("uid")
        foreground = body.get("propagationPolicy") == "Foreground"
        return web.json_response(self.sandboxes.delete(*asked_for(request), uid, foreground=foreground))

    async def _operate(self, request: web.Request) -> web.Response:
        if request.content_type != "application/merge-patch+json":
            raise Refused(415, "UnsupportedMediaType", f"the body of the request was in {request.content_type}")
        sandbox = _named(self.sandboxes.sandboxes, request, "sandboxes")
        mode = (await request.json())["spec"]["operatingMode"]
        if mode not in ("Running", "Suspended"):
            raise Refused(422, "Invalid", f"spec.operatingMode: Unsupported value: {mode}")
        sandbox["mode"] = mode
        return web.json_response({"kind": "Sandbox", "metadata": {"name": request.match_info["name"]}})

    async def _pool(self, request: web.Request) -> web.Response:
        return web.json_response(_named(self.sandboxes.pools, request, "sandboxwarmpools"))

    async def _template(self, request: web.Request) -> web.Response:
        return web.json_response(_named(self.sandboxes.templates, request, "sandboxtemplates"))


def _named(objects: dict[str, Json], request: web.Request, plural: str) -> Json:
    name = request.match_info["name"]
    if name not in objects:
        raise Refused(404, "NotFound", f'{plural}.{GROUP} "{name}" not found')
    return objects[name]
