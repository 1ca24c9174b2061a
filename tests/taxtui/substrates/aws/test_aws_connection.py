"""Whose an endpoint is, what is said without credentials, and labels as tags."""

from __future__ import annotations

import pytest

from taxtui.errors import SubstrateUnavailable
from taxtui.substrates.aws import AwsOptions
from taxtui.substrates.aws.connection import labelled, open_clients, provenance, tag_list


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
        open_clients(["ecs"], AwsOptions(region="us-east-1"))
    with pytest.raises(SubstrateUnavailable, match="nobody"):
        open_clients(["ecs"], AwsOptions(region="us-east-1", profile="nobody"))


def test_labels_survive_as_tags() -> None:
    labels = {"taxtui.run": "r1", "taxtui.trial": "3", "taxtui.deadline": "1700000000"}
    for tags in (tag_list("n", labels), tag_list("n", labels, "key", "value")):
        ours = labelled(tags, "h", 0.0)
        assert ours is not None
        assert (ours.name, ours.handle, ours.run_id, ours.deadline_unix_s) == ("n", "h", "r1", 1_700_000_000)
    assert labelled([{"Key": "Name", "Value": "other"}], "h", 0.0) is None
