"""Every action of Projection, by its key, on an app with a recording; and what follows while a person types.

Answers of the Projection screen before and after the simulations.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.containers import ScrollableContainer
from textual.pilot import Pilot
from textual.widgets import Static

from costmodel import Row
from costmodel.analysis.project import project
from costmodel.recording.reader import load
from taxtui.commands.project import command
from taxtui.options.training import OPTIONS, TYPED
from taxtui.report.projected.record import record as record_of
from taxtui.tui.command_dialog import CommandProgress
from taxtui.tui.dialogs import Choose, Tell
from taxtui.tui.projection import form
from taxtui.tui.projection.form_panel import FormPanel
from taxtui.tui.projection.model import ProjectionAsked, Projector
from taxtui.tui.projection.screen import ProjectionScreen
from tests.support.command_line import printed
from tests.support.cost_model.simulating import run_coarsely
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import SIZE, looking_at, projection, until
from tests.taxtui.tui.story import S, record


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    run_coarsely(monkeypatch)


def panel(pilot: Pilot[None]) -> FormPanel:
    return pilot.app.screen.query_one(FormPanel)


def rows(pilot: Pilot[None]) -> Sequence[Row]:
    found = projection(pilot).answered
    return found.rows if found else ()


async def answered(pilot: Pilot[None], *, trajectories: int = 1_000_000, workers: int = 500) -> None:
    def holds() -> bool:
        answer = projection(pilot).answered
        asked = answer is not None and (answer.training_run.trajectories, answer.training_run.workers)
        return asked == (trajectories, workers) and projection(pilot).settled

    await until(pilot, holds)


async def test_4_projects_as_the_command_line_does_follows_arrows_and_typed_values_and_w_explains(path: Path) -> None:
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("4")
        await answered(pilot)
        before = [row.worker_hours for row in rows(pilot)]
        assert len(before) == 2
        await pilot.press("y")
        words = shlex.split(pilot.app.clipboard)
        assert words == ["taxtui", "project", str(path)]
        told = printed(*words[1:], "--format", "json")
        assert all(hours and repr(hours.value) in told for hours in before)

        await pilot.press("right")
        await answered(pilot, trajectories=2_000_000)
        assert all(
            now.worker_hours and then and now.worker_hours.value == pytest.approx(2 * then.value)
            for now, then in zip(rows(pilot), before, strict=True)
        )
        await pilot.press("left", "left")
        await answered(pilot, trajectories=500_000)
        await pilot.press("down", "left")
        await answered(pilot, trajectories=500_000, workers=250)

        await pilot.press("up")
        assert "Trajectories of the training run." in str(projection(pilot).query_one("#hint", Static).render())
        await pilot.press("enter", *"77", "enter")
        await answered(pilot, trajectories=77, workers=250)
        assert pilot.app.focused is panel(pilot)
        await pilot.press("enter", *"5", "escape")
        await answered(pilot, trajectories=77, workers=250)

        await pilot.press("w")
        await until(pilot, lambda: pilot.app.screen.query("#told"))
        text = str(pilot.app.screen.query_one("#told", Static).render())
        assert all(word in text for word in ("local:bwrap", "docker:runc", "N, trajectories"))
        await pilot.pause()
        assert pilot.app.screen.query_one(ScrollableContainer).max_scroll_x == 0


async def test_what_cannot_be_answered_is_refused_in_the_words_of_the_command_line(path: Path) -> None:
    async with looking_at(path).run_test(size=(120, 40)) as pilot:
        await pilot.press("4")
        await answered(pilot)
        before = rows(pilot)
        panel(pilot).values["train_seconds"] = "60"
        projection(pilot).ask()
        await until(pilot, lambda: projection(pilot).refusal)
        size = ("--trajectories=1000000", "--workers=500")
        assert printed("project", path, *size, "--train-seconds=60", code=2) == projection(pilot).refusal
        assert "add --batch B" in str(projection(pilot).query_one("#words", Static).render())
        assert rows(pilot) == before  # what was answered last stays
        assert projection(pilot).has_class("-refused")  # dim
        await pilot.press("enter", *"x", "enter")
        await until(pilot, lambda: "is no count" in projection(pilot).refusal)


async def test_without_a_recording_it_says_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taxtui.live.catalogue.newest", lambda **_: None)
    async with looking_at().run_test(size=SIZE) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: "no recording yet" in projection(pilot).refusal)
        await pilot.press("w", "m")  # nothing to show, and no error


async def test_l_loads_a_training_file_whose_values_are_shown(path: Path) -> None:
    (path.parent / "lab.toml").write_text('[run]\ntrajectories = "2M"\nworkers = 7\n')
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("4")
        await answered(pilot)
        await pilot.press("l", *str(path.parent / "lab.toml"), "enter")
        await answered(pilot, trajectories=2_000_000, workers=7)
        assert "2M" in pilot.app.export_screenshot()


async def test_m_shows_the_page_of_decide_and_escape_ends_its_process(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program, began, goes_on = tmp_path / "python", tmp_path / "began", tmp_path / "goes-on"
    program.write_text(
        f"#!/bin/sh\necho $$ > {began}\nprintf '\\rsimulating 40 %%' >&2\n"
        f'while [ ! -e {goes_on} ]; do sleep 0.05; done\necho "STAY: $*"\nexit 6\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr("taxtui.tui.command_dialog.sys.executable", str(program))
    async with looking_at(path).run_test(size=(120, 40)) as pilot:
        await pilot.press("4")
        await answered(pilot)
        await pilot.press("m")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        await pilot.press("enter")  # to local, the first measured substrate
        await until(pilot, lambda: isinstance(pilot.app.screen, CommandProgress))
        progress = pilot.app.screen.query_one("#progress", Static)
        await until(pilot, lambda: "simulating 40 %" in str(progress.render()))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ProjectionScreen) and not alive(began))
        goes_on.touch()
        await pilot.press("m")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Tell))
        words = f"decide {path} --to local:bwrap --tier T0 --mode exec -n 10"
        assert f"STAY: -m taxtui {words}" in str(pilot.app.screen.query_one("#told", Static).render())
        await pilot.press("y")
        assert pilot.app.clipboard.startswith(f"taxtui {words}")


def alive(began: Path) -> bool:
    try:
        os.kill(int(began.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_think_times_that_differ_are_their_mean_until_they_are_simulated(families: Path) -> None:
    first = next(Projector().answers(ProjectionAsked((families,), {"think": "lognormal:8s,0.6"})))
    known = project([load(families)], first.training_run)
    assert first.coarse
    for coarse, sure in zip(first.rows, known, strict=True):
        assert coarse.worker_hours.value == pytest.approx(sure.worker_hours.value, rel=1e-3)


@pytest.mark.parametrize("more", [{}, {"actions": "15"}, {"full_speed": "local"}, {"create_rate": "2"}])
def test_the_last_part_is_what_the_command_line_prints(families: Path, more: dict[str, str]) -> None:
    *parts, last = Projector().answers(ProjectionAsked((families,), {"trajectories": "2k", **more}))
    assert [part.coarse for part in parts] == [True] * len(parts)
    assert len(parts) == (2 if "create_rate" in more else 0)  # at once, then after each tier and mode
    assert [record_of(row) for row in last.rows] == [
        record_of(row) for row in project([load(families)], last.training_run)
    ]
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
    form_panel = FormPanel()
    form_panel.set("file", str(file))
    shown = [
        form_panel.value(name) for name in ("trajectories", "workers", "include_cleanup", "train_seconds", "quota")
    ]
    assert shown == ["2M", "7", form.ON, "60", ""]
    docker, others = form.parsed(form_panel.values).places
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
