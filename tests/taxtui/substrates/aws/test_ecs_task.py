"""What is asked of ECS, what its answers mean, and what its sizes cost."""

from __future__ import annotations

from typing import Any

import pytest

from costmodel import NoPrice, PriceError, load_prices
from costmodel.pricing.sheet import priced_cell
from taxtui.errors import CreateFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.substrates.aws import EcsOptions
from taxtui.substrates.aws.ecs.task import definition, ended, fargate_size, not_started, run_request, state_of
from taxtui.substrates.aws.failure import CapacityUnavailable, SpotInterrupted

SPEC = SandboxSpec(name="taxtui-r-1", labels={LABEL_RUN: "r"}, limits=Limits(), ttl_s=90.4, env={"B": "2", "A": "1"})


def options(**changed: Any) -> EcsOptions:
    return EcsOptions(**{"task_role": "r", "subnets": "subnet-1", **changed})


def defined(**changed: Any) -> dict[str, Any]:
    return definition(options(**changed), Limits())


def requested(**changed: Any) -> dict[str, Any]:
    return run_request(SPEC, options(**changed), "d")


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
    agent = {"name": "ExecuteCommandAgent", "lastStatus": "PENDING"}
    task = {"lastStatus": "RUNNING", "containers": [{"name": "sandbox", "managedAgents": [agent]}]}
    state = state_of(task)
    assert (state.status, state.milestones, state.failure) == ("RUNNING", ["running"], None)
    agent["lastStatus"] = "RUNNING"
    assert state_of(task).milestones == ["running", "agent running"]
    assert state_of({"lastStatus": "PROVISIONING"}).milestones == ["provisioning"]


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


def test_an_answer_without_a_task_says_why() -> None:
    assert type(not_started([{"reason": NO_ROOM}])) is CapacityUnavailable
    assert "A; B none left" in str(not_started([{"arn": "x", "reason": "A"}, {"reason": "B", "detail": "none left"}]))
    assert "the task failed to start: TaskFailedToStart" in str(not_started([]))


VCPU_USD, GIB_USD, ADDRESS_USD = 0.04048, 0.004445, 0.005


@pytest.mark.parametrize(
    ("cpus", "mib", "vcpu", "gib"),
    [(1.0, 1024, 1, 2), (1.5, 3000, 2, 4), (0.25, 3072, 0.5, 3), (4.0, 31_000, 8, 32), (16.0, 122_880, 16, 120)],
)
def test_the_next_size_that_is_sold_is_bought_and_billed(cpus: float, mib: int, vcpu: float, gib: float) -> None:
    identity = priced_cell("ecs", "fargate", cpus, mib)
    usd = load_prices("aws-fargate").sandbox(identity).usd_hour(identity)
    assert usd == pytest.approx(vcpu * VCPU_USD + gib * GIB_USD + ADDRESS_USD)
    assert fargate_size(Limits(cpus=cpus, memory_mib=mib)) == (vcpu * 1024, gib * 1024)


def test_a_size_that_nobody_sells_is_refused_before_anything_is_made() -> None:
    with pytest.raises(PriceError, match="fargate sells nothing with 17 vCPU"):
        load_prices("aws-fargate").sandbox(priced_cell("ecs", "fargate", 17.0, 1024))
    with pytest.raises(CreateFailed, match="17 vCPU"):
        fargate_size(Limits(cpus=17.0))


@pytest.mark.parametrize(
    ("changed", "address_usd", "vcpu_usd"),
    [
        ({}, ADDRESS_USD, VCPU_USD),
        ({"public_address": False}, 0.0, VCPU_USD),
        ({"arch": "ARM64"}, ADDRESS_USD, 0.03238),
    ],
)
def test_address_architecture_and_spot_are_in_the_variant_and_in_the_bill(
    changed: dict[str, Any], address_usd: float, vcpu_usd: float
) -> None:
    price = load_prices("aws-fargate").sandbox(priced_cell("ecs", EcsOptions(**changed).variant, 1.0, 2048))
    assert (price.rate("usd_per_address_hour"), price.rate("usd_per_vcpu_hour")) == (address_usd, vcpu_usd)
    with pytest.raises(NoPrice):
        load_prices("aws-fargate").sandbox(priced_cell("ecs", EcsOptions(spot=True, **changed).variant, 1.0, 2048))
