"""Whatever stands in a source: a recording that can be read, or a clear error; no traceback, nothing negative."""

from __future__ import annotations

import csv
import io
import json
import math
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import load
from costmodel.recording.events import Actions, PhaseEnded, TrialEnded, TrialStarted
from taxtui.errors import RecordingError
from tests.support.importing import FORMATS, imported, of, packed, sample_files, unpacked

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 10**400, 2**63, -(2**63), 1e308, 1e-308, math.nan, math.inf, -math.inf, 4e9, 1.7e18]),
    st.sampled_from(["", "NaN", "2026-11-21T21:38:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59", "\ud800"]),
    st.sampled_from(["1e999", "99999999999999999999999999", "1795297000", "-5", "x" * 300, "create", "timeout"]),
    st.sampled_from([[], {}, [None], [{}], {"a": []}, [[1]], [-1.5, "x"]]),
    st.floats(),
    st.integers(),
    st.text(max_size=5),
).map(deepcopy)  # what is sampled would be changed for all later examples


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inside for place in _places(item, (*path, key)))]


def _changed(draw: Any, value: Any) -> Any:
    """The value with up to four of its parts missing, replaced or exchanged."""
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.sampled_from(_places(value)))
        if not place:
            return draw(ODD)
        holder = value
        for key in place[:-1]:
            holder = holder[key]
        what = draw(st.sampled_from(["drop", "replace", "exchange"]))
        if what == "drop":
            del holder[place[-1]]
        elif what == "replace":
            holder[place[-1]] = draw(ODD)
        else:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            other = draw(st.sampled_from(keys))
            holder[place[-1]], holder[other] = holder[other], holder[place[-1]]
    return value


def _damaged(draw: Any, path: Path, data: bytes) -> bytes:
    if draw(st.integers(0, 9)) == 0:
        return data[: draw(st.integers(0, len(data)))]
    members = unpacked(data)
    if members is not None:
        return packed({name: _damaged(draw, Path(name), member) for name, member in members.items()})
    if path.suffix == ".csv":
        rows = list(csv.reader(io.StringIO(data.decode())))
        text = io.StringIO()
        csv.writer(text).writerows(
            [str(cell).replace("\ud800", "?") for cell in row] for row in _listed(_changed(draw, rows))
        )
        return text.getvalue().encode()
    lines = data.splitlines() if path.suffix == ".jsonl" else [data]
    return b"\n".join(json.dumps(_changed(draw, json.loads(line))).encode() for line in lines)


def _listed(rows: Any) -> list[list[Any]]:
    return [row if isinstance(row, list) else [row] for row in rows] if isinstance(rows, list) else [[rows]]


@st.composite
def sources(draw: st.DrawFn, name: str) -> dict[Path, bytes]:
    """The sample of a format, damaged."""
    return {path: _damaged(draw, path, data) for path, data in sample_files(name)}


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_source_is_imported_or_refused(name: str, data: st.DataObject) -> None:
    with TemporaryDirectory() as root:
        folder, out = Path(root, "source"), Path(root, "out.msgpack")
        for path, content in data.draw(sources(name)).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        try:
            result, events = imported(name, folder, out)
        except RecordingError as error:
            assert "unexpected" not in str(error)
            assert not out.exists()
            return
        assert not [line for line in result.named if "unexpected" in line]
        for event in of(events, PhaseEnded):
            assert event.duration_ns >= 0
        for event in of(events, Actions):
            assert min([*event.duration_ns, *event.think_ns, *event.gap_ns]) >= 0
        begun = {event.trial: event.start_ns for event in of(events, TrialStarted)}
        for event in of(events, TrialEnded):
            held_ns = event.end_ns - begun[event.trial]
            inside = [one for one in of(events, PhaseEnded, event.trial) if one.phase not in ("verify", "cleanup")]
            rows = of(events, Actions, event.trial)
            taken_ns = sum(one.duration_ns for one in inside)
            taken_ns += sum(sum(one.duration_ns) + sum(one.think_ns) + sum(one.gap_ns) for one in rows)
            assert taken_ns <= held_ns
        assert sum(len(cell.trials) for cell in load(out).cells) <= len(begun)  # type: ignore[union-attr]
