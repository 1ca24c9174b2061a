"""``taxtui run`` ended early by disks, budgets, closed readers, signals and ``--control``: nothing is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from costmodel.recording.events import Notice, RunFinished, TrialEnded
from costmodel.recording.follower import read_events
from tests.support.command_line import (
    CLOCK,
    PLAIN,
    SHORT,
    Home,
    containers,
    ended,
    events,
    last,
    run_id,
    tier,
    with_a_bug,
)
from tests.support.waiting import block_until

pytestmark = pytest.mark.processes


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a file system of our own size needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_ends_the_run_and_keeps_what_was_measured(home: Home, tmpfs: Path) -> None:
    (tmpfs / "ballast").write_bytes(b"x" * (44 << 10))
    path = tmpfs / "r.msgpack"
    result = home.run("run", *PLAIN, "-t", "T0", "-n", "50", "--trials", "2000", "--progress", "none", "-o", str(path))
    assert (result.code, result.out) == (1, f"{path}\n")
    assert f"cannot write {path}: No space left on device" in result.complaint
    assert "free some space and run again" in result.complaint
    summary = read_events(path, lambda event: None)
    assert (summary.complete, summary.torn_bytes) == (False, 0)
    assert summary.events > 100


def test_a_budget_ends_the_run(home: Home) -> None:
    options = ("-t", "T0", "-n", "2", "--trials", "5000", "--think", "100ms", "--budget", "3s", "-o", "r.msgpack")
    result = home.run("run", *PLAIN, *options)
    assert result.code == 0
    end = last(home.cwd / "r.msgpack")
    assert end.outcome == "budget"
    trials = f"{sum(end.counts.values())} of 10000 trials"
    line = rf"budget: {trials}, 0 failed, in {CLOCK}; --budget 3s is used up: raise it, or plan less"
    assert re.fullmatch(line, result.err.splitlines()[-2])
    slow = str(tier(home.cwd / "slow.toml", "sleep 1"))
    options = ("-t", slow, "-n", "1", "--trials", "9", "--mode", "exec", "--budget", "200ms", "-o", "s.msgpack")
    result = home.run("run", *PLAIN, *options)
    assert result.code == 1, "no trial fits in the budget"
    assert result.err.splitlines()[-1] == "taxtui: local:isolation=plain X x 1 exec: no trial succeeded"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_closed_reader_does_not_end_a_run(home: Home, stream: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = home.start("run", *PLAIN, *SHORT, "-o", "r.msgpack", "--progress", "plain", **{stream: writer})
    os.close(writer)
    result = ended(process)
    assert (result.code, result.out) == (0, "" if stream == "stdout" else "r.msgpack\n")
    assert last(home.cwd / "r.msgpack").outcome == "finished"


def test_a_bug_is_one_line_and_the_watchdog_looks_again(home: Home, tmp_path: Path) -> None:
    home.env |= with_a_bug(
        tmp_path / "site", "taxtui.runner.trial.trial", "Trial.flush_columns", "raise KeyError('no')"
    )
    scenario = home.cwd / "crash.toml"
    cell = 'substrates = ["local:isolation=plain"]\ntiers = ["T0"]\nactions = [2]\nmodes = ["exec"]\nconcurrency = 2'
    scenario.write_text(f'create_timeout = "2s"\n[[cells]]\n{cell}\ntrials = 50\n')
    result = home.run("run", str(scenario), "--progress", "none", "-o", "r.msgpack")
    assert (result.code, result.out) == (1, "r.msgpack\n")
    assert result.complaint.startswith("taxtui: the run crashed: KeyError (sitecustomize.py:")
    assert "'<name>'; the recording keeps all measured trials" in result.complaint
    assert f"look with: taxtui clean --run {run_id(home.cwd / 'r.msgpack')} --force --dry-run" in result.complaint
    assert last(home.cwd / "r.msgpack").outcome == "crashed"
    assert home.sandboxes() == []
    assert home.ledger() == [f"{run_id(home.cwd / 'r.msgpack')}.json"], "until its watchdog has found nothing"
    block_until(lambda: not home.processes(), "the watchdog has ended")
    home.assert_nothing_left()


ISOLATIONS = pytest.mark.parametrize("isolation", ["plain", pytest.param("bwrap", marks=pytest.mark.bwrap)])
ENDLESS = "touch started; while :; do sleep 0.05; done"
A_SECOND = "touch started; sleep 1"


def started(
    home: Home, script: str, *args: str, substrate: str, **popen: object
) -> tuple[subprocess.Popen[bytes], Path]:
    """A run of many trials, and its recording."""
    path = home.cwd / "r.msgpack"
    workload = str(tier(home.cwd / "workload.toml", script))
    measured = ("-s", substrate, "-t", workload, "-n", "1", "--trials", "500", "--warmup", "0")
    return home.start("run", *measured, "--progress", "none", "-o", str(path), *args, **popen), path  # type: ignore[arg-type]


def begun(
    home: Home, script: str, *args: str, isolation: str = "plain", **popen: object
) -> tuple[subprocess.Popen[bytes], Path]:
    """One whose first command runs."""
    process, path = started(home, script, *args, substrate=f"local:isolation={isolation}", **popen)
    block_until(home.running, "a command runs")
    return process, path


def struck_twice(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C, and once more when the first has been noticed; the run ends."""
    process.send_signal(signal.SIGINT)
    block_until(lambda: not process.poll() and process.stderr and process.stderr.readline() == b"\n", "the first")
    process.send_signal(signal.SIGINT)
    assert ended(process).code == 130


