from __future__ import annotations

import pytest

from taxtui.tui.answer.arranging import Arrangement, arranged, natural


@pytest.mark.parametrize(
    "cells",
    [
        ["850 ns", "12.3 µs", "900 ms", "1.1 s", "2.5 min", "2 h", "needs n≥72"],
        ["T0 10 exec", "T0 50 exec", "T0 150 exec", "T1 10 exec", "–"],
        ["-$3.10", "$347", "$91.0k", "$1.27M", ""],
        ["0.5x ±0.1", "1.2x", "≥ 3.4x", "1,024x"],
        ["0% 0…3.7", "3% 1…9", "100% 97…100"],
        ["9", "10", "11-12", "local:bwrap"],
    ],
)
def test_cells_stand_in_the_order_that_a_reader_expects(cells: list[str]) -> None:
    assert sorted(reversed(cells), key=natural) == cells


ROWS = [
    ("local", "T0 10", "20 ms"),
    ("docker", "T0 150", "253 ms"),
    ("docker", "T0 10", "–"),
    ("local", "T0 150", "9 s"),
]


def of(asked: Arrangement) -> list[int]:
    return arranged(
        ROWS, asked, text=" ".join, group=lambda row: row[asked.group != "substrate"], cell=lambda row: row[2]
    )


def test_what_says_nothing_is_last_in_both_directions() -> None:
    assert of(Arrangement(column=2)) == [0, 1, 3, 2]
    assert of(Arrangement(column=2, descending=True)) == [3, 1, 0, 2]


def test_rows_are_sorted_inside_their_groups_and_filtered_by_words() -> None:
    assert of(Arrangement()) == [0, 1, 2, 3]
    assert of(Arrangement(group="work")) == [0, 2, 1, 3]
    assert of(Arrangement(group="substrate", column=2, descending=True)) == [1, 2, 3, 0]
    assert of(Arrangement(wanted="150 DOCK")) == [1]
    assert of(Arrangement(wanted="nowhere")) == []


def test_what_was_asked_is_told() -> None:
    asked = Arrangement()
    assert asked.in_words(["work", "p50"]) == ""
    asked = asked.next_column(2).next_column(2).next_group()._replace(descending=True, wanted="T1")
    assert asked.in_words(["work", "p50"]) == "by work · sorted by p50 ↓ · only T1"
    assert asked.next_column(2).column is None
    assert asked.next_group().next_group().group == ""
