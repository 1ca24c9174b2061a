"""The public names of the cost model, the questions that one call answers, and what is said of bad documents."""

from __future__ import annotations

import datetime
import gc
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

import costmodel as cm
from costmodel import CostModelError, load, load_prices, load_profile
from costmodel.toml import Document, MalformedDocument
from taxtui.errors import UsageError
from taxtui.options import training_file
from tests.docs.pages import DOCS
from tests.support.cost_model.costmodel_files import S, cell, price_sheet, trial, write

RUN = cm.TrainingRun(
    trajectories=1_000, workers=100, prompts=4, group_size=4, actions=50, think=cm.Think(8_000_000_000)
)
SMALL = {"tier": "T1", "mode": "exec", "effort": 0.01}


@pytest.fixture(scope="module")
def data() -> cm.Recording | cm.Published:
    return cm.load(DOCS.parent / "recordings/run.msgpack")


def test_every_public_name_is_what_a_type_checker_sees_and_no_other_name_is_there() -> None:
    block = inspect.getsource(cm).partition("if TYPE_CHECKING:\n")[2].partition("\n\n\n")[0]
    seen: dict[str, object] = {}
    exec(textwrap.dedent(block), seen)
    del seen["__builtins__"]
    assert sorted(seen) == cm.__all__
    for name, value in seen.items():
        assert getattr(cm, name) is value
    with pytest.raises(AttributeError, match="costmodel' has no attribute 'nothing'"):
        cm.nothing  # noqa: B018


def test_the_attribution_is_that_of_the_row(data: cm.Recording) -> None:
    """One file is as good as a list of one."""
    wanted = lambda identity: (identity.substrate, identity.tier, identity.mode) == ("docker", "T1", "exec")  # noqa: E731
    [row] = cm.project(data, RUN, effort=0.01, wanted=wanted)
    assert [row] == cm.project([data], RUN, effort=0.01, wanted=wanted)
    found = cm.attribute(data, RUN, "docker", **SMALL)
    assert found.run.worker_hours.value == pytest.approx(row.attribution.run.worker_hours.value, rel=0.05)


def test_a_measured_and_an_estimated_candidate_are_decided(data: cm.Recording) -> None:
    for current, candidate in (("docker", "local"), ("local", "docker")):
        measured = cm.decide(data, RUN, current=current, candidate=candidate, **SMALL)
        assert [side.row.identity.substrate for side in (measured.start, measured.goal)] == [current, candidate]
        assert measured.goal.candidate is None, "measured, though its starts are published too"
    docker = replace(RUN, nodes=10, pods_per_node=10, node_usd_hour=0.8)
    candidate_run = replace(RUN, failure_rate=0.01)
    estimated = cm.decide(data, docker, current="docker", candidate="daytona", candidate_run=candidate_run, **SMALL)
    assert estimated.goal_bill.whole.value > 0
    assert estimated.goal.training_run.nodes is None
    assert "failures" not in {one.name for one in estimated.goal.candidate.inputs}  # the caller knows them


def test_the_candidates_length_chooses_its_recording(tmp_path: Path) -> None:
    trials = [trial(n, cell=n % 3, actions=(S,) * (9 if n % 3 == 2 else 3)) for n in range(1, 31)]
    cells = [cell(0), cell(1, substrate="local"), cell(2, substrate="local", actions=9)]
    recorded = cm.load(write(tmp_path / "run.msgpack", trials, *cells))
    asked = cm.TrainingRun(trajectories=100, workers=10, think=cm.Think(8 * S))
    question = {"current": "docker", "candidate": "local"}
    with pytest.raises(cm.TrainingRunError, match="2 rows are of local"):
        cm.decide(recorded, asked, **question)
    decision = cm.decide(recorded, asked, **question, candidate_run=replace(asked, actions=3))
    assert [side.row.identity.actions for side in (decision.start, decision.goal)] == [3, 3]


