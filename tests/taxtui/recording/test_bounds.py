"""The bounds of a recording: the reader refuses a file beyond them, and the writer cuts longer text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import costmodel
from costmodel.errors import SourceError
from costmodel.recording import framing
from costmodel.recording.events import MAX_CAPABILITIES, MAX_CELLS, MAX_FACTS, MAX_LABEL, MAX_TEXT, Cell, Header, Notice
from costmodel.recording.follower import read_events
from costmodel.recording.framing import EXT32, FRAME_TYPE, MAX_EVENTS, MAX_LENGTH, PREFIX
from tests.support.command_line import events
from tests.support.fuzz import hostile
from tests.taxtui.tui import story

HEADER: list[Any] = [0, "taxtui", 1, "r", {}, {}]
LONG = "x" * (MAX_TEXT + 1)
START: list[Any] = [3, 7, 0, "s", 0, 100]
END: list[Any] = [7, 7, "ok", "", "", "", 200, 0, "cold"]


def cell(number: int = 0, variant: str = "") -> list[Any]:
    texts = ["T0", "d"], ["exec", 1, "sequential", "0s", "create", "node", 1000, 1024, "none", "", "e", "v", 1, "bash"]
    return [2, number, "local", variant, *texts[0], 1, *texts[1], -1, "none", "none", "measured"]


def actions(*columns: list[int], step: str = "action") -> list[Any]:
    return [6, 7, step, 0, *columns, *[[]] * (7 - len(columns))]


def refused(tmp_path: Path, *batches: list[Any]) -> str | None:
    """The error of the reader; None where it accepts the file."""
    path = tmp_path / "r.msgpack"
    path.write_bytes(hostile.sealed([msgspec.msgpack.encode(batch) for batch in batches]))
    try:
        costmodel.load(path)
    except SourceError as error:
        assert "\n" not in str(error)
        return str(error)
    return None


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ([[HEADER], [[9, 1, "info", LONG]]], "length <= 1024"),
        ([[HEADER], [cell(variant="x" * 513)]], "length <= 512"),
        ([[[0, "taxtui", 1, "r", {}, {str(n): "" for n in range(MAX_FACTS + 1)}]]], "length <= 1024"),
        ([[HEADER], [[10, "finished", {str(n): 1 for n in range(65)}]]], "length <= 64"),
        ([[HEADER], [[*cell(), [""] * (MAX_CAPABILITIES + 1)]]], "length <= 64"),
        ([[[0, "taxtui", 1, "r", {"a": json.loads("[" * 16 + "]" * 16)}, {}]]], "not plain data on at most 16 levels"),
        ([[[0, "taxtui", 1, "r", {"a": float("nan")}, {}]]], "not plain data"),
        ([[HEADER], [[9, 0, "", ""]] * (MAX_EVENTS + 1)], "65537 events in one frame"),
        ([[[0, "taxtui", 1, "r", {"a": {3: 1}}, {}]]], "not plain data"),
        ([[[0, "taxtui", 1, "r", {"a": b"x"}, {}]]], "not plain data"),
        ([[HEADER], [cell(n) for n in range(MAX_CELLS + 1)]], "more than 1024 cells"),
        ([[HEADER], [cell(0, str(n)) for n in range(MAX_CELLS + 1)]], "more than 1024 cells"),
        ([[HEADER], [START], [START]], "trial 7 starts twice"),
        ([[HEADER], [START, END], [START, END]], "trial 7 starts twice"),
        ([[HEADER], [START, [*END[:6], 99, 0, "cold"]]], "trial 7 ends before a phase of it does"),
        ([[HEADER], [START, [5, 7, "create", 99, 1], END]], "trial 7: 'create' begins before it"),
        ([[HEADER], [START, [5, 7, "create", 150, 51], END]], "trial 7 ends before a phase of it does"),
        ([[HEADER], [START, [5, 7, "create", 100, 60], [5, 7, "ready", 100, 60], END]], "trial 7 is shorter than what"),
        ([[HEADER], [START, actions([], [], [50, 51]), END]], "trial 7 is shorter than what happened in it"),
        ([[HEADER], [START, actions([51], [], [50]), END]], "trial 7 is shorter than what happened in it"),
        ([[HEADER], [START, actions([], [51], [50]), END]], "trial 7 is shorter than what happened in it"),
        ([[HEADER], [START, actions([], [], [101], step="setup"), END]], "trial 7 is shorter than what happened in it"),
        ([[HEADER], [START, [*END[:7], 101, "cold"]]], "trial 7 is shorter than what happened in it"),
        ([[HEADER], [[10, "finished", {}]], [[9, 1, "info", ""]]], "something follows the end of the run"),
        ([[HEADER], [[10, "finished", {}], [9, 1, "info", ""]]], "something follows the end of the run"),
    ],
)
def test_what_cannot_be_is_refused(batches: list[Any], words: str, tmp_path: Path) -> None:
    said = refused(tmp_path, *batches)
    assert said is not None
    assert words in said


@pytest.mark.parametrize(
    "batches",
    [
        [[HEADER], [[9, 1, "info", "x" * MAX_TEXT]]],
        [[HEADER], [[9, 0, "", ""]] * MAX_EVENTS],
        [[[0, "taxtui", 1, "r", {"a": json.loads("[" * 15 + "]" * 15)}, {}]]],
        [[HEADER], [cell(n) for n in range(MAX_CELLS)], [cell(n) for n in range(MAX_CELLS)]],
        [[[0, "taxtui", 1, "r", {"a": [None, True, 1, -1, 0.5, {"b": "c"}]}, {"k": "v"}]]],
        # A trial whose start was lost, of an early version, is not judged.
        [[HEADER], [[5, 7, "create", 0, 10**18], actions([], [], [10**18]), END]],
        [[HEADER], [START, [5, 7, "create", 100, 40], actions([5], [5], [50]), [5, 7, "cleanup", 200, 900], END]],
        [[HEADER], [START, [5, 7, "verify", 200, 900], END, [10, "finished", {"ok": 1}]]],
    ],
)
def test_what_can_be_is_accepted(batches: list[Any], tmp_path: Path) -> None:
    assert refused(tmp_path, *batches) is None


def test_a_writer_cuts_what_others_have_named(tmp_path: Path) -> None:
    header: Any = Header("taxtui", 1, "r", {}, {"daemon": LONG} | {str(n): "" for n in range(MAX_FACTS)})
    told: Any = msgspec.convert(cell(), Cell)
    told = msgspec.structs.replace(told, variant=LONG, capabilities=(LONG,) * (MAX_CAPABILITIES + 1))
    path = story.record(tmp_path / "r.msgpack", [header, told, Notice(0, "info", LONG)])
    header, told, notice = events(path)
    assert (len(header.software), header.software["daemon"]) == (MAX_FACTS, notice.text)
    assert told.capabilities == (told.variant,) * MAX_CAPABILITIES
    assert notice.text == "x" * (MAX_TEXT - 1) + "…"
    assert told.variant == "x" * (MAX_LABEL - 1) + "…"


def test_looking_for_frames_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    sound = framing.zlib.crc32

    def crc32(data: Any) -> int:
        sizes.append(len(data))
        return sound(data)

    data = PREFIX.pack(EXT32, MAX_LENGTH, FRAME_TYPE, 0) * (2 * MAX_LENGTH // PREFIX.size)
    path = tmp_path / "r.msgpack"
    path.write_bytes(hostile.GOLDEN.read_bytes() + data[: MAX_LENGTH + 1000])
    monkeypatch.setattr(framing.zlib, "crc32", crc32)
    with pytest.raises(SourceError, match="damaged at byte"):
        read_events(path, lambda event: None)
    assert 0 < sum(sizes) < 3 * framing.MAX_SEARCHED


def test_a_torn_tail_full_of_beginnings_is_damage(tmp_path: Path) -> None:
    data = PREFIX.pack(EXT32, MAX_LENGTH, FRAME_TYPE, 0) + PREFIX.pack(EXT32, 1 << 16, FRAME_TYPE, 0) * 80_000
    path = tmp_path / "r.msgpack"
    golden = hostile.GOLDEN.read_bytes()
    path.write_bytes(golden + data[: MAX_LENGTH - 5])
    problem = f"damaged at byte {len(golden)}: too many beginnings of frames follow"
    with pytest.raises(SourceError, match=problem) as refusal:
        costmodel.load(path)
    assert refusal.value.offset == len(golden)
