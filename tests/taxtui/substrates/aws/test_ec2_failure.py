"""What ends an instance, and what keeps us out of one: each row is what AWS or an SSH server says, with its meaning."""

from __future__ import annotations

import asyncssh
import pytest

from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError
from taxtui.sandboxes.kit.shell.over_ssh import no_channel
from taxtui.substrates.aws.ec2.instance import ended, no_login
from taxtui.substrates.aws.failure import CapacityUnavailable, SpotInterrupted

FULL = "Client.VolumeLimitExceeded: Volume limit exceeded"


@pytest.mark.parametrize(
    ("status", "code", "reason", "kind", "text"),
    [
        # AWS's own doing, and an outcome of its own.
        (
            "shutting-down",
            "Server.SpotInstanceTermination",
            "Server.SpotInstanceTermination: Spot instance termination",
            SpotInterrupted,
            "AWS took the spot instance back (Server.SpotInstanceTermination); use on-demand to avoid it",
        ),
        # Accepted, and only then found to have no host: it never ran.
        (
            "terminated",
            "Server.InsufficientInstanceCapacity",
            "",
            CapacityUnavailable,
            "AWS has no capacity for this instance type here; try another zone or type",
        ),
        # Accepted, but without a volume: it never ran either.
        (
            "terminated",
            "Client.VolumeLimitExceeded",
            FULL,
            CreateFailed,
            f"the instance could not start: Client.VolumeLimitExceeded: {FULL}",
        ),
        (
            "terminated",
            "Server.InternalError",
            "",
            CreateFailed,
            "the instance could not start: Server.InternalError: ",
        ),
        # Somebody's doing, or its own time to live's: it was in use.
        (
            "shutting-down",
            "Client.UserInitiatedShutdown",
            "User initiated (2026-01-01)",
            SandboxLost,
            "the instance is shutting-down: User initiated (2026-01-01)",
        ),
        ("stopped", "", "", SandboxLost, "the instance is stopped: no reason given"),
    ],
)
def test_every_end_of_an_instance_has_its_own_message(
    status: str, code: str, reason: str, kind: type[SubstrateError], text: str
) -> None:
    error = ended(status, code, reason)
    assert (type(error), str(error)) == (kind, text)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        # sshd is up before cloud-init has put our host key in place, or cloud-init never does.
        (
            asyncssh.HostKeyNotVerifiable("Host key is not trusted"),
            "sshd shows another host key than the one in its user data; does the image have cloud-init?",
        ),
        # Our host key, but not yet our user.
        (
            asyncssh.PermissionDenied("Permission denied"),
            "the login is refused; does the image have cloud-init, and did it make the user?",
        ),
        (ConnectionResetError("reset"), "no login: reset"),
        (TimeoutError(), "no login: TimeoutError"),
    ],
)
def test_why_nobody_can_log_in_yet(error: Exception, text: str) -> None:
    assert no_login(error) == text


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        # The connection has closed while the channel was asked for.
        (asyncssh.OPEN_CONNECT_FAILED, SandboxLost, "the SSH connection is gone: SSH connection closed"),
        # sshd's MaxSessions: the instance is well.
        (asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, ExecFailed, "sshd opens no further channel: SSH connection closed"),
        (asyncssh.OPEN_RESOURCE_SHORTAGE, ExecFailed, "sshd opens no further channel: SSH connection closed"),
    ],
)
def test_a_connection_that_takes_no_more_is_told_from_one_that_is_gone(
    code: int, kind: type[SubstrateError], text: str
) -> None:
    error = no_channel(code, "SSH connection closed")
    assert (type(error), str(error)) == (kind, text)
