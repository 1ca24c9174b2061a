"""The form of the Projection screen: the same options, parser and refusals as ``taxtui project``."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import DemandError
from costmodel.length import Length
from taxtui.commands.project import command
from taxtui.errors import UsageError
from taxtui.tui.projection import form

OF_NO_DEMAND = {"format", "full", "explain", "plot", "over", "cell", "reference"} | {
    *("tier", "mode", "substrate", "sort", "group")
}
"""About printing, or a recording to be read beside."""
LADDERS = [field for field in form.fields().values() if len(field.stops) > 1]


def test_every_option_of_the_cost_model_is_in_the_panel_once() -> None:
    options = {
        option.name
        for option in command.params
        if isinstance(option, click.Option)
        if option.opts[-1][2:] not in OF_NO_DEMAND
    }
    named = [name for group in form.GROUPS.values() for name in group]
    assert sorted(named) == sorted(str(name) for name in options)


def test_what_is_usually_asked_is_the_readmes() -> None:
    demand, prices = form.parsed(form.USUAL)
    assert (demand.trajectories, demand.workers, demand.actions, prices) == (1_000_000, 500, None, None)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"workers": "many"}, "Invalid value for '--workers'"),
        ({"workers": "-3"}, "workers"),
        ({"think": "soon"}, "soon"),
        ({"deltas": "5"}, "is not a change"),
        ({"train_seconds": "60"}, "add --batch B"),
        ({"trajectories": ""}, "Missing option '--trajectories'"),
    ],
)
def test_what_cannot_be_asked_is_refused(more: dict[str, str], words: str) -> None:
    with pytest.raises((UsageError, DemandError)) as caught:
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
        "deltas": st.sampled_from(["-100ms/action", "+1s/rollout", "-100ms/action +1s/rollout"]),
        "seed": st.integers(0, 10**9).map(str),
        "prices": st.sampled_from(["aws-fargate", "mine.toml"]),
    },
)


@given(typed)
def test_what_is_asked_is_parsed_into_what_was_typed(asked: dict[str, str]) -> None:
    demand, prices = form.parsed(asked)
    assert prices == asked.get("prices")
    assert (demand.trajectories, demand.workers) == (int(asked["trajectories"]), int(asked["workers"]))
    assert demand.actions == (Length.constant(int(asked["actions"])) if "actions" in asked else None)
    assert demand.backoff_s == float(asked.get("backoff_seconds", "0"))
    assert demand.include_cleanup == ("include_cleanup" in asked)
    assert len(demand.deltas) == len(asked.get("deltas", "").split())
    assert demand.seed == int(asked.get("seed", "0"))


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
