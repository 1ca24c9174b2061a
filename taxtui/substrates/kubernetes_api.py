"""The few Kubernetes requests that the substrate needs, and what their answers mean.

They take the SDK's generic call path: the generated methods build and check a pydantic model of every pod, 2 ms of
our own CPU per create, which with many trials in flight would show up as latency. Answers are decoded into the few
fields that matter.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec
from kubernetes.aio.client import ApiClient

from taxtui.errors import CreateFailed, QuotaExceeded, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.substrate import Marks
from taxtui.substrates.kubernetes_pod import Camel, Metadata, Pod

T = TypeVar("T")

REQUEST_S: Final = 30.0
WATCH_S: Final = 240
"""How long the API server keeps one watch open; it then ends it without a word, and we resume."""
PAGE: Final = 500
_AUTH: Final = ["BearerToken"]
_USER: Final = re.compile(r'[Uu]ser "[^"]*"')  # of no use to who reads a recording, and none of their business
_WHOLE: Final = aiohttp.ClientTimeout(total=REQUEST_S)

connecting: ContextVar[Marks | None] = ContextVar("connecting", default=None)
"""Whose request the current task is sending: told when a new connection had to be made for it."""


class _Pods(Camel, frozen=True):
    metadata: dict[str, Any]
    items: list[Pod] | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Problem(Camel, frozen=True):
    """A ``Status`` object: how the API server says no."""

    reason: str | None = None
    message: str | None = None
    code: int | None = None


class Refused(Exception):
    """The API server said no, in its own terms; ``status`` 0 when it said nothing. Never leaves the substrate."""

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        """Keep the parts that decide what becomes of it."""
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s

    @property
    def final(self) -> bool:
        """Asking again cannot help: wrong credentials, or no permission."""
        return self.status in (401, 403)

    def __str__(self) -> str:
        """One line, with the HTTP status where there was one."""
        return f"{super().__str__()} ({self.reason})" if not self.status else f"{super().__str__()} ({self.status})"

    def as_error(self, otherwise: type[SubstrateError], doing: str) -> SubstrateError:
        """The error of ours that it amounts to; before there is a pod, a missing permission is the set-up's fault."""
        text = f"{doing}: {self}"
        if self.status == 429 or (self.status >= 500 and self.retry_after_s is not None):
            return Throttled(text, self.retry_after_s)
        if otherwise is CreateFailed:
            if self.status == 401:
                return SubstrateUnavailable(f"{text}; renew the credentials of this kubeconfig context")
            if self.status == 403 and "exceeded quota" in text:
                return QuotaExceeded(text)
            if self.status == 403:
                return SubstrateUnavailable(f"{text}; grant the role that the README shows, or fix what it names")
        return otherwise(text)


def refused(status: int, headers: Mapping[str, str], body: bytes) -> Refused:
    """What an answer other than 2xx says; the body is a Status object, unless something before the API server spoke."""
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except msgspec.DecodeError:
        problem = _Problem()
    message = _USER.sub("this user", " ".join((problem.message or f"HTTP {status}").split()))
    after = headers.get("Retry-After", "")
    return Refused(status, problem.reason or "", message, float(after) if after.isdigit() else None)


