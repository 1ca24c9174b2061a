"""What the schema layer says of a document, whatever is read through it."""

from __future__ import annotations

import datetime
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from costmodel import CostModelError, load, load_prices, load_profile
from costmodel.toml import Document, MalformedDocument
from taxtui.errors import UsageError
from taxtui.options import training_file


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    word: Literal["", "red", "green"] = ""
    least: int = 0
    most: int = 1

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError("least is above most; add most = ?")


class Outer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    day: datetime.date
    sure: bool
    number: float
    one: Inner
    many: list[Inner]
    told: Annotated[str, msgspec.Meta(description="nobody knows it otherwise; add told = WHO")]


WHOLE = {
    "name": '"x"',
    "day": "2026-01-01",
    "sure": "true",
    "number": "1",
    "one": "{}",
    "many": "[{}]",
    "told": '"y"',
}


def refusal(folder: Path, **change: str | None) -> MalformedDocument:
    path = folder / "it.toml"
    path.write_text("".join(f"{key} = {value}\n" for key, value in (WHOLE | change).items() if value is not None))
    with pytest.raises(MalformedDocument) as error:
        Document(path).convert(Outer)
    return error.value


@pytest.mark.parametrize(
    ("field", "fix"),
    [
        ("name", 'add name = "…"'),
        ("day", "add day = YYYY-MM-DD"),
        ("sure", "add sure = true"),
        ("number", "add number = ?"),
        ("one", "add [one]"),
        ("many", "add [[many]]"),
        ("told", "nobody knows it otherwise; add told = WHO"),
    ],
)
def test_what_is_missing_is_said_with_what_to_write(tmp_path: Path, field: str, fix: str) -> None:
    assert refusal(tmp_path, **{field: None}).fix == fix


def test_a_word_that_is_not_known_is_said_with_those_that_are(tmp_path: Path) -> None:
    told = refusal(tmp_path, many='[{}, {word = "blue"}]')
    assert str(told).endswith("it.toml:6: many[2].word: invalid enum value 'blue'; known: red, green")
    assert refusal(tmp_path, one='{word = "rad"}').fix == "did you mean 'red'?"


def test_what_contradicts_itself_is_said_where_it_stands(tmp_path: Path) -> None:
    told = refusal(tmp_path, many="[{}, {least = 2}]")
    assert str(told).endswith("it.toml:6: many[2]: least is above most; add most = ?")


@pytest.mark.parametrize("reader", [load, load_prices, load_profile, lambda path: training_file.load(str(path), {})])
def test_a_document_without_end_is_refused_by_every_reader(tmp_path: Path, reader: Callable[[Path], object]) -> None:
    path = tmp_path / "endless.toml"
    path.symlink_to("/dev/zero")
    with pytest.raises((CostModelError, UsageError), match=r"endless\.toml: not a regular file"):
        reader(path)


def test_a_sheet_with_ranges_outlives_a_garbage_collection(tmp_path: Path) -> None:
    # msgspec 0.22 keeps types of which the garbage collector crashes the interpreter: see UsdSpan
    path = tmp_path / "sheet.toml"
    keys = 'substrate = "x"\nsource = ["a", "b"]\nminimum_s = 0\nincrement_s = 1\nusd_per_hour = [1, 2]\n'
    path.write_text(f"date = 2026-01-01\n[[sandbox]]\n{keys}")
    prices = load_prices(path)
    gc.collect()
    assert prices.sandboxes[0].disputed
