"""The built wheel, installed into an empty environment and run outside the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Final

import pytest

import taxtui

pytestmark = [pytest.mark.slow, pytest.mark.processes]
CHECKOUT: Final = Path(taxtui.__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that holds the wheel, and sees the third-party packages of this one.

    A path in a .pth file brings packages, but not the .pth files beside them: so the editable taxtui stays out.
    """
    venv = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    python = venv / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "third_party.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return venv


def installed(environment: Path, folder: Path, *argv: str) -> str:
    """What an installed command prints, which must end with exit 0."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    command = [str(environment / "bin" / argv[0]), *argv[1:]]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_data_file_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    wanted = {"taxtui/_data/recordings/small.msgpack"}
    wanted |= {f"taxtui/_data/{path.relative_to(CHECKOUT)}" for path in (CHECKOUT / "scenarios").rglob("*.toml")}
    for pattern in ("taxtui/**/*", "costmodel/**/*"):
        files = [path for path in CHECKOUT.glob(pattern) if path.is_file() and "__pycache__" not in path.parts]
        assert files, f"nothing matches {pattern}"
        wanted |= {str(path.relative_to(CHECKOUT)) for path in files}
    assert wanted - held == set()
    assert not {name for name in held if name.startswith(("tests/", "scenarios/", "recordings/"))}


def test_the_installed_wheel_is_used_and_measures_verifies_and_projects(environment: Path, tmp_path: Path) -> None:
    def run(*argv: str) -> str:
        return installed(environment, tmp_path, *argv)

    code = "import json, taxtui, costmodel, click; print(json.dumps([m.__file__ for m in (taxtui, costmodel, click)]))"
    ours, model, third_party = map(Path, json.loads(run("python", "-c", code)))
    assert ours.is_relative_to(environment)
    assert model.is_relative_to(environment)
    assert not third_party.is_relative_to(environment)
    assert run("taxtui", "--version") == f"taxtui {taxtui.__version__}\n"
    (tmp_path / "recordings").mkdir()
    path = run("taxtui", "run", "quick", "--trials", "2", "--warmup", "0").strip()
    assert path.startswith("recordings/")
    assert "complete, " in run("taxtui", "recordings", "verify", path)
    training_run = ("--trajectories", "1000000", "--workers", "500", "--format", "json")
    rows = json.loads(run("taxtui", "project", path, *training_run))
    assert {(row["substrate"], row["tier"], row["mode"]) for row in rows} == {
        ("local", "T1", mode) for mode in ("exec", "session")
    }
    assert {row["trials"] for row in rows} == {2}
    assert json.loads(run("taxtui", "project", "essay", *training_run))
