"""Many recordings are exported by several processes: the same bytes, one line for a bad one, nothing left behind."""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path

import pytest

from costmodel.errors import SourceError
from costmodel.recording.parallel import processes
from taxtui.errors import RecordingError
from taxtui.export import BY_NAME, many_files
from tests.support.costmodel_files import trial, write

JOINED = [name for name, one in BY_NAME.items() if one.heading is not None]


@pytest.fixture(autouse=True)
def _worth_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes, "WORTH_BYTES", 0)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))


def files(folder: Path, count: int = 5) -> list[Path]:
    return [write(folder / f"{n}.msgpack", [trial(0, create=n + 1), trial(1)], run_id=f"run-{n}") for n in range(count)]


def assert_nothing_is_left(tmp_path: Path) -> None:
    assert not list((tmp_path / "scratch").iterdir())
    assert not multiprocessing.active_children()


def test_the_bytes_are_those_of_one_process_in_the_order_of_the_files(tmp_path: Path) -> None:
    paths = files(tmp_path)
    for name in JOINED:
        for table in ("trials", "actions") if BY_NAME[name].tables else ("trials",):
            alone = b"".join(BY_NAME[name].pieces(paths, table))
            assert b"".join(many_files.pieces(name, paths, table, workers=2)) == alone
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("form", ["csv", "otlp"])
def test_a_file_that_cannot_be_read_is_the_error_that_one_process_has(tmp_path: Path, form: str) -> None:
    paths = files(tmp_path)
    paths[2].write_bytes(b"\xc9 this is none")
    with pytest.raises((SourceError, RecordingError)) as alone:
        b"".join(BY_NAME[form].pieces(paths, "trials"))
    with pytest.raises(type(alone.value)) as found:
        b"".join(many_files.pieces(form, paths, "trials", workers=2))
    assert str(found.value) == str(alone.value)
    assert_nothing_is_left(tmp_path)


def test_who_stops_reading_leaves_nothing_running(tmp_path: Path) -> None:
    told = many_files.pieces("jsonl", files(tmp_path), "trials", workers=2)
    assert next(told)
    told.close()  # type: ignore[attr-defined]  # a generator
    assert_nothing_is_left(tmp_path)


def test_one_file_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(processes, "ProcessPoolExecutor")
    for name in ("csv", "prometheus"):
        assert b"".join(many_files.pieces(name, files(tmp_path, 1), "trials", workers=2))
    assert b"".join(many_files.pieces("prometheus", files(tmp_path), "trials", workers=2))
