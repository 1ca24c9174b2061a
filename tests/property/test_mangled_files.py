"""A few of the files that ``make fuzz`` tries by the million; a seed that once failed stays here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.fuzzing import try_document, try_recording

FOUND: tuple[int, ...] = ()


@pytest.mark.slow
@pytest.mark.parametrize("attempt", [try_document, try_recording])
def test_a_mangled_file_is_taken_or_refused_in_one_line(attempt: Callable[[int, Path], str], tmp_path: Path) -> None:
    told = {attempt(seed, tmp_path).split()[1] for seed in (*FOUND, *range(120))}
    assert {"taken", "refused"} <= {word.rstrip(",") for word in told}
