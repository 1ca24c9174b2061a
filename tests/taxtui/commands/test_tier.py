"""``taxtui tier``: tiers of a repository run; tiers of a trajectory have its commands and no credentials."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from taxtui.commands.tier import command
from taxtui.errors import TaxtuiError, UsageError
from taxtui.plan.notation import parse_think
from taxtui.plan.scenario import load_tier
from taxtui.plan.spec import Tier
from taxtui.workloads.trajectory import Called, tier_of
from tests.support.command_line import Home, events

pytestmark = pytest.mark.processes

LOGS = Path(__file__).parents[2] / "logs"
UNITTEST = ("--test", "python3 -m unittest discover -s tests")
SOURCE = 'def add(left, right):\n    """Add two numbers."""\n    return left + right\n\n\nANSWER_OF_IT_ALL = 42\n'
TEST = (
    "import unittest\n\nclass Sums(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(1 + 2, 3)\n"
)


@pytest.fixture
def repository(home: Home) -> Path:
    folder = home.cwd / "demo"
    (folder / "tests").mkdir(parents=True)
    (folder / "calc.py").write_text(SOURCE)
    (folder / "tests" / "test_calc.py").write_text(TEST)
    _git(folder, "init", "-q")
    _git(folder, "add", ".")
    _git(folder, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "first")
    return folder


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)


def test_two_tiers_that_run_in_their_folder(home: Home, repository: Path) -> None:
    done = home.run("tier", "from-repo", "demo", *UNITTEST)
    assert (done.code, done.out.split()) == (0, ["demo-inspect.toml", "demo-test.toml", "demo.fixtures"])
    for name in ("demo-inspect", "demo-test"):
        tier = load_tier(str(home.cwd / f"{name}.toml"))
        assert (tier.name, len(tier.cycle), tier.network) == (name, 10, False)
    (repository / "calc.py").unlink()  # what was measured with is what was committed then
    run = ["run", "-s", "local:fixtures=demo.fixtures", "-t", "demo-inspect.toml", "-t", "demo-test.toml", "-n", "20"]
    done = home.run(*run, "--trials", "1", "--warmup", "0", "--mode", "session", "-o", "out.msgpack")
    assert done.code == 0
    assert "calc.py" not in str(events(home.cwd / "out.msgpack"))
    home.assert_nothing_left()


def test_failing_tests_make_an_inspection_tier_alone(home: Home, repository: Path) -> None:
    done = home.run("tier", "from-repo", str(repository), "--test", "exit 3")
    assert done.code == 1
    assert "demo-test failed its trial on local: setup 1 (test): exit 3, expected 0; it was not written" in done.err
    assert sorted(path.name for path in home.cwd.glob("demo*")) == ["demo", "demo-inspect.toml", "demo.fixtures"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere"], "git cannot clone nowhere"),
        (["."], "does not appear to be a git repository"),
        (["--", "-x"], "'-x' is neither a path nor a URL"),
        (["demo", "--no-test", "--network"], "--no-test excludes"),
        (["demo", "--setup", "TOKEN=abcdefghijkl pip install x"], "holds a secret in a variable"),
        (["https://joe:hunter22@localhost:1/x"], "git cannot clone https://REDACTED@localhost:1/x"),
    ],
)
def test_a_bad_repository_is_one_line(home: Home, repository: Path, arguments: list[str], complaint: str) -> None:
    done = home.run("tier", "from-repo", *arguments)
    assert done.code == 2
    assert complaint in done.complaint
    assert "hunter22" not in done.err
    assert [path.name for path in home.cwd.iterdir()] == ["demo"]


def test_nothing_is_overwritten(home: Home, repository: Path) -> None:
    (home.cwd / "demo-inspect.toml").write_text("mine")
    assert "demo-inspect.toml exists" in home.run("tier", "from-repo", "demo").complaint
    assert (home.cwd / "demo-inspect.toml").read_text() == "mine"


# ------------------------------------------------------------------------------------------------ from-trajectory


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.usefixtures("here")
def test_a_trajectory_of_mini_swe_agent() -> None:
    tier = made(LOGS / "slept.traj.json")
    assert runs(tier)[:6] == ["sleep 0.2", "sleep 0.5", "sleep 0.05"] * 2
    assert "COMPLETE_TASK" in runs(tier)[6]
    assert tier.think == "lognormal:0.304900s,0.01"
    assert (tier.name, tier.network, tier.requires) == ("slept", False, ("bash",))


@pytest.mark.usefixtures("here")
def test_a_sample_of_inspect() -> None:
    tier = made(LOGS / "inspect-given.eval", "--name", "mine", "-o", "other.toml")
    assert runs(tier) == ["bash --login -c 'sleep 0.2; echo hi'", "bash --login -c false"]
    assert [step.expect_exit for step in tier.cycle] == [0, 1]
    assert tier.name == "mine"
    with pytest.raises(UsageError, match="holds 1 trajectories: there is no number 2"):
        make(LOGS / "inspect-given.eval", "--trial", "2")


@pytest.mark.usefixtures("here")
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


@pytest.mark.usefixtures("here")
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


@pytest.mark.usefixtures("here")
def test_outputs_and_prompts_are_left_out() -> None:
    told = json.loads((LOGS / "slept.traj.json").read_text())
    for message in told["messages"]:
        message["content"] = "cAnArY"
        message.get("extra", {}).update(raw_output="cAnArY", cost="cAnArY")
    told["info"]["submission"] = told["info"]["config"]["agent"]["system_template"] = "cAnArY"
    done = make(written("x.traj.json", told))
    assert "cAnArY" not in Path("x.toml").read_text() + done.output + done.stderr


@pytest.mark.usefixtures("here")
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
@pytest.mark.usefixtures("here")
def test_a_file_without_a_tier_is_one_line(name: str, content: str | None, complaint: str) -> None:
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
def test_any_commands_make_a_tier_or_one_line(calls: list[Called]) -> None:
    try:
        made = tier_of("t", calls, redact=True)
    except UsageError as error:
        assert "\n" not in str(error)
    else:
        parse_think(made.tier.think or "0s")
        assert len(made.tier.cycle) + len(made.left_out) == len(calls)
