"""The form of the Projection screen: the same options, parser and refusals as ``taxtui project``."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import TrainingRunError
from costmodel.training.length import Length
from taxtui.commands.project import command
from taxtui.errors import UsageError
from taxtui.options.training import OPTIONS, TYPED
from taxtui.tui.projection import form
from taxtui.tui.projection.form_panel import FormPanel

LADDERS = [field for field in form.fields().values() if len(field.stops) > 1]


def test_every_option_of_the_cost_model_is_in_the_panel_once() -> None:
    named = [field.name for group in form.groups().values() for field in group]
    assert sorted(named) == sorted(str(option.name) for option in OPTIONS if option.name not in form.HIDDEN)
    assert {option.name for option in TYPED} <= {option.name for option in command.params}
    assert tuple(field.name for field in form.groups()[""]) == form.FIRST
    assert not set(form.STOPS) - set(named)


def names(lines: list[form.Field | str]) -> list[str]:
    return [line if isinstance(line, str) else line.name for line in lines]


def test_what_everyone_knows_comes_first_and_a_group_in_use_is_open() -> None:
    folded = names(form.listed(form.USUAL, ()))
    assert folded[:7] == [*form.FIRST, form.MORE]
    assert set(folded[6:]) == set(form.groups()) - {""}
    opened = names(form.listed(form.USUAL, {"Nodes"}))
    assert opened[opened.index("Nodes") + 1] == "nodes"
    used = {**form.USUAL, "pull_gb_s": "0.5"}
    assert form.in_use("Nodes", used) == 1
    assert "pull_gb_s" in names(form.listed(used, ()))
    assert "pull_gb_s" not in names(form.listed(used, {"Nodes"}))  # folded all the same


@pytest.mark.parametrize("text", ["1M", "1e6", "1,000,000", "1000k", "1000000"])
def test_a_million_is_written_in_many_ways(text: str) -> None:
    assert form.parsed({**form.USUAL, "trajectories": text}).training_run.trajectories == 1_000_000
    stops = form.fields()["trajectories"].stops
    assert form.position(text, stops) == stops.index("1000000")
    assert form.next_stop(text, stops, 1, required=True) == "2000000"


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
    assert form.in_use("The trainer", panel.values) == 1
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


def test_a_training_file_replaces_what_is_usual_when_it_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text("[run]\nworkers = 7\n")
    panel = FormPanel()
    panel.set("file", str(file))
    assert panel.value("workers") == "7"
    panel.set("workers", "500")
    assert form.parsed(panel.values).training_run.workers == 500


def test_what_is_usually_asked_is_the_readmes() -> None:
    (asked,) = form.parsed(form.USUAL).places
    training_run = asked.training_run
    assert (training_run.trajectories, training_run.workers, training_run.actions, asked.prices) == (
        1_000_000,
        500,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"workers": "many"}, "Invalid value for '--workers'"),
        ({"workers": "-3"}, "workers"),
        ({"think": "soon"}, "soon"),
        ({"train_seconds": "60"}, "add --batch B"),
    ],
)
def test_what_cannot_be_asked_is_refused(more: dict[str, str], words: str) -> None:
    with pytest.raises((UsageError, TrainingRunError)) as caught:
        form.parsed({**form.USUAL, **more})
    assert words in str(caught.value)


numbers = st.integers(1, 10**6).map(str)
typed = st.fixed_dictionaries(
    {"trajectories": numbers, "workers": numbers},
    optional={
        "actions": numbers,
        "backoff_seconds": st.floats(0, 1e6).map(repr),
        "think": st.sampled_from(["8s", "250ms", "lognormal:8s,0.6"]),
        "include_cleanup": st.just(form.ON),
        "quota": numbers,
        "create_rate": st.floats(1e-3, 1e6).map(repr),
        "seed": st.integers(0, 10**9).map(str),
        "prices": st.sampled_from(["aws-fargate", "e2b"]),
    },
)


@given(typed)
def test_what_is_asked_is_parsed_into_what_was_typed(asked: dict[str, str]) -> None:
    (found,) = form.parsed(asked).places
    training_run = found.training_run
    assert bool(found.prices) == ("prices" in asked)
    assert (training_run.trajectories, training_run.workers) == (int(asked["trajectories"]), int(asked["workers"]))
    assert training_run.actions == (Length.constant(int(asked["actions"])) if "actions" in asked else None)
    assert training_run.backoff_s == float(asked.get("backoff_seconds", "0"))
    assert training_run.include_cleanup == ("include_cleanup" in asked)
    assert training_run.precision.seed == int(asked.get("seed", "0"))


@given(st.sampled_from(LADDERS), st.integers(0, 20))
def test_a_slider_goes_up_to_its_end_and_back_to_not_asked(field: form.Field, steps: int) -> None:
    ladder = list(field.stops) if field.required else ["", *field.stops]
    text = ladder[0]
    for _ in range(steps):
        text = form.next_stop(text, field.stops, 1, required=field.required)
    assert text == ladder[min(steps, len(ladder) - 1)]
    for _ in range(len(ladder)):
        text = form.next_stop(text, field.stops, -1, required=field.required)
    assert text == ladder[0]


@given(st.sampled_from(["trajectories", "workers", "quota", "batch"]), st.integers(1, 2 * 10**9))
def test_a_step_from_any_number_is_the_next_stop_in_that_direction(name: str, number: int) -> None:
    field = form.fields()[name]
    stops = [float(stop) for stop in field.stops]
    more = float(form.next_stop(str(number), field.stops, 1, required=True))
    less = float(form.next_stop(str(number), field.stops, -1, required=True))
    assert more == min([stop for stop in stops if stop > number], default=max(stops[-1], number))
    assert less == max([stop for stop in stops if stop < number], default=stops[0])


@given(st.sampled_from(LADDERS))
def test_a_mark_moves_to_the_right_with_its_stop(field: form.Field) -> None:
    places = [form.position(stop, field.stops) for stop in field.stops]
    assert places == [float(n) for n in range(len(field.stops))]


@pytest.mark.parametrize("text", ["", "nan", "x", "1e400"])
def test_what_is_no_number_has_no_place_between_numbers(text: str) -> None:
    place = form.position(text, ("1", "2", "5"))
    assert place is None or text == "1e400"
