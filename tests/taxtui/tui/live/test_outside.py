"""What the interface asks of other processes, and what it says in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from costmodel.recording import events
from costmodel.recording.events import Event
from taxtui.errors import SubstrateUnavailable
from taxtui.live.state import RunState
from taxtui.tui.live.summary import farewell
from taxtui.tui.setup import lookups
from tests.taxtui.tui import story

Says = Callable[..., None]


def fold(told: list[Event]) -> RunState:
    state = RunState()
    for event in told:
        state.apply(event)
    return state


@pytest.fixture
def taxtui_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Says:
    """``python -m taxtui`` prints this instead."""

    def says(out: str, err: str = "") -> None:
        package = tmp_path / "taxtui"
        package.mkdir(exist_ok=True)
        body = f"import sys; sys.stdout.write({out!r}); sys.stderr.write({err!r})"
        (package / "__init__.py").write_text("")
        (package / "__main__.py").write_text(body)
        monkeypatch.chdir(tmp_path)

    return says


async def test_the_rows_of_the_check_are_read_and_cleaned(taxtui_says: Says) -> None:
    rows = [
        {"name": "docker", "ok": True, "detail": "ready,\x1b[2J 27.1", "capabilities": {"paid": True}, "new": 1},
        {"name": "ecs", "ok": True, "prices": "aws-\x1b[2Jfargate"},
        {"name": "ec2", "ok": False, "detail": "no", "fix": "do"},
    ]
    taxtui_says(json.dumps(rows))
    found = await lookups.check()
    assert list(found) == ["docker", "ecs", "ec2"]
    assert found["ecs"].prices == "aws-�[2Jfargate"
    assert (found["docker"].detail, found["docker"].paid) == ("ready,�[2J 27.1", True)
    assert (found["ec2"].ok, found["ec2"].fix, found["ec2"].paid) == (False, "do", False)


async def test_a_check_that_fails_is_one_line(taxtui_says: Says) -> None:
    taxtui_says("", "Traceback\nsomething\nboom\n")
    with pytest.raises(SubstrateUnavailable, match=r"taxtui doctor: boom$"):
        await lookups.check()


def test_the_farewell_has_the_answer_the_end_the_file_and_the_next_command(tmp_path: Path) -> None:
    *told, end = story.run(20)
    told += [*story.trial(900, 0, 10**9, outcome=events.CANCELLED), story.health(1, lag_p99_ns=6_000_000), end]
    path = story.record(tmp_path / "x.msgpack", told)
    text = farewell(fold(told), path)
    assert "docker:runc exec runs" in text
    assert "finished after 0:16: 38 ok, 2 failed, 1 cut off\nthe runner was disturbed (loop lag)" in text
    assert text.endswith(f"{path}\nnext: taxtui project {path}")
    assert farewell(fold([]), tmp_path / "missing.msgpack").startswith("incomplete after 0:00: 0 ok")
