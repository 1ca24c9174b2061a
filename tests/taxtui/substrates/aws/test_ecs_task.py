"""What is asked of ECS, against botocore's own model, and what its answers mean."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from taxtui.errors import CreateFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.substrates.aws.ecs.task import TaskState, definition, fargate_size, run_request
from taxtui.substrates.aws.failure import CapacityUnavailable, SpotInterrupted

MODEL = botocore.session.get_session().get_service_model("ecs")
SPEC = SandboxSpec(name="taxtui-r-1", labels={LABEL_RUN: "r"}, limits=Limits(), ttl_s=90.4, env={"B": "2", "A": "1"})


def valid(operation: str, request: dict[str, Any]) -> bool:
    report = ParamValidator().validate(request, MODEL.operation_model(operation).input_shape)
    assert not report.has_errors(), report.generate_report()
    return True


def defined(**changed: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "image": "i",
        "size": fargate_size(Limits()),
        "launch_type": "FARGATE",
        "in_vpc": True,
        "task_role": "r",
        "execution_role": "",
        "arch": "X86_64",
    }
    return definition(**{**fields, **changed})


def requested(**changed: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "cluster": "c",
        "task_definition": "d",
        "launch_type": "FARGATE",
        "spot": False,
        "subnets": ["subnet-1"],
        "security_groups": [],
        "public_address": True,
    }
    return run_request(SPEC, **{**fields, **changed})


@pytest.mark.parametrize(
    ("cpus", "memory_mib", "size"),
    [(0.25, 512, (256, 512)), (1, 1024, (1024, 2048)), (0.5, 3000, (512, 3072)), (1, 9000, (2048, 9216))],
)
def test_the_smallest_size_on_sale_is_taken(cpus: float, memory_mib: int, size: tuple[int, int]) -> None:
    assert fargate_size(Limits(cpus=cpus, memory_mib=memory_mib)) == size


def test_a_size_that_is_not_on_sale_is_refused() -> None:
    with pytest.raises(CreateFailed, match="32 vCPU"):
        fargate_size(Limits(cpus=32))


def test_requests_are_what_the_model_allows() -> None:
    assert valid("RegisterTaskDefinition", defined())
    assert valid("RegisterTaskDefinition", defined(launch_type="EC2", in_vpc=False, execution_role="e"))
    assert valid("RunTask", requested())
    assert valid("RunTask", requested(spot=True))
    assert valid("RunTask", requested(launch_type="EC2", subnets=[]))


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


@pytest.mark.parametrize(
    ("task", "kind", "advice"),
    [
        ({"stopCode": "SpotInterruption"}, SpotInterrupted, "on-demand"),
        ({"stoppedReason": "OutOfMemoryError: Container killed"}, SandboxLost, "memory_mib"),
        ({"stoppedReason": "CannotPullContainerError: x"}, CreateFailed, "route to the registry"),
        ({"stoppedReason": "ResourceInitializationError: y"}, CreateFailed, "execution_role"),
        ({"stoppedReason": "Capacity is unavailable at this time"}, CapacityUnavailable, "zones"),
        ({"stopCode": "TaskFailedToStart", "stoppedReason": "z"}, CreateFailed, "failed to start: z"),
        ({"stopCode": "EssentialContainerExited"}, SandboxLost, "EssentialContainerExited"),
        ({}, SandboxLost, "no reason given"),
    ],
)
def test_every_end_of_a_task_has_its_own_message(task: dict[str, Any], kind: type[SubstrateError], advice: str) -> None:
    failure = TaskState.of({"lastStatus": "STOPPED", "desiredStatus": "STOPPED", **task}).failure()
    assert type(failure) is kind
    assert advice in str(failure)


def test_the_agents_state_is_its_own() -> None:
    container = {"name": "sandbox", "managedAgents": [{"name": "ExecuteCommandAgent", "lastStatus": "PENDING"}]}
    state = TaskState.of({"lastStatus": "RUNNING", "desiredStatus": "RUNNING", "containers": [container]})
    assert (state.status, state.agent, state.stopping) == ("RUNNING", "PENDING", False)
    assert TaskState.of({"lastStatus": "PROVISIONING"}).agent == ""
