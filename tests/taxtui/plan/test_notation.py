from __future__ import annotations

import click
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.training.length import Length
from taxtui.errors import UsageError
from taxtui.options.numbers import COUNT
from taxtui.plan import arrivals
from taxtui.plan.durations import parse_duration_ns
from taxtui.plan.notation import parse_count, parse_length, parse_substrate, parse_think
from taxtui.plan.spec import CellPlan, Plan, Step, SubstrateRef, ThinkTime, Tier


@pytest.mark.parametrize(
    ("text", "seconds"), [("250ms", 0.25), ("8s", 8), ("1.5m", 90), ("1h", 3600), ("2", 2), ("0s", 0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_ns(text) == seconds * 10**9


@pytest.mark.parametrize("text", ["", "soon", "-3s", "3 parsecs", "nan", "1e3s", "3s4", "9223372037s", "9" * 400])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"not a duration|beyond 292 years"):
        parse_duration_ns(text)


@pytest.mark.parametrize(
    ("text", "length", "shown"),
    [
        ("50", Length.constant(50), "50"),
        ("20-22", Length(((20, 1), (21, 1), (22, 1))), "20-22 avg 21"),
        ("10:3, 50:1", Length(((10, 3), (50, 1))), "10-50 avg 20"),
        ("1-2:2,2-3", Length(((1, 2), (2, 3), (3, 1))), "1-3 avg 1.83"),
        ("2000", Length.constant(2000), "2,000"),
    ],
)
def test_lengths(text: str, length: Length, shown: str) -> None:
    assert parse_length(text) == length
    assert str(length) == shown


@pytest.mark.parametrize("text", ["", "0", "-5", "1.5", "9-3", "5:0", "5,", "long", "1-10001", "1:2:3"])
def test_lengths_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="no number of actions") as caught:
        parse_length(text)
    assert "20-120" in str(caught.value.fix)


@given(st.dictionaries(st.text("abz_", min_size=1, max_size=8), st.text("az09./-", min_size=1, max_size=8)))
def test_a_substrate_is_written_as_it_is_read(options: dict[str, str]) -> None:
    ref = SubstrateRef(name="docker", options=options | {"image": "a:b=c"})
    assert parse_substrate(str(ref)) == ref


@pytest.mark.parametrize("text", ["", ":a=b", "docker:runsc", "docker:=x"])
def test_substrates_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="NAME:key=value"):
        parse_substrate(text)


@pytest.mark.parametrize("text", [*arrivals.NOTATIONS, "open:1200/m:poisson"])
def test_a_plan_is_read_from_json_as_it_was_written(text: str) -> None:
    tier = Tier(name="T", title="", cycle=(Step(name="one", run="true"),))
    cell = CellPlan(substrate=SubstrateRef(name="x"), tier=tier, actions=1, arrival=arrivals.parse(text))
    plan = Plan(cells=(cell,))
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_what_a_recording_says_of_an_arrival_never_changes() -> None:
    texts = ["sequential", "closed", "burst", "open:20/s", "open:20/s:poisson"]
    assert [str(arrivals.parse(text)) for text in texts] == texts
    assert str(arrivals.parse("open:1200/m")) == "open:20/s"


@pytest.mark.parametrize("text", ["", "burst:3s", "open", "open:", "open:0/s", "open:20", "open:2000000/s"])
def test_what_is_no_arrival_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(UsageError, match=r"open:20/s"):
        arrivals.parse(text)


@pytest.mark.parametrize("text", ["0s", "8s", "lognormal:8s,0.6"])
def test_think_times_are_written_as_they_are_read(text: str) -> None:
    assert str(parse_think(text)) == text


def test_think_times_that_are_none() -> None:
    assert parse_think("lognormal:2s,0") == ThinkTime(median_ns=2 * 10**9)
    for text in ("lognormal:8s", "lognormal:8s,-1", "lognormal:8s,nan", "lognormal:8s,500", "lognormal:8s,x"):
        with pytest.raises(UsageError, match="not a think time"):
            parse_think(text)


@pytest.mark.parametrize(
    ("texts", "count"),
    [
        ("500", 500),
        ("0", 0),
        ("1,000,000 1_000_000 1M 1m 1e6 1E+6", 1_000_000),
        ("10k 10K", 10_000),
        ("2.5M", 2_500_000),
        ("1B", 10**9),
        ("2.5e3", 2_500),
        ("5.0", 5),
    ],
)
def test_counts_are_read_as_people_write_them(texts: str, count: int) -> None:
    assert {parse_count(f" {text} ") for text in texts.split()} == {count}


@pytest.mark.parametrize("text", ["", "many", "1.5", "-1", "1,00", "1,0000", "1e-3", "10 k", "1e99", "1kk", "nan", "١"])
def test_what_is_no_count_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(UsageError, match=r"no count.*10k"):
        parse_count(text)


def test_an_option_that_counts_takes_the_same_and_leaves_negative_ones_to_who_counts() -> None:
    assert [COUNT.convert(text, None, None) for text in ("10k", 7, "-1")] == [10_000, 7, -1]
    with pytest.raises(click.BadParameter, match="'three' is no count"):
        COUNT.convert("three", None, None)
