"""The few Kubernetes requests that the substrate needs, and what their answers mean.

They take the SDK's generic call path: the generated methods build and check a pydantic model of every pod, 2 ms of
our own CPU per create, which with many trials in flight would show up as latency. Answers are decoded into the few
fields that matter.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final, Generic, Protocol, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec
from kubernetes.aio.client import ApiClient

from taxtui.sandboxes.kit.connecting import connecting
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes.access import Access
from taxtui.substrates.kubernetes.failure import ApiRefused, Problem, refused, unanswered
from taxtui.substrates.kubernetes.pod import Camel, Event, Events, Metadata, Pod

T = TypeVar("T")


class Described(Protocol):
    """Whatever the API keeps: it has metadata."""

    @property
    def metadata(self) -> Metadata:
        """Who it is."""
        ...


Kept = TypeVar("Kept", bound=Described)

REQUEST_S: Final = 30.0
WATCH_S: Final = 240
"""How long the API server keeps one watch open; it then ends it without a word, and we resume."""
PAGE: Final = 500
_AUTH: Final = ["BearerToken"]
_WHOLE: Final = aiohttp.ClientTimeout(total=REQUEST_S)

declined: ContextVar[bytearray | None] = ContextVar("declined", default=None)
"""Where the body of an answer to the current task's handshake goes: the websocket client drops it."""


@dataclass(frozen=True)
class ObjectKind(Generic[Kept]):
    """A kind of object: where it is kept, and what is read of it."""

    api: str  # the path of its group and version
    plural: str
    type: type[Kept]

    def path(self, namespace: str | None, name: str = "") -> str:
        """Of one of them, of those in a namespace, or of all."""
        within = "" if namespace is None else f"/namespaces/{quote(namespace)}"
        return f"{self.api}{within}/{self.plural}" + (f"/{quote(name)}" if name else "")

    def right(self, verb: str) -> str:
        """What it takes to be let do that; of pods the bare word."""
        return verb if self.plural == "pods" else f"{verb} {self.plural}"


PODS: Final = ObjectKind("/api/v1", "pods", Pod)


