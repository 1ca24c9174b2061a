"""Every field of a training run has an option that reaches it, and every kind of row uses it or refuses it by that
name."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from costmodel import Images, Think, TrainingRun, TrainingRunError
from costmodel.projection.diagnostics import option, used_by
from taxtui.cli import app
from taxtui.options.training import OPTIONS, TYPED, as_typed, asked_at, training_run_of
from taxtui.options.training_file import field_of
from tests.support.cost_model.asked_training_runs import ASKED, STEP_MODEL_ASKED

ALL = ASKED | STEP_MODEL_ASKED
BY_FIELD = {field_of(one): one for one in OPTIONS}
USUAL = {"trajectories": 2000, "workers": 7}
NOT_OF_A_DEMAND = {"file", "changes", "tier", "mode", "profile", "compose", "prices", "seed"}
INSIDE: set[str] = {"precision"}
"""A command line has only its seed."""


def words(asked: dict[str, Any]) -> list[str]:
    """As one would type it: with the option of a command, or with ``--set``."""
    found = []
    for name, value in asked.items():
        option = BY_FIELD[name]
        text = "true" if value is True else _typed(value)
        found += [option.opts[-1], text] if option in TYPED else ["--set", f"{name}={text}"]
    return found


def _typed(value: object) -> str:
    if isinstance(value, Think):
        return f"lognormal:{value.median_ns}ns,{value.sigma}" if value.sigma else f"{value.median_ns}ns"
    if isinstance(value, Images):
        return "50:2-8"
    return str(value)


def test_every_field_has_an_option_and_every_option_a_field() -> None:
    assert {one.name for one in fields(TrainingRun)} - INSIDE == set(BY_FIELD) - NOT_OF_A_DEMAND


@pytest.mark.parametrize("name", sorted(set(ALL) - INSIDE))
def test_an_option_reaches_its_field_by_the_name_that_refusals_have(name: str) -> None:
    asked = USUAL | ALL[name]
    context = click.Command("project", params=list(TYPED)).make_context("project", words(asked))
    params = asked_at("", context)
    del params["prices"]
    found, wanted = training_run_of(params), TrainingRun(**asked)
    assert replace(found, actions=None) == replace(wanted, actions=None)
    assert found.length == wanted.length  # a number is a law too
    assert option(name) in BY_FIELD[name].opts


@pytest.mark.parametrize("name", sorted(set(ALL) - INSIDE))
def test_a_published_row_answers_an_option_or_refuses_it_by_name(name: str) -> None:
    asked = USUAL | ALL[name] | ({"baseline": "docker"} if name == "baseline" else {})
    result = CliRunner().invoke(app, ["project", "essay", *words(asked), "--format", "json"])
    refused = [field for field in ALL[name] if field not in used_by("published")]
    if refused:
        assert isinstance(result.exception, TrainingRunError), result.output
        for field in refused:
            assert as_typed(BY_FIELD[field].opts[-1]) in str(result.exception)
        assert "\n" not in str(result.exception)
    else:
        assert result.exit_code == 0, result.exception
