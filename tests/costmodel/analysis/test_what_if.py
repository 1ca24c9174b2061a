"""``taxtui project --what-if``: savings of each action, and the inputs that turn them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from costmodel import Images, Saving, Think, TrainingRun, behind, load, load_prices, what_if
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, price_sheet, trial, write

STEPS: dict[str, Any] = {"trajectories": 160, "workers": 4, "prompts": 2, "group_size": 8}
STEPS |= {"gpus": 8, "gpu_usd_hour": 9.0}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("what-if") / "run.msgpack"
    trials = [trial(number, create=6 * S, ready=S, actions=(S + number,) * 3, cleanup=S) for number in range(30)]
    return write(path, trials)


def effect(recording: Path, action: str, **more: Any) -> Saving:
    training_run = TrainingRun(**STEPS | {"run_sd": 0.0} | more)
    prices = load_prices(price_sheet(recording.parent, "usd_per_hour = 3600"))
    [one] = behind([load(recording)], training_run, prices, ())
    [found] = what_if(one, [action])
    return found


@pytest.mark.parametrize("action", ["fork", "recycle"])
def test_a_stated_start_saves_until_it_is_as_slow_as_a_create(recording: Path, action: str) -> None:
    found = effect(recording, action, **{f"{action}_s": 0.5})
    assert found.assumed == ()
    assert found.step_s.value > 0
    assert found.usd.value > 0
    [turn] = found.thresholds
    assert turn.value == pytest.approx(7 if action == "fork" else 7.5, rel=0.15)  # a recycled one has no clean-up


def test_a_suspension_saves_up_to_a_price_of_a_suspended_sandbox(recording: Path) -> None:
    think = {"think": Think(20 * S), "suspend_after_s": 1.0, "suspend_s": 1.0, "gpu_usd_hour": 0.0}
    found = effect(recording, "suspend", **think)
    assert found.step_s.value == pytest.approx(0, abs=1e-9)
    slept_s = 16 * 2 * 18  # rollouts, pauses and suspended seconds, at $1 a second
    assert found.usd.value == pytest.approx(slept_s, rel=0.01)
    price, resume = found.thresholds
    assert price.value == pytest.approx(3600, rel=0.01)
    assert (resume.field, resume.value) == ("resume_s", pytest.approx(18, rel=0.1))


def test_an_input_that_is_not_stated_has_its_published_range(recording: Path) -> None:
    found = effect(recording, "recycle")
    [assumed] = found.assumed
    assert (assumed.field, assumed.low, assumed.high) == ("recycle_s", 0.0, 5.0)
    assert found.step_s.low < found.step_s.value < found.step_s.high


def test_builds_before_the_run_save_the_first_uses(recording: Path) -> None:
    places = {"images": Images.of([1.0] * 4), "placement": "prepulled", "nodes": 1, "pods_per_node": 8}
    found = effect(recording, "prebuild", build_s=300.0, builders=1, **places)
    assert 10 * found.step_s.value == pytest.approx(4 * 300, rel=0.2)  # ten steps in all


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--what-if", "sleep"], "unknown action 'sleep'"),
        (["--what-if", "fork", "--full"], "leave --full, --explain and --html out"),
        (["--what-if", "fork"], "add --prompts P"),
        (["--what-if", "prebuild", "--prompts", "2", "--group-size", "8"], "add --set images"),
        (["--what-if", "suspend", "--prompts", "2", "--group-size", "8"], "add --think"),
    ],
)
def test_a_question_without_an_answer_is_one_line(recording: Path, words: list[str], message: str) -> None:
    assert message in printed("project", recording, "--trajectories", "160", "--workers", "4", *words, code=2)


def test_the_command_prints_a_row_per_action(recording: Path) -> None:
    words = ["project", str(recording), "--trajectories", "160", "--workers", "4", "--prompts", "2"]
    words += ["--group-size", "8", "--what-if", "fork,recycle", "--set", "fork_s=0.5"]
    text = printed(*words)
    assert "contamination" in text
    assert "assumed: recycle_s 0 to 5.00 s" in text
    rows = json.loads(printed(*words, "--format", "json"))
    assert [row["action"] for row in rows] == ["fork", "recycle"]
    assert rows[0]["s_per_step"]["value"] > 0
