"""What is asked of ECS, against botocore's own model, and what its answers mean."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from taxtui.errors import CreateFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.substrates.aws.ecs import EcsOptions
from taxtui.substrates.aws.ecs.task import TaskState, definition, ended, not_started, run_request
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
    return definition(options(**changed), Limits())


def requested(**changed: Any) -> dict[str, Any]:
    return run_request(SPEC, options(**changed), "d")


def test_requests_are_what_the_model_allows() -> None:
    assert valid("RegisterTaskDefinition", defined())
    assert valid("RegisterTaskDefinition", defined(execution_role="e"))
    assert valid("RunTask", requested())
    assert valid("RunTask", requested(spot=True))


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
        # The task never ran: image, role, route or capacity.
        ("TaskFailedToStart", "CannotPullContainerError: x", CreateFailed, "the subnet's route to the registry"),
        ("EssentialContainerExited", "ResourceInitializationError: x", CreateFailed, "execution_role"),
        ("TaskFailedToStart", NO_ROOM, CapacityUnavailable, "try subnets in other zones"),
        ("TaskFailedToStart", "something new", CreateFailed, "the task failed to start: something new"),
        # The task was in use.
        ("EssentialContainerExited", "OutOfMemoryError: killed", SandboxLost, "the task has stopped: OutOfMemoryError"),
        ("EssentialContainerExited", "", SandboxLost, "the task has stopped: EssentialContainerExited"),
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
        ([{"reason": NO_ROOM}], CapacityUnavailable, "try subnets in other zones"),
        ([{"arn": "arn:x", "reason": "A"}, {"reason": "B", "detail": "none left"}], CreateFailed, "A; B none left"),
        ([], CreateFailed, "the task failed to start: TaskFailedToStart"),
    ],
)
def test_an_answer_without_a_task_says_why(
    failures: list[dict[str, str]], kind: type[SubstrateError], text: str
) -> None:
    error = not_started(failures)
    assert type(error) is kind
    assert text in str(error)
