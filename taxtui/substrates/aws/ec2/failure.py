"""Errors for an instance that ended and for a login that fails. Plain data in, nothing is called.

Source of the words: the codes of ``StateReason`` in EC2's API reference. Refusals of EC2's API are in
``aws/failure.py``.
"""

from __future__ import annotations

from typing import Final

from taxtui.errors import CreateFailed, SandboxLost, SubstrateError
from taxtui.sandboxes.kit.refusal import is_named
from taxtui.substrates.aws.failure import CapacityUnavailable, SpotInterrupted

_NEVER_STARTED: Final = ("VolumeLimitExceeded", "InternalError", "InvalidSnapshot")


def ended(status: str, code: str, reason: str) -> SubstrateError:
    """Why an instance that is ending is, by its state and the code and message of its ``StateReason``."""
    if "Spot" in code:  # Server.SpotInstanceTermination, Server.SpotInstanceShutdown
        return SpotInterrupted(f"AWS took the spot instance back ({code})", fix="use on-demand to avoid it")
    if "InsufficientInstanceCapacity" in code:  # accepted, and only then found to have no host
        return CapacityUnavailable("AWS has no capacity for this instance type here", fix="try another zone or type")
    if any(each in code for each in _NEVER_STARTED):  # accepted, but its volume could not be made: it never ran
        return CreateFailed(f"the instance could not start: {code}: {reason}")
    return SandboxLost(f"the instance is {status}: {reason or code or 'no reason given'}")


def no_login(error: Exception) -> str:
    """The reason why logins fail. An unfinished cloud-init looks the same."""
    if is_named(error, "HostKeyNotVerifiable"):
        return "sshd shows another host key than the one in its user data; does the image have cloud-init?"
    if is_named(error, "PermissionDenied"):
        return "the login is refused; does the image have cloud-init, and did it make the user?"
    return f"no login: {str(error) or type(error).__name__}"
