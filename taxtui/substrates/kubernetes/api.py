"""The Kubernetes requests of the substrate, with answers decoded into the used fields.

Requests use the SDK's generic call path. The generated methods build and check a pydantic model of every pod: 2 ms of
CPU per create, which would look like latency with many concurrent trials.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec
from kubernetes.aio.client import ApiClient

from taxtui.errors import CleanupFailed
from taxtui.sandboxes.kit import removal
from taxtui.sandboxes.kit.refusal import connecting
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes.failure import ApiRefused, Problem, refused, unanswered
from taxtui.substrates.kubernetes.pod import Camel, Described, Event, Metadata, Pod, Pull, pull

T = TypeVar("T")


Kept = TypeVar("Kept", bound=Described)

REQUEST_S: Final = 30.0
HANDSHAKE_S: Final = 30.0
CLOSING_S: Final = 1.0
WATCH_S: Final = 240
"""Time after which the API server ends a watch without a message; a new request continues the watch."""
PAGE: Final = 500
DOUBT_S: Final = 45.0
"""Time limit of a refusal of a granted right before the right counts as revoked."""
OUTAGE_S: Final = 2.0
"""A shorter silence is a broken connection."""
_AFTER_A_POD: Final = frozenset({"get", "delete", "exec", "get sandboxclaims", "delete sandboxclaims"})
"""Requests about an existing pod or claim: a create or a list has succeeded before."""
_AUTH: Final = ["BearerToken"]
_WHOLE: Final = aiohttp.ClientTimeout(total=REQUEST_S)

declined: ContextVar[bytearray | None] = ContextVar("declined", default=None)
"""The body of a refused handshake in the current task: the websocket client drops the body."""


@dataclass(frozen=True)
class ObjectKind(Generic[Kept]):
    """A kind of object: path and decoded type."""

    api: str  # path of group and version
    plural: str
    type: type[Kept]

    def path(self, namespace: str, name: str = "") -> str:
        """The path of one object, or of a namespace's objects."""
        return f"{self.api}/namespaces/{quote(namespace)}/{self.plural}" + (f"/{quote(name)}" if name else "")

    def right(self, verb: str) -> str:
        """The name of a right in ``Access``: verb and kind, for pods the verb alone."""
        return verb if self.plural == "pods" else f"{verb} {self.plural}"


PODS: Final = ObjectKind("/api/v1", "pods", Pod)


class _Page(Camel, Generic[T], frozen=True):
    metadata: dict[str, Any]
    items: list[T] | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class Access:
    """Decides whether the API server's refusal of a right may be temporary.

    A restarting API server accepts no connections for a moment. Then the server refuses every request until roles and
    tokens are read: a right that worked before is in doubt, not lost.
    """

    def __init__(self) -> None:
        self._granted: set[str] = set()
        self._refused_s: dict[str, float] = {}  # first refusal of a right since the last grant or silence
        self._silences_s: list[float] = []  # first and last of the present outage
        self._outage_s = 0.0  # the longest past outage without a report

    def granted(self, right: str) -> None:
        """Record that the server answered a request with this right."""
        self._granted.add(right)
        self._refused_s.pop(right, None)
        if self._silences_s:
            self._outage_s = max(self._outage_s, self._silences_s[-1] - self._silences_s[0])
            self._silences_s = []

    def judge(self, right: str, error: ApiRefused) -> ApiRefused:
        """Set and return the refusal's doubt: in doubt for ``DOUBT_S`` after a success, unless a policy refused.

        An outage does not count: the time begins with the first answer after the outage.
        """
        now_s = time.monotonic()
        if error.status == 0:
            self._silences_s = [*self._silences_s[:1], now_s]
            self._refused_s.clear()
        elif error.closed and (right in self._granted or (right in _AFTER_A_POD and self._granted)):
            error.in_doubt = now_s - self._refused_s.setdefault(right, now_s) < DOUBT_S
        return error

    def take_outage_s(self) -> float:
        """The least duration of an outage of ``OUTAGE_S`` or more, reported once; else 0."""
        outage_s, self._outage_s = self._outage_s, 0.0
        return outage_s if outage_s >= OUTAGE_S else 0.0


