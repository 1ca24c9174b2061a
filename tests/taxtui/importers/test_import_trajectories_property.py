"""Whatever is wrong with a log: a reason or a listed gap, never a traceback, a negative duration or a leak."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.recording.reader import read_recording
from taxtui.importers import registry
from taxtui.importers.files import Unreadable
from taxtui.importers.importing import import_files
from taxtui.importers.protocol import ImportedTrial, ReaderOptions, Skipped
from taxtui.importers.zipped import archive

LOGS = Path(__file__).parents[2] / "logs"
CANARY = "cAnArY-7f3a"
STRUCTURE = {
    "event",
    "timestamp",
    "completed",
    "span_id",
    "parent_id",
    "id",
    "type",
    "started_at",
    "completed_at",
    "role",
}
"""Keys whose values have to stay for a file to be one of its format at all."""

EVENT = {*STRUCTURE, "name", "action", "cmd", "options", "result", "output", "working_time", "function", "arguments"}
"""What is kept of an event: the rest is bulk, which would hide the rest from the damage."""


def _inspect() -> Any:
    with archive(LOGS / "inspect-slept.eval") as log:
        members = log.members()
        header = json.loads(log.content(members["header.json"]))
        sample = json.loads(log.content(members["samples/s_epoch_1.json"]))
    told = [{key: value for key, value in one.items() if key in EVENT} for one in sample["events"]]
    for bulky in ("messages", "events_data", "output"):
        del sample[bulky]
    return {**header, "samples": [{**sample, "events": told}]}


def _legacy() -> Any:
    spans = [{"start": 1000.0 + at, "end": 1001.0 + at} for at in range(0, 8, 2)]
    timing = {"start_time": 999.0, "setup": spans[0], "generation": {"start": 999.0, "end": 1009.0}}
    return {
        "example_id": 1,
        "task": "t",
        "error": "ToolError('x')",
        "timing": {**timing, "scoring": spans[3], "model": {"spans": spans[:2]}, "env": {"spans": spans[2:]}},
    }


def _swe_agent() -> Any:
    state = json.dumps({"working_dir": "/testbed"})
    steps = [{"action": "ls", "observation": "o", "execution_time": 0.1 + at, "state": state} for at in range(3)]
    config = json.dumps({"env": {"deployment": {"type": "docker", "image": "i"}}, "problem_statement": {"id": "p"}})
    return {"trajectory": steps, "info": {"exit_status": "submitted"}, "replay_config": config}


SOURCES: dict[str, tuple[str, Any]] = {
    "log.json": ("inspect", _inspect()),
    "x.traj.json": ("mini-swe-agent", json.loads((LOGS / "slept.traj.json").read_text())),
    "x.traj": ("swe-agent", _swe_agent()),
    "traces.jsonl": ("verifiers", json.loads((LOGS / "verifiers-given.jsonl").read_text())),
    "results.jsonl": ("verifiers", _legacy()),
}
# fmt: off
WRONG = st.sampled_from([
    None, True, 0, -1, 1e308, -1e308, 10**400, float("nan"), float("inf"), 1795297016.1, 1e-320,
    "", "x", "\ud800", "1970-01-01T00:00:00Z", "9999-12-31", "2026-11-22T03:13:10", [], {}, [None], [[[]]],
]).map(copy.deepcopy)  # a later damage would change what is sampled for all examples, and put it into itself
# fmt: on


def _places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*above, key)
        yield from _places(child, (*above, key))


PLACES = {name: list(_places(document)) for name, (_, document) in SOURCES.items()}


def _damaged(document: Any, damages: list[tuple[tuple[Any, ...], bool, Any]]) -> Any:
    document = copy.deepcopy(document)
    for place, remove, wrong in damages:
        holder = document
        try:
            for key in place[:-1]:
                holder = holder[key]
            if remove:
                del holder[place[-1]]
            else:
                holder[place[-1]] = wrong
        except (KeyError, IndexError, TypeError):
            continue  # an earlier damage took it away
    return document


@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=60)
@given(data=st.data())
def test_any_damage_is_a_reason_or_a_gap(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    format_name, document = SOURCES[name]
    damage = st.tuples(st.sampled_from(PLACES[name]), st.booleans(), WRONG)
    path = tmp_path_factory.mktemp("log") / name
    path.write_text(json.dumps(_damaged(document, data.draw(st.lists(damage, min_size=1, max_size=12)))))
    reader = registry.load(format_name)
    try:
        found = list(reader.trials(path, ReaderOptions()))
    except Unreadable as error:
        assert "\n" not in str(error)
        return
    for one in found:
        assert isinstance(one, ImportedTrial | Skipped)
        if isinstance(one, ImportedTrial):
            assert 0 <= one.start_ns <= one.end_ns
            assert all(min(a.duration_ns, a.think_ns, a.gap_ns) >= 0 for a in one.actions)
            assert all(phase.duration_ns >= 0 for phase in one.phases)
            assert one.unknown
    if any(isinstance(one, ImportedTrial) for one in found):
        out = path.with_suffix(".msgpack")
        done = import_files(reader, [path], out, ReaderOptions())
        assert not any("unexpected" in line for line in done.named)
        read_recording(out)  # refuses clocks that do not add up


@settings(max_examples=60)
@given(data=st.data())
def test_any_damage_to_a_zip_file_is_a_reason(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray((LOGS / "inspect-given.eval").read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("log") / "x.eval"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        for one in registry.load("inspect").trials(path, ReaderOptions()):
            assert isinstance(one, ImportedTrial | Skipped)
    except Unreadable:
        pass


def _with_canaries(value: Any, key: object = "") -> Any:
    if isinstance(value, dict):
        return {name: _with_canaries(child, name) for name, child in value.items()}
    if isinstance(value, list):
        return [_with_canaries(child, key) for child in value]
    kept = key in STRUCTURE or key in ("trajectory_format", "replay_config", "state", "exit_status")
    return value if kept or not isinstance(value, str) else f"{CANARY} {value}"


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("keep_names", [False, True])
def test_nothing_that_anybody_wrote_gets_into_a_recording(tmp_path: Path, name: str, keep_names: bool) -> None:
    format_name, document = SOURCES[name]
    path = tmp_path / name
    path.write_text(json.dumps(_with_canaries(document)))
    out = tmp_path / "out.msgpack"
    done = import_files(registry.load(format_name), [path], out, ReaderOptions(), keep_names=keep_names)
    assert done.trials == 1
    assert CANARY.encode() not in out.read_bytes()
    assert CANARY not in repr(done)
