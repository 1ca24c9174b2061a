"""Daytona for tests: its API and the toolbox of its sandboxes, with commands that really run.

Run as a module it serves until its standard input ends, and prints the URL of its API. Every reply is checked against
the models of Daytona's own clients.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.support.standins import daytona_toolbox
from tests.support.standins.standin_faults import CUT, Faults, Handler
from tests.support.standins.standin_place import Place
from tests.support.standins.standin_process import serve

KEY = "stand-in-key"
Json = dict[str, Any]


class DaytonaStandin:
    """One organization. ``async with`` starts it on a free port of 127.0.0.1.

    The knobs: ``fate`` of sandboxes made from now on (``starts`` or ``error``), ``stuck`` deletions,
    ``start_s``, ``quota`` in sandboxes, ``minute_s`` for how long a minute of a lifetime is, ``stale_looks`` for how
    many of the next lookups report ``started``.
    """

    def __init__(self, *, validate: bool = True) -> None:
        self.sandboxes: dict[str, Json] = {}
        self.places: dict[str, Place] = {}
        self.snapshots: dict[str, Json] = {}
        self.snapshot_state = "active"  # of snapshots made from now on
        self.disks = Path(tempfile.mkdtemp(prefix="daytona-disks-"))
        self.terminals: dict[tuple[str, str], daytona_toolbox.Terminal] = {}
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
        self._validate = _check if validate else _trust
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
            terminal.alive() for terminal in self.terminals.values()
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
            return await handler(request)
        if fault.status:
            # Daytona names the header after what is limited.
            wait = {} if fault.retry_after_s is None else {f"Retry-After-sandbox-{kind}": str(fault.retry_after_s)}
            return self._no(fault.status, fault.message, wait)
        return await fault.strike(request, handler)

    def _yes(self, body: Json, model: str, status: int = 200) -> web.Response:
        self._validate(body, model)
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
        return self._yes(snapshot, "SnapshotDto") if snapshot else self._no(404, "Snapshot not found")

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
            return self._no(404, "Snapshot not found")
        snapshot["state"] = "removing"
        self._spawn(self._forget(snapshot))
        return web.Response(status=200)

    async def _forget(self, snapshot: Json) -> None:
        await asyncio.sleep(self.start_s)
        self.snapshots.pop(snapshot["id"], None)

    async def _copy(self, request: web.Request) -> web.Response:
        """As a snapshot of a container: meanwhile the sandbox takes no commands; at the end there is a snapshot."""
        sandbox, name = self._find(request), (await request.json())["name"]
        if sandbox is None:
            return self._no(404, "Sandbox not found")
        if sandbox["state"] not in ("started", "stopped"):
            return self._no(400, "Sandbox state change in progress")
        if any(each["name"] == name for each in self.snapshots.values()):
            return self._no(409, f"Snapshot with name {name} already exists")
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
            return self._no(403, f"Total CPU limit exceeded. Maximum allowed: {self.quota}.")
        if any(each["name"] == asked["name"] for each in self.sandboxes.values()):
            return self._no(409, f"Sandbox with name {asked['name']} already exists")
        wanted = asked.get("snapshot") or ""
        origin = next((each for each in self.snapshots.values() if each["name"] == wanted), None)
        if wanted.startswith("taxtui-") and (origin is None or origin["state"] != "active"):
            return self._no(400, f"Snapshot {wanted} not found or not active")
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
        if sandbox is None:
            return self._no(404, "Sandbox not found")
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
        if sandbox is None:
            return self._no(404, "Sandbox not found")
        if sandbox["state"] != "destroying":
            self._to(sandbox, "destroying")
            if not self.stuck:
                self._spawn(self._end(sandbox))
        return self._yes(sandbox, "Sandbox")

    async def _auto_delete(self, request: web.Request) -> web.Response:
        sandbox = self._find(request)
        if sandbox is None:
            return self._no(404, "Sandbox not found")
        sandbox["autoDeleteInterval"] = int(float(request.match_info["interval"]))
        return self._yes(sandbox, "Sandbox")

    async def _stop(self, request: web.Request) -> web.Response:
        sandbox, refusal = self._find_in(request, "started")
        if sandbox is None:
            return refusal
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
        sandbox, refusal = self._find_in(request, "stopped")
        if sandbox is None:
            return refusal
        self._to(sandbox, "starting")
        self._spawn(self._later(sandbox, "starting", "started"))
        return self._yes(sandbox, "Sandbox")

    async def _later(self, sandbox: Json, state: str, following: str) -> None:
        await asyncio.sleep(self.start_s)
        if sandbox["state"] == state:
            self._to(sandbox, following)

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

    def _find(self, request: web.Request) -> Json | None:
        wanted = request.match_info["id"]
        by_name = (each for each in self.sandboxes.values() if each["name"] == wanted)
        return self.sandboxes.get(wanted) or next(by_name, None)

    def _find_in(self, request: web.Request, *states: str) -> tuple[Json | None, web.Response]:
        """The sandbox of a request if it is in one of these states, else the refusal."""
        sandbox = self._find(request)
        if sandbox is None:
            return None, self._no(404, "Sandbox not found")
        return sandbox if sandbox["state"] in states else None, self._no(400, f"Sandbox is not {states[0]}")

    # ------------------------------------------------------------------------------------------------- the toolbox

    def _place(self, request: web.Request) -> Place | None:
        sandbox = self.sandboxes.get(request.match_info["id"])
        return self.places[sandbox["id"]] if sandbox and sandbox["state"] == "started" else None

    async def _execute(self, request: web.Request) -> web.StreamResponse:
        place, asked = self._place(request), await request.json()
        if place is None:
            return self._no(400, "sandbox is not running")
        answer = await daytona_toolbox.execute(place, asked, request if request.get(CUT) else None)
        if answer is None:
            return self._no(408, "command execution timeout")
        return self._yes(answer, "ExecuteResponse")

    async def _open_terminal(self, request: web.Request) -> web.Response:
        place, asked = self._place(request), await request.json()
        if place is None:
            return self._no(400, "sandbox is not running")
        self.terminals[request.match_info["id"], asked["id"]] = daytona_toolbox.Terminal(place)
        return self._yes({"sessionId": asked["id"]}, "PtyCreateResponse", 201)

    async def _connect_terminal(self, request: web.Request) -> web.StreamResponse:
        terminal = self.terminals.get((request.match_info["id"], request.match_info["name"]))
        return await terminal.serve(request) if terminal else self._no(404, "PTY session not found")

    async def _close_terminal(self, request: web.Request) -> web.Response:
        terminal = self.terminals.pop((request.match_info["id"], request.match_info["name"]), None)
        if terminal is None:
            return self._no(404, "PTY session not found")
        terminal.kill()
        return web.json_response({"message": "PTY session deleted"})

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


def _trust(body: Json, model: str) -> None:
    """Leave the checking out, for benchmarks."""


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


if __name__ == "__main__":
    serve(DaytonaStandin(validate=False), "url")
