"""``taxtui.sandboxes`` has every name that it lists, to mypy and at run time, and imports none of them beforehand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import taxtui.sandboxes


@pytest.mark.parametrize("name", taxtui.sandboxes.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(taxtui.sandboxes, name) is not None


def test_what_mypy_sees_is_what_there_is() -> None:
    source = Path(taxtui.sandboxes.__file__).read_text(encoding="utf-8")
    assert sorted(re.findall(r"^    from [\w.]+ import (\w+) as \1$", source, re.MULTILINE)) == taxtui.sandboxes.__all__


def test_importing_it_imports_nothing_else() -> None:
    code = "import sys, taxtui.sandboxes; print(sorted(m for m in sys.modules if m.partition('.')[0] == 'taxtui'))"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown.strip() == "['taxtui', 'taxtui.sandboxes']"
