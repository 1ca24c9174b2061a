from __future__ import annotations

import pytest

from taxtui.report.cells import DOLLARS, NS, TIMES, Content, RowName, TableCell, text_of
from taxtui.tui.arranging import Arrangement, arranged, natural


@pytest.mark.parametrize(
    "cells",
    [
        [*(TableCell(ns, NS) for ns in (850, 12.3e3, 900e6, 1.1e9, 150e9, 7.2e12)), TableCell(note="needs\nn≥72")],
        ["T0 10 exec", "T0 50 exec", "T0 150 exec", "T1 10 exec", "–"],
        [TableCell(-3.1, DOLLARS), TableCell(347.0, DOLLARS), TableCell(1.27e6, DOLLARS), ""],
        [
            TableCell(0.5, TIMES, 0.4, 0.6),
            TableCell(1.2, TIMES),
            TableCell(None, TIMES, 3.4, 5.0),
            TableCell(1024.0, TIMES),
        ],
        [RowName("docker", "T0 10 exec", "a"), RowName("docker", "T1 10 exec"), RowName("local", "T0 10 exec")],
        ["9", "10", "11-12", "local:bwrap"],
    ],
)
def test_cells_stand_in_the_order_that_a_reader_expects(cells: list[Content]) -> None:
    assert sorted(reversed(cells), key=natural) == cells


ROWS: list[tuple[str, str, Content]] = [
    ("local", "T0 10", TableCell(20e6, NS)),
    ("docker", "T0 150", TableCell(253e6, NS)),
    ("docker", "T0 10", "–"),
    ("local", "T0 150", TableCell(9e9, NS)),
]


def of(asked: Arrangement) -> list[int]:
    return arranged(ROWS, asked, text=lambda row: " ".join(map(text_of, row)), cell=lambda row: row[2])


def test_what_says_nothing_is_last_in_both_directions() -> None:
    assert of(Arrangement(column=2)) == [0, 1, 3, 2]
    assert of(Arrangement(column=2, descending=True)) == [3, 1, 0, 2]


def test_rows_are_filtered_by_words() -> None:
    assert of(Arrangement()) == [0, 1, 2, 3]
    assert of(Arrangement(wanted="150 DOCK")) == [1]
    assert of(Arrangement(wanted="nowhere")) == []


def test_each_column_is_sorted_up_then_down_and_then_the_own_order_returns() -> None:
    asked, words = Arrangement(wanted="T1"), []
    for _ in range(5):
        words.append(asked.in_words(["work", "p50"]))
        asked = asked.next_order(2)
    assert words == [
        "only T1",
        "sorted by work ↑ · only T1",
        "sorted by work ↓ · only T1",
        "sorted by p50 ↑ · only T1",
        "sorted by p50 ↓ · only T1",
    ]
    assert asked.column is None
