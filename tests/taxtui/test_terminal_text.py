"""Text on its way to a terminal: what is replaced, and how wide the rest is; errors with their fix."""

from __future__ import annotations

import copy
import os
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from taxtui import errors
from taxtui.errors import SubstrateUnavailable, TaxtuiError
from taxtui.sandboxes.protocol import Availability
from taxtui.terminal_text import UNPRINTABLE, clean, clean_lines, cut, fit, width, wrap

anything = st.text(st.characters(exclude_categories=[]), max_size=60)


@given(anything)
def test_what_is_clean_can_be_printed_and_keeps_its_length(text: str) -> None:
    cleaned = clean(text)
    assert len(cleaned) == len(text)
    assert not UNPRINTABLE.search(cleaned)
    assert cleaned.encode().decode() == cleaned == clean(cleaned)


def test_escape_sequences_directions_and_bytes_of_no_text_are_marked() -> None:
    name = os.fsdecode(b"\xff")
    assert clean(f"\x1b]52;c;aGk=\x07 \x9b31m \u202e{name}") == "\ufffd]52;c;aGk=\ufffd \ufffd31m \ufffd\ufffd"
    assert clean_lines("one\ntwo\r") == "one\ntwo\ufffd"


@given(anything, st.integers(1, 40))
def test_what_is_fitted_has_exactly_the_columns(text: str, columns: int) -> None:
    assert width(cut(text, columns)) <= columns
    assert width(fit(text, columns)) == columns


@given(st.text("ab漢\u0301 ", max_size=80), st.integers(6, 40))
def test_what_is_wrapped_fits_and_is_all_there(text: str, columns: int) -> None:
    lines = wrap(text, columns, "  ")
    assert max(map(width, lines), default=0) <= columns
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_user_and_password_of_a_url_are_masked() -> None:
    assert clean("docker:host=tcp://U:P@h:1, ssh://me@h") == "docker:host=tcp://***@h:1, ssh://me@h"


def test_nothing_that_is_hidden_passes() -> None:
    hidden = "a\u00ad\u034f\u115f\u3164\ufe0f\uffa0\U000e0061\U000e0101"
    assert clean(hidden) == "a" + "\N{REPLACEMENT CHARACTER}" * (len(hidden) - 1)


def test_no_character_that_is_known_takes_more_columns_than_the_interface_counts_for_it() -> None:
    for number in range(sys.maxunicode):
        character = chr(number)
        if not UNPRINTABLE.match(character) and unicodedata.category(character) not in ("Cn", "Co"):
            assert width(character) >= cell_len(character), hex(number)


KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TaxtuiError)]


@pytest.mark.parametrize("kind", sorted({*KINDS} - {errors.Throttled}, key=str))
def test_a_problem_and_its_fix_are_one_line_together_and_known_apart(kind: type[TaxtuiError]) -> None:
    for error in (kind("it broke; twice", fix="mend it"), copy.copy(kind("it broke; twice", fix="mend it"))):
        assert (str(error), error.problem, error.fix) == ("it broke; twice; mend it", "it broke; twice", "mend it")
    assert (str(kind("it broke")), kind("it broke").fix) == ("it broke", "")


def test_a_refusal_is_an_answer_with_the_errors_own_fix_before_what_is_known_besides() -> None:
    error = SubstrateUnavailable("no key; none at all", fix="set KEY")
    assert Availability.refused(error) == Availability(ok=False, detail="no key; none at all", fix="set KEY")
    told = Availability.refused(error, "see the README", region="eu", facts={"sdk": "1"})
    assert told.fix == "set KEY; see the README"
    assert (told.region, told.facts) == ("eu", {"sdk": "1"})
    assert Availability.refused(SubstrateUnavailable("no key"), "see the README").fix == "see the README"
