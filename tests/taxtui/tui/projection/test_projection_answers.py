"""Answers of the Projection screen before and after the simulations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from costmodel.analysis.project import project
from costmodel.analysis.ranking import answer_of
from costmodel.recording.reader import load
from taxtui.report.bars import bars_of, measure_of
from taxtui.report.projected.record import record as record_of
from taxtui.tui.projection.form import parsed
from taxtui.tui.projection.model import Answered, ProjectionAsked, Projector
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


def parts_of(path: Path, **typed: str) -> list[Answered]:
    """Return all parts of an answer: at once, and after the simulations."""
    return list(Projector().answers(ProjectionAsked((path,), {"trajectories": "2k", **typed})))


def test_think_times_that_differ_are_their_mean_until_they_are_simulated(path: Path) -> None:
    first = next(Projector().answers(ProjectionAsked((path,), {"think": "lognormal:8s,0.6"})))
    known = project([load(path)], first.training_run)
    assert first.coarse
    for coarse, sure in zip(first.rows, known, strict=True):
        assert coarse.worker_hours is not None
        assert sure.worker_hours is not None
        assert coarse.worker_hours.value == pytest.approx(sure.worker_hours.value, rel=1e-3)


@pytest.mark.parametrize(
    "more", [{}, {"actions": "15"}, {"baseline": "docker"}, {"full_speed": "local"}, {"create_rate": "2"}]
)
def test_the_last_part_is_what_the_command_line_prints(path: Path, more: dict[str, str]) -> None:
    *parts, last = parts_of(path, **more)
    assert [part.coarse for part in parts] == [True] * len(parts)
    assert len(parts) == (2 if "create_rate" in more else 0)  # at once, then after each tier and mode
    assert [record_of(row) for row in last.rows] == [record_of(row) for row in project([load(path)], last.training_run)]
    assert not last.coarse


def test_costs_by_cause_are_those_of_the_attribution(path: Path) -> None:
    rows = project([load(path)], parsed({}).training_run)
    found = attribution()
    answer = answer_of([replace(row, attribution=found) for row in rows])
    bars = bars_of(answer, answer.lines[0])
    assert {bar.name for bar in bars} == {"local", "docker"}
    assert bars[0].parts == {"failures": 234_000, "image_pull": 91_000, "dispatch": 4_000, "create": 200}
    assert (bars[0].text, bars[0].note) == ("$312k", "of $1.27M")
    assert measure_of(answer, answer.lines[0]) == "Cost of the sandbox in $"
