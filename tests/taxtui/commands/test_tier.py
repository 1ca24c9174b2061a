"""``taxtui tier from-repo``: both tiers run in their folder; a tier that fails its trial is not written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from taxtui.plan.scenario import load_tier
from taxtui.workloads.repository import clone
from tests.support.command_line import Home, events
from tests.taxtui.commands.test_standard_streams import STRUCK

pytestmark = pytest.mark.processes
LOGS = Path(__file__).parents[2] / "logs"
UNITTEST = ("--test", "python3 -m unittest discover -s tests")
SOURCE = 'def add(left, right):\n    """Add two numbers."""\n    return left + right\n\n\nANSWER_OF_IT_ALL = 42\n'
TEST = "import unittest\n\nclass Sums(unittest.TestCase):\n    def test_sum(self):\n        assert 1 + 2 == 3\n"


@pytest.fixture
def repository(home: Home) -> Path:
    folder = home.cwd / "demo"
    (folder / "tests").mkdir(parents=True)
    (folder / "calc.py").write_text(SOURCE)
    (folder / "tests" / "test_calc.py").write_text(TEST)
    _git(folder, "init", "-q")
    _commit(folder)
    return folder


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)


def _commit(folder: Path) -> None:
    _git(folder, "add", ".")
    _git(folder, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "one")


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


def test_a_large_file_is_not_read(repository: Path, tmp_path: Path) -> None:
    (repository / "large.py").write_text("x = 1\n" * 20_000)
    _commit(repository)
    copy = clone(str(repository), tmp_path)
    assert (copy.text("large.py"), copy.text("calc.py")) == ("", SOURCE)


def test_a_signal_leaves_no_clone(repository: Path, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", STRUCK.replace("SIGINT", "SIGTERM"), "taxtui.runner.run", "tier", "from-repo", "."]
    done = subprocess.run(argv, env={**os.environ, "TMPDIR": str(tmp_path)}, cwd=repository, check=False)
    assert (done.returncode, list(tmp_path.glob("taxtui-tier-*"))) == (130, [])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere"], "git cannot clone nowhere"),
        (["--", "-x"], "'-x' is neither a path nor a URL"),
        (["demo", "--network"], "--setup and --network are for the test tier"),
        (["https://joe:hunter22@localhost:1/x"], "git cannot clone https://***@localhost:1/x"),
    ],
)
def test_a_bad_repository_is_one_line(home: Home, repository: Path, arguments: list[str], complaint: str) -> None:
    done = home.run("tier", "from-repo", *arguments)
    assert done.code == 2
    assert complaint in done.complaint
    assert "hunter22" not in done.err
    assert [path.name for path in home.cwd.iterdir()] == ["demo"]


def test_nothing_is_overwritten(home: Home, repository: Path) -> None:
    path = home.cwd / "demo-inspect.toml"
    path.write_text("mine")
    assert "demo-inspect.toml exists" in home.run("tier", "from-repo", "demo").complaint
    assert path.read_text() == "mine"
