"""What a run is told on its standard input."""

from __future__ import annotations

import asyncio
import os

from taxtui.runner.run_control import read_commands


async def test_each_line_is_done_in_turn_and_what_is_none_is_said_and_ends_nothing() -> None:
    own, (theirs, ours) = os.dup(0), os.pipe()
    os.dup2(theirs, 0)
    os.close(theirs)
    ended, told = asyncio.Event(), list[str]()
    try:
        read_commands(
            {"pause": lambda: told.append("paused"), "cancel": lambda: told.append("cancelled")}, ended.set, told.append
        )
        lines = (b'{"op": "pause"}', b"[]", b"{", b'{"op": "dance"}', b"\xff", b'{"op": "cancel"}')
        os.write(ours, b"\n".join(lines) + b"\n")
        os.close(ours)
        await ended.wait()
    finally:
        os.dup2(own, 0)
        os.close(own)
    assert [one for one in told if one in ("paused", "cancelled")] == ["paused", "cancelled"]
    assert [one for one in told if one not in ("paused", "cancelled")] == [
        "b'[]\\n'",
        "b'{\\n'",
        'b\'{"op": "dance"}\\n\'',
        "b'\\xff\\n'",
    ]
