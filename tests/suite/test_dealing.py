from __future__ import annotations

import pytest

from tests.support.cost_model.dealing import dealt, mixed


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


def test_any_stretch_has_its_share_of_each_kind_and_blocks_stay_whole() -> None:
    items = [
        f"{kind}{block}{item}" for kind, blocks in (("a", 8), ("b", 4)) for block in range(blocks) for item in "xyz"
    ]
    found = mixed(items, lambda item: item[0], lambda item: item[:2])
    assert sorted(found) == items
    assert [item[:2] for item in found[::3]] == ["a0", "b0", "a1", "a2", "b1", "a3", "a4", "b2", "a5", "a6", "b3", "a7"]
    assert [item[2] for item in found] == list("xyz") * 12


def test_what_is_begun_early_is_not_at_the_end() -> None:
    items = [f"{kind}{block}" for kind in "ab" for block in range(20)]
    found = mixed(items, lambda item: item[0], lambda item: item, early="b")
    assert sorted(found) == sorted(items)
    assert {item[0] for item in found[-4:]} == {"a"}
    assert all({item[0] for item in found[at : at + 4]} == {"a", "b"} for at in range(0, 32, 4))


def test_each_worker_has_its_quick_ones_arranged_for_itself() -> None:
    items = [*"dcba", "A", *"hgfe"]
    assert dealt(items, slow, 3, arranged=sorted) == ["A", "c", "d", *"abh", *"efg"]
