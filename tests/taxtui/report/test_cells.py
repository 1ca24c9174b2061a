"""Typed cells: one value, printed for a terminal, sorted and converted without reading the text again."""

from __future__ import annotations

import pytest

from taxtui.report.cells import CellGroup, Content, RowName, TableCell, aligned, lines_of, text_of
from taxtui.report.formats import Section
from taxtui.report.formats.markdown_tables import to_text as to_markdown
from taxtui.report.formats.plain_tables import to_text
from taxtui.report.numbers import COUNT, DOLLARS, NS, SHARE, TIMES
from taxtui.report.page.views import cell_of


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (TableCell(612e6, NS, 598e6, 626e6), "612 ms\n±14"),
        (TableCell(612e6, NS, 600e6, 702e6), "612 ms\n(600–702)"),
        (TableCell(1.2e9, NS, 1.1e9), "≥ 1.10 s"),
        (TableCell(None, NS, 1.2e9, 3.4e9), "≥ 1.20 s\n≤ 3.40 s"),
        (TableCell(4.31, TIMES, 4.05, 4.57, "no difference"), "4.31x\n±0.26 no difference"),
        (TableCell(855.0, "", 734.0, 976.0), "855\n±121"),
        (TableCell(20, COUNT), "20"),
        (TableCell(0.918, SHARE), "92 %"),
        (TableCell(0.0312, SHARE), "3.1 %"),
        (TableCell(1234.5, DOLLARS), "1,234"),
        (TableCell(), ""),
        (CellGroup((TableCell(5e6, NS), TableCell()), below=True), "5.00 ms\n–"),
        (RowName("docker:runc", "T1 50 exec", "ab"), "docker:runc [ab]\nT1 50 exec"),
    ],
)
def test_a_cell_is_printed_from_its_value(content: Content, text: str) -> None:
    assert text_of(content) == text


def test_a_page_sorts_by_the_exact_amount() -> None:
    found = cell_of(TableCell(612.3456e6, NS, 598e6, 626e6))
    assert found.sort == "612345600"
    assert found.html == '<span class="line">612 ms</span><span class="line">±14</span>'
    assert cell_of("needs\nn≥72").sort == ""


def test_amounts_of_a_column_end_under_one_another() -> None:
    column = [
        CellGroup((TableCell(9.0, "", 8.0, 10.0), TableCell(1.5, TIMES, 1.4, 1.6))),
        CellGroup((TableCell(855.0, "", 734.0, 976.0),)),
        "–",
    ]
    assert [text.rstrip() for text in aligned(column)] == ["9.0 ±1.0  1.50x ±0.10", "855 ±121", "  –"]


def test_each_medium_prints_the_same_section() -> None:
    section = Section("T", ["row", "a"], [["x", CellGroup((TableCell(2.0, "", 1.5, 2.5), TableCell(3.0, TIMES)))]], [])
    for text in (to_text([section]), to_markdown([section])):
        assert "2.00 ±0.50  3.00x" in text
    assert lines_of(section.rows[0][1]) == ["2.00 ±0.50  3.00x"]
