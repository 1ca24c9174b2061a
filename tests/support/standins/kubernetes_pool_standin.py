"""The Kubernetes stand-in with agent-sandbox installed: claims, pools and templates, and their controllers."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import msgspec
import yaml
from aiohttp import web

from tests.support.standins.agent_sandbox_controller import GROUP, Sandboxes
from tests.support.standins.agent_sandbox_schema import check
from tests.support.standins.kubernetes_cluster import Conflict, Json
from tests.support.standins.kubernetes_standin import KubernetesStandin, selected

API = f"/apis/{GROUP}/v1beta1"
POOL = "warm"
REPLICAS = 3
DOCUMENTED = Path(__file__).parents[3] / "docs" / "substrates" / "kubernetes.md"


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

    def _told(self, body: Json, status: int = 200) -> web.Response:
        check(body)
        return web.json_response(body, status=status)

    async def _claim(self, request: web.Request) -> web.Response:
        body = await request.json()
        if not self.installed:
            return self._unknown()
        try:
            check(body)
        except msgspec.ValidationError as error:
            return self._no(422, "Invalid", str(error))
        claims = self.sandboxes.claims.objects
        if self.claims_quota is not None and len(claims) >= self.claims_quota:
            used = f"count/sandboxclaims.{GROUP}={self.claims_quota}"
            text = f"exceeded quota: compute, requested: count/sandboxclaims.{GROUP}=1, used: {used}, limited: {used}"
            return self._no(
                403, "Forbidden", f'sandboxclaims.{GROUP} "{body["metadata"]["name"]}" is forbidden: {text}'
            )
        try:
            return self._told(self.sandboxes.claim(request.match_info["space"], body), 201)
        except Conflict as error:
            return self._no(409, "AlreadyExists", str(error))

    async def _claims(self, request: web.Request) -> web.StreamResponse:
        if not self.installed:
            return self._unknown()
        matches = selected(request)
        kept = self.sandboxes.claims
        if request.query.get("watch") == "true":
            return await self.watched(request, matches, kept)
        items = [each for each in kept.objects.values() if matches(each)]
        about = {"resourceVersion": str(kept.version)}
        return web.json_response({"kind": "SandboxClaimList", "apiVersion": API, "metadata": about, "items": items})

    async def _one_claim(self, request: web.Request) -> web.Response:
        if not self.installed:
            return self._unknown()
        claim = self.sandboxes.claims.objects.get((request.match_info["space"], request.match_info["name"]))
        return self._told(claim) if claim else self._absent(request, "sandboxclaims")

    async def _unclaim(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else {}
        space, name = request.match_info["space"], request.match_info["name"]
        foreground = body.get("propagationPolicy") == "Foreground"
        try:
            claim = self.sandboxes.delete(
                space, name, (body.get("preconditions") or {}).get("uid"), foreground=foreground
            )
        except Conflict as error:
            return self._no(409, "Conflict", str(error))
        return self._told(claim) if claim else self._absent(request, "sandboxclaims")

    async def _operate(self, request: web.Request) -> web.Response:
        if request.content_type != "application/merge-patch+json":
            return self._no(415, "UnsupportedMediaType", f"the body of the request was in {request.content_type}")
        sandbox = self.sandboxes.sandboxes.get(request.match_info["name"])
        if sandbox is None:
            return self._absent(request, "sandboxes")
        mode = (await request.json())["spec"]["operatingMode"]
        if mode not in ("Running", "Suspended"):
            return self._no(422, "Invalid", f"spec.operatingMode: Unsupported value: {mode}")
        sandbox["mode"] = mode
        return web.json_response({"kind": "Sandbox", "metadata": {"name": request.match_info["name"]}})

    async def _pool(self, request: web.Request) -> web.Response:
        if not self.installed:
            return self._unknown()
        pool = self.sandboxes.pools.get(request.match_info["name"])
        return self._told(pool) if pool else self._absent(request, "sandboxwarmpools")

    async def _template(self, request: web.Request) -> web.Response:
        template = self.sandboxes.templates.get(request.match_info["name"])
        return self._told(template) if template else self._absent(request, "sandboxtemplates")

    def _absent(self, request: web.Request, plural: str) -> web.Response:
        return self._no(404, "NotFound", f'{plural}.{GROUP} "{request.match_info["name"]}" not found')

    def _unknown(self) -> web.Response:
        return self._no(404, "NotFound", "the server could not find the requested resource")
