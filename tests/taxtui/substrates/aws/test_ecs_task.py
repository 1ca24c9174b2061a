"""What is asked of ECS, against botocore's own model, and what its answers mean."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.substrates.aws.ecs import EcsOptions
from taxtui.substrates.aws.ecs.failure import ended, not_started, unspoken
from taxtui.substrates.aws.ecs.task import TaskState, definition, fargate_size, run_request
from taxtui.substrates.aws.failure import CapacityUnavailable, SpotInterrupted

MODEL = botocore.session.get_session().get_service_model("ecs")
SPEC = SandboxSpec(name="taxtui-r-1", labels={LABEL_RUN: "r"}, limits=Limits(), ttl_s=90.4, env={"B": "2", "A": "1"})


def valid(operation: str, request: dict[str, Any]) -> bool:
    report = ParamValidator().validate(request, MODEL.operation_model(operation).input_shape)
    assert not report.has_errors(), report.generate_report()
    return True


def options(**changed: Any) -> EcsOptions:
    return EcsOptions(**{"task_role": "r", "subnets": "subnet-1", **changed})


def defined(**changed: Any) -> dict[str, Any]:
    return definition(options(**changed), fargate_size(Limits()))


def requested(**changed: Any) -> dict[str, Any]:
    return run_request(SPEC, options(**changed), "d")


def test_requests_are_what_the_model_allows() -> None:
    assert valid("RegisterTaskDefinition", defined())
    assert valid("RegisterTaskDefinition", defined(launch_type="EC2", subnets="", execution_role="e"))
    assert valid("RunTask", requested())
    assert valid("RunTask", requested(spot=True))
    assert valid("RunTask", requested(launch_type="EC2", subnets=""))


def test_a_family_is_its_content() -> None:
    assert defined()["family"] == defined()["family"]
    assert len({defined(image=image)["family"] for image in "abc"} | {defined(arch="ARM64")["family"]}) == 4


def test_the_guards_are_in_the_request() -> None:
    request = requested()
    override = request["overrides"]["containerOverrides"][0]
    assert override["command"] == ["exec sleep 90"]  # the deadline, without us
    assert override["environment"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert request["clientToken"] == requested()["clientToken"]
    assert len(request["clientToken"]) <= 64
    assert request["launchType"] == "FARGATE"
    assert {"key": "taxtui.run", "value": "r"} in request["tags"]
    assert "launchType" not in requested(spot=True)  # ECS refuses both together


def test_the_agents_state_is_its_own() -> None:
    container = {"name": "sandbox", "managedAgents": [{"name": "ExecuteCommandAgent", "lastStatus": "PENDING"}]}
    state = TaskState.of({"lastStatus": "RUNNING", "desiredStatus": "RUNNING", "containers": [container]})
    assert (state.status, state.agent, state.stopping) == ("RUNNING", "PENDING", False)
    assert TaskState.of({"lastStatus": "PROVISIONING"}).agent == ""


NO_ROOM = "Capacity is unavailable at this time. Please try again later or in a different availability zone"


@pytest.mark.parametrize(
    ("stop_code", "reason", "kind", "text"),
    [
        (
            "SpotInterruption",
            "Your Spot Task was interrupted.",
            SpotInterrupted,
            "Fargate Spot task back; use on-demand",
        ),
        ("EssentialContainerExited", "OutOfMemoryError: killed", SandboxLost, "killed); raise limits.memory_mib"),
        # The task never ran: image, role, route or capacity.
        ("TaskFailedToStart", "CannotPullContainerError: x", CreateFailed, "needs a route to the registry"),
        ("TaskFailedToStart", "ResourceInitializationError: x", CreateFailed, "check execution_role and the subnet's"),
        ("TaskFailedToStart", NO_ROOM, CapacityUnavailable, "try subnets in other zones"),
        ("TaskFailedToStart", "something new", CreateFailed, "the task failed to start: something new"),
        # The task was in use.
        ("EssentialContainerExited", "", SandboxLost, "the task has stopped: EssentialContainerExited"),
        ("UserInitiated", "stopped by hand", SandboxLost, "the task has stopped: stopped by hand"),
        ("", "", SandboxLost, "the task has stopped: no reason given"),
    ],
)
def test_every_end_of_a_task_has_its_own_message(
    stop_code: str, reason: str, kind: type[SubstrateError], text: str
) -> None:
    error = ended(stop_code, reason)
    assert type(error) is kind
    assert text in str(error)


@pytest.mark.parametrize(
    ("failures", "kind", "text"),
    [
        ([{"reason": NO_ROOM}], CapacityUnavailable, "add container instances or subnets"),
        # Each container instance has a reason; instances are not named.
        (
            [{"arn": "arn:x", "reason": "RESOURCE:MEMORY"}, {"reason": "RESOURCE:CPU", "detail": "none left"}],
            CapacityUnavailable,
            "ECS has no room for the task (RESOURCE:MEMORY; RESOURCE:CPU none left)",
        ),
        ([{"reason": "AGENT"}], SubstrateUnavailable, "container instances have no agent connected (AGENT)"),
        ([{"reason": "ATTRIBUTE"}], CreateFailed, "ECS did not start the task: ATTRIBUTE"),
        ([], CreateFailed, "ECS did not start the task: no reason given"),
    ],
)
def test_every_reason_not_to_start_a_task_has_its_own_message(
    failures: list[dict[str, str]], kind: type[SubstrateError], text: str
) -> None:
    error = not_started(failures)
    assert type(error) is kind
    assert text in str(error)


def test_encryption_is_the_clusters_setting_and_anything_else_the_sessions_failure() -> None:
    encrypted = unspoken(["KMSEncryption"])
    assert type(encrypted) is SubstrateUnavailable
    assert "remove the kmsKeyId" in str(encrypted)
    other = unspoken(["A", "B"])
    assert (type(other), str(other)) == (
        ExecFailed,
        "taxtui does not support an action of the session agent: A, B",
    )
