"""The Kubernetes requests of the substrate, with answers decoded into the used fields.

Requests use the SDK's generic call path. The generated methods build and check a pydantic model of every pod: 2 ms of
CPU per create, which would look like latency with many concurrent trials.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec
from kubernetes.aio.client import ApiClient

from taxtui.errors import CleanupFailed
from taxtui.sandboxes.kit import removal
from taxtui.sandboxes.kit.refusal import connecting
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes.access import Access
from taxtui.substrates.kubernetes.failure import ApiRefused, ApiStatus, refused, unanswered
from taxtui.substrates.kubernetes.pod import ApiObject, Camel, Event, Metadata, Pod, Pull, pull

T = TypeVar("T")
Kept = TypeVar("Kept", bound=ApiObject)

REQUEST_S: Final = 30.0
WATCH_S: Final = 240
"""Time after which the API server ends a watch without a message; a new request continues the watch."""
PAGE: Final = 500
_AUTH: Final = ["BearerToken"]
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_WHOLE: Final = aiohttp.ClientTimeout(total=REQUEST_S)

declined: ContextVar[bytearray | None] = ContextVar("declined", default=None)
"""The body of a refused handshake in the current task: the websocket client drops the body."""


@dataclass(frozen=True)
class ObjectKind(Generic[Kept]):
    """A kind of object: path and decoded type."""

    api: str  # path of group and version
    plural: str
    type: type[Kept]

    @property
    def noun(self) -> str:
        """``pod`` or ``claim``."""
        return self.plural.removeprefix("sandbox").removesuffix("s")

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


class ClusterApi:
    """Requests about pods and claims of one namespace. Each raises only ``ApiRefused``."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        """The caller closes ``client``."""
        self.client = client
        self.namespace = namespace
        self.access = Access()
        self._may_read_events = True
        self._ahead_s = 0.0

    def path(self, group: str, plural: str, name: str = "") -> str:
        """The path of an object in the namespace, or of all objects; ``group``: the path of group and version."""
        return f"{group}/namespaces/{quote(self.namespace)}/{plural}" + (f"/{quote(name)}" if name else "")

    def _of(self, kind: ObjectKind[Any], name: str = "") -> str:
        return self.path(kind.api, kind.plural, name)

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        limit: aiohttp.ClientTimeout = _WHOLE,
        *,
        right: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> aiohttp.ClientResponse:
        """``right``: the needed right's name in ``Access``; empty if every user has the right."""
        pairs = [(key, value) for key, value in (query or {}).items() if value not in (None, "")]
        try:
            request = await self.client.param_serialize(
                method, path, query_params=pairs, body=body, auth_settings=_AUTH, header_params=dict(headers or {})
            )
            answer = await self.client.call_api(*request, _request_timeout=limit)
            response: aiohttp.ClientResponse = answer.response
            if response.status >= 300:
                refusal = refused(response.status, response.headers, await response.read())
                raise self.access.judge(right, refusal)
        except (aiohttp.ClientError, OSError) as error:
            raise self.access.judge(right, unanswered(error)) from error
        if right:
            self.access.granted(right)
        with contextlib.suppress(ValueError):  # without a date, or with a proxy's idea of one
            self._ahead_s = parsedate_to_datetime(response.headers.get("Date", "")).timestamp() - time.time()
        return response

    def now_s(self) -> float:
        """The server's Unix time, up to a second too early: answers are dated in whole seconds."""
        return time.time() + self._ahead_s

    async def _ask(self, method: str, path: str, **request: Any) -> bytes:
        """As ``_send``; the whole answer."""
        response = await self._send(method, path, **request)
        try:
            return await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise unanswered(error) from error

    async def version(self) -> tuple[str, int]:
        """The server's version, and the round trip in nanoseconds."""
        began = time.monotonic_ns()
        answer = _decode(await self._ask("GET", "/version"), dict[str, Any])
        return str(answer.get("gitVersion", "")), time.monotonic_ns() - began

    async def create(self, kind: ObjectKind[Kept], manifest: Mapping[str, Any], marks: Marks) -> Kept:
        token = connecting.set(marks)
        try:
            raw = await self._ask("POST", self._of(kind), body=manifest, right=kind.right("create"))
            return _decode(raw, kind.type)
        finally:
            connecting.reset(token)

    async def get(self, kind: ObjectKind[Kept], name: str) -> Kept:
        return _decode(await self._ask("GET", self._of(kind, name), right=kind.right("get")), kind.type)

    async def exists(self, kind: ObjectKind[Any], about: Metadata) -> bool:
        """Whether this object exists; without a ``uid`` any object of this name."""
        try:
            return about.uid in ("", (await self.get(kind, about.name)).metadata.uid)
        except ApiRefused as error:
            if error.status == 404:
                return False
            raise

    async def patch(self, kind: ObjectKind[Any], name: str, change: Mapping[str, Any]) -> None:
        """Change some fields of an object."""
        await self._ask("PATCH", self._of(kind, name), body=change, right=kind.right("patch"), headers=_MERGE)

    async def delete(self, kind: ObjectKind[Any], about: Metadata, how: Mapping[str, Any]) -> bool:
        """Request the deletion of exactly this object; False if the object is gone or replaced under the same name."""
        body = {**how, "preconditions": {"uid": about.uid}}
        try:
            await self._ask("DELETE", self._of(kind, about.name), body=body, right=kind.right("delete"))
        except ApiRefused as error:
            if error.status in (404, 409):
                return False
            raise
        return True

    async def list(self, kind: ObjectKind[Kept], selector: str) -> tuple[list[Kept], str]:
        """The objects with a label, and the resource version of the list."""
        objects: list[Kept] = []
        query: dict[str, Any] = {"labelSelector": selector, "limit": PAGE}
        while True:
            raw = await self._ask("GET", self._of(kind), query=query, right=kind.right("list"))
            page: _Page[Kept] = _decode(raw, _Page[kind.type])  # type: ignore[name-defined]
            objects += page.items or []
            query["continue"] = page.metadata.get("continue")
            if not query["continue"]:
                return objects, str(page.metadata.get("resourceVersion", ""))

    async def watch(self, kind: ObjectKind[Kept], selector: str, version: str) -> AsyncIterator[tuple[str, Kept]]:
        """Events after a resource version until the server ends the stream; ``ApiRefused`` 410 for an old version."""
        query = {
            "labelSelector": selector,
            "resourceVersion": version,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": WATCH_S,
        }
        limit = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_S, sock_read=WATCH_S + REQUEST_S)
        response = await self._send("GET", self._of(kind), query, limit=limit, right=kind.right("watch"))
        with contextlib.closing(response):
            try:
                while line := await response.content.readline():
                    event = _decode(line, _Event)
                    if event.type == "ERROR":
                        problem = _decode(event.object, ApiStatus)
                        raise ApiRefused(
                            problem.code or 500, problem.reason or "", problem.message or "the watch failed"
                        )
                    yield event.type, _decode(event.object, kind.type)
            except (aiohttp.ClientError, OSError) as error:
                raise unanswered(error) from error

    async def events(self, pod: Metadata, selector: str) -> Sequence[Event]:
        """The events of a pod for a field selector like ``type=Warning``, in no order."""
        query = {"fieldSelector": f"involvedObject.uid={pod.uid},{selector}", "limit": PAGE}
        raw = await self._ask("GET", self.path("/api/v1", "events"), query=query, right="events")
        return _decode(raw, _Page[Event]).items or []

    async def last_warning(self, pod: Metadata) -> str:
        """A pod's last warning as ``reason: message``, a failure before any other; "" without one or without the right.

        Some warnings stay for the pod's whole life: without a cluster DNS each pod has ``MissingClusterDNS``.
        """
        event = await self._last_event(pod, "type=Warning")
        return event.text("Warning") if event else ""

    async def last_pull(self, pod: Metadata) -> Pull | None:
        """The pull of a pod's image; None if the node had the image, and without the right to read events."""
        event = await self._last_event(pod, "reason=Pulled")
        return pull(event.message or "") if event else None

    async def _last_event(self, pod: Metadata, selector: str) -> Event | None:
        """The right to read events is optional: after a final refusal no request follows."""
        if not self._may_read_events:
            return None
        try:
            events = await self.events(pod, selector)
            return max(events, key=lambda event: (event.reports_failure(), event.when), default=None)
        except ApiRefused as error:
            self._may_read_events = not error.final
            return None

    async def missing(self, rights: Iterable[tuple[str, str, str]]) -> str:
        """The missing rights, each a verb, a resource and an API group, in one line; "" if none is missing."""
        return ", ".join([f"{right[0]} {right[1]}" for right in rights if not await self._may(*right)])

    async def _may(self, verb: str, resource: str, group: str) -> bool:
        plural, _, sub = resource.partition("/")
        attributes = {"namespace": self.namespace, "verb": verb, "resource": plural, "subresource": sub, "group": group}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await self._ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=review)
        return bool(_decode(answer, dict[str, Any]).get("status", {}).get("allowed"))

    async def denies_egress(self, labels: Mapping[str, str]) -> bool:
        """Whether a NetworkPolicy denies all egress to pods with these labels; some clusters enforce no policy."""
        path = self.path("/apis/networking.k8s.io/v1", "networkpolicies")
        policies = _decode(await self._ask("GET", path), dict[str, Any]).get("items") or ()
        return any(_denies(policy.get("spec") or {}, labels) for policy in policies)


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


