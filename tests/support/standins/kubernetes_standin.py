"""A Kubernetes API server for tests: TLS, token, RBAC, quota, pods, watches and exec, spoken to by the real client.

Every reply is checked against the OpenAPI models that the kubernetes package ships. As on a real cluster a process
outlives the connection that started it, and a failure to start one comes on the status channel.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import functools
import ipaddress
import json
import math
import ssl
import tempfile
import time
from asyncio import StreamReader
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from aiohttp import ClientConnectionResetError, WSMsgType, web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.standins.kubernetes_cluster import Histories, Json, Pods, Refused, environment
from tests.support.standins.standin_place import CUT, Faults, Handler, Leaves, Place

VERSION = "v1.33.0-standin"
TOKEN = "stand-in-token"
USER = "system:serviceaccount:sandboxes:taxtui"
_VERBS = {
    "create": "create pods",
    "get": "get pods",
    "list": "list pods",
    "watch": "watch pods",
    "delete": "delete pods",
    "exec": "get pods/exec",
    "events": "list events",
}
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, STATUS, CLOSE = 0, 1, 2, 3, 255
CHUNK = 32768


class KubernetesStandin(Leaves):
    """One API server. ``async with`` starts it on a free port of 127.0.0.1."""

    verbs: Mapping[str, str] = _VERBS  # by the kind of a request: what it takes

    def __init__(self) -> None:
        self.pods = Pods()
        self.faults = Faults()
        self.denied: set[str] = set()  # "create pods", "get pods/exec"
        self.quota: int | None = None  # pods
        self.watch_ends_after: int | None = None  # events, then a silent end
        self.exec_protocols = PROTOCOLS
        self.requests: list[str] = []
        self._down = False  # nobody is answered, not on a connection that outlived the restart either
        self._filled_s = 0.0  # until then, as time.monotonic has it, its caches are empty and it refuses everything
        self._busy: set[asyncio.Transport | None] = set()  # connections of requests under way
        self.watches: set[asyncio.Transport] = set()  # their connections
        self.execs: set[asyncio.Transport] = set()  # likewise
        self.namespace = "sandboxes"
        self._validate = _validator()
        self._tls, self._authority_pem = _certified()
        self._folder = tempfile.TemporaryDirectory(prefix="standin-")
        self.kubeconfig = Path(self._folder.name) / "kubeconfig"

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[self._guard])
        space = "/api/v1/namespaces/{space}"
        app.add_routes(self.more_routes())
        app.add_routes(
            [
                web.get("/version", self._version, name="version"),
                web.post(f"{space}/pods", self._create, name="create"),
                web.get(f"{space}/pods", self._list, name="list"),
                web.get(f"{space}/pods/{{name}}", self._get, name="get"),
                web.delete(f"{space}/pods/{{name}}", self._delete, name="delete"),
                web.get(f"{space}/pods/{{name}}/exec", self._exec, name="exec"),
                web.get(f"{space}/events", self._events, name="events"),
                web.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", self._review, name="review"),
            ]
        )
        # Go's limit on a request's headers, the request line included, is 1 MiB; aiohttp's is 8 KiB.
        self._runner = web.AppRunner(app, access_log=None, max_line_size=1 << 20, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._listen(0)
        self.port = self._runner.addresses[0][1]
        self.kubeconfig.write_text(json.dumps(self._kubeconfig()))
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.pods.close()
        await self._runner.cleanup()
        self._folder.cleanup()

    def more_routes(self) -> list[web.RouteDef]:
        return []

    def fail(self, on: str, **how: Any) -> None:
        self.faults.add(on, **how)

    async def restart(self, refuses_s: float = 3.0, down_s: float = 0.05, *, hang_up: bool = False) -> None:
        """As a real one does it: watches are cut, nobody can connect, and then nobody has any rights until the roles
        have been read. Requests under way are finished. Connections that are idle stay, or are closed (``hang_up``):
        a request that is on its way just then gets no answer."""
        await self._site.stop()
        assert self._runner.server is not None
        for connection in self._runner.server.connections if hang_up else ():
            if connection.transport not in self._busy:
                connection.force_close()
        self.cut_watches()
        self._filled_s = time.monotonic() + down_s + refuses_s
        self._down = hang_up
        await asyncio.sleep(down_s)
        self._down = False
        await self._listen(self.port)

    async def _listen(self, port: int) -> None:
        self._site = web.TCPSite(
            self._runner, "127.0.0.1", port, ssl_context=self._tls, backlog=1024, reuse_address=True
        )
        await self._site.start()

    def cut_watches(self) -> None:
        for connection in self.watches:
            connection.abort()

    def cut_execs(self) -> None:
        """Break every connection that a command or a shell uses; what it started goes on."""
        for connection in self.execs:
            connection.abort()

    def left(self) -> tuple[int, int]:
        """Pods that exist, and process groups that are alive."""
        return len(self.pods.objects), self.pods.running()

    def _kubeconfig(self) -> Json:
        authority = base64.b64encode(self._authority_pem).decode()
        cluster = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority-data": authority}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "stand-in",
            "clusters": [{"name": "stand-in", "cluster": cluster}],
            "users": [{"name": "tester", "user": {"token": TOKEN}}],
            "contexts": [
                {"name": "stand-in", "context": {"cluster": "stand-in", "user": "tester", "namespace": self.namespace}}
            ],
        }

    # ------------------------------------------------------------------------------------- around every request

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        connection = request.transport
        if self._down and connection is not None:
            connection.abort()
        self._busy.add(connection)
        try:
            return await self._answer(request, handler)
        finally:
            self._busy.discard(connection)

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        kind = str(request.match_info.route.name)
        if request.query.get("watch") == "true":
            kind = kind.replace("list", "watch")
        self.requests.append(kind)
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._no(401, "Unauthorized", "Unauthorized")
        verb = str(self.verbs.get(kind))
        if verb in self.denied:
            return self._no(403, "Forbidden", f'pods is forbidden: User "{USER}" cannot {verb}')
        if time.monotonic() < self._filled_s:
            unread = 'RBAC: role.rbac.authorization.k8s.io "taxtui" not found'
            return self._no(403, "Forbidden", f'pods is forbidden: User "{USER}" cannot {verb}: {unread}')
        fault = self.faults.next(kind)
        if fault is None:
            try:
                return await handler(request)
            except Refused as refused:
                return self._no(*refused.args)
        if fault.status:
            return self._no(fault.status, _REASONS[fault.status], fault.message, fault.retry_after_s)
        return await fault.strike(request, handler)

    def _yes(self, body: Json, model: str, status: int = 200) -> web.Response:
        self._validate(body, model)
        return web.json_response(body, status=status)

    def _no(self, code: int, reason: str, message: str, retry_after_s: float | None = None) -> web.Response:
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "reason": reason,
            "message": message,
            "code": code,
        }
        answer = self._yes(body, "V1Status", code)
        if retry_after_s is not None:
            answer.headers["Retry-After"] = str(math.ceil(retry_after_s))  # the header knows whole seconds
        return answer

    # --------------------------------------------------------------------------------------------- the requests

    async def _version(self, request: web.Request) -> web.Response:
        keys = ["gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"]
        body = {"major": "1", "minor": "33", "gitVersion": VERSION, **dict.fromkeys(keys, "stand-in")}
        return self._yes(body, "VersionInfo")

    async def _create(self, request: web.Request) -> web.Response:
        pod = await request.json()
        if self.quota is not None and len(self.pods.objects) >= self.quota:
            text = f"exceeded quota: compute, requested: pods=1, used: pods={self.quota}, limited: pods={self.quota}"
            raise Refused(403, "Forbidden", f'pods "{pod["metadata"]["name"]}" is forbidden: {text}')
        return self._yes(self.pods.create(request.match_info["space"], pod), "V1Pod", 201)

    async def _get(self, request: web.Request) -> web.Response:
        return self._yes(self.pods.one(*asked_for(request)), "V1Pod")

    async def _delete(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else {}
        uid = (body.get("preconditions") or {}).get("uid")
        return self._yes(self.pods.delete(*asked_for(request), body.get("gracePeriodSeconds"), uid), "V1Pod")

    async def _list(self, request: web.Request) -> web.StreamResponse:
        matches = selected(request)
        if request.query.get("watch") == "true":
            return await self.watched(request, matches, self.pods, "V1Pod")
        found = [pod for pod in self.pods.objects.values() if matches(pod)]
        start, limit = int(request.query.get("continue", 0)), int(request.query.get("limit", 0)) or len(found) + 1
        about: Json = {"resourceVersion": str(self.pods.version)}
        if start + limit < len(found):
            about["continue"] = str(start + limit)
        items = found[start : start + limit]
        return self._yes({"kind": "PodList", "apiVersion": "v1", "metadata": about, "items": items}, "V1PodList")

    async def watched(
        self, request: web.Request, matches: Callable[[Json], bool], kept: Histories, model: str = ""
    ) -> web.StreamResponse:
        """Stream what happens to objects; ``model``: what each of them has to be."""
        version = int(request.query["resourceVersion"])
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        await stream.prepare(request)
        if version < kept.forgotten:
            gone = {
                "kind": "Status",
                "code": 410,
                "reason": "Expired",
                "message": f"too old resource version: {version}",
            }
            await stream.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
            return stream
        queue: asyncio.Queue[None] = asyncio.Queue()
        kept.watchers.add(queue)
        connection = request.transport
        assert connection is not None
        self.watches.add(connection)
        sent = 0
        try:
            async with asyncio.timeout(float(request.query["timeoutSeconds"])):
                while True:
                    for number, kind, each in kept.since(version, matches):
                        if sent == self.watch_ends_after:
                            return stream
                        if model:
                            self._validate(each, model)
                        await stream.write(json.dumps({"type": kind, "object": each}).encode() + b"\n")
                        version, sent = number, sent + 1
                    await queue.get()
                    while not queue.empty():
                        queue.get_nowait()
        except (TimeoutError, ConnectionResetError):
            return stream
        finally:
            kept.watchers.discard(queue)
            self.watches.discard(connection)

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        pod = self.pods.one(*asked_for(request))
        if pod["status"]["phase"] != "Running":
            raise Refused(400, "BadRequest", f"cannot exec into a container in a {pod['status']['phase']} pod")
        place = self.pods.places[pod["metadata"]["uid"]]
        cut = request.get(CUT, False)
        env = environment(pod, place)
        connection = request.transport
        assert connection is not None
        self.execs.add(connection)
        try:
            return await _execute(request, place, env, cut=cut, protocols=self.exec_protocols)
        finally:
            self.execs.discard(connection)

    async def _review(self, request: web.Request) -> web.Response:
        review = await request.json()
        asked = review["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        review["metadata"] = {}
        review["status"] = {"allowed": f"{asked['verb']} {resource}" not in self.denied}
        return self._yes(review, "V1SelfSubjectAccessReview", 201)

    async def _events(self, request: web.Request) -> web.Response:
        wanted = dict(part.split("=") for part in request.query.get("fieldSelector", "").split(",") if part)
        uid = wanted.pop("involvedObject.uid", None)
        items = [
            event
            for event in self.pods.events
            if uid in (None, event["involvedObject"]["uid"]) and all(event[key] == wanted[key] for key in wanted)
        ]
        return self._yes({"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": items}, "CoreV1EventList")


_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "AlreadyExists",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


def asked_for(request: web.Request) -> tuple[str, str]:
    """Namespace and name of the object that a request is about."""
    return request.match_info["space"], request.match_info["name"]


def selected(request: web.Request) -> Callable[[Json], bool]:
    """Whether an object is one that the request is about: its namespace, and its label selector."""
    space = request.match_info.get("space")
    wanted = [part.partition("=") for part in request.query.get("labelSelector", "").split(",") if part]

    def matches(pod: Json) -> bool:
        labels = pod["metadata"].get("labels", {})
        right = all(labels[key] == value if equals else True for key, equals, value in wanted if key in labels)
        present = all(key in labels for key, _, _ in wanted)
        return present and right and space in (None, pod["metadata"]["namespace"])

    return matches


@functools.cache  # a client reads the certificates of all authorities there are, and this one calls nobody
def _validator() -> Callable[[Json, str], None]:
    """Refuses a body that the published model does not take, or that has a field which it does not know."""
    from kubernetes.aio.client import ApiClient

    client: Any = ApiClient()

    def validate(body: Json, model: str) -> None:
        known = client.sanitize_for_serialization(client.deserialize(json.dumps(body), model, "application/json"))
        unknown = _paths(body) - _paths(known)
        assert not unknown, f"{model} has no {sorted(unknown)}"

    return validate


def _paths(value: object, at: str = "") -> set[str]:
    if isinstance(value, dict):
        return {at} | {path for key, each in value.items() for path in _paths(each, f"{at}.{key}")}
    if isinstance(value, list):
        return {at} | {path for each in value for path in _paths(each, f"{at}[]")}
    return {at}


# -- exec: the channels of a websocket around a real local process


async def _execute(
    request: web.Request, place: Place, env: Mapping[str, str], *, cut: bool, protocols: tuple[str, ...]
) -> web.StreamResponse:
    """Run the command that the request asks for. ``cut``: break the connection after the first output."""
    socket = web.WebSocketResponse(protocols=protocols, max_msg_size=0)
    try:
        await socket.prepare(request)
    except ClientConnectionResetError:  # cancelled within the handshake
        return socket
    if socket.ws_protocol is None:
        await socket.close()
        return socket
    try:
        wants_stdin = request.query.get("stdin") == "true"
        process = await place.start(request.query.getall("command"), env, stdin=wants_stdin)
    except OSError as error:
        text = f"OCI runtime exec failed: exec failed: unable to start container process: {error}"
        return await _finish(socket, {"status": "Failure", "reason": "InternalError", "message": text, "code": 500})
    assert process.stdout is not None
    assert process.stderr is not None
    feeding = asyncio.create_task(_feed(socket, process))
    try:
        out = _pump(socket, process.stdout, STDOUT, request if cut else None)
        await asyncio.gather(out, _pump(socket, process.stderr, STDERR, None))
        code = await process.wait()
    except ClientConnectionResetError:  # the client has gone; the process stays
        return socket
    finally:
        feeding.cancel()
    return await _finish(socket, _exit_status(code))


def _exit_status(code: int) -> dict[str, Any]:
    """The Status object for an exit code as Python has it: negative for a signal."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    shown = code if code > 0 else 128 - code
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {shown}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(shown)}]},
    }


