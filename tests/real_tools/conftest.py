"""Pythons that have the tools of the dependency groups ``real-tools-…``."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def candidates(version: str) -> Iterator[str]:
    """The interpreters of a version: the first in PATH, then those of pyenv, which its shims may hide."""
    if first := shutil.which(f"python{version}"):
        yield first
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}")))


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """The interpreter of a venv with packages, made when it is first asked for; skips the test without one."""
    folder = Path(os.environ.get("TAXTUI_REAL_TOOLS") or tmp_path_factory.mktemp("tools"))

    def installed(version: str, name: str, *packages: str) -> str:
        venv = folder / name
        interpreter = venv / "bin" / "python"
        if not interpreter.exists():
            works = (
                each for each in candidates(version) if not subprocess.run([each, "-c", ""], check=False).returncode
            )
            if (base := next(works, None)) is None:
                pytest.skip(f"there is no python{version}")
            subprocess.run([base, "-m", "venv", venv], check=True)
            pip = [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            uv = [interpreter, "-m", "uv", "pip", "install", "--quiet", "--python", interpreter]
            for command in ([*pip, "uv"], [*uv, *packages]):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    shutil.rmtree(venv)
                    pytest.skip(f"cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        return str(interpreter)

    return installed


@pytest.fixture(scope="session")
def groups() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    return found


@pytest.fixture(scope="session")
def python(environment: Callable[..., str], groups: dict[str, list[str]]) -> Callable[[str], str]:
    """The interpreter of a version whose venv has its group of tools."""

    def installed(version: str) -> str:
        return environment(version, f"py{version}", *groups[f"real-tools-{version.replace('.', '')}"])

    return installed


@pytest.fixture(scope="session", params=["3.12", "3.13"])
def interpreter(request: pytest.FixtureRequest, environment: Callable[..., str]) -> str:
    return environment(request.param, f"harbor-{request.param}", "--editable", f"{ROOT}[harbor]")
