"""Which instances a filter of EC2 chooses: those of one run, or of all where no run is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from taxtui.substrates.aws.ec2 import Ec2Options
from taxtui.substrates.aws.ec2.api import Ec2Api


class Client:
    """Keeps the filters that it was asked with."""

    def __init__(self) -> None:
        self.filters: list[Mapping[str, Any]] = []

    def get_paginator(self, operation: str) -> Client:
        return self

    def paginate(self, *, Filters: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:  # noqa: N803
        self.filters = list(Filters)
        return iter([{"Volumes": []}])


@pytest.mark.parametrize(
    ("run_id", "asked"),
    [
        (None, {"Name": "tag-key", "Values": ["taxtui.run"]}),
        ("", {"Name": "tag:taxtui.run", "Values": [""]}),
        ("r-1", {"Name": "tag:taxtui.run", "Values": ["r-1"]}),
        ("*", {"Name": "tag:taxtui.run", "Values": [r"\*"]}),
        (r"2026?\x", {"Name": "tag:taxtui.run", "Values": [r"2026\?\\x"]}),
    ],
)
async def test_a_run_chooses_itself_alone(run_id: str | None, asked: Mapping[str, Any]) -> None:
    api, client = Ec2Api(Ec2Options(subnet="subnet-1")), Client()
    api._clients = {"ec2": client}
    try:
        assert await api.tagged("volumes", run_id) == []
    finally:
        await api.close()
    assert client.filters == [asked]
