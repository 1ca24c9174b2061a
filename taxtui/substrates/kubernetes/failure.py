"""Errors for the API server's answers, a pod's states and a program's end. Plain data in, nothing is called.

Source of the words: the API server's Status objects (kubernetes.io, API conventions), the kubelet's reasons in
a container's state, and the ``v1.Status`` at the end of an exec.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from taxtui.errors import ExecFailed, QuotaExceeded, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit.refusal import Meaning, Refused, is_named
from taxtui.substrates.kubernetes.pod import Camel, Pod, Reason

_USER: Final = re.compile(r'[Uu]ser "[^"]*"')  # private, and useless in a recording
_POLICY: Final = re.compile("is forbidden: (?!this user cannot|not yet ready)|denied the request")


class _Details(Camel, frozen=True):
    causes: list[Reason] | None = None


class ApiStatus(Reason, frozen=True):
    """A ``v1.Status`` object: a refusal by the API server, or the end of an exec."""

    status: str = ""
    code: int | None = None
    details: _Details | None = None

    def exit_code(self) -> int:
        """The exit code of the command. Raises ``ExecFailed`` if the container runtime failed."""
        if self.status == "Success":
            return 0
        for cause in (self.details.causes if self.details else None) or ():
            if cause.reason == "ExitCode" and cause.message and cause.message.isdecimal():
                return int(cause.message)
        raise ExecFailed(f"the container runtime could not run the command: {' '.join((self.message or '').split())}")


# ---------------------------------------------------------------------------------------------- the API server refuses


class ApiRefused(Refused):
    """The API server refused."""

    table: ClassVar[tuple[Meaning, ...]] = (
        # The server limits concurrent requests, and refuses a request before reading the body.
        Meaning(Throttled, lambda refusal: refusal.status == 429),
        # The server or a proxy is starting or stopping, and advises a time; without advice this is a fault.
        Meaning(Throttled, lambda refusal: refusal.status >= 500 and refusal.retry_after_s is not None),
        # Without a connection the request had no effect.
        Meaning(Throttled, lambda refusal: refusal.unsent),
        # A restarting server has not read the roles yet (``access.py``): the right is not lost.
        Meaning(Throttled, lambda refusal: refusal.in_doubt),
        # Before there is a pod, wrong credentials are a fault of the set-up; later, of this request.
        Meaning(
            SubstrateUnavailable,
            lambda refusal: refusal.status == 401,
            fix="renew the credentials of this kubeconfig context",
            before_a_sandbox=True,
        ),
        # A used-up quota is a 403 too; only the message differs from a missing role.
        Meaning(
            QuotaExceeded,
            lambda refusal: refusal.status == 403 and "exceeded quota" in refusal.message,
            before_a_sandbox=True,
        ),
        # A missing right. A policy refuses this pod or claim; a role would not help.
        Meaning(
            SubstrateUnavailable,
            lambda refusal: refusal.status == 403 and not refusal.by_policy,
            fix="grant docs/substrates/kubernetes.md's role",
            before_a_sandbox=True,
        ),
    )

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        """As ``Refused``; ``Access`` sets ``in_doubt``."""
        super().__init__(status, reason, message, retry_after_s)
        self.unsent = False  # without a connection, so without any effect
        self.in_doubt = False  # as ``Access`` judges

    @property
    def final(self) -> bool:
        """Whether a repetition cannot help: wrong credentials, or no permission, and no doubt."""
        return super().final and not self.in_doubt

    @property
    def closed(self) -> bool:
        """Whether a server without roles would refuse like this, unlike a policy or a quota."""
        return self.status in (401, 403) and not self.by_policy

    @property
    def by_policy(self) -> bool:
        """Whether admission refused the object: PodSecurity, LimitRange, quota, webhook, unknown RuntimeClass."""
        return bool(_POLICY.search(self.message))


def refused(status: int, headers: Mapping[str, str], body: bytes) -> ApiRefused:
    """The refusal in an answer without 2xx; the body is a Status object, unless a proxy answered."""
    try:
        problem = msgspec.json.decode(body, type=Reason)
    except msgspec.DecodeError:
        problem = Reason()
    message = _USER.sub("this user", " ".join((problem.message or f"HTTP {status}").split()))
    after = headers.get("Retry-After", "")
    return ApiRefused(status, problem.reason or "", message, float(after) if after.isdigit() else None)


def unanswered(error: Exception) -> ApiRefused:
    """A request without an HTTP answer; only the kind of the error is used, because the text could name hosts."""
    silence = ApiRefused(0, type(error).__name__, "the API server did not answer")
    silence.unsent = is_named(error, "ClientConnectorError")  # aiohttp's
    return silence


# ------------------------------------------------------------------------------------------------ a pod goes wrong

_BLOCKED: Final = frozenset(
    {
        "ImagePullBackOff",  # the kubelet's second failure; a single ErrImagePull may be a hiccup
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "CrashLoopBackOff",
    }
)


def lost(pod: Pod) -> str | None:
    """The reason why a pod takes no more commands, or None."""
    disrupted = next((c for c in pod.status.conditions or () if c.type == "DisruptionTarget"), None)
    ended = [c.state.terminated for c in pod.status.container_statuses or () if c.state.terminated is not None]
    if pod.status.phase not in ("Failed", "Succeeded") and not ended:
        if pod.metadata.deletion_timestamp is None:
            return None
        return f"is being deleted ({disrupted.reason})" if disrupted else "is being deleted by another client"
    reason = pod.status.reason or (ended[0].reason if ended else None) or "for no given reason"
    return f"ended: {reason}" + (f", {pod.status.message}" if pod.status.message else "")


def blocked(pod: Pod) -> str | None:
    """The reason why the container will never start, or None."""
    for container in pod.status.container_statuses or ():
        waiting = container.state.waiting
        if waiting is not None and waiting.reason in _BLOCKED:
            return waiting.text()
    return None


def unschedulable(pod: Pod) -> str | None:
    """The scheduler's reason why no node takes the pod, or None."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message or condition.reason or "no reason given"
    return None
