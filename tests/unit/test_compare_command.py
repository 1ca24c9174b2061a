"""``taxtui compare``: equal cells of two recordings, what each changed by, and what was not compared."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from taxtui.cli import app
from taxtui.terminal_text import width
from tests.support.costmodel_files import S, cell, trial, write


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def output(*words: str) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output or result.exception
    return result.stdout


def exit_code(result: Result) -> int:
    """Of an error that ``main`` would have told."""
    return int(getattr(result.exception, "exit_code", result.exit_code))


@pytest.fixture
def recording(tmp_path: Path) -> str:
    return str(write(tmp_path / "run", [trial(n, create=(2 + n % 3) * S, runs=[S // 2] * 3) for n in range(40)]))


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "json"])
def test_compare(recording: str, tmp_path: Path, form: str) -> None:
    other = str(write(tmp_path / "other", [trial(n, create=(5 + n % 3) * S) for n in range(40)], cell(0), run_id="2"))
    text = output("compare", recording, other, "--format", form)
    if form == "json":
        (change,) = json.loads(text)
        assert change["held_s"]["value"] == pytest.approx(3)
        assert change["tie"] is False
    elif form == "csv":
        (line,) = csv.DictReader(io.StringIO(text))
        assert float(line["held_s.value"]) == pytest.approx(3)
    else:
        assert "+3" in text
        assert max(map(width, text.splitlines())) <= (80 if form == "table" else 10_000)
    if form == "table":
        assert "tie" in output("compare", recording, recording)


def test_compare_needs_something_in_common(recording: str, tmp_path: Path) -> None:
    other = str(write(tmp_path / "other", [trial(1)], cell(tier="T0")))
    assert exit_code(run("compare", recording, other)) == 2
    local = str(write(tmp_path / "local", [trial(1)], cell(substrate="local")))
    refused = run("compare", recording, local)
    assert exit_code(refused) == 2
    assert "--pair-all" in str(refused.exception)
    text = output("compare", recording, local, "--pair-all")
    assert "docker → local" in text


@pytest.mark.parametrize("form", ["table", "json"])
def test_compare_pairs_equal_cells_and_names_the_others(tmp_path: Path, form: str) -> None:
    shared = [trial(n, create=(2 + n % 3) * S) for n in range(9)]
    more = [trial(n, cell=1, create=S) for n in range(10, 14)]
    one = str(write(tmp_path / "one", [*shared, *more], cell(0), cell(1, mode="session")))
    other = str(write(tmp_path / "other", [*shared, *more], cell(0), cell(1, concurrency=9), run_id="2"))
    result = run("compare", one, other, "--format", form)
    if form == "json":
        assert len(json.loads(result.stdout)) == 1
        assert "Not compared, in one alone: docker T2 3 session." in result.stderr
    else:
        assert "Not compared, in other alone: docker T2 3 exec." in " ".join(result.stdout.split())
    assert len(json.loads(output("compare", one, other, "--pair-all", "--format", "json"))) == 2


def test_compare_shows_the_flags_of_both_sides(tmp_path: Path) -> None:
    many = [trial(n, create=(2 + n % 3) * S) for n in range(40)]
    before = str(write(tmp_path / "before", many[:9], cell(0)))
    after = str(write(tmp_path / "after", many, cell(0), run_id="2"))
    told = output("compare", before, after)
    assert "little data (" in told
    assert "record more trials" in " ".join(told.split()), "the advice about the earlier one"
    assert "flags: before" in told
