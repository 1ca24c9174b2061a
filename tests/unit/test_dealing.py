from __future__ import annotations

import pytest

from tests.support.dealing import dealt


def slow(item: str) -> str | None:
    """``A1`` and ``A2`` are slow and belong together; ``b`` is quick."""
    return item[0] if item[0].isupper() else None


def test_every_worker_begins_with_its_share_of_what_is_slow() -> None:
    items = [*"abcd", "A1", "A2", *"efgh", "B", "C", *"ijkl"]
    order = dealt(items, slow, 3)
    assert [order[:5], order[5:10], order[10:]] == [
        ["A1", "A2", "a", "b", "c"], ["B", "d", "e", "f", "g"], ["C", "h", "i", "j", "k", "l"],
    ]  # fmt: skip
    assert dealt(items, slow, 1) == ["A1", "A2", "B", "C", *"abcdefghijkl"]


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("items", ["", "a", "A", "ABCDE", "AbCdE", "AAAAAAAAb", "abcdefgh"])
def test_nothing_is_lost_and_nothing_runs_twice(items: str, workers: int) -> None:
    assert sorted(dealt(items, slow, workers)) == sorted(items)
