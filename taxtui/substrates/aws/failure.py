"""Errors for the refusals of all AWS services. Plain data in, nothing is called, botocore is not imported.

Source of the words: the error codes in the API references of EC2, ECS, SSM and STS. Services share few codes, and
sometimes only the message has the reason; therefore patterns match code and message together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

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


_THROTTLED: Final = re.compile(r"Throttl|RequestLimitExceeded|TooManyRequests|RequestThrottled|SlowDown|Rate exceeded")
_DENIED: Final = re.compile(r"AccessDenied|UnauthorizedOperation|NotAuthorized")
_CREDENTIALS: Final = re.compile(
    r"ExpiredToken|InvalidClientTokenId|UnrecognizedClient|AuthFailure|SignatureDoesNotMatch|RequestExpired"
)
_CAPACITY: Final = re.compile(
    r"Insufficient\w*Capacity|SpotMaxPriceTooLow|MaxSpotInstanceCountExceeded|[Cc]apacity is unavailable"
)
_QUOTA: Final = re.compile(r"LimitExceeded|limit on the number of|QuotaExceeded")


class AwsRefused(Refused):
    """AWS refused, or did not answer; ``reason`` is AWS's code, empty without an answer."""

    table: ClassVar[tuple[Meaning, ...]] = (
        # First, because a request above the rate is refused as "limit exceeded" too. A refused call of ECS to another
        # service has a general code; only the message is specific.
        Meaning(Throttled, lambda refusal: _THROTTLED.search(refusal.words)),
        # By code: messages of unrelated refusals mention permissions too.
        Meaning(AccessDenied, lambda refusal: _DENIED.search(refusal.reason), fix="add the permission to the policy"),
        Meaning(SubstrateUnavailable, lambda refusal: _CREDENTIALS.search(refusal.reason), fix="renew the credentials"),
        # Including limits of the spot market: an on-demand instance may be available at once.
        Meaning(
            CapacityUnavailable,
            lambda refusal: _CAPACITY.search(refusal.words),
            fix="try another zone or size, or on-demand instead of spot",
        ),
        Meaning(
            QuotaExceeded,
            lambda refusal: _QUOTA.search(refusal.words),
            fix="request a higher quota in Service Quotas, or lower the concurrency",
        ),
    )

    @property
    def words(self) -> str:
        return f"{self.reason} {self.message}"

    def describe(self, doing: str) -> str:
        """As ``Refused.describe``, without the code: botocore's message contains the code."""
        return f"{doing}: {self.message}"


def classified(error: Exception, doing: str, otherwise: type[SubstrateError]) -> SubstrateError:
    """taxtui's error for an SDK's exception. ``doing`` begins the message.

    A connection failure is ``otherwise`` too.
    """
    about = _answer(error).get("ResponseMetadata", {})
    status = int(about.get("HTTPStatusCode", 0))
    refused = AwsRefused(status, code_of(error), redacted(str(error)), _advice_s(about.get("HTTPHeaders", {})))
    return refused.as_error(otherwise, doing)


def code_of(error: BaseException | None) -> str:
    """The code in AWS's answer, else an empty string."""
    return str(_answer(error).get("Error", {}).get("Code", ""))


def redacted(text: str) -> str:
    """A message of AWS on one line, without ARNs, account ids and encoded authorization details."""
    text = re.sub(r"arn:[\w-]+:([\w-]*):[^\s\"',;]*", r"<\1 arn>", text)
    text = re.sub(r"\b\d{12}\b", "<account>", text)
    text = re.sub(r"(?i)encoded authorization failure message:?\s*\S+", "", text)
    return " ".join(text.split())


def _answer(error: BaseException | None) -> Mapping[str, Any]:
    """The answer in botocore's ``ClientError``; empty for any other error."""
    answer = getattr(error, "response", None)
    return answer if isinstance(answer, Mapping) else {}


def _advice_s(headers: Mapping[str, str]) -> float | None:
    try:
        return float(headers["retry-after"])
    except (KeyError, ValueError):
        return None
