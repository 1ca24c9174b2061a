"""What AWS's refusals mean, and that nothing private is repeated."""

from __future__ import annotations

import botocore.exceptions
import pytest

from taxtui.errors import CreateFailed, ExecFailed, QuotaExceeded, SubstrateUnavailable, Throttled
from taxtui.substrates.aws.connection import (
    AccessDenied,
    AwsOptions,
    CapacityUnavailable,
    classified,
    found,
    open_client,
    provenance,
    redacted,
    tag_list,
)


def refusal(code: str, message: str = "", **headers: str) -> botocore.exceptions.ClientError:
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPHeaders": headers}}
    return botocore.exceptions.ClientError(answer, "RunTask")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("RequestLimitExceeded", "Request limit exceeded.", Throttled),
        ("ThrottlingException", "Rate exceeded", Throttled),
        ("Throttling", "", Throttled),
        ("TooManyRequestsException", "", Throttled),
        ("ClientException", "Rate exceeded while launching", Throttled),
        (
            "AccessDeniedException",
            "User: arn:aws:iam::1:user/ann is not authorized to perform: ecs:RunTask",
            AccessDenied,
        ),
        ("UnauthorizedOperation", "You are not authorized to perform this operation.", AccessDenied),
        ("ExpiredTokenException", "", SubstrateUnavailable),
        ("AuthFailure", "", SubstrateUnavailable),
        ("InsufficientInstanceCapacity", "", CapacityUnavailable),
        ("InsufficientHostCapacity", "", CapacityUnavailable),
        ("SpotMaxPriceTooLow", "", CapacityUnavailable),
        ("VcpuLimitExceeded", "You have requested more vCPU capacity", QuotaExceeded),
        ("InstanceLimitExceeded", "", QuotaExceeded),
        ("ClientException", "You've reached the limit on the number of tasks you can run", QuotaExceeded),
        ("InvalidSubnetID.NotFound", "The subnet ID 'subnet-9' does not exist", CreateFailed),
    ],
)
def test_codes_are_classified(code: str, message: str, kind: type[Exception]) -> None:
    error = classified(refusal(code, message), "ecs: running a task", CreateFailed)
    assert type(error) is kind
    assert "\n" not in str(error)


def test_a_denied_permission_is_named_without_who_and_where() -> None:
    text = (
        "User: arn:aws:sts::123456789012:assumed-role/bench/ann is not authorized to perform: ecs:RunTask on resource: "
        "arn:aws:ecs:us-east-1:123456789012:task-definition/x:1 because no identity-based policy allows it"
    )
    message = str(classified(refusal("AccessDeniedException", text), "ecs: running a task", CreateFailed))
    assert "ecs:RunTask" in message
    for private in ("123456789012", "ann", "bench", "arn:"):
        assert private not in message


def test_redaction() -> None:
    assert redacted("a arn:aws:iam::123456789012:role/x, b\n123456789012 c") == "a <iam arn>, b <account> c"
    assert redacted("denied. Encoded authorization failure message: abcDEF-123_x") == "denied."


@pytest.mark.parametrize(
    ("headers", "wait"), [({"retry-after": "7"}, 7.0), ({"retry-after": "soon"}, None), ({}, None)]
)
def test_advice_to_wait_is_kept(headers: dict[str, str], wait: float | None) -> None:
    error = classified(refusal("ThrottlingException", "", **headers), "x", CreateFailed)
    assert isinstance(error, Throttled)
    assert error.retry_after_s == wait


def test_a_broken_connection_is_the_callers_own_kind() -> None:
    broken = botocore.exceptions.EndpointConnectionError(endpoint_url="https://example.invalid")
    assert type(classified(broken, "x", ExecFailed)) is ExecFailed


@pytest.mark.parametrize(
    ("url", "whose"),
    [
        ("https://ecs.us-east-1.amazonaws.com", "measured"),
        ("https://ec2.cn-north-1.amazonaws.com.cn", "measured"),
        ("https://ecs.us-east-1.api.aws", "measured"),
        ("https://vpce-1.ecs.us-east-1.vpce.amazonaws.com", "measured"),
        ("http://127.0.0.1:5000", "stand_in"),
        ("http://localhost.localstack.cloud:4566", "stand_in"),
        ("https://amazonaws.com.example.org", "stand_in"),
        ("", "stand_in"),
    ],
)
def test_only_aws_is_aws(url: str, whose: str) -> None:
    assert provenance(url) == whose


def test_without_credentials_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with pytest.raises(SubstrateUnavailable, match="aws configure"):
        open_client("ecs", AwsOptions(region="us-east-1"))
    with pytest.raises(SubstrateUnavailable, match="nobody"):
        open_client("ecs", AwsOptions(region="us-east-1", profile="nobody"))


def test_labels_survive_as_tags() -> None:
    labels = {"taxtui.run": "r1", "taxtui.trial": "3", "taxtui.deadline": "1700000000"}
    for tags in (tag_list("n", labels), tag_list("n", labels, "key", "value")):
        ours = found(tags, "h", 0.0)
        assert ours is not None
        assert (ours.name, ours.handle, ours.run_id, ours.deadline_unix_s) == ("n", "h", "r1", 1_700_000_000)
    assert found([{"Key": "Name", "Value": "other"}], "h", 0.0) is None