async def remove(
    api: ClusterApi,
    kind: ObjectKind[Any],
    about: Metadata,
    grace_s: float,
    gone: asyncio.Event | None = None,
    pod: str = "",
) -> None:
    """Delete exactly this object, and return when the object is gone: the kubelet removes a pod after all processes.

    A watch may set ``gone``; without a watch, requests look more often. Raises ``CleanupFailed``: no permission, or not
    gone within ``removal.REMOVE_S`` + ``grace_s``.

    Args:
        grace_s: the time between TERM and KILL.
        pod: the name of a claim's pod, if known; also waited for.
    """
    # A deleted claim is kept until sandbox and pod are gone.
    how = {"gracePeriodSeconds": grace_s} if kind is PODS else {"propagationPolicy": "Foreground"}

    async def ask() -> bool:
        with _as_error():
            return await api.delete(kind, about, how) or not await ended()

    async def ended() -> bool:
        with _as_error():
            if await api.exists(kind, about):
                return False
            return not pod or not await api.exists(PODS, Metadata(name=pod))

    stuck = "the deletion was accepted but has not ended; look at the object's node and finalizers"
    look_s = removal.LOOK_S if gone else 0.1
    await removal.remove(f"{kind.noun} {about.name}", ask, ended, gone=gone, look_s=look_s, more_s=grace_s, stuck=stuck)


@contextlib.contextmanager
def _as_error() -> Iterator[None]:
    """Raise ``Throttled`` for a refusal, or ``CleanupFailed`` for a final one."""
    try:
        yield
    except ApiRefused as error:
        raise error.unless_final(CleanupFailed) from error
