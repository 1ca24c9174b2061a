"""One word, one number: what Live, ``report``, ``project`` and the exports say of every recording that ships."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from costmodel import TrainingRun, load, project
from costmodel.recording import events
from costmodel.recording.follower import read_events
from costmodel.recording.trial import CellIdentity
from taxtui.live.cell_state import PARTS, CellState
from taxtui.live.state import RunState
from taxtui.report.answer.measured import answer as answer_of_rows
from taxtui.report.answer.record import rows_by_key
from taxtui.report.formats import csv_rows
from taxtui.report.measured.record import record
from taxtui.report.measured.rows import rows_of
from taxtui.report.measured.samples import read_samples
from taxtui.report.measured.sections import TABLES
from taxtui.report.projected.record import record as projected_record
from taxtui.report.words import TAXES

SHIPPED: Final = sorted((Path(__file__).parents[3] / "recordings").glob("*.msgpack"))
S: Final = 10**9
DEMAND: Final = TrainingRun(trajectories=3600, workers=1)
"""So that worker-hours are seconds per delivered trajectory."""


class Told(NamedTuple):
    """By cell id where it is of cells."""

    live: dict[str, CellState]
    problems: list[str]
    report: dict[str, dict[str, Any]]
    project: dict[str, dict[str, Any]]
    csv: dict[str, str]


def told(path: Path) -> Told:
    state, cell_ids = RunState(), {}

    def take(event: events.Event) -> None:
        if isinstance(event, events.Cell):
            identity = CellIdentity(*(getattr(event, field) for field in CellIdentity._fields))
            cell_ids[event.id] = identity.cell_id
        state.apply(event)

    read_events(path, take)
    cells, sources = read_samples([path])
    rows = rows_of(cells)
    answer = answer_of_rows(rows, sources)
    taxed = rows_by_key(answer)
    measured = [record(row, TABLES, taxed.get(row.key)) for row in rows]
    asked = [projected_record(row) for row in project([load(path)], DEMAND)]
    texts = {"report": csv_rows.to_text(measured), "project": csv_rows.to_text(asked)}
    live = {cell_ids[number]: cell for number, cell in state.cells.items()}
    assert len(live) == len(state.cells)
    by_id = [{one["cell_id"]: json.loads(json.dumps(one)) for one in found} for found in (measured, asked)]
    return Told(live, state.runner.problems, by_id[0], by_id[1], texts)


def same(value: float, other: float) -> bool:
    """Exact sums, divided in one order or another."""
    return value == pytest.approx(other, rel=1e-12, abs=1e-9)


def equal(ns: float | None, seconds: float | None) -> bool:
    return ns is seconds is None or (ns is not None and seconds is not None and same(ns / S, seconds))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_live_report_project_and_csv_say_the_same_of_every_shipped_recording(path: Path) -> None:
    found = told(path)
    for same_numbers in (means, causes, totals, columns):
        same_numbers(found)


def means(found: Told) -> None:
    """Every mean of the live screen is the report's."""
    for key, live in found.live.items():
        means = found.report[key]["mean_ns"]
        names = {*PARTS, "setup", "queued", "think", "held", "ready_again", "orchestration"} & means.keys()
        assert names >= {"create", "ready", "work", "dispatch", "harness", "held", "cleanup"}
        for name in names - {"orchestration"}:  # the live screen shows marks as they come
            assert same(live.mean_ns(name), means[name] or 0), name
        shown = live.mean_parts_ns()
        assert same(sum(shown.values()) - shown.get("cleanup", 0), found.report[key]["trajectory_ns"]["mean"]["value"])
        for facet in {*live.facets} - {"cleanup"}:  # that facet holds failed trials too
            latency = found.report[key][f"{facet}_ns"]
            assert (live.facets[facet].n, latency["n"]) == (latency["n"], live.facets[facet].n)
            assert same(live.facets[facet].mean, latency["mean"]["value"] or 0.0), facet


def causes(found: Told) -> None:
    """Of live, report and project."""
    for key, live in found.live.items():
        report, projection = found.report[key], found.project[key]
        causes, means = projection["by_cause"], report["mean_ns"]
        for cause in TAXES:
            assert equal(report["tax_by_cause_ns"][cause], causes[cause]), cause
        for cause in ("dispatch", "work", "harness", "queued", "think"):
            assert same(means[cause] / S, causes[cause]), cause
            assert same(live.mean_ns(cause) / S, causes[cause]), cause
        startup_ns = sum(means[phase] for phase in ("create", "ready", "preload"))
        assert same(startup_ns / S, causes["startup"])
        assert same(report["work_per_success_ns"] / S, causes["work"])
        held_s = report["held_per_success_ns"] / S
        assert same(held_s, projection["held_per_success_s"])
        assert same(held_s, sum(hours for hours in causes.values() if hours is not None))
        assert same(projection["think_s"], means["think"] / S)


def totals(found: Told) -> None:
    """Counts, the tax and the trajectory, with their intervals."""
    for key, live in found.live.items():
        report, projection = found.report[key], found.project[key]
        assert live.ok + live.failed == report["trials"] == projection["trials"]
        assert live.failed == report["failures"] == projection["failures"]
        assert ("runner_distorted" in report["flags"]) == ("runner_distorted" in projection["flags"])
        for end in ("value", "low", "high"):
            assert same(report["tax_per_success_ns"][end] / S, projection["tax_worker_hours"][end])
        assert same(sum(ns or 0.0 for ns in report["tax_by_cause_ns"].values()), report["tax_per_success_ns"]["value"])
        trajectory = report["trajectory_ns"]
        assert same(trajectory["mean"]["value"] / S, projection["trajectory_s"]["mean"])
        for name in ("p50", "p95", "p99"):
            assert equal(trajectory[name]["value"], projection["trajectory_s"][name])


def columns(found: Told) -> None:
    for name, whole in (("report", found.report), ("project", found.project)):
        rows = list(csv.DictReader(io.StringIO(found.csv[name])))
        assert len(rows) == len(whole)
        for row in rows:
            for column, text in row.items():
                value: Any = whole[row["cell_id"]]
                for part in column.split("."):
                    value = value[part] if isinstance(value, dict) else None
                if isinstance(value, int | float) and not isinstance(value, bool):
                    assert float(text) == value, column
