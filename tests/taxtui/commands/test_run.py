"""``taxtui run``: the default plan, the output, refusals in one line, repetitions, and nothing left."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from costmodel.recording.events import RunFinished, TrialEnded
from taxtui import installed
from taxtui.cli import app
from taxtui.commands import run as run_command
from taxtui.commands import run_plan
from taxtui.errors import SubstrateUnavailable, UsageError
from taxtui.workloads import image
from tests.support.command_line import CLOCK, PLAIN, SHORT, Home, ended, events, last, printed, without_modules

pytestmark = pytest.mark.processes
READY = {"ok": True, "detail": "ready", "fix": "", "capabilities": {"paid": False}}
NO_IMAGE = READY | {"ok": False, "detail": f"there is no image {image.DEFAULT_IMAGE} here", "fix": "taxtui setup"}
NO_DAEMON = READY | {"ok": False, "detail": "no daemon", "fix": "start it"}


def answering(monkeypatch: pytest.MonkeyPatch, **rows: dict[str, Any]) -> None:
    def checked(names: Sequence[str]) -> list[dict[str, Any]]:
        return [rows[name] | {"name": name} for name in names]

    monkeypatch.setattr(run_plan, "_checked", checked)


def usable(*, build: bool = True) -> tuple[list[str], list[str]]:
    return run_plan.usable_here(lambda line: None, build=build)


def test_usable_substrates_are_measured_and_the_others_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, local=READY, docker=NO_DAEMON)
    assert usable() == (["local"], ["docker is left out: no daemon; start it"])
    answering(monkeypatch, local=NO_DAEMON, docker=NO_DAEMON)
    with pytest.raises(SubstrateUnavailable, match="taxtui doctor"):
        usable()


def test_a_missing_image_of_docker_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    builds: list[bool] = []
    monkeypatch.setattr(image, "build", lambda progress: builds.append(True))
    answering(monkeypatch, local=READY, docker=NO_IMAGE)
    assert usable(build=False) == usable() == (["local", "docker"], [])
    assert builds == [True]

    def refuse(progress: object) -> None:
        raise UsageError("no network", fix="--base IMAGE")

    monkeypatch.setattr(image, "build", refuse)
    assert usable() == (["local"], ["docker is left out: its image cannot be built: no network; --base IMAGE"])


def test_without_options_one_tier_is_compared_in_both_modes() -> None:
    params = run_command.command.make_context("run", []).params
    plan = run_plan.plan_of(None, params, ["local", "docker"])
    assert {(str(cell.substrate), cell.tier.name, cell.mode) for cell in plan.cells} == {
        (substrate, "T1", mode) for substrate in ("local", "docker") for mode in ("exec", "session")
    }
    assert run_plan.outline(plan) == "local, docker: T1 x 50, exec and session; 80 trials, at most 2 min"
    words = ["-s", "local", "--mode", "exec,session", "--think", "8s"]
    plan = run_plan.plan_of(None, run_command.command.make_context("run", words).params)
    assert "h 27 min of it think time" in run_plan.outline(plan)


def test_a_dry_run_prints_cells_trials_time_and_money_and_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, local=READY, docker=NO_DAEMON)
    text = " ".join(printed("run", "-s", "local", "-s", "docker", "-t", "T0", "-n", "10", "--dry-run").split())
    for part in (
        "substrate tier n mode concurrency trials time",
        "local T0 10 exec 1 20 ~",
        "trials 80",
        "money local $0",
        "docker cannot be used now: no daemon; start it",
    ):
        assert part in text


@pytest.mark.parametrize("isolation", ["plain", pytest.param("bwrap", marks=pytest.mark.bwrap)])
@pytest.mark.parametrize("mode", ["exec", "session"])
def test_standard_output_is_the_path(home: Home, isolation: str, mode: str) -> None:
    result = home.run("run", "-s", f"local:isolation={isolation}", *SHORT[:-1], mode)
    assert result.code == 0
    path = Path(result.out.rstrip("\n"))
    assert path.parent == home.folder / "data" / "taxtui" / "recordings"
    assert last(path) == RunFinished("finished", {"ok": 2})
    assert f"next: taxtui project {path}" in result.err


@pytest.mark.parametrize("kind", ["plain", "none", "auto"])
def test_progress_goes_to_standard_error(home: Home, kind: str) -> None:
    result = home.run("run", *PLAIN, *SHORT, "--progress", kind, "-o", "r.msgpack")
    assert (result.code, result.out) == (0, "r.msgpack\n")
    *lines, following = result.err.splitlines()
    assert following.startswith("next: ")
    if kind == "none":
        assert not any("trials, 0 failed, 0:" in line for line in lines)
    assert "Time that one delivered trajectory occupies a worker" in lines
    assert re.fullmatch(f"finished: 2 of 2 trials, 0 failed, in {CLOCK}", lines[-1])
    assert "\x1b" not in result.err, "escapes are for terminals"


def test_a_terminal_gets_one_line_that_is_rewritten(home: Home) -> None:
    master, terminal = os.openpty()
    process = home.start("run", *PLAIN, *SHORT, "-o", "r.msgpack", stderr=terminal)
    os.close(terminal)
    assert ended(process).code == 0
    text = os.read(master, 1 << 16).decode()
    os.close(master)
    assert "\r\x1b[K" in text
    assert "finished: 2 of 2 trials, 0 failed" in text


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("-s dokcer", "unknown substrate 'dokcer'; did you mean 'docker'?"),
        ("-s local:isolatoin=plain", "local has no option 'isolatoin'; did you mean 'isolation'?"),
        ("-s local:isolation=strong", "local: Invalid enum value 'strong'"),
        ("-t T00", "no tier 'T00'; did you mean 'T0'?"),
        ("--trails 3", "'--trials'"),
        ("--trials three", "'--trials': 'three' is no count"),
        ("--trials 0", "'--trials': must be above 0, not 0"),
        ("-n 10,50", "'--actions': '10,50' is no count; several counts: -n 10 -n 50"),
        ("--acquire snapshot:x", "cannot acquire sandboxes by 'snapshot'; it can: create, reset"),
        ("--lifecycle suspend:5s", "--lifecycle is no option here; write --set lifecycle=VALUE"),
        ("--set timeout=soon", "'soon' is not a duration"),
        ("--budget 0s", "budget must be above 0, not 0"),
        ("--max-cost inf", "max_cost_usd: expected `float` <= "),
        ("--processes 4", "4 processes share concurrency 1, and some would have nothing to do; raise the concurrency"),
        ("--think lognormal:8s", "--think: 'lognormal:8s' is not a think time"),
        ("qiuck", "no scenario 'qiuck'; did you mean 'quick'?"),
        ("r.msgpack", "r.msgpack is a recording, not a scenario; print it: taxtui report r.msgpack"),
        ("--resume . -o x", "Invalid value for '--resume'"),
    ],
)
def test_a_bad_option_is_one_line_and_exit_code_2(options: str, line: str) -> None:
    result = CliRunner().invoke(app, ["run", *options.split()], standalone_mode=False)
    error = result.exception
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    assert line in text
    assert "\n" not in text
    assert error.exit_code == 2  # type: ignore[union-attr]
    assert "quick:" not in text


def refused(home: Home, code: int, *args: str) -> str:
    """Return the one line of a run without standard output, recording and sandbox."""
    result = home.run("run", *args)
    assert (result.code, result.out) == (code, ""), result.err
    assert not list(home.folder.rglob("*.msgpack"))
    assert result.complaint.startswith("taxtui: ")
    return result.complaint


def test_an_existing_output_file_keeps_every_byte(home: Home) -> None:
    path = home.cwd / "precious.bin"
    path.write_bytes(b"precious")
    for more in ((), ("--repeat", "2")):
        line = refused(home, 2, *PLAIN, *SHORT, *more, "--progress", "none", "-o", path.name)
        assert "precious.bin exists; choose another name with -o" in line
        assert path.read_bytes() == b"precious"
    line = refused(home, 2, *PLAIN, *SHORT, "-o", "no/such/r.msgpack")
    assert "cannot create no/such/r.msgpack: there is no folder" in line


def test_folders_that_cannot_be_made_are_one_line(home: Home) -> None:
    home.env["XDG_DATA_HOME"] = "/proc/nothing/here"
    assert "name the recording with -o" in refused(home, 2, *PLAIN, *SHORT)
    home.env["XDG_STATE_HOME"] = "/proc/nothing/here"
    result = home.run("run", *PLAIN, *SHORT, "-o", "r.msgpack", "--progress", "none")
    assert (result.code, result.out) == (1, "")
    assert "no watchdog to clean up after a crash" in result.complaint
    assert "set XDG_STATE_HOME" in result.complaint
    assert not any(isinstance(event, TrialEnded) for event in events(home.cwd / "r.msgpack"))


def test_a_missing_extra_is_named(home: Home, tmp_path: Path) -> None:
    home.env |= without_modules(tmp_path / "site", "docker")
    line = refused(home, 3, "-s", "docker", *SHORT)
    assert line == f"taxtui: docker: the module 'docker' is not installed; {installed.extra_command('docker')}"
