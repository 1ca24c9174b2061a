"""README and docs show what the code says today; ``make reference`` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.pages import name_of, text_of
from tests.support import reference

SHOWING = [page for page in reference.PAGES if reference.SHOWN.search(text_of(page))]
GENERATED = [page for page in reference.PAGES if reference.GENERATED.search(text_of(page))]


def test_each_block_has_a_place() -> None:
    names = [name for page in GENERATED for name in reference.GENERATED.findall(text_of(page))]
    assert sorted(names) == sorted(reference.BLOCKS)


@pytest.mark.parametrize("page", GENERATED, ids=name_of)
def test_generated_tables_are_up_to_date(page: Path) -> None:
    assert reference.redrawn(text_of(page), outputs=False) == text_of(page), "make reference"


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("page", SHOWING, ids=name_of)
def test_shown_outputs_are_up_to_date(page: Path) -> None:
    everything = bool(os.environ.get("TAXTUI_REQUIRE_ALL"))  # elsewhere without the outputs that take a minute
    assert reference.redrawn(text_of(page), long=everything) == text_of(page), "make reference"


@pytest.mark.slow
def test_python_examples_print_what_the_page_shows() -> None:
    for page in reference.PAGES:
        assert reference.failures(page) == 0, name_of(page)
