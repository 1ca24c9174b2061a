"""What labels say, whoever has written them."""

from __future__ import annotations

import time

import pytest

from taxtui.sandboxes.kit.labels import END_OF_TIME_S, LABEL_DEADLINE, LABEL_RUN, found
from taxtui.substrates.aws.connection import labelled as aws_found
from taxtui.substrates.docker.containers import entry_of as docker_found

DEADLINES = {
    "1700000000": 1_700_000_000,
    "0": 0,
    "": None,
    "soon": None,
    "-1": None,
    "1_000": None,
    " 7": None,
    "7\n": None,
    "²": None,
    "٣": None,
    "9" * 5000: END_OF_TIME_S,
    str(END_OF_TIME_S + 1): END_OF_TIME_S,
}


@pytest.mark.parametrize(("text", "deadline"), DEADLINES.items(), ids=lambda value: repr(value)[:12])
def test_a_deadline_is_whole_seconds_or_nothing(text: str, deadline: int | None) -> None:
    got = found({LABEL_RUN: "r1", LABEL_DEADLINE: text}, name="n", handle="h", age_s=-0.5)
    assert (got.run_id, got.deadline_unix_s, got.age_s) == ("r1", deadline, 0.0)


@pytest.mark.parametrize("text", ["²", "9" * 5000])
def test_no_label_stops_a_sweep(text: str) -> None:
    labels = {LABEL_RUN: "r1", LABEL_DEADLINE: text}
    of_docker = docker_found({"Names": ["/n"], "Id": "h", "Created": time.time(), "Labels": labels})
    of_aws = aws_found([{"Key": key, "Value": value} for key, value in labels.items()], "h", time.time())
    for got in (of_docker, of_aws):
        assert got is not None
        assert got.deadline_unix_s == DEADLINES[text]
