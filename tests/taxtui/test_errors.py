"""Every error says what is wrong and, apart from that, what helps."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from taxtui import errors
from taxtui.errors import SubstrateUnavailable, TaxtuiError
from taxtui.sandboxes.protocol import Availability


def kinds() -> Iterator[type[TaxtuiError]]:
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, TaxtuiError) and kind is not errors.Throttled:
            yield kind


@pytest.mark.parametrize("kind", kinds())
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