class PodApi:
    """Requests about pods. Each raises ``Refused`` and nothing else."""

    def __init__(self, client: ApiClient) -> None:
        """Use a client that the caller closes."""
        self._client = client

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        limit: aiohttp.ClientTimeout = _WHOLE,
    ) -> aiohttp.ClientResponse:
        pairs = [(key, value) for key, value in (query or {}).items() if value not in (None, "")]
        try:
            request = await self._client.param_serialize(
                method, path, query_params=pairs, body=body, auth_settings=_AUTH
            )
            answer = await self._client.call_api(*request, _request_timeout=limit)
            response: aiohttp.ClientResponse = answer.response
            if response.status >= 300:
                raise refused(response.status, response.headers, await response.read())
        except (aiohttp.ClientError, OSError) as error:
            raise unanswered(error) from error
        return response

    async def _ask(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: object = None) -> bytes:
        response = await self._send(method, path, query, body)
        try:
            return await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise unanswered(error) from error

    async def version(self) -> tuple[str, int]:
        """The server's version, and the round trip to it in nanoseconds."""
        began = time.monotonic_ns()
        answer = _decode(await self._ask("GET", "/version"), dict[str, Any])
        return str(answer.get("gitVersion", "")), time.monotonic_ns() - began

    async def create(self, namespace: str, manifest: Mapping[str, Any], marks: Marks) -> Pod:
        """Make a pod."""
        token = connecting.set(marks)
        try:
            return _decode(await self._ask("POST", _pods(namespace), body=manifest), Pod)
        finally:
            connecting.reset(token)

    async def get(self, namespace: str, name: str) -> Pod:
        """A pod as it is now."""
        return _decode(await self._ask("GET", _pods(namespace, name)), Pod)

    async def delete(self, pod: Metadata, grace_s: int) -> bool:
        """Ask for the deletion of exactly this pod; False when it is gone, or another one has its name."""
        body = {"gracePeriodSeconds": grace_s, "preconditions": {"uid": pod.uid}}
        try:
            await self._ask("DELETE", _pods(pod.namespace, pod.name), body=body)
        except Refused as error:
            if error.status in (404, 409):
                return False
            raise
        return True

    async def list(self, namespace: str | None, selector: str) -> tuple[list[Pod], str, float]:
        """Pods of one namespace or of all, the list's resource version, and the server's Unix time of the answer."""
        found: list[Pod] = []
        path = "/api/v1/pods" if namespace is None else _pods(namespace)
        query: dict[str, Any] = {"labelSelector": selector, "limit": PAGE}
        while True:
            response = await self._send("GET", path, query)
            with contextlib.closing(response):
                page = _decode(await response.read(), _Pods)
            found += page.items or []
            query["continue"] = page.metadata.get("continue")
            if not query["continue"]:
                return found, str(page.metadata.get("resourceVersion", "")), _date(response.headers.get("Date"))

    async def watch(self, namespace: str, selector: str, version: str) -> AsyncIterator[tuple[str, Pod]]:
        """Events after a resource version until the server ends the stream; ``Refused`` 410 when it is too old."""
        query = {
            "labelSelector": selector,
            "resourceVersion": version,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": WATCH_S,
        }
        limit = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_S, sock_read=WATCH_S + REQUEST_S)
        response = await self._send("GET", _pods(namespace), query, limit=limit)
        with contextlib.closing(response):
            try:
                while line := await response.content.readline():
                    event = _decode(line, _Event)
                    if event.type == "ERROR":
                        problem = _decode(event.object, _Problem)
                        raise Refused(problem.code or 500, problem.reason or "", problem.message or "the watch failed")
                    yield event.type, _decode(event.object, Pod)
            except (aiohttp.ClientError, OSError) as error:
                raise unanswered(error) from error

    async def may(self, namespace: str, verb: str, resource: str) -> bool:
        """Whether our own permissions cover something like ``create`` ``pods/exec``."""
        kind, _, sub = resource.partition("/")
        attributes = {"namespace": namespace, "verb": verb, "resource": kind, "subresource": sub}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await self._ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=review)
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


def _pods(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{quote(namespace)}/pods" + (f"/{quote(name)}" if name else "")


def _decode(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:  # a proxy's page, or a stream that was cut within a line
        raise Refused(0, type(error).__name__, "the API server's answer is not what Kubernetes sends") from error


def unanswered(error: Exception) -> Refused:
    """A request that no HTTP answer came back to; its text could name hosts, so only its kind is kept."""
    return Refused(0, type(error).__name__, "the API server did not answer")


def _date(header: str | None) -> float:
    return parsedate_to_datetime(header).timestamp() if header else time.time()
