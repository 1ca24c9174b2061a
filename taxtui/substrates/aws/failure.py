"""Errors for the refusals of all AWS services. Plain data in, nothing is called, botocore is not imported.

Source of the words: the error codes in the API references of EC2, ECS, SSM and STS. Services share few codes, and
sometimes only the message has the reason; therefore patterns match code and message together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar

from taxtui.errors import (
    CreateFailed,
    QuotaExceeded,
    ReadyTimeout,
    SandboxLost,
    SubstrateError,
    SubstrateUnavailable,
    Throttled,
)
from taxtui.sandboxes.kit.refusal import Meaning, Refused


class CapacityUnavailable(CreateFailed):
    """AWS has no room for this kind of sandbox in this place now."""


class AccessDenied(SubstrateUnavailable):
    """The credentials in use lack the permission in the message."""


class AgentNeverConnected(ReadyTimeout):
    """The sandbox runs but does not answer: a role, an image or a network is wrong."""


class SpotInterrupted(SandboxLost):
    """AWS took a spot sandbox back."""


def _code(pattern: str) -> Callable[[Refused], object]:
    return lambda refusal: re.search(pattern, refusal.reason)


def _words(pattern: str) -> Callable[[Refused], object]:
    return lambda refusal: re.search(pattern, f"{refusal.reason} {refusal.message}")


class AwsRefused(Refused):
    """AWS refused, or did not answer; ``reason`` is AWS's code, empty without an answer."""

    table: ClassVar[tuple[Meaning, ...]] = (
        # First, because a request above the rate is refused as "limit exceeded" too. A refused call of ECS to another
        # service has a general code; only the message is specific. A snapshot is in use until its image is gone.
        Meaning(
            Throttled,
            _words(r"Throttl|RequestLimitExceeded|TooManyRequests|SlowDown|Rate exceeded|InvalidSnapshot\.InUse"),
        ),
        # By code: messages of unrelated refusals mention permissions too.
        Meaning(
            AccessDenied,
            _code("AccessDenied|UnauthorizedOperation|NotAuthorized"),
            fix="add the permission to the policy",
        ),
        Meaning(
            SubstrateUnavailable,
            _code(
                "ExpiredToken|InvalidClientTokenId|UnrecognizedClient|AuthFailure|SignatureDoesNotMatch|RequestExpired"
            ),
            fix="renew the credentials",
        ),
        # Including limits of the spot market: an on-demand instance may be available at once.
        Meaning(
            CapacityUnavailable,
            _words(
                r"Insufficient\w*Capacity|SpotMaxPriceTooLow|MaxSpotInstanceCountExceeded|[Cc]apacity is unavailable"
            ),
            fix="try another zone or size, or on-demand instead of spot",
        ),
        Meaning(
            QuotaExceeded,
            _words("LimitExceeded|limit on the number of|QuotaExceeded"),
            fix="request a higher quota in Service Quotas, or lower the concurrency",
        ),
    )

    def describe(self, doing: str) -> str:
        """As ``Refused.describe``, without the code: botocore's message contains the code."""
        return f"{doing}: {self.message}"


def classified(error: Exception, doing: str, otherwise: type[SubstrateError]) -> SubstrateError:
    """taxtui's error for an SDK's exception. ``doing`` begins the message.

    A connection failure is ``otherwise`` too.
    """
    return AwsRefused(0, code_of(error), redacted(str(error))).as_error(otherwise, doing)


def redacted(text: str) -> str:
    """A message of AWS without ARNs, account ids and encoded authorization details."""
    text = re.sub(r"arn:[\w-]+:([\w-]*):[^\s\"',;]*", r"<\1 arn>", text)
    text = re.sub(r"\b\d{12}\b", "<account>", text)
    return re.sub(r"(?i)encoded authorization failure message:?\s*\S+", "", text).strip()


def code_of(error: BaseException | None) -> str:
    """The code in AWS's answer, botocore's ``ClientError``; an empty string for any other error."""
    answer = getattr(error, "response", None)
    return str(answer.get("Error", {}).get("Code", "")) if isinstance(answer, Mapping) else ""
