from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from taxtui import registry
from taxtui.tui import estimate


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
