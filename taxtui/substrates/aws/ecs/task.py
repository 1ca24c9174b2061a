"""ECS tasks as plain data: requests, and the meaning of answers, without calls."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from costmodel import sold_size
from taxtui.errors import CreateFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.substrates.aws import EcsOptions, listed
from taxtui.substrates.aws.connection import AwsState, tag_list
from taxtui.substrates.aws.failure import CapacityUnavailable, SpotInterrupted, redacted

CONTAINER: Final = "sandbox"
AGENT: Final = "agent running"
"""The last milestone: the container's session agent can be asked for sessions."""


def fargate_size(limits: Limits) -> tuple[int, int]:
    """CPU units (1024 a vCPU) and MiB of the smallest size on sale with these limits. Raises :class:`CreateFailed`."""
    size = sold_size("fargate", round(limits.cpus * 1000), limits.memory_mib)
    if size is None:
        raise CreateFailed(
            f"Fargate has nothing with {limits.cpus:g} vCPU and {limits.memory_mib} MiB", fix="ask for less"
        )
    return round(size.cpu_milli * 1.024), size.memory_mib


def definition(options: EcsOptions, limits: Limits) -> dict[str, Any]:
    """The request of RegisterTaskDefinition. The family is a digest of the rest: equal definitions share a family."""
    cpu_units, memory_mib = fargate_size(limits)
    body: dict[str, Any] = {
        "networkMode": "awsvpc",
        "requiresCompatibilities": ["FARGATE"],
        "runtimePlatform": {"cpuArchitecture": options.arch, "operatingSystemFamily": "LINUX"},
        "cpu": str(cpu_units),
        "memory": str(memory_mib),
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
    if options.execution_role:
        body["executionRoleArn"] = options.execution_role
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:12]
    return {"family": f"taxtui-{digest}", **body}


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
        "networkConfiguration": {
            "awsvpcConfiguration": {
                "subnets": listed(options.subnets),
                "securityGroups": listed(options.security_groups),
                "assignPublicIp": "ENABLED" if options.public_address else "DISABLED",
            }
        },
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
        request["launchType"] = "FARGATE"
    return request


def started_by(run_id: str) -> str:
    """The value in ListTasks' filter for the tasks of a run."""
    return f"taxtui-{run_id}"


def ended(stop_code: str, reason: str) -> SubstrateError:
    """The error for a stopping task, before or during its use: ``stopCode``, and ``stoppedReason`` in AWS's words."""
    why = reason or stop_code or "no reason given"
    if stop_code == "SpotInterruption":
        return SpotInterrupted("AWS took the Fargate Spot task back", fix="use on-demand tasks")
    if "apacity is unavailable" in why:  # also within a sentence, without a capital
        return CapacityUnavailable(f"Fargate has no capacity ({why})", fix="try subnets in other zones")
    if stop_code == "TaskFailedToStart" or "CannotPull" in why or "ResourceInitializationError" in why:
        return CreateFailed(
            f"the task failed to start: {why}",
            fix="check the image, the subnet's route to the registry, and the execution_role of a private image",
        )
    return SandboxLost(f"the task has stopped: {why}")


def not_started(failures: Sequence[Mapping[str, str]]) -> SubstrateError:
    """The error for an answer of RunTask without a task."""
    reasons = (f"{refusal.get('reason', '')} {refusal.get('detail', '')}".strip() for refusal in failures)
    return ended("TaskFailedToStart", redacted("; ".join(reasons)))


def state_of(task: Mapping[str, Any]) -> AwsState:
    """The state in a described task, and of its session agent."""
    container: Mapping[str, Any] = next(
        (item for item in task.get("containers", []) if item.get("name") == CONTAINER), {}
    )
    agents = [item for item in container.get("managedAgents", []) if item.get("name") == "ExecuteCommandAgent"]
    agent = agents[0].get("lastStatus", "") if agents else ""
    reasons = [task.get("stoppedReason", ""), container.get("reason", ""), *(item.get("reason", "") for item in agents)]
    reason = "; ".join(dict.fromkeys(redacted(reason) for reason in reasons if reason))
    status = task.get("lastStatus", "")  # PROVISIONING → PENDING → ACTIVATING → RUNNING → … → STOPPED
    failure: SubstrateError | None = None
    if "STOPPED" in (task.get("desiredStatus"), status):
        failure = ended(task.get("stopCode", ""), reason)
    elif agent == "STOPPED":
        failure = SandboxLost(f"the task's session agent has stopped: {reason or 'no reason given'}")
    return AwsState(status, failure, [status.lower(), *([AGENT] if agent == "RUNNING" else [])])
