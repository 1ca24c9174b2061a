"""The tables as a person, a spreadsheet and a script read them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest

from costmodel import percentile
from taxtui.report.formats import Section, markdown_tables
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, cell, health, trial, write

MS = S // 1000


def records(*arguments: object) -> list[dict[str, Any]]:
    return json.loads(printed("report", *arguments, "--format", "json"))


def spread(tmp_path: Path, count: int) -> tuple[Path, list[int]]:
    """A recording of ``count`` trials whose create takes a skewed random time; the cold starts, in ns."""
    random = Random(1)
    creates = [round(S * random.lognormvariate(0, 0.5)) for _ in range(count)]
    trials = [trial(n, create=create, ready=S) for n, create in enumerate(creates)]
    return write(tmp_path / f"spread-{count}.msgpack", trials), [create + S for create in creates]


def test_a_table_prints_what_the_data_need_instead_of_what_they_do_not_support(tmp_path: Path) -> None:
    path, cold_starts = spread(tmp_path, 71)
    assert "n≥72  n≥368" in printed("report", path, "--table", "cold-start")
    path, cold_starts = spread(tmp_path, 72)
    text = printed("report", path, "--table", "cold-start", "--run-sd", "0")
    assert f"{sorted(cold_starts)[68] / S:.2f} s" in text
    assert "n≥72" not in text
    assert "n≥368" in text
    found = records(path, "--table", "cold-start", "--run-sd", "0")[0]["cold_start_ns"]
    assert found["n"] == 72
    assert found["mean"]["value"] == pytest.approx(fmean(cold_starts))
    assert found["mean"]["low"] < found["mean"]["value"] < found["mean"]["high"]


@pytest.mark.parametrize("count", [3, 72, 368])
def test_json_has_exact_percentiles_with_their_intervals(tmp_path: Path, count: int) -> None:
    path, cold_starts = spread(tmp_path, count)
    found = records(path, "--table", "cold-start", "--run-sd", "0")[0]["cold_start_ns"]
    for name, p, needs in (("p50", 0.5, 6), ("p95", 0.95, 72), ("p99", 0.99, 368)):
        told = percentile(sorted(cold_starts), p)
        assert found[name] == {"value": told.value, "low": told.low, "high": told.high, "needs": needs}
        assert (told.high is None) == (count < needs)


def test_wrapper_time_is_a_cause_of_its_own_and_neither_dispatch_nor_tax(tmp_path: Path) -> None:
    def told(wrappers: list[int]) -> tuple[dict[str, Any], str]:
        trials = [trial(n, create=S, runs=[S // 4] * 3, wrappers=wrappers) for n in range(1, 6)]
        path = write(tmp_path / f"{len(wrappers)}.msgpack", trials)
        row = records(path, "--table", "breakdown")[0] | records(path, "--table", "tax")[0]
        return row, printed("report", path, "--table", "breakdown")

    (before, text_before), (after, text) = told([]), told([S // 8, S // 4, -1])
    assert before["mean_ns"]["wrapper"] is None
    assert after["mean_ns"]["wrapper"] == 3 * S // 8
    assert before["mean_ns"]["dispatch"] - after["mean_ns"]["dispatch"] == 3 * S // 8
    assert before["tax_per_success_ns"]["value"] - after["tax_per_success_ns"]["value"] == 3 * S // 8
    for same in ("held_per_success_ns", "work_per_success_ns"):
        assert before[same] == after[same]
    assert "wrapper" in text
    assert "wrapper" not in text_before


def test_each_table_alone_and_all_of_them_within_80_columns(tmp_path: Path) -> None:
    cells = [
        cell(0, substrate="kubernetes", variant="runtimeClass=kata", actions=150, concurrency=500, mode="session"),
        cell(1, substrate="ecs", actions=150, concurrency=500, mode="session", preload="trial"),
    ]
    slow = [trial(n, create=100 * S + n * S, actions=[S // 7] * 150, runs=[S // 8] * 150) for n in range(100)]
    fast = [
        trial(n, cell=1, create=n * 999, actions=[n * 17] * 150, runs=[0] * 150, outcome="ok" if n % 9 else "failed")
        for n in range(100, 600)
    ]
    path = write(tmp_path / "a-recording-with-a-name-of-some-length.msgpack", [*slow, *fast, [health(9 * MS)]], *cells)
    alone = ["cold-start", "fresh", "completion", "actions", "breakdown", "tax"]
    texts = [printed("report", path, "--table", name) for name in alone]
    all_lines = [line for options in ([], ["--full"]) for line in printed("report", path, *options).splitlines()]
    assert max(map(len, [*all_lines, *(line for text in texts for line in text.splitlines())])) == 80
    titles = [text.splitlines()[0] for text in texts]
    whole = printed("report", path, "--full").splitlines()
    places = [whole.index(title) for title in titles]
    assert all(one < other for one, other in pairwise(places))
    assert all("a environments differ" in text for text in texts)


def test_a_cell_without_a_success_is_a_row_of_nulls(tmp_path: Path) -> None:
    path = write(tmp_path / "a.msgpack", [trial(0, outcome="timeout")], cell(0), cell(1, substrate="local"))
    (row,) = records(path)
    assert row["flags"] == ["no_success"]
    assert (row["trials"], row["failures"], row["failure_rate"]["value"]) == (1, 1, 1.0)
    assert row["trajectory_ns"]["p50"] == {"value": None, "low": None, "high": None, "needs": None}
    assert row["tax_per_success_ns"] == {"value": None, "low": None, "high": None}
    text = printed("report", path)
    assert "100 %" in text
    assert "Cells without a finished trial are not listed (1)." in text
    assert "docker" in printed("report", path, "--table", "tax")


def test_markdown_escapes_what_comes_from_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.msgpack", [trial(0)], cell(0, variant="<b>|\x1b[31m"))
    text = printed("report", path, "--format", "markdown", "--table", "fresh")
    assert "docker:\\<b\\>\\|\N{REPLACEMENT CHARACTER}\\[31m" in text


def test_a_line_of_markdown_begins_no_list_and_holds_no_link() -> None:
    lines = ["- a", "1. a", "see http://a.b", "www.a.b", "2.5x of a"]
    told = [markdown_tables.to_text([Section("", [], [], [line])]) for line in lines]
    assert told == ["\\- a", "1\\. a", "see http\\://a.b", "www\\.a.b", "2.5x of a"]


def test_nothing_to_report_is_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.msgpack", [trial(0, warm_up=True)])
    assert "no trial has ended" in printed("report", path, code=4)
    assert "there is no " in printed("report", tmp_path / "b.msgpack", code=4)
