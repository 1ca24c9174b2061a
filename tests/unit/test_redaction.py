from __future__ import annotations

import re

import pytest

from taxtui.errors import CreateFailed, located
from taxtui.runner.redaction import redact, scrub


@pytest.mark.parametrize(
    "secret",
    [
        "https://api.example.com/v1?key=abc",
        "someone@example.com",
        "arn:aws:iam::123456789012:role/admin",
        "10.1.2.3:6443",
        "fe80::1ff:fe23:4567:890a",
        "/home/someone/.kube/config",
        "~/.aws/credentials",
        "123456789012",
        "AKIAIOSFODNN7EXAMPLE",
        "3f2a9c8b7d6e5f4a3f2a9c8b",
    ],
)
def test_what_could_name_a_person_or_an_account_is_replaced(secret: str) -> None:
    said = scrub(f"no permission for {secret} in this place")
    assert secret not in said
    assert said.startswith("no permission for <")
    assert said.endswith("in this place")


def test_what_helps_stays() -> None:
    text = "image missing: run `taxtui image build`, then wait 30 s (exit 3)"
    assert scrub(text) == text


def test_only_our_own_messages_are_shown() -> None:
    assert redact(CreateFailed("quota of 5 is used up")) == ("CreateFailed", "quota of 5 is used up")
    assert redact(RuntimeError("password hunter2")) == ("RuntimeError", "")


def test_where_an_error_comes_from_is_a_file_and_a_line() -> None:
    try:
        raise RuntimeError("password hunter2")
    except RuntimeError as error:
        assert re.fullmatch(r"RuntimeError \(test_redaction\.py:\d+\)", located(error))
    assert located(RuntimeError("never raised")) == "RuntimeError"


def test_one_line_of_bounded_length() -> None:
    assert scrub("a\nb\x1b[31mc") == "a b [31mc"
    assert len(scrub("word " * 1000)) <= 300
