"""Decisions about a provider that nobody measured: verdicts over ranges, what turns them, and planted truths."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec
import pytest

from costmodel import MOVE, STAY, Decision, Precision, Recording, TrainingRun, decide_between, input_effects
from costmodel.analysis.decision import CANNOT_TELL
from costmodel.providers import plausible_ranges
from taxtui.report.decision.sections import page
from taxtui.report.formats.markdown_tables import to_text as to_markdown
from taxtui.report.formats.plain_tables import to_text
from tests.support.command_line import printed
from tests.support.cost_model.decision_worlds import (
    RUN,
    candidate_at,
    equal_pair,
    measured,
    planted,
    record,
    unmeasured,
)
from tests.support.cost_model.simulating import attribute_coarsely

ORDER = {STAY: 0, CANNOT_TELL: 1, MOVE: 2}
"""From the verdict against moving to the verdict for it."""
KNOWN = "slowdown=1,dispatch=100ms"
STATED = frozenset({"create_rate", "failure_rate"})
ASKED = replace(RUN, failure_rate=0.05, node_usd_hour=40.0, precision=Precision(seed=3))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record(tmp_path_factory.mktemp("decided") / "run.msgpack", Random(1), [0.3], [1.0], 150)


def decided(
    recording: Recording,
    asked: TrainingRun = ASKED,
    there: str = KNOWN,
    stated: frozenset[str] = STATED,
    **of_it: float,
) -> Decision:
    elsewhere = replace(asked, **of_it)
    if "create_rate" in stated:
        elsewhere = replace(elsewhere, create_rate=10.0, create_burst=600)
    candidate = candidate_at(recording, f"daytona:{there}", elsewhere, stated)
    return decide_between(measured(recording, "docker", asked), unmeasured(candidate), effort=0.01)


def test_a_verdict_holds_over_the_whole_range(recording: Recording) -> None:
    found = decided(recording)
    assert found.verdict == MOVE
    assert 0 < found.saving_at_worst.low < found.saving.value <= found.saving_at_best.value
    cheap = decided(recording, replace(ASKED, node_usd_hour=0.001), failure_rate=0.16)
    assert cheap.verdict == STAY


def test_an_input_that_nobody_stated_takes_the_verdict_away_and_is_named_first(recording: Recording) -> None:
    training_run = replace(ASKED, node_usd_hour=4.0)
    assert decided(recording, training_run).verdict == MOVE
    found = decided(recording, training_run, stated=frozenset({"failure_rate"}))
    assert found.saving.low > 0, "as assumed it would be MOVE"
    assert found.verdict == CANNOT_TELL
    effects = input_effects(found)
    assert effects[0].input.name == "limits"
    assert "0.0333 creates a second" in effects[0].input.label(effects[0].at)
    told = to_text(page(found, effects, [], "taxtui decide"), 80)
    assert "Thresholds of single inputs, the nearest first" in told
    assert "Measure first: daytona, limits of the plan: ask for the limits of your plan" in told.replace("\n", " ")
    assert max(map(len, told.splitlines())) <= 80


def test_only_the_unmeasured_side_is_varied(recording: Recording) -> None:
    """A failure rate that holds for both is the start's as it is, and a range at the provider."""
    found = decided(recording, stated=frozenset({"create_rate"}))
    assert "failure_rate" in {one.name for one in found.inputs}
    one = next(one for one in input_effects(found) if one.input.name == "failure_rate")
    assert one.worst < found.saving.value < one.best
    assert found.start.training_run.failure_rate == 0.05


def test_a_worse_provider_never_makes_the_verdict_surer_to_move(recording: Recording) -> None:
    training_run = replace(ASKED, node_usd_hour=0.001)
    worse = [
        (KNOWN, 0.16),
        ("slowdown=1,dispatch=100ms..900ms", 0.16),
        ("slowdown=2,dispatch=100ms", 0.16),
        (KNOWN, 0.2),
    ]
    better, *verdicts = (
        ORDER[decided(recording, training_run, there, failure_rate=rate).verdict] for there, rate in worse
    )
    assert better == ORDER[STAY]
    assert max(verdicts) <= better


def test_the_verdict_on_planted_truths_is_hardly_ever_wrong(tmp_path: Path) -> None:
    """The small version of tests/studies/study_decide.py, which alone can tell 5 % of wrong verdicts from more."""
    found = [planted(tmp_path, seed, effort=0.01) for seed in (1, 2)]
    assert not any(world.wrong for world in found)
    assert any(world.decision.verdict != CANNOT_TELL for world in found), "it answers where it can"


def test_an_equal_pair_in_steps_is_hardly_ever_a_verdict(tmp_path: Path) -> None:
    found = [equal_pair(tmp_path, seed, 150, 0.6, effort=0.01) for seed in range(100, 103)]
    assert sum(one != CANNOT_TELL for one in found) <= 1
    assert equal_pair(tmp_path, 1, 150, 0.3, 1.3, effort=0.01) == STAY


def test_a_run_that_would_never_end_at_the_worst_is_no_verdict(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = plausible_ranges.figures()
    worse = [msgspec.structs.replace(one, high=0.5) if one.input == "failure_rate" else one for one in figures]
    monkeypatch.setattr(plausible_ranges, "figures", lambda: worse)
    again = replace(ASKED, on_failure="resample", prompts=1, group_size=16, failure_rate=0.02)
    found = decided(recording, again, stated=frozenset({"create_rate"}))
    assert (found.verdict, found.saving_at_worst) == (CANNOT_TELL, None)
    told = to_markdown(page(found, input_effects(found, rough=True), [], "")).replace("\n", " ")
    assert "at worst the run would not end" in told


def test_the_command_writes_markdown_and_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute_coarsely(monkeypatch)
    words = ["decide", "recordings/run.msgpack", "--training", "scenarios/training/lab-question.toml", "--tier", "T1"]
    words += ["--mode", "exec", "--from", "docker", "--to", "daytona", "--quick"]
    words += ["--trajectories", "2k", "--workers", "32", "--prompts", "2"]
    memo = tmp_path / "memo.md"
    printed(*words, "-o", memo, code=6)
    text = memo.read_text(encoding="utf-8")
    assert text.startswith("# CAN'T TELL docker:runc from daytona (estimated)\n\nMoving")
    assert "Unmeasured inputs at daytona" in text
    assert "groups with a failed attempt" in text
    found = json.loads(printed(*words, "--format", "json", code=6))[0]
    assert {"failure_rate", "dispatch", "limits", "image", "start"} <= {one["input"] for one in found["unmeasured"]}
    assert all(one["sources"] for one in found["unmeasured"])
    assert found["saving_at_worst"]["value"] < found["saving_at_best"]["value"]
