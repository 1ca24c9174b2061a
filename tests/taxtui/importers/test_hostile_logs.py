"""Logs that unpack or decode to more than their limits: left out with the limit, or refused in one line."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from taxtui.errors import TaxtuiError
from taxtui.importers import files, registry, zipped
from taxtui.importers.files import Unreadable
from taxtui.importers.formats import csv_rows
from taxtui.importers.importing import import_files
from tests.support.importing import SAMPLES


def log(path: Path, *members: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"eval": {}}')
        for number, member in enumerate(members):
            archive.writestr(f"samples/{number}.json", member)
    return path


def reasons(name: str, path: Path) -> str:
    with pytest.raises(TaxtuiError) as raised:
        import_files(registry.load(name), [path], path.with_suffix(".out"), strict=True)
    return str(raised.value)


@pytest.mark.parametrize("element", ["[]", '"a"'])
def test_a_document_of_too_many_values_is_not_decoded(
    element: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_VALUES", 100)
    monkeypatch.setattr(files, "_decode", lambda _: pytest.fail("it was decoded"))
    many = ",".join([element] * 101)
    (tmp_path / "x.traj").write_text(f'{{"trajectory": [{many}]}}')
    assert "more than 100 JSON values" in reasons("swe-agent", tmp_path / "x.traj")
    (tmp_path / "traces.jsonl").write_text(f'{{"traces": [{many}]}}\n')
    assert "line 1: more than 100 JSON values" in reasons("verifiers", tmp_path / "traces.jsonl")


def test_the_commas_and_brackets_of_a_text_are_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_VALUES", 100)
    told = {"output": ['[{,"\\' * 200, "\\" * 3, "{" * 200]}
    assert files.decoded(json.dumps(told)) == told
    with pytest.raises(Unreadable, match="more than 100 JSON values"):
        files.decoded(json.dumps({**told, "more": [0] * 101}))


def test_what_is_too_large_is_said_with_the_limit_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = (SAMPLES.parent.parent / "logs" / "verifiers-given.jsonl").read_bytes().splitlines()[0]
    monkeypatch.setattr(files, "MOST_BYTES", len(line) + 1)
    monkeypatch.setattr(files, "MOST_SKIPPED", 10)
    (tmp_path / "traces.jsonl").write_bytes(b'{"a": "' + b"x" * len(line) * 2 + b'"}\n' + line + b"\n")
    done = import_files(registry.load("verifiers"), [tmp_path], tmp_path / "out")
    assert (done.trials, done.skipped) == (1, 1)
    assert "line 1: larger than" in done.named[0]
    (tmp_path / "x.traj").write_bytes(b" " * (len(line) + 2))
    assert "larger than" in reasons("swe-agent", tmp_path / "x.traj")


def test_a_member_that_unpacks_to_too_much_is_left_out(tmp_path: Path) -> None:
    path = log(tmp_path / "x.eval", " " * (files.MOST_BYTES + 1))
    assert path.stat().st_size < 100_000
    assert "sample 1: a member is larger than 32 MiB" in reasons("inspect", path)
    path.write_bytes(path.read_bytes().replace((files.MOST_BYTES + 1).to_bytes(4, "little"), (9).to_bytes(4, "little")))
    assert "sample 1: a member is damaged" in reasons("inspect", path)  # it lies about its size


def test_an_archive_that_unpacks_to_too_much_in_all_is_read_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipped, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(zipped, "MOST_RATIO", 1)
    sample = json.dumps({"started_at": "2026-01-01T00:00:00+00:00", "input": " " * 500_000})
    path = log(tmp_path / "x.eval", *[sample] * 9)
    done = import_files(registry.load("inspect"), [path], tmp_path / "out")
    assert (done.trials, done.skipped) == (3, 1)
    assert "more than 1 MiB unpacked" in done.named[0]


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_an_archive_that_cannot_be_opened_prints_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        zipped.Archive(tmp_path)


def test_other_compressions_are_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.eval", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("samples/1.json", "{}")
    assert "unknown compression" in reasons("inspect", tmp_path / "x.eval")


def test_rows_of_a_trial_and_lines_of_csv_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    path.write_text("trial,phase,duration_s\n" + "a,action,1\n" * 4 + "b,action,1\n" * 3)
    monkeypatch.setattr(csv_rows, "MOST_ROWS", 3)
    result = import_files(registry.load("csv"), [path], tmp_path / "out")
    assert (result.trials, result.skipped) == (1, 1)
    assert result.named[0].endswith("line 2: the trial has more than 3 rows")
    for module in (files, csv_rows):
        monkeypatch.setattr(module, "MOST_BYTES", 100)
    path.write_text("trial,phase,duration_s\n" + "a," * 60 + "\n")
    assert "line 2 is larger than" in reasons("csv", path)
