"""ECS tasks as plain data: requests, and the meaning of answers, without calls."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from costmodel import sold_size
from taxtui.errors import CreateFailed, SubstrateError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.substrates.aws.connection import tag_list
from taxtui.substrates.aws.ecs import EcsOptions, listed
from taxtui.substrates.aws.ecs.failure import agent_ended, ended
from taxtui.substrates.aws.failure import redacted

CONTAINER: Final = "sandbox"
EXEC_AGENT: Final = "ExecuteCommandAgent"
DEFINITION_LABEL: Final = {"taxtui": "task-definition"}


class TaskSize(NamedTuple):
    """Size of a task, in the units of its definition: 1024 for a vCPU."""

    cpu_units: int
    memory_mib: int


def fargate_size(limits: Limits) -> TaskSize:
    """The smallest size on sale with at least these limits. Raises :class:`CreateFailed`."""
    size = sold_size("fargate", round(limits.cpus * 1000), limits.memory_mib)
    if size is None:
        raise CreateFailed(
            f"Fargate has nothing with {limits.cpus:g} vCPU and {limits.memory_mib} MiB", fix="ask for less"
        )
    return TaskSize(round(size.cpu_milli * 1.024), size.memory_mib)


def definition(options: EcsOptions, size: TaskSize) -> dict[str, Any]:
    """The request of RegisterTaskDefinition. The family is a digest of the rest: equal definitions share a family."""
    body: dict[str, Any] = {
        "networkMode": "awsvpc" if options.subnets else "bridge",
        "requiresCompatibilities": [options.launch_type],
        "cpu": str(size.cpu_units),
        "memory": str(size.memory_mib),
        "taskRoleArn": options.task_role,
        "containerDefinitions": [
            {
                "name": CONTAINER,
                "image": options.image,
                "essential": True,
                "entryPoint": ["/bin/sh", "-c"],
                "command": ["sleep 60"],  # each task overrides the command, with a deadline
                "linuxParameters": {"initProcessEnabled": True},  # reaps the remaining processes of sessions
                "stopTimeout": 2,
            }
        ],
    }
    if options.launch_type == "FARGATE":
        body["runtimePlatform"] = {"cpuArchitecture": options.arch, "operatingSystemFamily": "LINUX"}
    if options.execution_role:
        body["executionRoleArn"] = options.execution_role
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:12]
    return {"family": f"taxtui-{digest}", "tags": tag_list("taxtui", DEFINITION_LABEL, "key", "value"), **body}


def run_request(spec: SandboxSpec, options: EcsOptions, task_definition: str) -> dict[str, Any]:
    """The request of RunTask for one sandbox. Equal names give equal tokens: a repeat makes no second task."""
    request: dict[str, Any] = {
        "cluster": options.cluster,
        "taskDefinition": task_definition,
        "count": 1,
        "enableExecuteCommand": True,
        "clientToken": hashlib.sha256(spec.name.encode()).hexdigest(),
        "startedBy": started_by(spec.labels[LABEL_RUN]),
        "tags": tag_list(spec.name, spec.labels, "key", "value"),
        "overrides": {
            "containerOverrides": [
                {
                    "name": CONTAINER,
                    # The end of the container is the end of the task: the deadline needs only ECS.
                    "command": [f"exec sleep {max(1, round(spec.ttl_s))}"],
                    "environment": [{"name": key, "value": value} for key, value in sorted(spec.env.items())],
                }
            ]
        },
    }
    if options.spot:
        request["capacityProviderStrategy"] = [{"capacityProvider": "FARGATE_SPOT", "weight": 1}]
    else:
        request["launchType"] = options.launch_type
    if options.subnets:
        network: dict[str, Any] = {
            "subnets": listed(options.subnets),
            "securityGroups": listed(options.security_groups),
        }
        if options.launch_type == "FARGATE":
            network["assignPublicIp"] = "ENABLED" if options.public_address else "DISABLED"
        request["networkConfiguration"] = {"awsvpcConfiguration": network}
    return request


def started_by(run_id: str) -> str:
    """The value in ListTasks' filter for the tasks of a run."""
    return f"taxtui-{run_id}"


class TaskState(NamedTuple):
    """The used fields of a described task."""

    status: str  # PROVISIONING → PENDING → ACTIVATING → RUNNING → … → STOPPED
    agent: str  # PENDING, RUNNING, STOPPED, or "" without an agent
    stopping: bool
    stop_code: str
    reason: str

    @classmethod
    def of(cls, task: Mapping[str, Any]) -> TaskState:
        container: Mapping[str, Any] = next(
            (item for item in task.get("containers", []) if item.get("name") == CONTAINER), {}
        )
        agents = [item for item in container.get("managedAgents", []) if item.get("name") == EXEC_AGENT]
        reasons = [task.get("stoppedReason", ""), container.get("reason", ""), *(a.get("reason", "") for a in agents)]
        return cls(
            status=task.get("lastStatus", ""),
            agent=agents[0].get("lastStatus", "") if agents else "",
            stopping=task.get("desiredStatus") == "STOPPED",
            stop_code=task.get("stopCode", ""),
            reason="; ".join(dict.fromkeys(redacted(reason) for reason in reasons if reason)),
        )

    def failure(self) -> SubstrateError | None:
        """The reason why the task takes no commands; None if the task runs or may still start."""
        if self.stopping or self.status == "STOPPED":
            return ended(self.stop_code, self.reason)
        return agent_ended(self.reason) if self.agent == "STOPPED" else None
