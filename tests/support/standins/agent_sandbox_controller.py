"""The controllers of agent-sandbox, for the Kubernetes stand-in: what they do to claims, sandboxes and pods, in order.

As the real ones they look at everything that there is, again and again, and know nothing but that: one that is started
anew goes on where the other was. A sandbox is an object with a pod of its name, which is made again when it is deleted.
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

from tests.support.standins.agent_sandbox_schema import check
from tests.support.standins.kubernetes_cluster import Conflict, Histories, Json, Pods, now

GROUP = "extensions.agents.x-k8s.io"
VERSION = f"{GROUP}/v1beta1"
NAME_HASH, OF_POOL, CLAIM = (
    f"agents.x-k8s.io/{name}" for name in ("sandbox-name-hash", "warm-pool-sandbox", "sandbox-name")
)
LOOK_S = 0.02
LAG_S = 0.005  # before each step of the controllers
GRACE_S = 2.0  # how long a claim waits for a candidate that has no address yet


class Claims(Histories):
    """Every claim."""


class Sandboxes:
    """What the controllers keep, and the controllers themselves.

    Settings: ``refills`` of a pool after a claim, ``late_s`` between a deletion and the work, ``pods_quota``.
    """

    def __init__(self, pods: Pods, namespace: str) -> None:
        self.pods = pods
        self.namespace = namespace
        self.claims = Claims()
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
        for each in (pool, kept):
            check(each)
        self.pools[name], self.templates[kept["metadata"]["name"]] = pool, kept

    def claim(self, namespace: str, body: Json) -> Json:
        key = (namespace, body["metadata"]["name"])
        if key in self.claims.objects:
            raise Conflict(f'sandboxclaims.{GROUP} "{key[1]}" already exists')
        made = copy.deepcopy(body)
        made["metadata"] |= {"namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": now()}
        self.claims.objects[key] = made
        self.claims.emit("ADDED", made)
        return made

    def delete(self, namespace: str, name: str, uid: str | None, *, foreground: bool) -> Json | None:
        """Begin to end a claim; None where there is none. Raises ``Conflict``."""
        claim = self.claims.objects.get((namespace, name))
        if claim is None:
            return None
        if uid not in (None, claim["metadata"]["uid"]):
            raise Conflict(f"the UID in the precondition ({uid}) does not match the UID in record")
        if foreground:
            if "deletionTimestamp" not in claim["metadata"]:
                claim["metadata"] |= {"deletionTimestamp": now(), "finalizers": ["foregroundDeletion"]}
                self._since_s[claim["metadata"]["uid"]] = time.monotonic()
                self._emit("MODIFIED", claim)
        else:
            self._drop(claim)
        return claim

    def ready(self, pool: str) -> int:
        return sum(self._is_ready(name) for name, _ in self._of("pool", pool))

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
        mine = list(self._of("pool", name))
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
                self.pods.delete(self.namespace, name, None, pod["metadata"]["uid"])
            return
        if sandbox.get("mode") == "Suspended":
            if pod is not None and "deletionTimestamp" not in pod["metadata"]:
                self.pods.delete(self.namespace, name, None, pod["metadata"]["uid"])
            return
        if pod is None:
            self._make_pod(name, sandbox)
        elif kind == "claim" and OF_POOL in pod["metadata"]["labels"]:
            del pod["metadata"]["labels"][OF_POOL]  # after its claim has been told that it is ready
            self.pods.emit("MODIFIED", pod)

    def _look_at_claim(self, claim: Json) -> None:
        about = claim["metadata"]
        if "deletionTimestamp" in about:
            mine = [sandbox for _, sandbox in self._of("claim", about["name"])]
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
            self.delete(about["namespace"], about["name"], None, foreground=True)
            return
        name = next((name for name, _ in self._of("claim", about["name"])), None) or self._give(claim)
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
        candidates = [name for name, sandbox in self._of("pool", pool["metadata"]["name"]) if not sandbox.get("ends")]
        with_address = [name for name in candidates if "podIPs" in self._status(name)]
        for name in sorted(with_address, key=lambda one: not self._is_ready(one)):
            about["annotations"] = {CLAIM: name}
            self._emit("MODIFIED", claim)
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
        with contextlib.suppress(Conflict):  # the one before it still ends
            self.pods.create(self.namespace, pod, sandbox.get("volume"))

    def _of(self, kind: str, owner: str) -> Iterator[tuple[str, Json]]:
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
            claim["status"] = told
            self._emit("MODIFIED", claim)

    def _drop(self, claim: Json) -> None:
        about = claim["metadata"]
        if self.claims.objects.pop((about["namespace"], about["name"]), None) is not None:
            self._emit("DELETED", claim)

    def _emit(self, kind: str, claim: Json) -> None:
        check(claim)
        self.claims.emit(kind, claim)

    def _about(self, name: str) -> Json:
        return {"name": name, "namespace": self.namespace, "uid": str(uuid.uuid4()), "creationTimestamp": now()}
