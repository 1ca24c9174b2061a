"""What the Projection screen is told while it waits, and what its pictures point at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from costmodel import CellIdentity
from costmodel.analysis.project import project
from costmodel.analysis.ranking import answer_of
from costmodel.recording.reader import load
from taxtui.report.projected.record import record as record_of
from taxtui.tui.projection.form import USUAL, parsed
from taxtui.tui.projection.model import (
    Answered,
    CurveAsked,
    ProjectionAsked,
    Projector,
    Refinement,
    curves,
    refined,
)
from taxtui.tui.projection.pictures import break_even_words, cost_bars, crossings
from tests.support.cost_model.attributed import attribution
from tests.taxtui.tui import story
from tests.taxtui.tui.story import S, record


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tiers at two lengths, on two substrates: two families of works."""
    cells = [(tier, actions, name) for tier in ("T0", "T1") for actions in (10, 20) for name in ("local", "docker")]
    told = [story.header([story.planned(name, tier, actions, 4) for tier, actions, name in cells]), story.clock()]
    told += [story.cell(key, name, "", tier, actions) for key, (tier, actions, name) in enumerate(cells)]
    for number in range(4 * len(cells)):
        key = number % len(cells)
        slow = 3 if cells[key][2] == "docker" else 1
        durations = [slow * (5 + number % 3) * story.MS] * cells[key][1]
        told += story.trial(number, key, number * S, create_ns=(40 + number) * story.MS, durations_ns=durations)
    return record(tmp_path_factory.mktemp("families") / "families.msgpack", told)


def parts_of(asked: ProjectionAsked, looked_at: CellIdentity | None = None) -> list[Answered]:
    """All that the screen is told, at once and after the simulations."""
    first = Projector().answer(asked)
    return [first, *(refined(Refinement(first, looked_at)) if first.coarse else ())]


def test_think_times_that_differ_are_their_mean_until_they_are_simulated(path: Path) -> None:
    first = Projector().answer(ProjectionAsked((path,), {**USUAL, "think": "lognormal:8s,0.6"}))
    known = project([load(path)], first.training_run)
    assert len(first.coarse) == 8
    for coarse, sure in zip(first.rows, known, strict=True):
        assert coarse.worker_hours is not None
        assert sure.worker_hours is not None
        assert coarse.worker_hours.value == pytest.approx(sure.worker_hours.value, rel=1e-3)


@pytest.mark.parametrize(
    "more", [{}, {"actions": "15"}, {"baseline": "docker"}, {"full_speed": "local"}, {"create_rate": "2"}]
)
def test_the_last_part_is_what_the_command_line_prints(path: Path, more: dict[str, str]) -> None:
    last = parts_of(ProjectionAsked((path,), {**USUAL, "trajectories": "2k", **more}))[-1]
    assert [record_of(row) for row in last.rows] == [
        record_of(row) for row in project([load(path)], last.training_run, stressed=False)
    ]
    assert not last.coarse


def test_the_workload_under_the_cursor_is_simulated_first_and_rows_without_a_simulation_are_marked(path: Path) -> None:
    asked = ProjectionAsked((path,), {**USUAL, "trajectories": "2k", "create_rate": "2"})
    looked_at = project([load(path)], parsed(asked.typed).training_run)[-1].identity
    parts = parts_of(asked, looked_at)
    assert [len(part.coarse) for part in parts] == [8, 6, 4, 2, 0]
    assert looked_at not in parts[1].coarse
    quick, sure = ({row.identity: row for row in part.rows} for part in (parts[0], parts[-1]))
    for identity, row in quick.items():
        assert row.worker_hours is not None
        assert row.worker_hours.value <= sure[identity].worker_hours.value  # type: ignore[union-attr]  # with waits


def test_curves_are_of_the_works_like_the_one_that_is_looked_at(path: Path) -> None:
    last = Projector().answer(ProjectionAsked((path,), {**USUAL, "trajectories": "2k"}))
    like = last.rows[0].identity
    found = curves(CurveAsked(last, like))
    assert {curve.identity.tier for curve in found} == {like.tier}


def test_a_break_even_is_told_where_there_is_one(path: Path) -> None:
    rows = project([load(path)], parsed(USUAL).training_run)
    (line, *_) = answer_of(rows).lines
    assert crossings(line) == []
    assert break_even_words(line, []) == "no break-even: the same is cheaper at every length"
    local, docker = (entry.row for entry in line.entries)
    assert docker.evidence is not None
    assert docker.evidence.line is not None
    steep = docker.evidence.line._replace(fixed_s=-0.2)
    cheaper = replace(docker, evidence=docker.evidence._replace(line=steep))
    entries = (line.entries[0], line.entries[1]._replace(row=cheaper))
    (crossing,) = crossings(line._replace(entries=entries))
    assert local.evidence is not None
    assert local.evidence.line is not None
    one, other, at = local.evidence.line, steep, crossing.at.actions
    assert at is not None
    assert one.fixed_s + at * one.per_action_s == pytest.approx(other.fixed_s + at * other.per_action_s)
    assert "local = docker at " in break_even_words(line._replace(entries=entries), [crossing])


def test_costs_by_cause_are_those_of_the_attribution(path: Path) -> None:
    rows = project([load(path)], parsed(USUAL).training_run)
    assert cost_bars(answer_of(rows).lines[0]) == []
    found = attribution()
    (line, *_) = answer_of([replace(row, attribution=found) for row in rows]).lines
    bars = cost_bars(line)
    assert [bar.name for bar in bars] == ["local", "docker"]
    assert bars[0].parts == {"failures": 234_000, "image_pull": 91_000, "dispatch": 4_000, "create": 200}
    assert bars[0].text == "$312k of $1.27M"
