"""``taxtui tier from-trajectory``: the real commands and gaps, what is left out and why, and no credentials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from taxtui.commands.tier import command
from taxtui.errors import TaxtuiError, UsageError
from taxtui.importers.commands import commands_of
from taxtui.plan.scenario import load_tier
from taxtui.plan.spec import Tier
from taxtui.workloads.trajectory import Called, tier_of

LOGS = Path(__file__).parents[2] / "logs"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(path: Path, *options: str) -> Result:
    return CliRunner().invoke(command, ["from-trajectory", str(path), *options], catch_exceptions=False)


def made(path: Path, *options: str) -> Tier:
    done = make(path, *options)
    assert done.exit_code == 0
    return load_tier(done.stdout.strip())


def written(name: str, document: object) -> Path:
    path = Path(name)
    path.write_text(json.dumps(document))
    return path


def runs(tier: Tier) -> list[str]:
    return [step.run for step in tier.cycle]


def test_a_trajectory_of_mini_swe_agent() -> None:
    tier = made(LOGS / "slept.traj.json")
    assert runs(tier)[:6] == ["sleep 0.2", "sleep 0.5", "sleep 0.05"] * 2
    assert "COMPLETE_TASK" in runs(tier)[6]
    assert tier.think == "lognormal:0.304900s,0.01"
    assert (tier.name, tier.network, tier.requires) == ("slept", False, ("bash",))


def test_a_sample_of_inspect() -> None:
    tier = made(LOGS / "inspect-given.eval", "--name", "mine", "-o", "other.toml")
    assert runs(tier) == ["bash --login -c 'sleep 0.2; echo hi'", "bash --login -c false"]
    assert [step.expect_exit for step in tier.cycle] == [0, 1]
    assert tier.name == "mine"
    with pytest.raises(UsageError, match="holds 1 trajectories: there is no number 2"):
        make(LOGS / "inspect-given.eval", "--trial", "2")


def test_a_trajectory_of_swe_agent_runs_where_the_step_before_it_ended() -> None:
    state = json.dumps({"working_dir": "/testbed/src"})
    steps = [{"action": "ls", "state": state}, {"action": "cat 'a b'\n", "state": "{"}, {"action": "submit"}]
    config = json.dumps({"env": {"deployment": {"image": "swe/x:1"}}})
    done = make(written("x.traj", {"trajectory": steps, "info": {}, "replay_config": config}))
    tier = load_tier("x.toml")
    assert runs(tier) == ["(\nls\n)\ntrue", "cd /testbed/src || exit 97\n(\ncat 'a b'\n)\ntrue"]
    assert "left out: command 3 is a tool of the harness (submit)" in done.stderr
    assert "needs /testbed: measure it with the image swe/x:1" in done.stderr
    assert "no think time" in done.stderr
    assert tier.think == ""


def test_a_trajectory_of_harbor() -> None:
    def step(wait_ms: float, name: str, **arguments: str) -> dict[str, object]:
        call = {"function_name": name, "arguments": arguments}
        return {"source": "agent", "tool_calls": [call], "extra": {"harbor_llm_wait_msec": wait_ms}}

    steps = [
        {"source": "user", "tool_calls": [{"arguments": {"command": "no"}}]},
        step(1000, "bash_command", keystrokes="ls -la\n"),
        step(2000, "bash_command", keystrokes="C-c"),
        step(4000, "bash", command="pip install attrs"),
        step(8000, "finish", message="done"),
    ]
    Path("agent").mkdir()
    written("agent/trajectory.json", {"schema_version": "ATIF-v1.6", "steps": steps})
    done = make(written("result.json", {"trial_name": "t", "agent_info": {}, "environment_setup": None}))
    tier = load_tier("result.toml")
    assert [step.name for step in tier.cycle] == ["1 ls", "3 pip"]
    assert tier.network
    assert tier.think.startswith("lognormal:2.828427s,0.89")
    assert "left out: command 2 is keys for a terminal" in done.stderr
    assert "left out: command 4 is a tool of the harness (finish)" in done.stderr
    assert load_tier(make(Path("agent/trajectory.json")).stdout.strip()).digest != tier.digest  # its name


def test_nothing_that_was_printed_or_asked_is_in_it() -> None:
    told = json.loads((LOGS / "slept.traj.json").read_text())
    for message in told["messages"]:
        message["content"] = "cAnArY"
        message.get("extra", {}).update(raw_output="cAnArY", cost="cAnArY")
    told["info"]["submission"] = told["info"]["config"]["agent"]["system_template"] = "cAnArY"
    done = make(written("x.traj.json", told))
    assert "cAnArY" not in Path("x.toml").read_text() + done.output + done.stderr


def test_a_credential_is_refused_or_redacted_and_never_shown() -> None:
    secret = f"ghp_{'a1' * 18}"
    path = written("x.traj", {"trajectory": [{"action": "ls"}, {"action": f"git push https://x:{secret}@h/r"}]})
    with pytest.raises(UsageError, match=r"command 2 holds a GitHub token.*--redact") as refused:
        make(path)
    assert secret not in str(refused.value)
    assert not Path("x.toml").exists()
    done = make(path, "--redact")
    assert secret not in Path("x.toml").read_text() + done.output + done.stderr
    assert "REDACTED" in Path("x.toml").read_text()


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("missing.traj", None, "cannot read"),
        ("x.json", "{", "x.json: no JSON"),
        ("x.json", "{}", "is a trajectory of an unknown format"),
        ("x.eval", "PK header.json", "x.eval: no"),
        ("x.traj.json", '{"trajectory_format": "mini-swe-agent-1"}', "the format is not mini-swe-agent-1.1"),
        ("x.traj", '{"trajectory": [{"action": "vim x"}]}', "can be run again: command 1 waits for a person"),
        ("result.json", '{"trial_name": "t", "agent_info": {}}', "trajectory.json is missing"),
    ],
)
def test_what_makes_no_tier_is_one_line(name: str, content: str | None, complaint: str) -> None:
    if content is not None:
        Path(name).write_text(content)
    with pytest.raises(TaxtuiError) as refused:
        make(Path(name))
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_shell_within_a_command_is_looked_into() -> None:
    made = tier_of("t", [Called("bash -lc 'vim x'"), Called("ls", exit_code=0)])
    assert made.left_out == ["command 1 waits for a person (vim)"]


called = st.builds(
    Called,
    script=st.text(max_size=30) | st.sampled_from(["ls", "'", "cat <<E\nx\nE", "vim", "a\0b", "echo '''"]),
    folder=st.sampled_from(["", "/testbed", "a b"]),
    exit_code=st.none() | st.integers(0, 255),
    think_s=st.none() | st.floats(0, 1e9),
    hindrance=st.just(""),
)


@settings(max_examples=60)
@given(st.lists(called, max_size=6))
def test_whatever_was_called_makes_a_tier_or_one_line(calls: list[Called]) -> None:
    from taxtui.plan.notation import parse_think

    try:
        made = tier_of("t", calls, redact=True)
    except UsageError as error:
        assert "\n" not in str(error)
    else:
        parse_think(made.tier.think or "0s")
        assert len(made.tier.cycle) + len(made.left_out) == len(calls)


@settings(max_examples=60)
@given(data=st.data())
def test_whatever_is_in_a_file_its_commands_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    leaf = (
        st.none() | st.integers() | st.floats() | st.sampled_from(["ls", "", "2026-11-22T03:13:10Z", "exec", "sandbox"])
    )
    names = ["messages", "extra", "actions", "command", "timestamp", "returncode", "events", "event", "cmd", "steps"]
    names += ["tool_calls", "arguments", "source", "state", "action", "options", "cwd", "info"]
    tree = st.recursive(
        leaf, lambda s: st.lists(s, max_size=3) | st.dictionaries(st.sampled_from(names), s, max_size=4)
    )
    first = data.draw(
        st.sampled_from(
            [
                {"trajectory_format": "mini-swe-agent-1.1", "mini_version": "2"},
                {"trajectory": [{"action": "ls"}]},
                {"schema_version": "ATIF-v1.6"},
                {"eval": {"eval_id": "e"}},
            ]
        )
    )
    keys = ["messages", "trajectory", "steps", "samples", "info", "replay_config"]
    document = first | data.draw(st.dictionaries(st.sampled_from(keys), tree, max_size=4))
    path = tmp_path_factory.mktemp("t") / "x.json"
    path.write_text(json.dumps(document))
    try:
        assert isinstance(commands_of(path).called, list)
    except TaxtuiError as error:
        assert "\n" not in str(error)
