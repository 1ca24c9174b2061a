"""Answers of the Projection screen before and after the simulations."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.analysis.project import project
from costmodel.recording.reader import load
from taxtui.commands.project import command
from taxtui.options.training import OPTIONS, TYPED
from taxtui.report.projected.record import record as record_of
from taxtui.tui.projection import form
from taxtui.tui.projection.form_panel import FormPanel
from taxtui.tui.projection.model import ProjectionAsked, Projector
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


def test_think_times_that_differ_are_their_mean_until_they_are_simulated(path: Path) -> None:
    first = next(Projector().answers(ProjectionAsked((path,), {"think": "lognormal:8s,0.6"})))
    known = project([load(path)], first.training_run)
    assert first.coarse
    for coarse, sure in zip(first.rows, known, strict=True):
        assert coarse.worker_hours.value == pytest.approx(sure.worker_hours.value, rel=1e-3)


@pytest.mark.parametrize("more", [{}, {"actions": "15"}, {"full_speed": "local"}, {"create_rate": "2"}])
def test_the_last_part_is_what_the_command_line_prints(path: Path, more: dict[str, str]) -> None:
    *parts, last = Projector().answers(ProjectionAsked((path,), {"trajectories": "2k", **more}))
    assert [part.coarse for part in parts] == [True] * len(parts)
    assert len(parts) == (2 if "create_rate" in more else 0)  # at once, then after each tier and mode
    assert [record_of(row) for row in last.rows] == [record_of(row) for row in project([load(path)], last.training_run)]
    assert not last.coarse


def test_every_option_of_the_cost_model_is_in_the_panel_once_and_the_most_common_come_first() -> None:
    named = [line.name for line in form.lines() if isinstance(line, form.Field)]
    assert sorted(named) == sorted(str(option.name) for option in OPTIONS if option.name not in form.HIDDEN)
    assert {option.name for option in TYPED} <= {option.name for option in command.params}
    assert tuple(named[: len(form.FIRST)]) == form.FIRST
    assert set(form.START) <= set(named)


def test_the_values_of_a_training_file_are_shown_and_typed_ones_override_them(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(
        '[run]\ntrajectories = "2M"\nworkers = 7\ninclude_cleanup = true\n'
        "[trainer]\ntrain_s = 60\n[at.docker.limits]\nquota = 3\n[policy]\nbatch = 64\n"
    )
    panel = FormPanel()
    panel.set("file", str(file))
    shown = [panel.value(name) for name in ("trajectories", "workers", "include_cleanup", "train_seconds", "quota")]
    assert shown == ["2M", "7", form.ON, "60", ""]
    docker, others = form.parsed(panel.values).places
    assert (docker.spec, docker.training_run.quota, others.training_run.quota) == ("docker", 3, None)
    assert (others.training_run.trajectories, others.training_run.workers) == (2_000_000, 7)
    typed = {"file": str(file), "workers": "9"}
    assert form.value_of("workers", typed) == "9"
    assert form.parsed(typed).training_run.workers == 9
    assert form.command([], typed) == f"taxtui project --training {file} --workers 9"
    assert form.command([], {"nodes": "3", "include_cleanup": "yes"}) == (
        "taxtui project --set include_cleanup=true --set nodes=3"
    )


@given(st.sampled_from(sorted(form.fields())), st.lists(st.sampled_from([1, -1]), max_size=20))
def test_arrows_alone_never_type_a_value_that_cannot_be_parsed(name: str, steps: list[int]) -> None:
    field = form.fields()[name]
    text = form.DEFAULTS.get(name, "")
    for step in steps:
        text = form.next_value(text, field, field.choices, step)
        assert text or name not in form.DEFAULTS
