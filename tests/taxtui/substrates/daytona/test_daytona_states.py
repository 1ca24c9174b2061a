"""Events of Daytona's socket, well-formed or not."""

from __future__ import annotations

from typing import Any

import pytest

from taxtui.substrates.daytona.states import States


class Follower:
    def __init__(self) -> None:
        self.states: list[str] = []

    def changed(self, state: str, reason: str, at_ns: int, resolution_ns: int, late_ns: int = 0) -> None:
        self.states.append(state)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        "started",
        7,
        [],
        ["started"],
        {},
        {"sandbox": None},
        {"sandbox": "s"},
        {"sandbox": []},
        {"state": "started"},
        {"sandbox": {"id": 7, "state": "started"}},
        {"sandbox": {"id": "s", "state": None}},
    ],
)
async def test_a_payload_that_is_no_event_changes_nothing(payload: Any) -> None:
    unused: Any = None
    states, follower = States(unused, events=False), Follower()
    states.follow("s", follower)
    await states._on_event(payload)
    assert follower.states == []
    await states._on_event({"sandbox": {"id": "s", "state": "started"}})
    await states._on_event({"id": "s", "newState": "stopped"})
    assert follower.states == ["started", "stopped"]
