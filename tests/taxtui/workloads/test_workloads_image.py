"""``taxtui setup`` against a docker command of the test's own, which notes what it is asked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from taxtui.workloads import fixtures, image

DOCKER = """#!/bin/sh
printf '%s\\n' "$*" >> "$CALLS"
case "$1 $2" in
"version "*) [ "$DAEMON" = up ] || { echo "Cannot connect to the Docker daemon." >&2; exit 1; } ;;
"image ls") [ -z "$PRESENT" ] || echo abc ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the stand-in for docker notes its arguments; the fixtures are an empty folder."""
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    folder = tmp_path / "taxtui" / f"fixtures-{fixtures.DIGEST}"
    folder.mkdir(parents=True)
    environment = {"CALLS": str(tmp_path / "calls"), "DAEMON": "up", "PRESENT": "", "XDG_CACHE_HOME": str(tmp_path)}
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("PATH", str(docker.parent), prepend=os.pathsep)
    return tmp_path / "calls"


def build(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "taxtui", "setup", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_stdout_is_the_name_the_network_is_off_and_push_tags_and_pushes(calls: Path) -> None:
    done = build("--base", "mine:1", "--push", "registry.example/team/sandbox:1")
    assert (done.returncode, done.stdout) == (0, f"{fixtures.cached()}\n{image.DEFAULT_IMAGE}\n")
    (built,) = (line for line in calls.read_text().splitlines() if line.startswith("build "))
    assert "--network=none" in built
    assert "--build-arg=BASE=mine:1" in built
    assert f"--label={image.FIXTURES_LABEL}={image.DIGEST}" in calls.read_text()
    assert image.DEFAULT_IMAGE.endswith(image.DIGEST)
    tag, push = calls.read_text().splitlines()[-2:]
    assert tag == f"tag {image.DEFAULT_IMAGE} registry.example/team/sandbox:1"
    assert push == "push --quiet registry.example/team/sandbox:1"


def test_without_a_base_the_ordinary_one_is_made_first(calls: Path) -> None:
    assert build().returncode == 0
    builds = [line for line in calls.read_text().splitlines() if line.startswith("build ")]
    assert builds[0] == f"build --quiet --tag={image.ORDINARY_BASE} -"
    assert f"--build-arg=BASE={image.ORDINARY_BASE}" in builds[1]


def test_an_image_that_exists_is_kept(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRESENT", "yes")
    done = build()
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, image.DEFAULT_IMAGE)
    assert f"{image.DEFAULT_IMAGE} exists already" in done.stderr
    assert "build" not in calls.read_text()


def test_without_docker_the_fixtures_are_enough(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAEMON", "down")
    done = build()
    assert (done.returncode, done.stdout) == (0, f"{fixtures.cached()}\n")
    assert done.stderr.startswith("taxtui: no image for docker: docker cannot be used")


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [("DAEMON", "down", "taxtui: docker cannot be used"), ("PATH", "", "there is no docker; install it")],
)
def test_no_docker_is_one_line_and_exit_3(
    variable: str, value: str, words: str, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    done = build("--base", "mine:1")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert words in done.stderr
    assert done.stdout == ""  # no image of that base, so not the fixtures alone