async def _pump(socket: web.WebSocketResponse, stream: StreamReader, channel: int, cut: web.Request | None) -> None:
    while chunk := await stream.read(CHUNK):
        await socket.send_bytes(bytes([channel]) + chunk)
        if cut is not None and cut.transport is not None:
            cut.transport.abort()


async def _feed(socket: web.WebSocketResponse, process: Process) -> None:
    async for message in socket:
        data = message.data.encode() if message.type is WSMsgType.TEXT else message.data
        if process.stdin is None:
            continue
        if data[0] == STDIN:
            with contextlib.suppress(ConnectionError):
                process.stdin.write(data[1:])
                await process.stdin.drain()
        elif data[0] == CLOSE and socket.ws_protocol == PROTOCOLS[0] and data[1] == STDIN:
            process.stdin.close()


async def _finish(socket: web.WebSocketResponse, status: dict[str, Any]) -> web.StreamResponse:
    with contextlib.suppress(ClientConnectionResetError):
        await socket.send_bytes(bytes([STATUS]) + json.dumps(status).encode())
    await socket.close()
    return socket


def _certified() -> tuple[ssl.SSLContext, bytes]:
    """What a server on 127.0.0.1 presents for an hour, and the certificate that its clients trust."""
    now, key = datetime.datetime.now(datetime.UTC), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stand-in")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as chain:
        unencrypted = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        chain.write(key.private_bytes(serialization.Encoding.PEM, *unencrypted) + pem)
        chain.flush()
        context.load_cert_chain(chain.name)
    return context, pem
