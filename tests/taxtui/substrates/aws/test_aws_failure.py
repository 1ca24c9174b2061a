"""What AWS's own words amount to: each row is what a service says, with why it means what it does."""

from __future__ import annotations

import botocore.exceptions
import botocore.parsers
import pytest

from taxtui.errors import CreateFailed, ExecFailed, QuotaExceeded, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.substrates.aws import AwsOptions
from taxtui.substrates.aws.connection import open_clients, provenance
from taxtui.substrates.aws.failure import AccessDenied, CapacityUnavailable, classified, code_of, redacted


def refusal(code: str, message: str = "") -> botocore.exceptions.ClientError:
    return botocore.exceptions.ClientError({"Error": {"Code": code, "Message": message}}, "RunTask")


USER = "User: arn:aws:iam::1:user/ann is not authorized to perform: ecs:RunTask"
TASKS = "You've reached the limit on the number of tasks you can run"


@pytest.mark.parametrize(
    ("code", "message", "kind", "text"),
    [
        ("RequestLimitExceeded", "Request limit exceeded.", Throttled, "RequestLimitExceeded"),
        ("ThrottlingException", "Rate exceeded", Throttled, "ThrottlingException"),
        ("TooManyRequestsException", "", Throttled, "TooManyRequestsException"),
        # A refusal of another service: the code is general, the message is not.
        ("ClientException", "Rate exceeded while launching", Throttled, "ClientException"),
        # A missing permission is named by the message, else by the call.
        ("AccessDeniedException", USER, AccessDenied, "to perform: ecs:RunTask; add the permission to"),
        (
            "UnauthorizedOperation",
            "You are not authorized to perform this.",
            AccessDenied,
            "the RunTask operation: You",
        ),
        ("ExpiredTokenException", "", SubstrateUnavailable, "(ExpiredTokenException) when calling"),
        # Missing capacity, which no quota would change.
        ("InsufficientInstanceCapacity", "", CapacityUnavailable, "; try another zone"),
        ("SpotMaxPriceTooLow", "", CapacityUnavailable, "(SpotMaxPriceTooLow)"),
        # A quota; "more vCPU capacity" is no lack of capacity.
        ("VcpuLimitExceeded", "You have requested more vCPU capacity", QuotaExceeded, "; request a higher quota"),
        ("ClientException", TASKS, QuotaExceeded, f"{TASKS}; request a higher quota"),
        # Any other code: the error of the request, in AWS's words.
        ("InvalidSubnetID.NotFound", "'subnet-9' does not exist", CreateFailed, "RunTask operation: 'subnet-9' does"),
    ],
)
def test_a_refusal_becomes_one_of_our_errors(code: str, message: str, kind: type[SubstrateError], text: str) -> None:
    error = classified(refusal(code, message), "ecs: running a task", CreateFailed)
    assert type(error) is kind
    assert str(error).startswith("ecs: running a task: ")
    assert text in str(error)
    assert (type(classified(refusal(code, message), "x", ExecFailed)) is kind) == (kind is not CreateFailed)


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
    assert redacted("a arn:aws:iam::123456789012:role/x, b 123456789012 c") == "a <iam arn>, b <account> c"
    assert redacted("denied. Encoded authorization failure message: abcDEF-123_x") == "denied."


@pytest.mark.parametrize(
    "broken",
    [
        botocore.exceptions.EndpointConnectionError(endpoint_url="https://example.invalid"),
        # It carries what it was answered under the same name as a refusal does, but as something else.
        botocore.exceptions.HTTPClientError(response=b"<html>", error="cut"),
        botocore.parsers.ResponseParserError("Unable to parse response"),
    ],
)
def test_a_broken_connection_is_the_callers_own_kind(broken: Exception) -> None:
    assert code_of(broken) == code_of(None) == ""
    assert type(classified(broken, "x", ExecFailed)) is ExecFailed


@pytest.mark.parametrize(
    ("url", "whose"),
    [
        ("https://ecs.us-east-1.amazonaws.com", "measured"),
        ("https://ec2.cn-north-1.amazonaws.com.cn", "measured"),
        ("http://127.0.0.1:5000", "stand_in"),
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
        open_clients(["ecs"], AwsOptions(region="us-east-1"))
    with pytest.raises(SubstrateUnavailable, match="nobody"):
        open_clients(["ecs"], AwsOptions(region="us-east-1", profile="nobody"))
