from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Whatever a test does, its commands must have left nothing when it ends."""
    made = Home(tmp_path / "home")
    yield made
    made.close()
    made.assert_nothing_left()
