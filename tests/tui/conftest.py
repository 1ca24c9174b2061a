from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from taxtui.sandboxes import registry
from taxtui.tui.recordings import catalogue
from taxtui.tui.setup import estimate
from tests.tui.shelf import filled, held_up, without_trash


@pytest.fixture(autouse=True)
def same_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The zone, the colours, the installed substrates and the recordings are the test's, not the machine's."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(registry, "names", lambda: ["daytona", "docker", "ec2", "local"])
    monkeypatch.setattr(estimate, "listing", lambda: ())
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``./recordings`` of the current folder; nothing is shipped."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "bundled", lambda name: None)
    Path("recordings").mkdir()
    return Path("recordings")


@pytest.fixture
def shelf(folder: Path) -> Path:
    return filled(folder)


@pytest.fixture
def discarded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    return without_trash(monkeypatch)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return held_up(monkeypatch)