@ISOLATIONS
def test_ctrl_c_once_finishes_what_runs(home: Home, isolation: str) -> None:
    process, path = begun(home, A_SECOND, isolation=isolation)
    process.send_signal(signal.SIGINT)
    result = ended(process)
    assert (result.code, result.out) == (130, f"{path}\n")
    complaint, ended_as = result.err.split("\n", 1)[1].splitlines()  # the terminal has written ^C on the line before
    assert "finishing what runs; Ctrl-C again abandons it" in complaint
    assert ended_as.startswith("interrupted: ")
    finished = last(path)
    assert (finished.outcome, set(finished.counts)) == ("interrupted", {"ok"})
    assert finished.counts["ok"] < 500


@ISOLATIONS
@pytest.mark.parametrize("mode", ["exec", "session"])
def test_ctrl_c_twice_abandons_what_runs(home: Home, isolation: str, mode: str) -> None:
    process, path = begun(home, ENDLESS, "--mode", mode, "--concurrency", "3", isolation=isolation)
    struck_twice(process)
    finished = last(path)
    assert (finished.outcome, set(finished.counts)) == ("interrupted", {"interrupted"})


@pytest.mark.parametrize(
    ("script", "arrival", "number", "counts"),
    [
        (ENDLESS, (), signal.SIGTERM, {"interrupted": 2}),
        (A_SECOND, ("--arrival", "open:1/h"), signal.SIGINT, {"ok": 1}),  # between scheduled starts
    ],
)
def test_a_signal_to_end_cleans_up_first_and_waits_for_no_start(
    home: Home, script: str, arrival: tuple[str, ...], number: signal.Signals, counts: dict[str, int]
) -> None:
    process, path = begun(home, script, "--concurrency", "2", *arrival)
    process.send_signal(number)
    result = ended(process)
    assert (result.code, result.out) == (130, f"{path}\n")
    assert last(path) == RunFinished("interrupted", counts)


@pytest.mark.docker
def test_ctrl_c_twice_with_docker_leaves_no_container(home: Home) -> None:
    process, path = started(home, ENDLESS, "--mode", "session", "--concurrency", "2", substrate="docker")
    block_until(lambda: path.exists() and path.stat().st_size and len(containers(run_id(path))) == 2, "two containers")
    struck_twice(process)
    assert containers(run_id(path)) == []
    assert last(path).outcome == "interrupted"


def control(process: subprocess.Popen[bytes], line: bytes) -> None:
    process.stdin.write(line)
    process.stdin.flush()


def trials_ended(path: Path) -> int:
    return sum(isinstance(event, TrialEnded) for event in events(path))


def test_control_pauses_resumes_and_cancels(home: Home) -> None:
    process, path = begun(home, "touch started; sleep 0.1", "--control", "stdin", stdin=subprocess.PIPE)
    control(process, b'{"op": "pause"}\n')
    block_until(lambda: not home.sandboxes(), "the pause")
    block_until(lambda: trials_ended(path), "the end of the first trial is written")
    paused = trials_ended(path)
    control(process, b'not json\n{"op": "dance"}\n[]\n{"op": []}\n')
    for _ in range(4):
        assert b"--control: not understood" in process.stderr.readline()
    assert trials_ended(path) == paused
    control(process, b'{"op": "resume"}\n')
    block_until(lambda: trials_ended(path) > paused, "the next trial")
    control(process, b'{"op": "cancel"}\n')
    result = ended(process)
    assert (result.code, result.err) == (130, "")
    finished = last(path)
    assert finished.outcome == "cancelled"
    assert finished.counts["ok"] > paused


def test_the_first_line_of_control_may_be_the_scenario_and_its_end_cancels(home: Home) -> None:
    reader, writer = os.pipe()
    cell = '{"substrates": ["local:isolation=plain"], "tiers": ["T0"], "actions": [2]}'
    os.write(writer, f'{{"name": "piped", "cells": [{cell}]}}\n'.encode())
    words = ("--trials", "500", "-o", "r.msgpack", "--control", "stdin", "--progress", "none")
    process = home.start("run", "-", *words, stdin=reader)
    os.close(reader)
    path = home.cwd / "r.msgpack"
    block_until(lambda: path.exists() and path.stat().st_size > 0 and trials_ended(path), "a trial")
    os.close(writer)
    result = ended(process)
    assert (result.code, result.err) == (130, "")
    assert (events(path)[0].scenario["name"], last(path).outcome) == ("piped", "cancelled")  # type: ignore[union-attr]


def test_a_run_has_never_more_sandboxes_than_allowed_and_is_resumed(home: Home) -> None:
    options = ("run", *PLAIN, "-t", "T0", "--trials", "9", "--warmup", "1", "--mode", "exec", "-n", "2")
    result = home.run(*options, "--max-sandboxes", "3", "-o", "r.msgpack")
    assert result.code == 0
    used_up = rf"budget: 2 of 9 trials, 0 failed, in {CLOCK}; --max-sandboxes 3 is used up: raise it, or plan less"
    assert re.fullmatch(used_up, result.err.splitlines()[-2])
    recorded = events(home.cwd / "r.msgpack")
    assert sum(isinstance(event, TrialEnded) for event in recorded) == 3
    assert any(isinstance(event, Notice) and "--max-sandboxes 3 is used up" in event.text for event in recorded)
    again = home.run(*options, "--resume", "r.msgpack", "-o", "s.msgpack")
    assert (again.code, again.complaint) == (2, "taxtui: --resume continues its own file; leave --output out")
    other = home.run(*options[:-1], "3", "--resume", "r.msgpack")
    assert other.code == 2
    assert "r.msgpack is of another plan: " in other.complaint
    whole = home.run(*options, "--resume", "r.msgpack")
    assert (whole.code, whole.out) == (0, "r.msgpack\n")
    assert "finished: 9 of 9 trials" in whole.err
