"""A protocol stand-in for ECS: AWS JSON 1.1, checked against botocore's own model, tasks that are real processes.

Its state lives in this process's memory and its loop in a thread, so that clients may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import botocore.loaders
import botocore.session
from aiohttp import web
from botocore.validate import ParamValidator

from tests.support.standins.ecs_peer import AgentSession, Behaviour, kill_marked
from tests.support.standins.standin_place import Fault, Faults

# What botocore reads to make a client, megabytes of JSON, is read once in a process instead of once in each session.
botocore.session.create_loader = functools.cache(botocore.loaders.create_loader)
ACCOUNT = "123456789012"
MODELS = {name: botocore.session.get_session().get_service_model(name) for name in ("ecs", "ssm")}
MARKER = "ECS_STANDIN_TASK"
STOPPING_S = 0.02


@dataclass(eq=False)
class Refused(Exception):
    """An error answer."""

    code: str
    message: str


@dataclass
class Task:
    """One task and its container's first process."""

    arn: str
    request: dict[str, Any]
    definition: dict[str, Any]
    folder: str
    env: dict[str, str]
    process: subprocess.Popen[bytes]
    created: float
    sessions: list[AgentSession] = field(default_factory=list)
    stopped_at: float | None = None
    stop_code: str = ""
    agent: str = ""  # its status; "": as its age says
    reason: str = ""


