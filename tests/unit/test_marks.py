"""Few flags: two of its own per row, the largest first, one line for what all rows share, each with what to do."""

from __future__ import annotations

from costmodel.projection import warnings as flags
from taxtui.report.marks import FlagMarks


def test_what_all_rows_share_is_one_line_and_a_row_has_two_marks_at_most() -> None:
    rows = [
        (flags.FEW_RUNS, flags.NO_FAILURES),
        (flags.STAND_IN, flags.FEW_TRIALS, flags.FEW_RUNS, flags.LOCKSTEP, flags.NO_FAILURES),
        (flags.FEW_TRIALS, flags.FEW_RUNS, flags.NO_FAILURES),
    ]
    marks = FlagMarks(rows, flags.WORDS, flags.DO)
    assert marks.shared == (flags.FEW_RUNS, flags.NO_FAILURES)
    assert [marks.of(row) for row in rows] == ["", "ab", "b"]
    assert list(marks.letters) == [flags.STAND_IN, flags.FEW_TRIALS]
    shared, one, two = marks.notes()
    assert shared == (
        f"All rows: few_runs ({flags.DO[flags.FEW_RUNS]}), no_failures_seen ({flags.DO[flags.NO_FAILURES]})."
    )
    assert one.startswith("a  stand_in: ")
    assert one.endswith(f"; {flags.DO[flags.STAND_IN]}")
    assert two.startswith("b  few_trials: ")


def test_one_row_alone_shares_nothing() -> None:
    marks = FlagMarks([(flags.STAND_IN, flags.FEW_TRIALS, flags.FEW_RUNS)], flags.WORDS, flags.DO)
    assert marks.of_all() == []
    assert marks.of((flags.STAND_IN, flags.FEW_TRIALS, flags.FEW_RUNS)) == "ab"
    assert FlagMarks([], flags.WORDS, flags.DO).notes() == []


def test_flags_are_in_the_order_of_what_they_could_move() -> None:
    sizes = {flags.FEW_RUNS: None, flags.NO_FAILURES: 0.5, flags.TAIL: None, flags.DISTORTED: 0.1}
    assert flags.ordered(sizes) == (flags.NO_FAILURES, flags.TAIL, flags.DISTORTED, flags.FEW_RUNS)
    assert flags.including((flags.STAND_IN, flags.TAIL), flags.ENVIRONMENT) == (
        flags.STAND_IN,
        flags.ENVIRONMENT,
        flags.TAIL,
    )
    assert flags.including((), flags.TAIL) == (flags.TAIL,)


def test_every_flag_has_words_something_to_do_and_a_size() -> None:
    assert flags.WORDS.keys() == flags.DO.keys() == flags.SIZE.keys()
