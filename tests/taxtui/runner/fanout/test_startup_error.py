"""What one process says of an error is the same error in another."""

from __future__ import annotations

import pytest

from taxtui.errors import RecordingError, TaxtuiError
from taxtui.runner.fanout.messages import StartupError


def test_an_error_of_ours_is_raised_again_with_how_to_fix_it() -> None:
    told = StartupError.of(RecordingError("run.msgpack is cut short", fix="recover it"))
    again = told.exception()
    assert type(again) is RecordingError
    assert (again.problem, again.fix) == ("run.msgpack is cut short", "recover it")


@pytest.mark.parametrize("name", ["ZeroDivisionError", "located", "Exit"])
def test_any_other_is_told_with_where_it_was_and_its_class(name: str) -> None:
    try:
        _ = 1 / 0
    except ZeroDivisionError as error:
        told = StartupError.of(error)
    assert "test_startup_error" in told.problem
    again = StartupError(name, told.problem, "").exception()
    assert isinstance(again, TaxtuiError)
    assert again.problem == f"{name}: {told.problem}"
