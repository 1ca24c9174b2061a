"""The substrate ``harbor`` on a Python that Harbor can be installed for: its whole conformance suite."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real_tools, pytest.mark.compose, pytest.mark.timeout(1800)]
ROOT = Path(__file__).parents[2]


def test_harbor_keeps_every_promise(python: Callable[[str], str]) -> None:
    interpreter = python("3.12")
    pip = [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{ROOT}[harbor]"]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    suite = [interpreter, "-m", "taxtui.sandboxes.conformance", "harbor"]
    kept = subprocess.run(suite, cwd=Path(interpreter).parent, capture_output=True, text=True, check=False)
    assert kept.returncode == 0, kept.stdout + kept.stderr
