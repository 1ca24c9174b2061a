"""A measurement that was disturbed throughout is flagged by absolute limits, and no row of it is ranked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from costmodel import FLOOR_LIMIT_NS, Row, TrainingRun, answer_of, compare, load, project, read_recording
from costmodel.analysis.baseline import with_baseline
from costmodel.analysis.comparison import parse_metric
from costmodel.recording.runner_health import LAG_LIMIT_NS
from taxtui.report.answer.measured import summary
from taxtui.report.headline import sentence
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, cell, trial, write

ONCE = TrainingRun(trajectories=1000, workers=10)
IDLE_FLOOR_NS = 800_000
SAID = "Disturbed: the measuring process was late or busy for most of the time"


def recorded(
    path: Path, *, late: bool = False, floor_ns: int = IDLE_FLOOR_NS, only: tuple[int, ...] = (0, 1), slow: int = 1
) -> Path:
    """Docker and local, eight trials each; the loop is ``late`` in every second of the trials of ``only`` these."""
    trials = []
    for number in range(16):
        events = trial(number, cell=number % 2, create=slow * (3 - number % 2) * S + number // 2, block=number // 2)
        start, end = number * 1000 * S, number * 1000 * S + 900 * S
        lag_ns = LAG_LIMIT_NS + 1 if late and number % 2 in only else 0
        seconds: list[list[Any]] = [
            [8, start, 0, 0, 0, 0, 1, 0, floor_ns],
            [8, end, 0, lag_ns, lag_ns, 0, 1, 0, floor_ns],
        ]
        trials.append([*events[:-1], *seconds, events[-1]])
    return write(path, trials, cell(0), cell(1, substrate="local"), run_id=path.name)


def rows_of(path: Path) -> list[Row]:
    return project([load(path)], ONCE)


@pytest.mark.parametrize("how", [{"late": True}, {"floor_ns": FLOOR_LIMIT_NS + 1}])
def test_where_every_trial_is_disturbed_the_rows_are_flagged_and_not_ranked(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    rows = rows_of(recorded(tmp_path / "a.msgpack", **how))
    assert all("disturbed" in row.flags and "runner_distorted" not in row.flags for row in rows)
    found = answer_of(rows)
    assert all(line.ranked == () for line in found.lines)
    assert sentence(found) == f"{SAID}, so none of the 2 rows is ranked. Measure again on an idle machine."
    assert all(row.versus is None for row in with_baseline(rows, "local"))


def test_rows_that_were_disturbed_are_left_out_of_the_ranking_alone(tmp_path: Path) -> None:
    rows = rows_of(recorded(tmp_path / "a.msgpack", late=True, only=(0,)))
    assert ["disturbed" in row.flags for row in rows] == [True, False]
    said = sentence(answer_of(rows))
    assert said.startswith("local exec takes ")
    assert said.endswith(" Disturbed and not ranked: 1 of 2 rows.")
    at_the_limit = rows_of(recorded(tmp_path / "b.msgpack", floor_ns=FLOOR_LIMIT_NS))
    assert not any("disturbed" in row.flags for row in at_the_limit)
    assert sentence(answer_of(at_the_limit)).startswith("docker exec takes ")


def test_compare_gives_no_verdict_about_a_disturbed_recording(tmp_path: Path) -> None:
    before = recorded(tmp_path / "a.msgpack")
    after = recorded(tmp_path / "b.msgpack", late=True, slow=30)
    quiet = recorded(tmp_path / "c.msgpack", slow=30)
    mean = [parse_metric("mean:trajectory")]
    files = [read_recording(path) for path in (before, after, quiet)]
    verdicts = [[one.verdict for one in compare(files[:1], [file], mean).comparisons] for file in files[1:]]
    assert verdicts == [["inconclusive"] * 2, ["worse"] * 2]
    text = " ".join(printed("compare", before, after).split())
    assert "disturbed: measure again on an idle machine: " in text
    assert "0 worse" in text


def test_every_command_and_the_page_say_it(tmp_path: Path) -> None:
    file = str(recorded(tmp_path / "a.msgpack", late=True))
    asked = ("project", file, "--trajectories", "1000", "--workers", "10")
    page = tmp_path / "page.html"
    for words in (("report", file), asked, (*asked, "--html", str(page))):
        printed(*words)
    for text in (printed("report", file), summary(Path(file)), page.read_text()):
        assert SAID in " ".join(text.split())
    rows = json.loads(printed("report", file, "--format", "json"))
    assert [row["bad_seconds"]["median_share"] for row in rows] == [1.0, 1.0]
    assert not any(row["answer"]["ranked"] for row in rows)