@pytest.mark.parametrize(
    ("run", "substrate", "words"),
    [
        (replace(RUN, prompts=None, group_size=None), "docker", "give prompts and group_size, or batch"),
        (RUN, "nowhere", "no row of nowhere was recorded; recorded substrates: local:bwrap, docker:runc"),
        (RUN, "docker", "6 rows are of docker: .*; choose one with tier, mode, training_run.actions"),
    ],
)
def test_a_question_without_an_answer_is_one_line(
    data: cm.Recording, run: cm.TrainingRun, substrate: str, words: str
) -> None:
    with pytest.raises(cm.TrainingRunError, match=words):
        cm.attribute(data, run, substrate)
    with pytest.raises(cm.TrainingRunError, match="no row of docker has this workload; recorded workloads: T0 exec"):
        cm.attribute(data, RUN, "docker", tier="T9")
    with pytest.raises(cm.TrainingRunError, match="effort must be a number above 0, not -1"):
        cm.project(data, RUN, effort=-1)
    for path in ("run.msgpack", Path("run.msgpack")):
        with pytest.raises(cm.SourceError, match=r"run.msgpack'\)? is no loaded file; use costmodel.load\(PATH\)"):
            cm.compare(path, data)


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    word: Literal["", "red", "green"] = ""
    least: int = 0
    most: int = 1

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError("least is above most; add most = ?")


class Outer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    day: datetime.date
    sure: bool
    number: float
    one: Inner
    many: list[Inner]
    told: Annotated[str, msgspec.Meta(description="nobody knows it otherwise; add told = WHO")]


WHOLE = dict(name='"x"', day="2026-01-01", sure="true", number="1", one="{}", many="[{}]", told='"y"')


def refusal(folder: Path, **change: str | None) -> MalformedDocument:
    path = folder / "it.toml"
    path.write_text("".join(f"{key} = {value}\n" for key, value in (WHOLE | change).items() if value is not None))
    with pytest.raises(MalformedDocument) as error:
        Document(path).convert(Outer)
    return error.value


def test_what_is_missing_is_said_with_what_to_write(tmp_path: Path) -> None:
    fixes = {
        "name": 'add name = "…"',
        "day": "add day = YYYY-MM-DD",
        "sure": "add sure = true",
        "number": "add number = ?",
        "one": "add [one]",
        "many": "add [[many]]",
        "told": "nobody knows it otherwise; add told = WHO",
    }
    assert {field: refusal(tmp_path, **{field: None}).fix for field in fixes} == fixes


def test_what_is_unknown_or_contradicts_itself_is_said_where_it_stands(tmp_path: Path) -> None:
    told = refusal(tmp_path, many='[{}, {word = "blue"}]')
    assert str(told).endswith("it.toml:6: many[2].word: invalid enum value 'blue'; known: red, green")
    assert refusal(tmp_path, one='{word = "rad"}').fix == "did you mean 'red'?"
    told = refusal(tmp_path, many="[{}, {least = 2}]")
    assert str(told).endswith("it.toml:6: many[2]: least is above most; add most = ?")


@pytest.mark.parametrize("reader", [load, load_prices, load_profile, lambda path: training_file.load(str(path), {})])
def test_a_document_without_end_is_refused_by_every_reader(tmp_path: Path, reader: Callable[[Path], object]) -> None:
    path = tmp_path / "endless.toml"
    path.symlink_to("/dev/zero")
    with pytest.raises((CostModelError, UsageError), match=r"endless\.toml: not a regular file"):
        reader(path)


def test_a_sheet_with_ranges_outlives_a_garbage_collection(tmp_path: Path) -> None:
    # msgspec 0.22 keeps types of which the garbage collector crashes the interpreter: see UsdSpan
    path = price_sheet(tmp_path, "usd_per_hour = [1, 2]")
    path.write_text(path.read_text().replace('"x"', '["a", "b"]'))
    prices = load_prices(path)
    gc.collect()
    assert prices.sandboxes[0].disputed
