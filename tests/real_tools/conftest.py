"""Pythons that have the tools of the dependency groups ``real-tools-…``."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The interpreter of a version whose venv has its group of tools."""
    folder = Path(os.environ.get("TAXTUI_REAL_TOOLS") or tmp_path_factory.mktemp("tools"))
    groups = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())["dependency-groups"]

    def installed(version: str) -> str:
        venv = folder / f"py{version}"
        interpreter = venv / "bin" / "python"
        if not interpreter.exists():
            major = shutil.which(f"python{version}")
            if major is None or subprocess.run([major, "-c", ""], capture_output=True, check=False).returncode:
                pytest.skip(f"there is no python{version}")
            subprocess.run([major, "-m", "venv", venv], check=True)
            wanted = groups[f"real-tools-{version.replace('.', '')}"]
            pip = [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
            done = subprocess.run(pip, capture_output=True, text=True, check=False)
            if done.returncode:
                shutil.rmtree(venv)
                pytest.skip(f"cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        return str(interpreter)

    return installed
