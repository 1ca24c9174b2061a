"""Numbers for people: three digits, an interval at the decimal place of its value, the unit that fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.statistics.intervals import Interval
from taxtui.report.cells import CellGroup, Content, RowName, TableCell, aligned, lines_of, text_of
from taxtui.report.formats import Section
from taxtui.report.formats.markdown_tables import to_text as to_markdown
from taxtui.report.formats.plain_tables import to_text
from taxtui.report.numbers import (
    COUNT,
    DOLLARS,
    NOTHING,
    NS,
    SHARE,
    TIMES,
    amount_tick,
    compact,
    dollars,
    duration,
    duration_tick,
    money,
    number,
    parts,
    plus_minus,
    rough_duration,
    short_duration,
    span,
    stopwatch,
)
from taxtui.report.page.views import cell_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2_425.3, "2,425"), (855.2, "855"), (99.96, "100"), (36.44, "36.4"), (9.996, "10.0"), (1, "1.00"),
        (0.99951, "1.00"), (0.07134, "0.0713"), (0, "0"), (-0.5, "-0.500"), (1e-7, "1e-07"), (4.45e12, "4.450e+12"),
        (None, NOTHING),
    ],
)  # fmt: skip
def test_three_digits_or_all_before_the_point(value: float | None, text: str) -> None:
    assert number(value) == text


@given(st.floats(1e-4, 1e8))
def test_a_number_is_rounded_at_its_last_digit(value: float) -> None:
    printed = number(value).replace(",", "")
    decimals = len(printed.partition(".")[2])
    assert abs(float(printed) - value) <= 0.5000001 * 10**-decimals
    assert len(printed.replace(".", "").lstrip("0")) >= 3 or value < 1e-4


@pytest.mark.parametrize(
    ("interval", "text", "limits"),
    [
        (Interval(855.2, 742.4, 976), "855 ±121", "742–976"),
        (Interval(36.44, 31.2, 41.1), "36.4 ±5.2", "31.2–41.1"),
        (Interval(0.574, 0.5, None), "≥ 0.500", "≥ 0.500"),
        (Interval(9.5), "9.50", ""),
        (Interval(254, 101, 528), "254 (101–528)", "101–528"),
        (Interval(254, 101, 390), "254 ±153", "101–390"),
        (Interval(10, 4, 21), "10 (4–21)", "4–21"),
        (None, NOTHING, ""),
        (Interval(0.0625, -0.0044, 0.1294), "0.062 ±0.067", "-0.004 to 0.129"),
        (Interval(2.0, 2.0, 2.0), "2.00", "2.00–2.00"),
    ],
)
def test_an_interval_ends_where_its_value_does(interval: Interval | None, text: str, limits: str) -> None:
    assert (plus_minus(interval), span(interval)) == (text, limits)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"), (12_345, "12.3 µs"), (612e6, "612 ms"), (999.96e6, "1.00 s"), (75e9, "75.0 s"), (119e9, "119 s"),
        (120e9, "2.00 min"), (3_600e9, "60.0 min"), (7_200e9, "2.00 h"), (90_000e9, "25.0 h"), (360_000e9, "4.17 days"),
    ],
)  # fmt: skip
def test_a_duration_is_in_the_unit_that_fits(ns: float, text: str) -> None:
    assert duration(ns) == text
    assert short_duration(ns) == text.replace(" ", "")


def test_an_interval_has_its_unit_and_its_sign() -> None:
    assert parts(Interval(17.45e12, 15.1e12, 20.2e12), unit=NS) == ("4.85 h", "±0.76")
    assert parts(Interval(257e9, 108e9, 720e9), unit=NS) == ("4.3 min", "(1.8–12.0)")
    assert parts(Interval(10.8e12, 9e12, None), unit=NS) == ("≥ 2.50 h", "")
    assert parts(Interval(5.8356e15), unit=NS) == ("67.5 days", "")
    assert plus_minus(Interval(3.482, 3.374, 3.596), unit="x") == "3.48x ±0.11"
    assert plus_minus(Interval(1.00568, 1.00556, 1.0058), unit=TIMES) == "1.0057x ±0.0001"
    assert plus_minus(Interval(0.0312, 0.011, 0.051), unit=SHARE) == "3.1 % ±2.0"
    assert span(Interval(12.7, -13.1, 38.8), signed=True) == "-13 to +39"


def test_amounts_in_a_sentence_and_beside_an_axis() -> None:
    assert [compact(amount) for amount in (0, 3.1, 90_951, 1.27e6)] == ["0", "3.10", "91.0k", "1.27M"]
    assert [money(amount) for amount in (0.004, -3.1, 1840)] == ["<$0.01", "-$3.10", "$1.84k"]
    assert [dollars(amount) for amount in (0, 0.004, 1.836, 12_345.6)] == ["$0", "<$0.01", "$1.84", "$12,346"]
    assert [amount_tick(20_000), amount_tick(1.5e6, "$"), duration_tick(0.5)] == ["20k", "$1.5M", "500 ms"]
    assert [rough_duration(ns) for ns in (0.2e9, 89.4e9, 90e9, 18_000e9)] == ["1 s", "89 s", "2 min", "5 h 0 min"]
    assert [stopwatch(seconds) for seconds in (67, 3753)] == ["1:07", "1:02:33"]


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
