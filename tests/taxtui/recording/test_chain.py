"""Frames name the one before: a file that was put together from good frames is told from one that a run wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import pytest
from click.testing import CliRunner

import costmodel
from costmodel.errors import SourceError
from costmodel.recording import framing
from costmodel.recording.events import RunFinished
from costmodel.recording.follower import read_events
from costmodel.recording.reader import Recording
from taxtui.commands.recordings import command
from taxtui.recording.writer import Recorder
from tests.support.fuzz import hostile
from tests.taxtui.tui import story

Frames = list[bytes]
SPLICES: Final[dict[str, Callable[[Frames, Frames], Frames]]] = {
    "the slowest half removed": lambda own, _: own[:4] + own[9:],
    "one frame removed": lambda own, _: own[:7] + own[8:],
    "the second frame removed": lambda own, _: own[:1] + own[2:],
    "two frames swapped": lambda own, _: [*own[:5], own[6], own[5], *own[7:]],
    "a frame doubled": lambda own, _: [*own[:6], own[5], *own[6:]],
    "a frame of another file": lambda own, other: [*own[:6], other[7], *own[7:]],
    "another file behind": lambda own, other: own + other,
    "the same file behind": lambda own, _: own + own,
    "an unchained frame": lambda own, _: [*own[:6], framing.frame(b"\x90"), *own[6:]],
    "without its header": lambda own, _: own[1:],
}


def cut(path: Path) -> Frames:
    """A file as its frames."""
    return [framing.frame(payload) for payload in hostile.payloads(path.read_bytes())]


def told(path: Path, trials: int = 8) -> Frames:
    with Recorder(path) as recorder:
        for event in story.run(trials):
            recorder.add(event)
    return cut(path)


def refused_at(path: Path) -> int:
    """The byte at which the reader refuses the file."""
    with pytest.raises(SourceError) as refusal:
        costmodel.load(path)
    assert refusal.value.offset is not None
    return refusal.value.offset


@pytest.mark.parametrize("what", SPLICES)
def test_a_spliced_file_is_damaged_where_the_splice_is(what: str, tmp_path: Path) -> None:
    own, other = told(tmp_path / "own", trials=8), told(tmp_path / "other", trials=9)
    spliced = SPLICES[what](own, other)
    path = tmp_path / "spliced"
    path.write_bytes(b"".join(spliced))
    first = next((n for n, (a, b) in enumerate(zip(spliced, own, strict=False)) if a != b), len(own))
    assert refused_at(path) == len(b"".join(spliced[:first]))


def test_a_chain_goes_through_every_frame_and_a_file_without_one_is_told_so(tmp_path: Path) -> None:
    chained, unchained = tmp_path / "chained", tmp_path / "unchained"
    told(chained)
    without = [msgspec.msgpack.encode(framing.split(payload)) for payload in hostile.payloads(chained.read_bytes())]
    unchained.write_bytes(hostile.sealed(without))
    seen = [read_events(path, lambda event: None) for path in (chained, unchained)]
    assert [one.chained for one in seen] == [True, False]
    assert seen[0].events == seen[1].events
    assert all(one.complete for one in seen)
    lines = CliRunner().invoke(command, ["verify", str(chained), str(unchained)]).stdout.splitlines()
    assert "unchained" not in lines[0]
    assert "unchained" in lines[1]


def test_a_link_stands_first_in_a_frame_and_nowhere_else(tmp_path: Path) -> None:
    header, second, *_ = hostile.payloads(b"".join(told(tmp_path / "chained")))
    raws = framing.split(second)
    path = tmp_path / "r"
    path.write_bytes(hostile.sealed([header, msgspec.msgpack.encode([*raws, [11, 1, 0]])]))
    assert refused_at(path) == len(framing.frame(header))


@pytest.mark.parametrize("change", [{"ok": 1}, {"ok": -1}, {"lost": 2}])
def test_an_end_that_counts_other_trials_than_are_there_is_no_end(change: dict[str, int], tmp_path: Path) -> None:
    run = story.run(8)
    counts = story.ended_trials(run)
    run[-1] = RunFinished("finished", {**counts, **{key: counts.get(key, 0) + more for key, more in change.items()}})
    path = tmp_path / "r.msgpack"
    with Recorder(path) as recorder:
        for event in run:
            recorder.add(event)
    summary = read_events(path, lambda event: None)
    assert (summary.ended, summary.complete) == (True, False)
    found = costmodel.load(path)
    assert isinstance(found, Recording)
    assert not found.complete
    said = CliRunner().invoke(command, ["verify", str(path)])
    assert said.exit_code == 1
    assert "incomplete (trials are missing" in said.stdout
