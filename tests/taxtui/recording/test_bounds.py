"""The bounds of a recording: the reader refuses a file beyond them, and the writer cuts longer text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import costmodel
from costmodel.errors import SourceError
from costmodel.recording import framing
from costmodel.recording.events import (
    MAX_CAPABILITIES,
    MAX_CELLS,
    MAX_FACTS,
    MAX_LABEL,
    MAX_TEXT,
    MAX_VALUES,
    Cell,
    Header,
    Notice,
)
from costmodel.recording.follower import read_events
from costmodel.recording.framing import EXT32, FRAME_TYPE, MAX_LENGTH, PREFIX
from taxtui.errors import UsageError
from taxtui.recording.writer import Recorder
from tests.support.fuzz import hostile

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
        (
            [[[0, "taxtui", 1, "r", {"cells": [{}] * MAX_VALUES}, {}]]],
            "more than 65536 values or 16 levels",
        ),
        ([[[0, "taxtui", 1, "r", {"a": float("nan")}, {}]]], "a number of the scenario is not finite"),
        ([[[0, "taxtui", 1, "r", {"a": {3: 1}}, {}]]], "a key of the scenario is no text"),
        ([[[0, "taxtui", 1, "r", {"a": b"x"}, {}]]], "the scenario holds a bytes"),
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
        ([[HEADER], [START, actions([1], [], [1, 1]), END]], "columns of different lengths"),
        ([[HEADER], [actions([], [], [1], [], [0, 0])]], "columns of different lengths"),
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
    with Recorder(tmp_path / "r.msgpack") as recorder:
        recorder.add(Header("taxtui", 1, "r", {}, {"daemon": LONG} | {str(n): "" for n in range(MAX_FACTS)}))
        described, many = msgspec.convert(cell(), Cell), (LONG,) * (MAX_CAPABILITIES + 1)
        recorder.add(msgspec.structs.replace(described, variant=LONG, capabilities=many))
        recorder.add(Notice(0, "info", LONG))
    got: list[Any] = []
    read_events(recorder.path, got.append)
    header, told, notice = got
    assert (len(header.software), header.software["daemon"]) == (MAX_FACTS, notice.text)
    assert told.capabilities == (told.variant,) * MAX_CAPABILITIES
    assert notice.text == "x" * (MAX_TEXT - 1) + "…"
    assert told.variant == "x" * (MAX_LABEL - 1) + "…"


def test_a_plan_that_no_recording_holds_is_refused(tmp_path: Path) -> None:
    with Recorder(tmp_path / "r.msgpack") as recorder, pytest.raises(UsageError, match=r"cannot hold this plan.*fewer"):
        recorder.add(Header("taxtui", 1, "r", {"cells": [{}] * MAX_VALUES}, {}))


# ------------------------------------------------------------------------------- what is full of beginnings of frames


@pytest.fixture
def hay(monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, list[int]]:
    """Two megabytes of beginnings, and the sizes of what checksums are then taken of."""
    sizes: list[int] = []
    sound = framing.zlib.crc32

    def crc32(data: Any) -> int:
        sizes.append(len(data))
        return sound(data)

    monkeypatch.setattr(framing.zlib, "crc32", crc32)
    return PREFIX.pack(EXT32, MAX_LENGTH, FRAME_TYPE, 0) * (2 * MAX_LENGTH // PREFIX.size), sizes


def test_looking_for_frames_ends(hay: tuple[bytes, list[int]], tmp_path: Path) -> None:
    data, sizes = hay
    golden = hostile.GOLDEN.read_bytes()
    path = tmp_path / "r.msgpack"
    path.write_bytes(golden + data[: MAX_LENGTH + 1000])
    sizes.clear()
    with pytest.raises(SourceError, match="damaged at byte"):
        read_events(path, lambda event: None)
    assert sum(sizes) < 3 * framing.MAX_SEARCHED


def test_a_torn_tail_full_of_beginnings_is_damage(tmp_path: Path) -> None:
    data = PREFIX.pack(EXT32, MAX_LENGTH, FRAME_TYPE, 0) + PREFIX.pack(EXT32, 1 << 16, FRAME_TYPE, 0) * 80_000
    path = tmp_path / "r.msgpack"
    golden = hostile.GOLDEN.read_bytes()
    path.write_bytes(golden + data[: MAX_LENGTH - 5])
    problem = f"damaged at byte {len(golden)}: too many beginnings of frames follow"
    with pytest.raises(SourceError, match=problem) as refusal:
        costmodel.load(path)
    assert refusal.value.offset == len(golden)
