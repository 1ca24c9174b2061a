"""The form of the Projection screen: the same options, parser and refusals as ``taxtui project``."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from taxtui.commands.project import command
from taxtui.options.training import OPTIONS, TYPED
from taxtui.tui.projection import form
from taxtui.tui.projection.form_panel import FormPanel


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
