"""A small file of very many cells is refused in one line before it costs anything; what a run makes never is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from costmodel.projection import wall_clock
from costmodel.recording.events import MAX_CELLS
from costmodel.simulation.makespan import Makespan
from costmodel.statistics.distribution import Distribution
from costmodel.training.run import Precision
from taxtui.cli import app
from taxtui.errors import RecordingError
from taxtui.report.page.site import opened
from tests.support.cost_model.costmodel_files import S, cell, frame, header, trial, write

ASK = ("--trajectories", "1000000", "--workers", "10")  # so many that nothing is simulated
COMMANDS = (
    ("report", "FILE"),
    ("report", "FILE", "--table", "tax"),
    ("report", "FILE", "--format", "json"),
    ("compare", "FILE", "OTHER"),
    ("project", "FILE", *ASK, "--format", "csv"),
)


def many_cells(path: Path, cells: int, width: int = 1, run_id: str = "run-1") -> Path:
    """A recording of cells of one trial each; ``width`` of them have the same tier."""
    identities = [
        cell(number, tier=f"T{number // width}", substrate=f"s{number % width}", actions=1) for number in range(cells)
    ]
    trials = [trial(number, cell=number, create=S + number, actions=[2 * S], runs=[S]) for number in range(cells)]
    return write(path, trials, *identities, run_id=run_id)


def told(path: Path, *words: str) -> str:
    files = {"FILE": path, "OTHER": path.with_name("other.msgpack")}
    asked = [str(files.get(word, word)) for word in words]
    return CliRunner().invoke(app, asked, standalone_mode=False, catch_exceptions=False).output


@pytest.fixture(scope="module")
def most(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many cells as a file may announce."""
    folder = tmp_path_factory.mktemp("most")
    many_cells(folder / "other.msgpack", MAX_CELLS, 32, run_id="other")
    return many_cells(folder / "many.msgpack", MAX_CELLS, 32)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_more_cells_than_a_file_may_have_rows_are_refused_with_what_to_choose(
    most: Path, command: tuple[str, ...]
) -> None:
    with pytest.raises(RecordingError, match=r"1,024|2,048") as refused:
        told(most, *command)
    assert "\n" not in str(refused.value)
    assert "--substrate" in refused.value.fix
    assert refused.value.exit_code == 4
    assert "T3" in told(most, *command, "--tier", "T3")


@pytest.mark.parametrize("command", ["report", "project"])
def test_a_page_has_fewer_rows_than_an_answer(tmp_path: Path, command: str) -> None:
    path, page = many_cells(tmp_path / "many.msgpack", 250), tmp_path / "page.html"
    ask = ASK if command == "project" else ()
    assert told(path, command, "FILE", *ask)
    refusal = r"250 cells are more than a page of [\d,]+ bytes may have rows, \d+;"
    with pytest.raises(RecordingError, match=refusal) as refused:
        told(path, command, "FILE", *ask, "--html", str(page))
    assert "--tier" in refused.value.fix
    assert not page.exists()


def test_a_site_leaves_out_what_has_more_rows_than_a_page_may_have(tmp_path: Path) -> None:
    many_cells(tmp_path / "many.msgpack", 250)
    many_cells(tmp_path / "run.msgpack", 4, run_id="run-2")
    book = opened(tmp_path)
    assert [path.name for path in book.paths] == ["run.msgpack"]
    [gap] = book.gaps
    assert "many.msgpack: 250 cells are more than a page" in f"{gap.name}: {gap.why}"


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_export_has_no_more_rows_than_bytes_pay_for(tmp_path: Path, form: str) -> None:
    path, each = tmp_path / "short.msgpack", 20_000
    events = [[3, 0, 0, "s", 0, 0], [6, 0, "action", 0, [], [], [1] * each, [], [], [], []]]
    ended = [[7, 0, "ok", "", "", "", each, 0, "warm"], [10, "finished", {"ok": 1}]]
    path.write_bytes(b"".join(map(frame, ([header()], [cell(actions=each)], events, ended))))
    with pytest.raises(RecordingError, match=r"more commands than 15,\d\d\d"):
        told(path, "export", "FILE", "--format", form, "--table", "actions")
    assert told(path, "export", "FILE", "--format", form)


def test_a_page_draws_36_rows_in_all_and_says_how_to_draw_others(tmp_path: Path) -> None:
    path = many_cells(tmp_path / "many.msgpack", 108, 32)
    page = tmp_path / "page.html"
    told(path, "report", "FILE", "--html", str(page))
    text = page.read_text(encoding="utf-8")
    assert "72 more rows are in the tables. To draw other rows choose some with --tier" in text
    assert text.count('data-name="causes-') == 4


def test_many_rows_share_what_is_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    efforts: list[float] = []
    simulated = wall_clock.expected_makespan

    def counting(law: Distribution, jobs: int, workers: int, precision: Precision, *how: Any) -> Makespan:
        efforts.append(precision.effort)
        return simulated(law, jobs, workers, precision, *how)

    monkeypatch.setattr(wall_clock, "expected_makespan", counting)
    for cells in (40, 80):
        path = many_cells(tmp_path / f"{cells}.msgpack", cells)
        told(path, "project", "FILE", *ASK)
    assert efforts == [1.0] * 40 + [0.5] * 80
