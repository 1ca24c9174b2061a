"""The substrate ``harbor`` on a Python that Harbor can be installed for: docker, and every other environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from costmodel.recording import events as ev
from tests.support.importing import events_of, of
from tests.taxtui.substrates.harness.test_harness import LEAVE

pytestmark = [pytest.mark.real_tools, pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
FOLDER = "harbor:environment=unkind_harbor:FolderEnvironment,image=any"
LOOK = """
import asyncio, json, os
from harbor.models.environment_type import EnvironmentType
from taxtui.plan.notation import parse_substrate
from taxtui.sandboxes import registry

async def look(name):
    async with registry.build(parse_substrate(f"harbor:environment={name},image=none/such:1")) as substrate:
        found = await substrate.check()
        return [substrate.capabilities.paid, found.ok, found.detail, found.fix]

names = [each.value for each in EnvironmentType if each.value != "docker"]
print("\\n" + json.dumps({name: asyncio.run(look(name)) for name in names}))
"""
FREE = {"apple-container", "kata", "podman", "singularity"}
NO_KEY = {"opensandbox"}
"""Environments that Harbor itself lets begin without credentials."""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """Variables of a user without credentials, and with the unkind environment; a temporary folder of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    (tmp_path / "tmp").mkdir()
    return {**kept, "HOME": str(tmp_path), "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(HERE)}


def python(interpreter: str, bare: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    argv = [interpreter, *words]
    return subprocess.run(argv, env=bare, cwd=bare["HOME"], capture_output=True, text=True, check=False)


def taxtui(interpreter: str, bare: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return python(interpreter, bare, "-m", "taxtui", *words)


@pytest.mark.compose
def test_harbor_keeps_every_promise(interpreter: str) -> None:
    suite = [interpreter, "-m", "taxtui.sandboxes.conformance", "harbor"]
    kept = subprocess.run(suite, cwd=Path(interpreter).parent, capture_output=True, text=True, check=False)
    assert kept.returncode == 0, kept.stdout + kept.stderr


def test_an_environment_behind_harbor_alone_keeps_all_but_finding_anothers(
    interpreter: str, bare: dict[str, str]
) -> None:
    done = python(interpreter, bare, "-m", "taxtui.sandboxes.conformance", FOLDER)
    failed = [line for line in done.stdout.splitlines() if line.startswith("  FAIL")]
    assert len(failed) == 1, done.stdout + done.stderr
    assert re.search("find and reap.*Harbor cannot stop a sandbox of another process", failed[0])


def test_every_environment_is_refused_in_one_line_without_its_key(interpreter: str, bare: dict[str, str]) -> None:
    done = python(interpreter, bare, "-c", LOOK)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    assert len(answers) >= 30
    for name, (paid, ok, detail, fix) in answers.items():
        print(f"{name}: {detail}; {fix}")
        assert paid == (name not in FREE)
        assert "\n" not in detail + fix
        assert not ok or name in NO_KEY
        assert detail
    missing = [name for name, (_, _, detail, _) in answers.items() if detail.startswith("the SDK of ")]
    assert all("harbor[" in answers[name][3] or "package" in answers[name][3] for name in missing)


def test_faults_and_throttles_are_recorded_and_nothing_is_left(interpreter: str, bare: dict[str, str]) -> None:
    home = Path(bare["HOME"])
    faults = {"start_throttled": [2, 3], "start_fails": [5], "exec_throttled": [12], "exec_fails": [30]}
    (home / "faults.json").write_text(json.dumps({**faults, "stop_fails": [4], "slow_s": 0.01}))
    substrate = f"{FOLDER},settings={home / 'faults.json'}"
    options = ["-t", "T0", "-n", "8", "--mode", "exec", "--max-sandboxes", "60", "--yes", "-o", "r.msgpack"]
    done = taxtui(interpreter, bare, "run", "-s", substrate, *options)
    assert done.returncode == 0, done.stderr
    events = events_of(home / "r.msgpack")
    ends = of(events, ev.TrialEnded)
    failures = {("create", "CreateFailed"), ("action", "ExecFailed")}
    assert {(end.phase, end.error) for end in ends if end.outcome != "ok"} == failures
    assert any(end.queued_ns for end in ends)
    assert "canary" not in repr(events)
    assert taxtui(interpreter, bare, "clean", "-s", FOLDER, "--force").stderr == "taxtui: no sandbox was found\n"
    assert not list((home / "tmp").glob("taxtui-harbor-*/*"))


def test_what_a_killed_process_has_left_is_named_with_where_to_look(interpreter: str, bare: dict[str, str]) -> None:
    killed = python(interpreter, bare, "-c", LEAVE, FOLDER, "k1")
    assert killed.returncode == -9, killed.stderr
    done = taxtui(interpreter, bare, "clean", "-s", FOLDER, "--run", "k1")
    assert done.returncode == 1
    assert "may still exist: harbor taxtui-k1-1" in done.stderr
    assert "remove the sandbox of this name in folderenvironment, then delete " in done.stderr
    shutil.rmtree(Path(done.stderr.rstrip().rpartition("then delete ")[2]))
    assert taxtui(interpreter, bare, "clean", "-s", FOLDER, "--run", "k1").returncode == 0


def test_money_is_asked_for_before_a_sandbox_is_made(interpreter: str, bare: dict[str, str]) -> None:
    options = ["-t", "T0", "-n", "2", "--mode", "exec", "--yes", "-o", "r.msgpack"]
    for words, said in (
        ((), "costs money; repeat with --yes --max-sandboxes"),
        (("--max-cost", "1"), "--max-cost needs to know prices; add --prices SHEET"),
        (("--max-cost", "1", "--prices", "e2b"), "has no price for harbor:FolderEnvironment"),
    ):
        done = taxtui(interpreter, bare, "run", "-s", FOLDER, *options, *words)
        assert done.returncode == 2
        assert said in done.stderr
    assert not list((Path(bare["HOME"]) / "tmp").glob("taxtui-harbor-*/*"))


def test_an_unknown_environment_is_named_with_the_nearest_one(interpreter: str, bare: dict[str, str]) -> None:
    done = taxtui(interpreter, bare, "run", "-s", "harbor:environment=modall", "-t", "T0", "-n", "1")
    assert done.returncode == 2
    assert "harbor has no environment 'modall'; did you mean 'modal'?" in done.stderr
