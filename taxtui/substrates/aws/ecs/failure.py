"""Errors for a task that ended or never started, and for a session agent's requests. Plain data in.

Source of the words: ``stopCode`` and ``stoppedReason`` ("Stopped tasks error messages", ECS Developer Guide), the
``failures`` of RunTask ("API failure reasons"), and the requested actions of a session agent. Refusals by ECS's API are
in ``aws/failure.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable
from taxtui.substrates.aws.failure import CapacityUnavailable, SpotInterrupted, redacted


def ended(stop_code: str, reason: str) -> SubstrateError:
    """The error for a stopping task, before or during its use."""
    why = reason or stop_code or "no reason given"
    if stop_code == "SpotInterruption":
        return SpotInterrupted("AWS took the Fargate Spot task back", fix="use on-demand tasks")
    if "OutOfMemory" in why:  # the task was in use
        return SandboxLost(f"the task ran out of memory ({why})", fix="raise limits.memory_mib")
    if "CannotPull" in why:
        return CreateFailed(
            f"the image could not be pulled ({why})",
            fix="the subnet needs a route to the registry (public address, NAT or endpoints), and private images "
            "an execution_role",
        )
    if "ResourceInitializationError" in why:
        return CreateFailed(f"the task could not be set up ({why})", fix="check execution_role and the subnet's routes")
    if "apacity is unavailable" in why:  # also within a sentence, without a capital
        return CapacityUnavailable(f"Fargate has no capacity ({why})", fix="try subnets in other zones")
    if stop_code == "TaskFailedToStart":  # any other reason
        return CreateFailed(f"the task failed to start: {why}")
    return SandboxLost(f"the task has stopped: {why}")


def agent_ended(reason: str) -> SandboxLost:
    """The error for a running task without a session agent."""
    return SandboxLost(f"the task's session agent has stopped: {reason or 'no reason given'}")


def not_started(failures: Sequence[Mapping[str, str]]) -> SubstrateError:
    """The error for an answer of RunTask without a task."""
    why = redacted(
        "; ".join(f"{refusal.get('reason', '')} {refusal.get('detail', '')}".strip() for refusal in failures)
    )
    if "apacity is unavailable" in why or "RESOURCE:" in why:
        return CapacityUnavailable(f"ECS has no room for the task ({why})", fix="add container instances or subnets")
    if "AGENT" in why:
        return SubstrateUnavailable(f"the cluster's container instances have no agent connected ({why})")
    return CreateFailed(f"ECS did not start the task: {why or 'no reason given'}")


def unspoken(actions: Sequence[str]) -> SubstrateError:
    """The error for a handshake with unsupported actions; encryption is a setting of the cluster."""
    if "KMSEncryption" in actions:
        return SubstrateUnavailable(
            "taxtui does not support the cluster's executeCommandConfiguration: it encrypts sessions with KMS",
            fix="remove the kmsKeyId or use another cluster",
        )
    return ExecFailed(f"taxtui does not support an action of the session agent: {', '.join(actions)}")
