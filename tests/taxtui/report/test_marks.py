"""Few flags: two of its own per row, the largest first, one line for what all rows share, each with what to do."""

from __future__ import annotations

from costmodel.projection import warnings as flags
from taxtui.report import words
from taxtui.report.marks import FlagMarks
from taxtui.report.measured.sections import DO


def test_a_family_of_all_rows_is_one_line_and_a_row_has_two_letters_at_most() -> None:
    rows = [
        (flags.FEW_RUNS, flags.NO_FAILURES),
        (flags.STAND_IN, flags.BEYOND_LENGTH, flags.FEW_TRIALS, flags.LOCKSTEP, flags.STALE_PRICES),
        (flags.BEYOND_CONCURRENCY, flags.FEW_RUNS),
    ]
    marks = FlagMarks(rows, words.DO)
    assert marks.shared == (words.LITTLE_DATA,)
    assert [marks.of(row) for row in rows] == ["", "ab", "b"]
    assert list(marks.letters) == [words.NOT_MEASURED, words.BEYOND]
    shared, one, two = marks.notes()
    advice = [words.DO[flag] for flag in (flags.FEW_RUNS, flags.NO_FAILURES, flags.FEW_TRIALS)]
    assert shared == f"All rows: little data ({'; '.join(advice)})."
    assert one == f"a  not measured here: {words.FAMILIES[words.NOT_MEASURED]}; {words.DO[flags.STAND_IN]}"
    assert two.startswith(f"b  beyond what was measured: {words.FAMILIES[words.BEYOND]}; ")


def test_the_advice_of_several_warnings_is_printed_once() -> None:
    marks = FlagMarks([(flags.TAIL, flags.FEW_TRIALS), ()], words.DO)
    assert marks.notes() == [f"a  little data: {words.FAMILIES[words.LITTLE_DATA]}; record more trials"]


def test_the_value_of_a_warning_is_in_its_line() -> None:
    (line,) = FlagMarks([("arrival open:20/s",), ()], DO).notes()
    assert line.startswith("a  environments differ: ")
    assert "arrival open:20/s" in line


def test_one_row_alone_shares_nothing() -> None:
    marks = FlagMarks([(flags.STAND_IN, flags.FEW_TRIALS, flags.FEW_RUNS)], words.DO)
    assert marks.of_all() == []
    assert marks.of((flags.STAND_IN, flags.FEW_TRIALS, flags.FEW_RUNS)) == "ab"
    assert FlagMarks([], words.DO).notes() == []


def test_every_warning_is_of_one_of_eight_families_in_words() -> None:
    assert words.FAMILY.keys() == words.WORDS.keys() | DO.keys()
    assert set(words.FAMILY.values()) == words.FAMILIES.keys()
    assert len(words.FAMILIES) == 8
    assert words.WORDS.keys() == words.DO.keys()
    assert not any("_" in family for family in words.FAMILIES)


def test_flags_are_in_the_order_of_what_they_could_move() -> None:
    some = (flags.FEW_RUNS, flags.NO_FAILURES, flags.STAND_IN, flags.DISTORTED)
    assert flags.ordered((*some, flags.STAND_IN)) == (
        flags.STAND_IN,
        flags.DISTORTED,
        flags.NO_FAILURES,
        flags.FEW_RUNS,
    )