class ClusterApi:
    """Requests about pods and claims. Each raises only ``ApiRefused``."""

    def __init__(self, client: ApiClient) -> None:
        """The caller closes ``client``."""
        self._client = client
        self.access = Access()

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        *,
        right: str = "",
        limit: aiohttp.ClientTimeout = _WHOLE,
    ) -> aiohttp.ClientResponse:
        """``right``: the needed right's name in ``Access``; empty if every user has the right."""
        pairs = [(key, value) for key, value in (query or {}).items() if value not in (None, "")]
        headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        try:
            request = await self._client.param_serialize(
                method, path, query_params=pairs, body=body, auth_settings=_AUTH, header_params=headers
            )
            answer = await self._client.call_api(*request, _request_timeout=limit)
            response: aiohttp.ClientResponse = answer.response
            if response.status >= 300:
                refusal = refused(response.status, response.headers, await response.read())
                raise self.access.judge(right, refusal)
        except (aiohttp.ClientError, OSError) as error:
            raise self.access.judge(right, unanswered(error)) from error
        if right:
            self.access.granted(right)
        return response

    async def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        *,
        right: str = "",
    ) -> bytes:
        response = await self._send(method, path, query, body, right=right)
        try:
            return await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise unanswered(error) from error

    async def version(self) -> tuple[str, int]:
        """The server's version, and the round trip in nanoseconds."""
        began = time.monotonic_ns()
        answer = _decode(await self._ask("GET", "/version"), dict[str, Any])
        return str(answer.get("gitVersion", "")), time.monotonic_ns() - began

    async def create(self, kind: ObjectKind[Kept], namespace: str, manifest: Mapping[str, Any], marks: Marks) -> Kept:
        token = connecting.set(marks)
        try:
            raw = await self._ask("POST", kind.path(namespace), body=manifest, right=kind.right("create"))
            return _decode(raw, kind.type)
        finally:
            connecting.reset(token)

    async def get(self, kind: ObjectKind[Kept], namespace: str, name: str) -> Kept:
        return _decode(await self._ask("GET", kind.path(namespace, name), right=kind.right("get")), kind.type)

    async def exists(self, kind: ObjectKind[Any], about: Metadata) -> bool:
        """Whether this object exists; without a ``uid`` any object of this name."""
        try:
            return about.uid in ("", (await self.get(kind, about.namespace, about.name)).metadata.uid)
        except ApiRefused as error:
            if error.status == 404:
                return False
            raise

    async def patch(self, kind: ObjectKind[Any], namespace: str, name: str, change: Mapping[str, Any]) -> None:
        """Change some fields of an object."""
        await self._ask("PATCH", kind.path(namespace, name), body=change, right=kind.right("patch"))

    async def remove(
        self, kind: ObjectKind[Any], about: Metadata, grace_s: float, gone: asyncio.Event | None = None
    ) -> None:
        """Delete exactly this object, and return when the object is gone.

        The kubelet removes a pod after all processes; a claim is kept until sandbox and pod are gone. A watch may set
        ``gone``; without a watch, requests look more often. Raises ``CleanupFailed``: no permission, or not gone within
        ``removal.REMOVE_S`` + ``grace_s``.

        Args:
            grace_s: the time between TERM and KILL.
        """
        how = {"gracePeriodSeconds": grace_s} if kind is PODS else {"propagationPolicy": "Foreground"}
        body = {**how, "preconditions": {"uid": about.uid}}

        async def ask() -> bool:
            try:
                await self._ask("DELETE", kind.path(about.namespace, about.name), body=body, right=kind.right("delete"))
            except ApiRefused as error:
                if error.status in (404, 409):  # gone, or replaced under the same name
                    return False
                raise error.unless_final(CleanupFailed) from error
            return True

        async def ended() -> bool:
            try:
                return not await self.exists(kind, about)
            except ApiRefused as error:
                raise error.unless_final(CleanupFailed) from error

        stuck = "the deletion was accepted but has not ended; look at the object's node and finalizers"
        name = f"{kind.plural.removeprefix('sandbox').removesuffix('s')} {about.name}"
        look_s = removal.LOOK_S if gone else 0.1
        await removal.remove(name, ask, ended, gone=gone, look_s=look_s, more_s=grace_s, stuck=stuck)

    async def list(self, kind: ObjectKind[Kept], namespace: str, selector: str) -> tuple[list[Kept], str]:
        """The objects of a namespace, and the resource version of the list."""
        objects: list[Kept] = []
        query: dict[str, Any] = {"labelSelector": selector, "limit": PAGE}
        while True:
            answer = await self._ask("GET", kind.path(namespace), query, right=kind.right("list"))
            page: _Page[Kept] = _decode(answer, _Page[kind.type])  # type: ignore[name-defined]
            objects += page.items or []
            query["continue"] = page.metadata.get("continue")
            if not query["continue"]:
                return objects, str(page.metadata.get("resourceVersion", ""))

    async def watch(
        self, kind: ObjectKind[Kept], namespace: str, selector: str, version: str
    ) -> AsyncIterator[tuple[str, Kept]]:
        """Events after a resource version until the server ends the stream; ``ApiRefused`` 410 for an old version."""
        query = {
            "labelSelector": selector,
            "resourceVersion": version,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": WATCH_S,
        }
        limit = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_S, sock_read=WATCH_S + REQUEST_S)
        response = await self._send("GET", kind.path(namespace), query, right=kind.right("watch"), limit=limit)
        with contextlib.closing(response):
            try:
                while line := await response.content.readline():
                    event = _decode(line, _Event)
                    if event.type == "ERROR":
                        problem = _decode(event.object, Problem)
                        raise ApiRefused(
                            problem.code or 500, problem.reason or "", problem.message or "the watch failed"
                        )
                    yield event.type, _decode(event.object, kind.type)
            except (aiohttp.ClientError, OSError) as error:
                raise unanswered(error) from error

    async def connect(
        self, namespace: str, pod: str, query: Mapping[str, Any], protocols: Sequence[str]
    ) -> aiohttp.ClientWebSocketResponse:
        """Start a program in a pod by a websocket. Shares the connection pool after the client's first request."""
        path = f"{PODS.path(namespace, pod)}/exec"
        _, url, headers, _, _ = await self._client.param_serialize(
            "GET",
            path,
            query_params=list(query.items()),
            auth_settings=_AUTH,
            collection_formats={"command": "multi"},
        )
        settings, session = self._client.configuration, self._client.rest_client.pool_manager
        assert session is not None  # made by the first request
        body = bytearray()
        token = declined.set(body)
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                socket = await session.ws_connect(
                    "ws" + url.removeprefix("http"),
                    protocols=protocols,
                    headers=headers,
                    max_msg_size=0,
                    proxy=settings.proxy,
                    proxy_headers=settings.proxy_headers,
                    server_hostname=settings.tls_server_name,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSING_S),
                )
        except aiohttp.WSServerHandshakeError as error:
            raise self.access.judge("exec", refused(error.status, error.headers or {}, bytes(body))) from error
        except (aiohttp.ClientError, OSError) as error:
            raise self.access.judge("exec", unanswered(error)) from error
        finally:
            declined.reset(token)
        self.access.granted("exec")
        return socket

    async def events(self, namespace: str, pod: str, selector: str) -> Sequence[Event]:
        """The events of a pod for a field selector like ``type=Warning``; none without the right, which is optional."""
        query = {"fieldSelector": f"involvedObject.name={pod},{selector}", "limit": PAGE}
        try:
            answer = await self._ask("GET", f"/api/v1/namespaces/{quote(namespace)}/events", query, right="events")
            return _decode(answer, _Page[Event]).items or []
        except ApiRefused:
            return []

    async def last_warning(self, namespace: str, pod: str) -> str:
        """A pod's last warning as ``reason: message``, a failure before any other; "" without one or without the right.

        Some warnings stay for the pod's whole life: without a cluster DNS each pod has ``MissingClusterDNS``.
        """
        events = await self.events(namespace, pod, "type=Warning")
        event = max(events, key=lambda event: (event.reports_failure(), event.when), default=None)
        return event.text() if event else ""

    async def last_pull(self, namespace: str, pod: str) -> Pull | None:
        """The pull of a pod's image; None if the node had the image, and without the right to read events."""
        events = await self.events(namespace, pod, "reason=Pulled")
        event = max(events, key=lambda event: event.when, default=None)
        return pull(event.message or "") if event else None

    async def missing(self, namespace: str, rights: Iterable[tuple[str, str, str]]) -> str:
        """The missing rights, each a verb, a resource and an API group, in one line; "" if none is missing."""
        missing = []
        for verb, resource, group in rights:
            plural, _, sub = resource.partition("/")
            attributes = {"namespace": namespace, "verb": verb, "resource": plural, "subresource": sub, "group": group}
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            }
            answer = await self._ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=review)
            if not _decode(answer, dict[str, Any]).get("status", {}).get("allowed"):
                missing.append(f"{verb} {resource}")
        return ", ".join(missing)

    async def denies_egress(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a NetworkPolicy denies all egress to pods with these labels; False without the right to look.

        Some clusters enforce no policy.
        """
        path = f"/apis/networking.k8s.io/v1/namespaces/{quote(namespace)}/networkpolicies"
        with contextlib.suppress(ApiRefused):
            policies = _decode(await self._ask("GET", path), dict[str, Any]).get("items") or ()
            return any(_denies(policy.get("spec") or {}, labels) for policy in policies)
        return False


def _denies(policy: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    selector = policy.get("podSelector") or {}
    selected = not selector.get("matchExpressions") and (selector.get("matchLabels") or {}).items() <= labels.items()
    return selected and "Egress" in (policy.get("policyTypes") or ()) and not policy.get("egress")


def _decode(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:  # a proxy's page, or a part of a line
        raise ApiRefused(
            0, type(error).__name__, "the API server's answer does not match Kubernetes' schema"
        ) from error
