from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from taxtui import folders
from taxtui.live import catalogue
from taxtui.report import plan_time
from tests.support.command_line import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Whatever a test does, its commands must have left nothing when it ends."""
    made = Home(tmp_path / "home")
    yield made
    made.close()
    made.assert_nothing_left()


@pytest.fixture
def only_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the test has the recordings, and nothing else has any."""
    monkeypatch.setattr(folders, "recordings", lambda: tmp_path)
    monkeypatch.setattr(catalogue, "SHIPPED", ())
    monkeypatch.setattr(plan_time, "listing", lambda: catalogue.scan().entries)
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``./recordings`` of the current folder; nothing is shipped."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "bundled", lambda name: None)
    Path("recordings").mkdir()
    return Path("recordings")
