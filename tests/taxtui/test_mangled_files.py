"""A few of the inputs that ``make fuzz`` tries by the million, and each that once failed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.fuzz.fuzzing import TARGETS, corpus, made, tried

SEED = 20
EACH = {"importers": 500, "documents": 80, "projections": 60}
EXECUTIONS = 1500
"""Of a target that is in memory."""
FOUND = list(corpus())


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_a_mangled_file_is_taken_or_refused_in_one_line(target: str) -> None:
    told: Counter[str] = Counter()
    for number in range(EACH.get(target, EXECUTIONS)):
        word, why = tried(target, made(target, SEED, number))
        assert not why, f"python -m tests.support.fuzz.fuzzing --target {target} --seed {SEED} --number {number}: {why}"
        told[word] += 1
    assert len(told) > 1 or target == "text", "it is never taken, or never refused"


@pytest.mark.parametrize(("target", "path"), FOUND, ids=[f"{target}-{path.stem}" for target, path in FOUND])
def test_what_once_failed_fails_no_more(target: str, path: Path) -> None:
    assert tried(target, path.read_bytes())[1] == ""


def test_a_check_that_raises_is_a_failure() -> None:
    assert tried("decoders", b"")[0] == "refused"
    assert tried("toml", b"no such kind\nx = 1") == ("FAILED", "KeyError: 'no such kind'")
