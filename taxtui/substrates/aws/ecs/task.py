"""ECS tasks as plain data: requests, and the meaning of the answers. Nothing is called here."""

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


def definition(
    *, image: str, size: TaskSize, launch_type: str, in_vpc: bool, task_role: str, execution_role: str, arch: str
) -> dict[str, Any]:
    """The request of RegisterTaskDefinition. Its family is a digest of the rest, so that equal definitions share a
    family.
    """
    body: dict[str, Any] = {
        "networkMode": "awsvpc" if in_vpc else "bridge",
        "requiresCompatibilities": [launch_type],
        "cpu": str(size.cpu_units),
        "memory": str(size.memory_mib),
        "taskRoleArn": task_role,
        "containerDefinitions": [
            {
                "name": CONTAINER,
                "image": image,
                "essential": True,
                "entryPoint": ["/bin/sh", "-c"],
                "command": ["sleep 60"],  # each task brings its own, with its own deadline
                "linuxParameters": {"initProcessEnabled": True},  # reaps what sessions leave behind
                "stopTimeout": 2,
            }
        ],
    }
    if launch_type == "FARGATE":
        body["runtimePlatform"] = {"cpuArchitecture": arch, "operatingSystemFamily": "LINUX"}
    if execution_role:
        body["executionRoleArn"] = execution_role
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:12]
    return {"family": f"taxtui-{digest}", "tags": tag_list("taxtui", DEFINITION_LABEL, "key", "value"), **body}


def run_request(
    spec: SandboxSpec,
    *,
    cluster: str,
    task_definition: str,
    launch_type: str,
    spot: bool,
    subnets: list[str],
    security_groups: list[str],
    public_address: bool,
) -> dict[str, Any]:
    """The request of RunTask for one sandbox. Equal names give equal tokens: a repeat makes no second task."""
    request: dict[str, Any] = {
        "cluster": cluster,
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
                    # The container's end is the task's end: the deadline needs only ECS.
                    "command": [f"exec sleep {max(1, round(spec.ttl_s))}"],
                    "environment": [{"name": key, "value": value} for key, value in sorted(spec.env.items())],
                }
            ]
        },
    }
    if spot:
        request["capacityProviderStrategy"] = [{"capacityProvider": "FARGATE_SPOT", "weight": 1}]
    else:
        request["launchType"] = launch_type
    if subnets:
        network: dict[str, Any] = {"subnets": subnets, "securityGroups": security_groups}
        if launch_type == "FARGATE":
            network["assignPublicIp"] = "ENABLED" if public_address else "DISABLED"
        request["networkConfiguration"] = {"awsvpcConfiguration": network}
    return request


def started_by(run_id: str) -> str:
    """The value by which ListTasks filters a run's tasks."""
    return f"taxtui-{run_id}"


class TaskState(NamedTuple):
    """The used fields of a described task."""

    status: str  # PROVISIONING → PENDING → ACTIVATING → RUNNING → … → STOPPED
    agent: str  # PENDING, RUNNING, STOPPED, or "" before there is one
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
        """The reason why the task takes no commands, before or after its use; None if it may still start."""
        if self.stopping or self.status == "STOPPED":
            return ended(self.stop_code, self.reason)
        return agent_ended(self.reason) if self.agent == "STOPPED" else None
