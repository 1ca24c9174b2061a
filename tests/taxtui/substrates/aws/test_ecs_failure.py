"""What ends a task, and what keeps one from starting: each row is what ECS or an agent says, with its meaning."""

from __future__ import annotations

import pytest

from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable
from taxtui.substrates.aws.ecs.failure import ended, not_started, unspoken
from taxtui.substrates.aws.failure import CapacityUnavailable, SpotInterrupted

OOM = "OutOfMemoryError: Container killed due to memory usage"
PULL = "CannotPullContainerError: pull image manifest has been retried 1 time(s)"
SET_UP = "ResourceInitializationError: unable to pull secrets or registry auth"
NO_ROOM = "Capacity is unavailable at this time. Please try again later or in a different availability zone"


@pytest.mark.parametrize(
    ("stop_code", "reason", "kind", "text"),
    [
        # AWS's own doing, and an outcome of its own.
        (
            "SpotInterruption",
            "Your Spot Task was interrupted.",
            SpotInterrupted,
            "AWS took the Fargate Spot task back; use on-demand to avoid it",
        ),
        # It was in use, and a command has used up what the task was given.
        (
            "EssentialContainerExited",
            OOM,
            SandboxLost,
            f"the task ran out of memory ({OOM}); raise limits.memory_mib",
        ),
        # It never ran: what is wrong is the image, a role or a route.
        (
            "TaskFailedToStart",
            PULL,
            CreateFailed,
            f"the image could not be pulled ({PULL}); the subnet needs a route to the registry (public address, NAT or "
            "endpoints), and private images an execution_role",
        ),
        (
            "TaskFailedToStart",
            SET_UP,
            CreateFailed,
            f"the task could not be set up ({SET_UP}); check execution_role and the subnet's routes",
        ),
        # It never ran, and it was nobody's fault.
        (
            "TaskFailedToStart",
            NO_ROOM,
            CapacityUnavailable,
            f"Fargate has no capacity ({NO_ROOM}); try subnets in other zones",
        ),
        ("TaskFailedToStart", "something new", CreateFailed, "the task failed to start: something new"),
        # Its time to live, or its own process: it was in use.
        ("EssentialContainerExited", "", SandboxLost, "the task has stopped: EssentialContainerExited"),
        ("UserInitiated", "stopped by hand", SandboxLost, "the task has stopped: stopped by hand"),
        ("", "", SandboxLost, "the task has stopped: no reason given"),
    ],
)
def test_every_end_of_a_task_has_its_own_message(
    stop_code: str, reason: str, kind: type[SubstrateError], text: str
) -> None:
    error = ended(stop_code, reason)
    assert (type(error), str(error)) == (kind, text)


@pytest.mark.parametrize(
    ("failures", "kind", "text"),
    [
        (
            [{"reason": NO_ROOM}],
            CapacityUnavailable,
            f"ECS has no room for the task ({NO_ROOM}); add container instances or other subnets",
        ),
        # Of several container instances each says why not; they are not named.
        (
            [{"arn": "arn:x", "reason": "RESOURCE:MEMORY"}, {"reason": "RESOURCE:CPU", "detail": "none left"}],
            CapacityUnavailable,
            "ECS has no room for the task (RESOURCE:MEMORY; RESOURCE:CPU none left); add container instances or other "
            "subnets",
        ),
        # The set-up's: no instance can take any task.
        (
            [{"reason": "AGENT"}],
            SubstrateUnavailable,
            "the cluster's container instances have no agent connected (AGENT)",
        ),
        ([{"reason": "ATTRIBUTE"}], CreateFailed, "ECS did not start the task: ATTRIBUTE"),
        ([], CreateFailed, "ECS did not start the task: no reason given"),
    ],
)
def test_every_reason_not_to_start_a_task_has_its_own_message(
    failures: list[dict[str, str]], kind: type[SubstrateError], text: str
) -> None:
    error = not_started(failures)
    assert (type(error), str(error)) == (kind, text)


def test_encryption_is_the_clusters_setting_and_anything_else_the_sessions_failure() -> None:
    encrypted = unspoken(["KMSEncryption"])
    assert type(encrypted) is SubstrateUnavailable
    assert "remove its kmsKeyId" in str(encrypted)
    other = unspoken(["A", "B"])
    assert (type(other), str(other)) == (ExecFailed, "the session agent asks for A, B, which taxtui does not support")
