"""``taxtui run`` as a person, a script and a hostile machine meet it: one line, one exit code, nothing left."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from costmodel.recording import framing
from costmodel.recording.events import RunFinished, TrialEnded
from taxtui import installed
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
    without_modules,
)

pytestmark = pytest.mark.processes

CELLS = '[[cells]]\nsubstrates = ["local"]\ntiers = ["T0"]\n'


# ------------------------------------------------------------------------------------------------- what goes well


@pytest.mark.parametrize("isolation", ["plain", pytest.param("bwrap", marks=pytest.mark.bwrap)])
@pytest.mark.parametrize("mode", ["exec", "session"])
def test_stdout_is_the_path_and_stderr_is_talk(home: Home, isolation: str, mode: str) -> None:
    done = home.run("run", "-s", f"local:isolation={isolation}", *SHORT[:-1], mode)
    assert done.code == 0
    path = Path(done.out.rstrip("\n"))
    assert path.parent == home.folder / "data" / "taxtui" / "recordings"
    assert last(path) == RunFinished("finished", {"ok": 2})
    assert f"next: taxtui project {path}" in done.err


def test_a_folder_called_recordings_is_where_recordings_go(home: Home) -> None:
    (home.cwd / "recordings").mkdir()
    done = home.run("run", *PLAIN, *SHORT)
    assert (home.cwd / done.out.strip()).parent == home.cwd / "recordings"


@pytest.mark.parametrize("kind", ["json", "plain", "none", "auto"])
def test_progress_goes_to_stderr_in_the_form_asked_for(home: Home, kind: str) -> None:
    done = home.run("run", *PLAIN, *SHORT, "--progress", kind, "-o", "r.msgpack")
    assert (done.code, done.out) == (0, "r.msgpack\n")
    *lines, following = done.err.splitlines()
    assert following.startswith("next: ")
    if kind == "json":
        facts = [json.loads(line) for line in lines]
        assert facts[-1] == {**{"planned": 2, "ended": 2, "ok": 2, "in_flight": 0, "last": True, "outcome": "finished"}}
        return
    if kind != "none":
        assert next(filter(None, lines)).startswith(
            ("0/2 trials, 0 failed", "1/2 trials, 0 failed", "2/2 trials, 0 failed", "Time that one")
        )
    else:
        assert not any("trials, 0 failed, 0:" in line for line in lines)
    assert "Time that one delivered trajectory occupies a worker" in lines
    assert re.fullmatch(f"finished: 2 of 2 trials, 0 failed, in {CLOCK}", lines[-1])
    assert "\x1b" not in done.err, "no escapes where nobody looks at a terminal"


def test_a_terminal_gets_one_line_that_is_rewritten(home: Home) -> None:
    master, terminal = os.openpty()
    process = home.start("run", *PLAIN, *SHORT, "-o", "r.msgpack", stderr=terminal)
    os.close(terminal)
    done = ended(process)
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    assert done.code == 0
    assert "\r\x1b[K" in shown
    assert "finished: 2 of 2 trials, 0 failed" in shown


def test_stdin_does_not_matter_without_control(home: Home) -> None:
    process = home.start("run", *PLAIN, *SHORT, "-o", "r.msgpack", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b'{"op": "cancel"}\n')
    process.stdin.close()
    process.stdin = None
    assert ended(process).code == 0
    assert last(home.cwd / "r.msgpack").outcome == "finished"


@pytest.mark.docker
def test_docker_leaves_no_container(home: Home) -> None:
    done = home.run("run", "-s", "docker", *SHORT[:-1], "session", "--concurrency", "2", "-o", "r.msgpack")
    assert done.code == 0
    assert last(home.cwd / "r.msgpack") == RunFinished("finished", {"ok": 2})
    assert containers(run_id(home.cwd / "r.msgpack")) == []


# ------------------------------------------------------------------------------------------------------- bad input


def refused(home: Home, code: int, *args: str, **popen: object) -> str:
    """The one line of a run that must not begin: nothing on stdout, no recording, no sandbox."""
    done = home.run("run", *args, **popen)  # type: ignore[arg-type]
    assert (done.code, done.out) == (code, ""), done.err
    assert not list(home.folder.rglob("*.msgpack"))
    assert done.complaint.startswith("taxtui: ")
    return done.complaint


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("-s", "dokcer"), "unknown substrate 'dokcer'; did you mean 'docker'?"),
        (("-s", "local:isolatoin=plain"), "local has no option 'isolatoin'; did you mean 'isolation'?"),
        (("-s", "local:plain"), "'plain' in 'local:plain' is not an option"),
        (("-s", "local:isolation=strong"), "local: Invalid enum value 'strong'"),
        (("-t", "T00"), "no tier 'T00'; did you mean 'T0'?"),
        (("--mode", "sesion"), "unknown mode 'sesion'; did you mean 'session'?"),
        (("--trails", "3"), "'--trials'"),
        (("--trials", "three"), "'three' is no count"),
        (("--trials", "0"), "trials must be above 0, not 0"),
        (("-n", "0"), "actions must be above 0, not 0"),
        (("--warmup", "-1"), "warmup must be 0 or more, not -1"),
        (("--concurrency", "-1"), "concurrency must be above 0, not -1"),
        (("--concurrency", "2", "--arrival", "sequential"), "arrival sequential means concurrency 1, not 2"),
        (("--arrival", "sometimes"), "'sometimes' is not an arrival"),
        (("--acquire", "snapshot:x"), "cannot acquire sandboxes by 'snapshot'; it can: create, reset"),
        (("--set", "timeout=soon"), "'soon' is not a duration"),
        (("--set", "timeout=0s"), "timeout must be above 0, not 0"),
        (("--budget", "0s"), "budget must be above 0, not 0"),
        (("--max-sandboxes", "0"), "max_sandboxes must be above 0, not 0"),
        (("--think", "lognormal:8s"), "'lognormal:8s' is not a think time"),
        (("qiuck",), "no scenario 'qiuck'; did you mean 'quick'?"),
        (("-o", "no/such/folder/r.msgpack"), "cannot create no/such/folder/r.msgpack: No such file or directory"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(home: Home, args: tuple[str, ...], words: str) -> None:
    assert words in refused(home, 2, *args)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "cells = [", "a.toml: "),
        ("b.toml", CELLS + "actionz = [1]\n", "b.toml:4: cells[1].actionz: unknown key; did you mean 'actions'?"),
        (
            "c.toml",
            '[[cells]]\nsubstrates = ["local"]\ntiers = "T0"\nactions = [1]\n',
            "c.toml:3: cells[1].tiers: expected `array`, got `str`",
        ),
        ("d.toml", "name = 'nothing'\n", "d.toml: "),
        ("e.toml", "cells = []\n", "the scenario has no cells"),
        ("f.json", '{"cells": ', "f.json: "),
        ("g.toml", "\xff", "g.toml: not text in UTF-8"),
        (
            "h.toml",
            CELLS + "actions = [1]\n[limits]\ncpus = inf\n",
            "h.toml:6: limits.cpus: must be a finite number, not inf",
        ),
    ],
)
def test_a_malformed_scenario_names_file_and_line(home: Home, name: str, text: str, words: str) -> None:
    (home.cwd / name).write_bytes(text.encode("latin-1"))
    assert words in refused(home, 2, name)


def test_an_unknown_command_offers_the_nearest(home: Home) -> None:
    done = home.run("rnu")
    assert (done.code, done.complaint) == (2, "taxtui: unknown command 'rnu'; did you mean 'run'?")


def test_an_existing_output_file_keeps_every_byte(home: Home) -> None:
    path = home.cwd / "precious.bin"
    path.write_bytes(b"precious")
    assert "precious.bin exists; choose another name with -o" in refused(home, 2, *PLAIN, *SHORT, "-o", path.name)
    assert path.read_bytes() == b"precious"


def test_a_user_without_a_place_for_recordings_is_told_to_name_one(home: Home) -> None:
    home.env["XDG_DATA_HOME"] = "/proc/nothing/here"
    assert "name the recording with -o" in refused(home, 2, *PLAIN, *SHORT)


def test_without_a_ledger_nothing_is_made(home: Home) -> None:
    home.env["XDG_STATE_HOME"] = "/proc/nothing/here"
    done = home.run("run", *PLAIN, *SHORT, "-o", "r.msgpack", "--progress", "none")
    assert (done.code, done.out) == (1, "")
    assert "no watchdog to clean up after a crash" in done.complaint
    assert "set XDG_STATE_HOME" in done.complaint
    assert not any(isinstance(event, TrialEnded) for event in events(home.cwd / "r.msgpack"))


# ------------------------------------------------------------------------------------------ substrates out of reach


def test_a_missing_extra_is_named(home: Home, tmp_path: Path) -> None:
    home.env |= without_modules(tmp_path / "site", "docker")
    words = refused(home, 3, "-s", "docker", *SHORT)
    assert words == f"taxtui: docker: the module 'docker' is not installed; {installed.extra_command('docker')}"


def test_no_docker_daemon(home: Home, tmp_path: Path) -> None:
    home.env["DOCKER_HOST"] = f"unix://{tmp_path}/nobody.sock"
    assert "no docker daemon is running there; start it" in refused(home, 3, "-s", "docker", *SHORT)


def test_no_permission_on_the_daemons_socket(home: Home, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(locked / "docker.sock"))
        listening.listen()
        locked.chmod(0)
        home.env["DOCKER_HOST"] = f"unix://{locked}/docker.sock"
        # Root without its capabilities is stopped by permissions as anybody is.
        prefix = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
        words = refused(home, 3, "-s", "docker", *SHORT, prefix=prefix)
        locked.chmod(0o700)
    assert "no permission on the daemon's socket; join the group docker" in words


@pytest.mark.docker
def test_a_missing_image_names_the_command_that_brings_it(home: Home) -> None:
    words = refused(home, 3, "-s", "docker:image=nowhere/none:1", *SHORT)
    assert "there is no image nowhere/none:1 here; docker pull nowhere/none:1" in words
    words = refused(home, 3, "-s", "docker:runtime=runk", *SHORT)
    assert "docker has no runtime 'runk'" in words


# --------------------------------------------------------------------------------------------------- recordings


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (None, 4, "there is no r.msgpack, neither here nor among what ships with taxtui"),
        (b"", 4, "r.msgpack: the file is empty"),
        (b"a text file", 4, "r.msgpack: not a taxtui recording"),
        (
            framing.frame(b"\x91\x96\x00\xa6taxtui\x02\xa1r\x80\x80"),
            4,
            "format version 2, this taxtui reads up to 1; install a newer taxtui",
        ),
    ],
)
@pytest.mark.parametrize("verb", [("info",), ("verify",), ("verify", "--salvage", "out")])
def test_what_is_not_a_recording(
    home: Home, verb: tuple[str, ...], content: bytes | None, code: int, words: str
) -> None:
    if content is not None:
        (home.cwd / "r.msgpack").write_bytes(content)
    done = home.run("recordings", *verb, "r.msgpack")
    if "--salvage" in verb and content is not None:
        words = "the header is lost, nothing can be salvaged" if b"taxtui\x02" not in content else ""
        code = 4 if words else 0
    assert done.code == code, done.err
    assert words in (done.complaint if code else "")


def test_a_run_that_was_killed_verifies_as_incomplete(home: Home) -> None:
    home.run("run", *PLAIN, *SHORT, "-o", "r.msgpack")
    path = home.cwd / "r.msgpack"
    path.write_bytes(path.read_bytes()[:-5])
    done = home.run("recordings", "verify", "r.msgpack")
    assert done.code == 1
    assert "r.msgpack: incomplete (no end of the run), " in done.out
    assert "bytes of a torn frame dropped" in done.out


def test_a_compacted_recording_says_how_small_it_is_and_tells_the_same(home: Home) -> None:
    home.run("run", *PLAIN, *SHORT, "-o", "r.msgpack")
    done = home.run("recordings", "compact", "r.msgpack", "-o", "small.msgpack")
    assert done.code == 0, done.err
    before, after = ((home.cwd / name).stat().st_size for name in ("r.msgpack", "small.msgpack"))
    assert done.out == f"small.msgpack: {after} bytes, {after / before:.0%} of r.msgpack; complete\n"
    told = [home.run("report", name, "--format", "csv").out for name in ("r.msgpack", "small.msgpack")]
    assert told[0] == told[1].replace("small.msgpack", "r.msgpack")
    again = home.run("recordings", "compact", "r.msgpack", "-o", "small.msgpack")
    assert (again.code, again.complaint) == (
        2,
        "taxtui: small.msgpack exists; choose another name with -o, nothing is overwritten",
    )
