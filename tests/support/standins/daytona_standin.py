"""Daytona for tests: its API and the toolbox of its sandboxes, with commands that really run.

Every reply is checked against the models of Daytona's own clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Self

from aiohttp import ClientConnectionResetError, WSMsgType, web

from tests.support.standins.standin_place import CUT, Faults, Handler, Leaves, Place, Pty, descendants

KEY = "stand-in-key"
EXIT_PROTOCOL = "X-Daytona-Pty-Exit-Control"
Json = dict[str, Any]


class Refused(Exception):
    """An answer that is no success: its status and its message."""


class DaytonaStandin(Leaves):
    """One organization. ``async with`` starts it on a free port of 127.0.0.1.

    The knobs: ``fate`` of the next sandboxes (``starts`` or ``error``), ``stuck`` deletions, ``start_s``, ``quota`` in
    sandboxes, ``minute_s`` of a lifetime, ``stale_looks``: how many of the next lookups report ``started``.
    """

    def __init__(self) -> None:
        self.sandboxes: dict[str, Json] = {}
        self.places: dict[str, Place] = {}
        self.snapshots: dict[str, Json] = {}
        self.snapshot_state = "active"  # of snapshots made from now on
        self.disks = Path(tempfile.mkdtemp(prefix="daytona-disks-"))
        self.terminals: dict[tuple[str, str], Terminal] = {}
        self.faults = Faults()
        self.requests: list[str] = []
        self.permissions = ["write:sandboxes", "delete:sandboxes"]
        self.fate = "starts"
        self.stuck = False
        self.start_s = 0.03
        self.minute_s = 60.0
        self.quota: int | None = None
        self.stale_looks = 0
        self.made = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[self._guard], client_max_size=1 << 26)
        box = "/toolbox/{id}/process"
        app.add_routes(
            [
                web.get("/api/api-keys/current", self._key, name="key"),
                web.get("/api/snapshots", self._snapshots, name="snapshots"),
                web.get("/api/snapshots/{id}", self._snapshot, name="snapshot"),
                web.delete("/api/snapshots/{id}", self._unsnapshot, name="unsnapshot"),
                web.post("/api/sandbox/{id}/snapshot", self._copy, name="copy"),
                web.post("/api/sandbox", self._create, name="create"),
                web.get("/api/sandbox", self._list, name="list"),
                web.get("/api/sandbox/{id}", self._get, name="get"),
                web.delete("/api/sandbox/{id}", self._delete, name="delete"),
                web.post("/api/sandbox/{id}/stop", self._stop, name="stop"),
                web.post("/api/sandbox/{id}/start", self._start, name="start"),
                web.post("/api/sandbox/{id}/autodelete/{interval}", self._auto_delete, name="autodelete"),
                web.post(f"{box}/execute", self._execute, name="exec"),
                web.post(f"{box}/pty", self._open_terminal, name="pty"),
                web.get(f"{box}/pty/{{name}}/connect", self._connect_terminal, name="connect"),
                web.delete(f"{box}/pty/{{name}}", self._close_terminal, name="unpty"),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024).start()
        self.base = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.url = f"{self.base}/api"
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for terminal in self.terminals.values():
            terminal.kill()
        for place in self.places.values():
            await place.remove()
        shutil.rmtree(self.disks)
        await self._runner.cleanup()

    def fail(self, on: str, **how: Any) -> None:
        """Add a ``Fault`` for: key create list get delete stop start exec pty connect unpty."""
        self.faults.add(on, **how)

    def left(self) -> tuple[int, int]:
        """Sandboxes and snapshots that exist, and process groups that are alive in sandboxes."""
        running = sum(place.alive() for place in self.places.values())
        return len(self.sandboxes) + len(self.snapshots), running + sum(
            not terminal.over() for terminal in self.terminals.values()
        )

    def lose(self, name: str, state: str, reason: str = "") -> None:
        sandbox = next(each for each in self.sandboxes.values() if each["name"] == name)
        self._kill(sandbox["id"])
        sandbox["errorReason"] = reason
        self._to(sandbox, state)

    def release(self) -> None:
        self.stuck = False
        for sandbox in list(self.sandboxes.values()):
            if sandbox["state"] == "destroying":
                self._spawn(self._end(sandbox))

    # ------------------------------------------------------------------------------------- around every request

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        kind = str(request.match_info.route.name)
        self.requests.append(kind)
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return self._no(401, "Unauthorized")
        fault = self.faults.next(kind)
        if fault is None:
            try:
                return await handler(request)
            except Refused as refused:
                return self._no(*refused.args)
        if fault.status:
            # Daytona names the header after what is limited.
            wait = {} if fault.retry_after_s is None else {f"Retry-After-sandbox-{kind}": str(fault.retry_after_s)}
            return self._no(fault.status, fault.message, wait)
        return await fault.strike(request, handler)

    def _yes(self, body: Json, model: str, status: int = 200) -> web.Response:
        _check(body, model)
        return web.json_response(body, status=status, headers={"X-Taxtui-Stand-In": "daytona"})

    def _no(self, code: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
        about = {"path": "", "timestamp": _now(), "method": ""}
        body = {"statusCode": code, "message": message, "error": message, **about}
        return web.json_response(body, status=code, headers=headers)

    # ------------------------------------------------------------------------------------------- the control plane

    async def _key(self, request: web.Request) -> web.Response:
        body = {
            "name": "test",
            "value": "dtn_***",
            "createdAt": _now(),
            "lastUsedAt": None,
            "expiresAt": None,
            "permissions": self.permissions,
            "userId": "user",
            "organizationId": "org",
        }
        return self._yes(body, "ApiKeyList")

    async def _snapshot(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        if "-" not in name:  # one of the organization's own
            return self._yes(_snapshot_of(name, name, "active"), "SnapshotDto")
        snapshot = next((each for each in self.snapshots.values() if name in (each["id"], each["name"])), None)
        if snapshot is None:
            raise Refused(404, "Snapshot not found")
        return self._yes(snapshot, "SnapshotDto")

    async def _snapshots(self, request: web.Request) -> web.Response:
        page, limit = int(request.query.get("page") or 1), int(request.query.get("limit") or 100)
        part = request.query.get("name", "")
        matches = [each for each in self.snapshots.values() if part in each["name"]]
        items = matches[(page - 1) * limit : page * limit]
        total = {"total": len(matches), "page": page, "totalPages": -(-len(matches) // limit)}
        return self._yes({"items": items, **total}, "PaginatedSnapshots")

    async def _unsnapshot(self, request: web.Request) -> web.Response:
        snapshot = self.snapshots.get(request.match_info["id"])
        if snapshot is None:
            raise Refused(404, "Snapshot not found")
        snapshot["state"] = "removing"
        self._spawn(self._forget(snapshot))
        return web.Response(status=200)

    async def _forget(self, snapshot: Json) -> None:
        await asyncio.sleep(self.start_s)
        self.snapshots.pop(snapshot["id"], None)

    async def _copy(self, request: web.Request) -> web.Response:
        """As a snapshot of a container: meanwhile the sandbox takes no commands; at the end there is a snapshot."""
        sandbox, name = self._find(request, "started", "stopped"), (await request.json())["name"]
        if any(each["name"] == name for each in self.snapshots.values()):
            raise Refused(409, f"Snapshot with name {name} already exists")
        before = sandbox["state"]
        self._to(sandbox, "snapshotting")
        self._spawn(self._copied(sandbox, name, before))
        return self._yes(sandbox, "Sandbox")

    async def _copied(self, sandbox: Json, name: str, before: str) -> None:
        await asyncio.sleep(self.start_s)
        if sandbox["state"] != "snapshotting":
            return
        snapshot = _snapshot_of(str(uuid.uuid4()), name, "pulling")
        shutil.copytree(self.places[sandbox["id"]].folder, self.disks / snapshot["id"], symlinks=True)
        self.snapshots[snapshot["id"]] = snapshot
        self._to(sandbox, before)
        await asyncio.sleep(self.start_s)
        if snapshot["state"] == "pulling":
            reason = None if self.snapshot_state == "active" else "no space left on the runner"
            snapshot |= {"state": self.snapshot_state, "errorReason": reason}

    async def _create(self, request: web.Request) -> web.Response:
        asked = await request.json()
        if self.quota is not None and len(self.sandboxes) >= self.quota:
            raise Refused(403, f"Total CPU limit exceeded. Maximum allowed: {self.quota}.")
        if any(each["name"] == asked["name"] for each in self.sandboxes.values()):
            raise Refused(409, f"Sandbox with name {asked['name']} already exists")
        wanted = asked.get("snapshot") or ""
        origin = next((each for each in self.snapshots.values() if each["name"] == wanted), None)
        if wanted.startswith("taxtui-") and (origin is None or origin["state"] != "active"):
            raise Refused(400, f"Snapshot {wanted} not found or not active")
        name = str(uuid.uuid4())
        sandbox: Json = {
            "id": name,
            "organizationId": "org",
            "name": asked["name"],
            "user": asked.get("user") or "daytona",
            "env": asked.get("env") or {},
            "labels": asked.get("labels") or {},
            "public": False,
            "networkBlockAll": bool(asked.get("networkBlockAll")),
            "kvm": False,
            "target": asked.get("target") or "local",
            "cpu": asked.get("cpu") or 1,
            "gpu": 0,
            "memory": asked.get("memory") or 1,
            "disk": asked.get("disk") or 3,
            "state": "creating",
            "desiredState": "started",
            "createdAt": _now(),
            "updatedAt": _now(),
            "autoStopInterval": asked.get("autoStopInterval", 15),
            "autoDeleteInterval": asked.get("autoDeleteInterval", -1),
            "toolboxProxyUrl": f"{self.base}/toolbox",
        }
        self.sandboxes[name] = sandbox
        self.places[name] = Place("daytona-")
        if origin is not None:
            shutil.copytree(self.disks / origin["id"], self.places[name].folder, symlinks=True, dirs_exist_ok=True)
        self.made += 1
        self._spawn(self._live(sandbox, asked.get("ttlMinutes") or 0))
        return self._yes(sandbox, "Sandbox")

    async def _live(self, sandbox: Json, ttl_minutes: int) -> None:
        await asyncio.sleep(self.start_s)
        if sandbox["state"] != "creating":
            return
        if self.fate == "error":
            sandbox["errorReason"] = "no available runners"
            self._to(sandbox, "error")
            return
        self._to(sandbox, "started")
        if ttl_minutes:
            await asyncio.sleep(ttl_minutes * self.minute_s)
            if sandbox["id"] in self.sandboxes:
                await self._end(sandbox)

    def _to(self, sandbox: Json, state: str) -> None:
        sandbox["state"], sandbox["updatedAt"] = state, _now()

    async def _get(self, request: web.Request) -> web.Response:
        sandbox = self._find(request)
        stale, self.stale_looks = self.stale_looks > 0, max(0, self.stale_looks - 1)
        return self._yes({**sandbox, "state": "started"} if stale else sandbox, "Sandbox")

    async def _list(self, request: web.Request) -> web.Response:
        labels = json.loads(request.query.get("labels") or "{}")
        found = [
            {key: value for key, value in each.items() if key not in ("env", "kvm")}
            for each in self.sandboxes.values()
            if labels.items() <= each["labels"].items() and each["name"].startswith(request.query.get("name", ""))
        ]
        start, limit = int(request.query.get("cursor") or 0), int(request.query.get("limit") or 100)
        cursor = str(start + limit) if start + limit < len(found) else None
        return self._yes({"items": found[start : start + limit], "nextCursor": cursor}, "ListSandboxesResponse")

    async def _delete(self, request: web.Request) -> web.Response:
        sandbox = self._find(request)
        if sandbox["state"] != "destroying":
            self._to(sandbox, "destroying")
            if not self.stuck:
                self._spawn(self._end(sandbox))
        return self._yes(sandbox, "Sandbox")

    async def _auto_delete(self, request: web.Request) -> web.Response:
        sandbox = self._find(request)
        sandbox["autoDeleteInterval"] = int(float(request.match_info["interval"]))
        return self._yes(sandbox, "Sandbox")

    async def _stop(self, request: web.Request) -> web.Response:
        sandbox = self._find(request, "started")
        self._to(sandbox, "stopping")
        self._spawn(self._halt(sandbox))
        return self._yes(sandbox, "Sandbox")

    async def _halt(self, sandbox: Json) -> None:
        await asyncio.sleep(self.start_s)
        self._kill(sandbox["id"])
        if sandbox["state"] == "stopping":
            self._to(sandbox, "stopped")
            if sandbox["autoDeleteInterval"] == 0:
                await self._end(sandbox)

    async def _start(self, request: web.Request) -> web.Response:
        sandbox = self._find(request, "stopped")
        self._to(sandbox, "starting")
        self._spawn(self._started(sandbox))
        return self._yes(sandbox, "Sandbox")

    async def _started(self, sandbox: Json) -> None:
        await asyncio.sleep(self.start_s)
        if sandbox["state"] == "starting":
            self._to(sandbox, "started")

    async def _end(self, sandbox: Json) -> None:
        await asyncio.sleep(0.005)
        self._kill(sandbox["id"])
        await self.places[sandbox["id"]].remove()
        if self.sandboxes.pop(sandbox["id"], None) is not None:
            self._to(sandbox, "destroyed")

    def _kill(self, name: str) -> None:
        self.places[name].kill()
        for key in [key for key in self.terminals if key[0] == name]:
            self.terminals.pop(key).kill()

    def _find(self, request: web.Request, *states: str) -> Json:
        """The sandbox of a request, which must be in one of ``states`` if there are any."""
        wanted = request.match_info["id"]
        for sandbox in self.sandboxes.values():
            if wanted in (sandbox["id"], sandbox["name"]):
                if states and sandbox["state"] not in states:
                    raise Refused(400, f"Sandbox is not {states[0]}")
                return sandbox
        raise Refused(404, "Sandbox not found")

    # ------------------------------------------------------------------------------------------------- the toolbox

    async def _execute(self, request: web.Request) -> web.StreamResponse:
        place = self.places[self._find(request, "started")["id"]]
        answer = await _run(place, await request.json(), request if request.get(CUT) else None)
        return self._yes(answer, "ExecuteResponse")

    async def _open_terminal(self, request: web.Request) -> web.Response:
        sandbox, asked = self._find(request, "started"), await request.json()
        self.terminals[sandbox["id"], asked["id"]] = Terminal(self.places[sandbox["id"]])
        return self._yes({"sessionId": asked["id"]}, "PtyCreateResponse", 201)

    async def _connect_terminal(self, request: web.Request) -> web.StreamResponse:
        return await self._terminal(request).serve(request)

    async def _close_terminal(self, request: web.Request) -> web.Response:
        self._terminal(request).kill()
        del self.terminals[request.match_info["id"], request.match_info["name"]]
        return web.json_response({"message": "PTY session deleted"})

    def _terminal(self, request: web.Request) -> Terminal:
        key = (request.match_info["id"], request.match_info["name"])
        if key not in self.terminals:
            raise Refused(404, "PTY session not found")
        return self.terminals[key]

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _check(body: Json, model: str) -> None:
    """Refuse a body that the published model does not take, or that has a field which it does not know."""
    import daytona_api_client_async
    import daytona_toolbox_api_client_async

    kind: Any = getattr(daytona_api_client_async, model, None) or getattr(daytona_toolbox_api_client_async, model)
    read = kind.from_dict(body)
    unknown = [each.additional_properties for each in (read, *getattr(read, "items", [])) if each.additional_properties]
    assert not unknown, f"{model} has no {unknown}"


def _snapshot_of(snapshot_id: str, name: str, state: str) -> Json:
    sizes = {"size": 1, "cpu": 4, "gpu": 0, "mem": 8, "disk": 10}
    states = {"state": state, "errorReason": None, "entrypoint": None, "lastUsedAt": None, "sourceSandboxId": None}
    dates = {"createdAt": _now(), "updatedAt": _now()}
    return {"id": snapshot_id, "name": name, "general": False, **sizes, **states, **dates}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


# -- what runs inside a sandbox


async def _run(place: Place, asked: Json, cut: web.Request | None) -> Json:
    """As Daytona's daemon: the script on the standard input of a shell that leads its own process group, both
    streams in one text, refused after a timeout that killed the group; a client that has gone changes nothing."""
    process = await place.start(["/bin/sh"], asked.get("envs") or {}, stdin=True, merged=True)
    waiting = asyncio.ensure_future(process.communicate(asked["command"].encode()))
    if cut is not None:
        await asyncio.sleep(0.2)
        if cut.transport is not None:
            cut.transport.abort()
    done, _ = await asyncio.wait({waiting}, timeout=asked.get("timeout") or 360)
    if not done:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await waiting
        raise Refused(408, "command execution timeout")
    output, _ = waiting.result()
    code = process.returncode or 0
    return {"exitCode": code if code >= 0 else -1, "result": output.decode(errors="replace")}


class Terminal(Pty):
    """An interactive login shell on a pseudo-terminal, and at most one websocket to it."""

    def __init__(self, place: Place) -> None:
        env = {"PATH": os.environ["PATH"], "HOME": str(place.folder), "TMPDIR": str(place.temporary), "TERM": "xterm"}
        super().__init__(["bash", "-i", "-l"], {**env, "LANG": "C.UTF-8"}, place.folder)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Carry bytes both ways until the shell or the client goes; the shell stays if the client goes."""
        socket = web.WebSocketResponse(protocols=(EXIT_PROTOCOL,), max_msg_size=1 << 20)
        with contextlib.suppress(ClientConnectionResetError):
            await socket.prepare(request)
            await socket.send_str(json.dumps({"type": "control", "status": "connected"}))
            printing, typing = (asyncio.ensure_future(work(socket)) for work in (self._print, self._type))
            await asyncio.wait({printing, typing}, return_when=asyncio.FIRST_COMPLETED)
            for work in (printing, typing):
                work.cancel()
            await asyncio.gather(printing, typing, return_exceptions=True)
            if printing.cancelled():  # the client has gone
                return socket
            code = await asyncio.to_thread(self.process.wait)
            await socket.close(code=1000 if code == 0 else 1011, message=json.dumps({"exitCode": code}).encode())
        return socket

    async def _print(self, socket: web.WebSocketResponse) -> None:
        while data := await self.read():
            await socket.send_bytes(data)

    async def _type(self, socket: web.WebSocketResponse) -> None:
        async for message in socket:
            await self.write(message.data.encode() if message.type is WSMsgType.TEXT else message.data)

    def kill(self) -> None:
        """Kill the shell and all its descendants, and hang up."""
        for pid in [] if self.over() else descendants(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.hang_up()