class EcsStandin:
    """A context manager; ``url`` is the endpoint. Set the public fields before or between calls."""

    def __init__(self) -> None:
        self.behaviour = Behaviour()
        self.steps_s = {"PENDING": 0.02, "RUNNING": 0.04, "agent": 0.06}  # after RunTask
        self.agent = True  # False: it never gets beyond PENDING
        self.cluster: dict[str, Any] = {"status": "ACTIVE"}
        self.no_capacity = ""
        self.sessions_limit = 2  # per container
        self.calls: Counter[str] = Counter()
        self.tasks: dict[str, Task] = {}
        self.definitions: dict[str, dict[str, Any]] = {}
        self.late_calls = 0  # how many calls of a kind after RunTask do not know the task yet
        self.faults = Faults()
        self._unknown: dict[str, Counter[str]] = {}  # task → calls of a kind that have not known it
        self._sessions: dict[str, AgentSession] = {}
        self._tokens: dict[str, str] = {}
        self._validator = ParamValidator()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._on_loop(self._serve())
        return self

    def __exit__(self, *exc: object) -> None:
        self._on_loop(self._runner.cleanup())
        for task in self.tasks.values():
            self.stop(task, "UserInitiated", "the stand-in ends")
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        for session in self._sessions.values():
            session.kill()
        self._loop.close()

    def _on_loop(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _serve(self) -> None:
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/", self._post)
        app.router.add_get("/v1/data-channel/{id}", self._connect)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"

    # -- what tests look at and cause

    def refuse(self, operation: str, code: str, message: str = "", **how: Any) -> None:
        """Answer calls of an operation with an error; ``how`` is a ``Fault``'s times and skip."""
        self.faults.add(operation, code=code, message=message, **how)

    def _known(self, operation: str, arn: str) -> Task | None:
        calls = self._unknown.setdefault(arn, Counter())
        calls[operation] += 1
        return self.tasks.get(arn) if calls[operation] > self.late_calls else None

    def running(self) -> list[Task]:
        for task in self.tasks.values():
            self._note_exit(task)
        return [task for task in self.tasks.values() if task.stopped_at is None]

    def leftovers(self) -> dict[str, list[str]]:
        """Everything that a run may leave in an account."""
        return {"tasks": [task.arn for task in self.running()], "definitions": self.active_definitions()}

    def active_definitions(self) -> list[str]:
        return [arn for arn, each in self.definitions.items() if each["status"] == "ACTIVE"]

    def sessions(self) -> list[AgentSession]:
        return list(self._sessions.values())

    # -- HTTP

    async def _post(self, request: web.Request) -> web.StreamResponse:
        target = request.headers.get("X-Amz-Target", "")
        if not target:
            return self._identity(await request.text())
        operation = target.rpartition(".")[2]
        self.calls[operation] += 1
        fault = self.faults.next(operation)
        if fault is not None and not fault.code:
            return await fault.strike(request, self._served)
        return await self._served(request, fault)

    async def _served(self, request: web.Request, fault: Fault | None = None) -> web.Response:
        service, _, operation = request.headers["X-Amz-Target"].partition(".")
        model = MODELS["ssm" if service == "AmazonSSM" else "ecs"].operation_model(operation)
        try:
            if fault is not None:
                raise Refused(fault.code, fault.message)
            body = await request.json()
            self._check(body, model.input_shape)
            handler: Callable[[dict[str, Any]], dict[str, Any]] = getattr(self, f"_{operation}")
            answer = handler(body)
        except Refused as refused:
            error = {"__type": refused.code, "message": refused.message}
            return web.json_response(error, status=400)
        self._check(answer, model.output_shape)
        return web.json_response(answer, content_type="application/x-amz-json-1.1")

    def _check(self, value: Any, shape: Any) -> None:
        report = self._validator.validate(value, shape)
        if report.has_errors():
            raise Refused("InvalidParameterException", report.generate_report())

    def _identity(self, form: str) -> web.Response:
        assert "Action=GetCallerIdentity" in form
        self.calls["GetCallerIdentity"] += 1
        arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/bench/session-1"
        about = f"<Account>{ACCOUNT}</Account><Arn>{arn}</Arn><UserId>A:session-1</UserId>"
        result = f"<GetCallerIdentityResult>{about}</GetCallerIdentityResult>"
        status, body = 200, f"<GetCallerIdentityResponse>{result}</GetCallerIdentityResponse>"
        if refused := self.faults.next("GetCallerIdentity"):
            error = f"<Code>{refused.code}</Code><Message>{refused.message}</Message>"
            status, body = 403, f"<ErrorResponse><Error>{error}</Error></ErrorResponse>"
        return web.Response(text=body, status=status, content_type="text/xml")

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        session = self._sessions.get(request.match_info["id"])
        if session is None or request.query.get("role") != "publish_subscribe":
            raise web.HTTPForbidden
        return await session.serve(request)

    # -- operations

    def _DescribeClusters(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        arn = f"arn:aws:ecs:us-east-1:{ACCOUNT}:cluster/{body['clusters'][0]}"
        return {"clusters": [{"clusterArn": arn, **self.cluster}] if self.cluster else [], "failures": []}

    def _RegisterTaskDefinition(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        revision = sum(each["family"] == body["family"] for each in self.definitions.values()) + 1
        arn = f"arn:aws:ecs:us-east-1:{ACCOUNT}:task-definition/{body['family']}:{revision}"
        kept = {key: value for key, value in body.items() if key != "tags"}
        self.definitions[arn] = {**kept, "taskDefinitionArn": arn, "revision": revision, "status": "ACTIVE"}
        return {"taskDefinition": self.definitions[arn], "tags": body.get("tags", [])}

    def _DeregisterTaskDefinition(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.definitions[body["taskDefinition"]]["status"] = "INACTIVE"
        return {"taskDefinition": self.definitions[body["taskDefinition"]]}

    def _RunTask(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        definition = self.definitions.get(body["taskDefinition"])
        if definition is None or definition["status"] != "ACTIVE":
            raise Refused("ClientException", "TaskDefinition is inactive")
        if definition["networkMode"] == "awsvpc" and "networkConfiguration" not in body:
            raise Refused("InvalidParameterException", "Network Configuration must be provided")
        if self.no_capacity:
            return {"tasks": [], "failures": [{"reason": self.no_capacity}]}
        token = body["clientToken"]
        if token not in self._tokens:
            self._tokens[token] = self._start(body, definition).arn
        return {"tasks": [self._describe(self.tasks[self._tokens[token]])], "failures": []}

    def _start(self, body: dict[str, Any], definition: dict[str, Any]) -> Task:
        id_ = uuid.uuid4().hex
        folder = tempfile.mkdtemp(prefix="ecs-standin-")
        override = body["overrides"]["containerOverrides"][0]
        env = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "TMPDIR": folder,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            MARKER: id_,
            **{each["name"]: each["value"] for each in override["environment"]},
        }
        argv = [*definition["containerDefinitions"][0]["entryPoint"], *override["command"]]
        process = subprocess.Popen(argv, env=env, cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True)
        arn = f"arn:aws:ecs:us-east-1:{ACCOUNT}:task/{body['cluster']}/{id_}"
        self.tasks[arn] = Task(arn, body, definition, folder, env, process, time.time())
        return self.tasks[arn]

    def _ListTasks(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if not self.cluster:
            raise Refused("ClusterNotFoundException", "Cluster not found.")
        wanted = body.get("startedBy")
        arns = [task.arn for task in self.running() if wanted is None or task.request.get("startedBy") == wanted]
        start = int(body.get("nextToken", "0"))
        page = arns[start : start + body.get("maxResults", 100)]
        more = {"nextToken": str(start + len(page))} if start + len(page) < len(arns) else {}
        return {"taskArns": page, **more}

    def _DescribeTasks(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if len(body["tasks"]) > 100:
            raise Refused("InvalidParameterException", "Tasks cannot have more than 100 entries")
        asked = {arn: self._known("DescribeTasks", arn) for arn in body["tasks"]}
        known = [task for task in asked.values() if task is not None]
        missing = [{"arn": arn, "reason": "MISSING"} for arn, task in asked.items() if task is None]
        tagged = "TAGS" in body.get("include", [])
        return {"tasks": [self._describe(task, tagged=tagged) for task in known], "failures": missing}

    def _StopTask(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        task = self._known("StopTask", body["task"])
        if task is None:
            raise Refused("InvalidParameterException", "The referenced task was not found.")
        self.stop(task, "UserInitiated", body.get("reason", ""))
        return {"task": self._describe(task)}

    def _ExecuteCommand(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        task = self.tasks.get(body["task"])
        if task is None:
            raise Refused("InvalidParameterException", "The referenced task was not found.")
        if self._describe(task)["lastStatus"] != "RUNNING" or self._agent_status(task) != "RUNNING":
            raise Refused("TargetNotConnectedException", "The execute command failed because the agent is not running.")
        if not body["interactive"]:
            raise Refused("InvalidParameterException", "Interactive is the only mode supported currently.")
        id_, token = f"ecs-execute-command-{uuid.uuid4().hex}", uuid.uuid4().hex
        session = AgentSession(token, body["command"], self._env(task), task.folder, self.behaviour, self._granted)
        task.sessions.append(session)
        self._sessions[id_] = session
        url = f"ws://127.0.0.1:{self.port}/v1/data-channel/{id_}?role=publish_subscribe"
        return {
            "clusterArn": f"arn:aws:ecs:us-east-1:{ACCOUNT}:cluster/{body['cluster']}",
            "containerName": body["container"],
            "interactive": True,
            "session": {"sessionId": id_, "streamUrl": url, "tokenValue": token},
            "taskArn": task.arn,
        }

    def _granted(self, session: AgentSession) -> bool:
        """Whether the agent has a slot for it: one that has no more room says nothing."""
        [siblings] = [task.sessions for task in self.tasks.values() if session in task.sessions]
        return sum(each.begun and not each.over for each in siblings) < self.sessions_limit

    def _env(self, task: Task) -> dict[str, str]:
        return {**task.env, "PATH": self.behaviour.applets or task.env["PATH"]}

    def _TerminateSession(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        session = self._sessions.get(body["SessionId"])
        if session is None:
            raise Refused("DoesNotExistException", "the session does not exist")
        session.kill()
        return {"SessionId": body["SessionId"]}

    # -- state

    def kill_agent(self, task: Task) -> None:
        """The container lives on without its session agent; the service finds out, a client is told nothing."""
        task.agent = "STOPPED"
        for session in task.sessions:
            self._loop.call_soon_threadsafe(session.die)

    def _note_exit(self, task: Task) -> None:
        if task.stopped_at is None and task.process.poll() is not None:
            self.stop(task, "EssentialContainerExited", "Essential container in task exited")

    def stop(self, task: Task, code: str, reason: str) -> None:
        """What AWS may do to a task by itself, and what ends it otherwise."""
        if task.stopped_at is not None:
            return
        task.stopped_at, task.stop_code, task.reason = time.time(), code, reason
        for session in task.sessions:
            self._loop.call_soon_threadsafe(session.die)  # the agent dies with its container, without a word
        task.process.kill()  # while it begins another program, there is no environment to be found by
        kill_marked(f"{MARKER}={task.env[MARKER]}")
        task.process.wait()
        with contextlib.suppress(OSError):
            shutil.rmtree(task.folder)

    def _agent_status(self, task: Task) -> str:
        if task.agent:
            return task.agent
        return "RUNNING" if self.agent and time.time() - task.created >= self.steps_s["agent"] else "PENDING"

    def _describe(self, task: Task, *, tagged: bool = False) -> dict[str, Any]:
        self._note_exit(task)
        age = time.time() - task.created
        passed = [name for name in ("PENDING", "RUNNING") if age >= self.steps_s[name]]
        status = passed[-1] if passed else "PROVISIONING"
        if task.stopped_at is not None:
            status = "STOPPED" if time.time() - task.stopped_at >= STOPPING_S else "DEPROVISIONING"
        agent = {"name": "ExecuteCommandAgent", "lastStatus": self._agent_status(task)}
        described: dict[str, Any] = {
            "taskArn": task.arn,
            "taskDefinitionArn": task.definition["taskDefinitionArn"],
            "lastStatus": status,
            "desiredStatus": "RUNNING" if task.stopped_at is None else "STOPPED",
            "createdAt": task.created,
            "startedBy": task.request.get("startedBy", ""),
            "enableExecuteCommand": task.request["enableExecuteCommand"],
            "containers": [{"name": "sandbox", "lastStatus": status, "managedAgents": [agent]}],
        }
        if task.stopped_at is not None:
            described |= {"stopCode": task.stop_code, "stoppedReason": task.reason}
        if tagged:
            described["tags"] = task.request.get("tags", [])
        return described