class _Page(Camel, Generic[T], frozen=True):
    metadata: dict[str, Any]
    items: list[T] | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class ClusterApi:
    """Requests about pods and what stands for them. Each raises ``ApiRefused`` and nothing else."""

    def __init__(self, client: ApiClient) -> None:
        """Use a client that the caller closes."""
        self._client = client
        self.access = Access()
        self._ahead_s = 0.0

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        limit: aiohttp.ClientTimeout = _WHOLE,
        *,
        right: str = "",
    ) -> aiohttp.ClientResponse:
        """``right``: what it takes to be allowed this, by a name of our own; none where everybody is."""
        pairs = [(key, value) for key, value in (query or {}).items() if value not in (None, "")]
        try:
            request = await self._client.param_serialize(
                method, path, query_params=pairs, body=body, auth_settings=_AUTH
            )
            answer = await self._client.call_api(*request, _request_timeout=limit)
            response: aiohttp.ClientResponse = answer.response
            if response.status >= 300:
                said = refused(response.status, response.headers, await response.read())
                raise self.access.judge(right, said)
        except (aiohttp.ClientError, OSError) as error:
            raise self.access.judge(right, unanswered(error)) from error
        if right:
            self.access.granted(right)
        if date := response.headers.get("Date"):
            self._ahead_s = _date(date) - time.time()
        return response

    def now_s(self) -> float:
        """The server's Unix time, up to a second too early: its answers are dated in whole ones."""
        return time.time() + self._ahead_s

    async def _ask(self, method: str, path: str, body: object = None, *, right: str = "") -> bytes:
        response = await self._send(method, path, body=body, right=right)
        try:
            return await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise unanswered(error) from error

    async def version(self) -> tuple[str, int]:
        """The server's version, and the round trip to it in nanoseconds."""
        began = time.monotonic_ns()
        answer = _decode(await self._ask("GET", "/version"), dict[str, Any])
        return str(answer.get("gitVersion", "")), time.monotonic_ns() - began

    async def create(self, kind: ObjectKind[Kept], namespace: str, manifest: Mapping[str, Any], marks: Marks) -> Kept:
        """Make one of a kind."""
        token = connecting.set(marks)
        try:
            raw = await self._ask("POST", kind.path(namespace), manifest, right=kind.right("create"))
            return _decode(raw, kind.type)
        finally:
            connecting.reset(token)

    async def get(self, kind: ObjectKind[Kept], namespace: str, name: str) -> Kept:
        """One of a kind as it is now."""
        return _decode(await self._ask("GET", kind.path(namespace, name), right=kind.right("get")), kind.type)

    async def delete(self, kind: ObjectKind[Any], about: Metadata, how: Mapping[str, Any]) -> bool:
        """Ask for the deletion of exactly this one; False when it is gone, or another one has its name."""
        body = {**how, "preconditions": {"uid": about.uid}}
        try:
            await self._ask("DELETE", kind.path(about.namespace, about.name), body, right=kind.right("delete"))
        except ApiRefused as error:
            if error.status in (404, 409):
                return False
            raise
        return True

    async def list(self, kind: ObjectKind[Kept], namespace: str | None, selector: str) -> tuple[list[Kept], str, float]:
        """Those of one namespace or of all, the list's resource version, and the server's Unix time of the answer."""
        found: list[Kept] = []
        query: dict[str, Any] = {"labelSelector": selector, "limit": PAGE}
        while True:
            right = kind.right(f"list {namespace}")
            response = await self._send("GET", kind.path(namespace), query, right=right)
            with contextlib.closing(response):
                page: _Page[Kept] = _decode(await response.read(), _Page[kind.type])  # type: ignore[name-defined]
            found += page.items or []
            query["continue"] = page.metadata.get("continue")
            if not query["continue"]:
                return found, str(page.metadata.get("resourceVersion", "")), _date(response.headers.get("Date"))

    async def watch(
        self, kind: ObjectKind[Kept], namespace: str, selector: str, version: str
    ) -> AsyncIterator[tuple[str, Kept]]:
        """Events after a resource version until the server ends the stream; ``ApiRefused`` 410 when it is too old."""
        query = {
            "labelSelector": selector,
            "resourceVersion": version,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": WATCH_S,
        }
        limit = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_S, sock_read=WATCH_S + REQUEST_S)
        response = await self._send("GET", kind.path(namespace), query, limit=limit, right=kind.right("watch"))
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

    async def events(self, pod: Metadata, which: str) -> Sequence[Event]:
        """The events about a pod that a field selector like ``type=Warning`` takes, in no order."""
        query = {"fieldSelector": f"involvedObject.uid={pod.uid},{which}", "limit": PAGE}
        path = f"/api/v1/namespaces/{quote(pod.namespace)}/events"
        response = await self._send("GET", path, query, right="events")
        with contextlib.closing(response):
            return _decode(await response.read(), Events).items or []

    async def may(self, namespace: str, verb: str, resource: str, group: str = "") -> bool:
        """Whether our own permissions cover something like ``create`` ``pods/exec``."""
        plural, _, sub = resource.partition("/")
        attributes = {"namespace": namespace, "verb": verb, "resource": plural, "subresource": sub, "group": group}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await self._ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        return bool(_decode(answer, dict[str, Any]).get("status", {}).get("allowed"))

    async def quota(self, namespace: str) -> dict[str, str]:
        """What is used of the namespace's resource quotas: ``{"requests.cpu": "3 of 10"}``."""
        path = f"/api/v1/namespaces/{quote(namespace)}/resourcequotas"
        answer = _decode(await self._ask("GET", path), dict[str, Any])
        shares: dict[str, str] = {}
        for item in answer.get("items") or ():
            status = item.get("status") or {}
            for resource, hard in (status.get("hard") or {}).items():
                shares[resource] = f"{(status.get('used') or {}).get(resource, '0')} of {hard}"
        return shares


def _decode(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:  # a proxy's page, or a stream that was cut within a line
        raise ApiRefused(0, type(error).__name__, "the API server's answer is not what Kubernetes sends") from error


def _date(header: str | None) -> float:
    return parsedate_to_datetime(header).timestamp() if header else time.time()
