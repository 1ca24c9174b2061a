"""TOML and JSON that people write: read within bounds, held to a schema, and what is wrong with them said in one line.

A schema is a msgspec ``Struct`` whose types say what is allowed. What types cannot say, its ``__post_init__`` does,
with a ``ValueError``; what to write for a field that is missing stands in the description of its type. A complaint
names the file, the line and the key.
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar, Union, get_args, get_origin

import msgspec

from costmodel.regular_file import open_regular
from costmodel.units import MAX_INT

T = TypeVar("T")

MAX_BYTES: Final = 4 << 20
Text = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=MAX_INT)]
_PLAIN: Final = re.compile(r"[\w-]+")


class MalformedDocument(Exception):
    """What is wrong, and where; ``fix``: what to do about it, "" where that is not known."""

    def __init__(self, problem: str, fix: str = "") -> None:
        """Both are on one line."""
        super().__init__(f"{problem}; {fix}" if fix else problem)
        self.problem = problem
        self.fix = fix


class Document:
    """A parsed file that remembers its text, so that a complaint can name the line."""

    def __init__(self, path: Path) -> None:
        """Read it. Raises ``MalformedDocument``; ``OSError`` where it cannot be read."""
        self.path = path
        with open_regular(path) as file:
            raw = file.read(MAX_BYTES + 1) or b""  # not all: a file of /proc may have no end
        if len(raw) > MAX_BYTES:
            raise MalformedDocument(f"{path}: more than {MAX_BYTES >> 20} MiB")
        try:
            self.text = raw.decode("utf-8")
            self.data = self._parsed()
        except UnicodeDecodeError as error:
            raise MalformedDocument(f"{path}: not text in UTF-8 (byte {error.start})") from error
        except (ValueError, OverflowError, RecursionError, msgspec.DecodeError) as error:
            raise MalformedDocument(f"{path}: {_one_line(error)}") from error
        self._check_finite(self.data, [])

    def _parsed(self) -> dict[str, Any]:
        if self.path.suffix == ".json":
            return msgspec.json.decode(self.text, type=dict[str, Any])
        return tomllib.loads(self.text)

    def _check_finite(self, value: Any, steps: list[str | int]) -> None:
        if isinstance(value, float) and not math.isfinite(value):
            self.complain(steps, f"must be a finite number, not {value}")
        inner: Iterable[tuple[str | int, Any]] = ()
        if isinstance(value, dict):
            inner = value.items()
        elif isinstance(value, list):
            inner = enumerate(value)
        for key, one in inner:
            self._check_finite(one, [*steps, key])

    def convert(self, kind: type[T]) -> T:
        """The document as ``kind``, a Struct. Raises ``MalformedDocument``."""
        try:
            return msgspec.convert(self.data, kind)
        except msgspec.ValidationError as error:
            steps, problem, fix = complaint(error, kind)
            self.complain(steps, problem, fix)

    def complain(self, steps: Sequence[str | int], problem: str, fix: str = "") -> NoReturn:
        """Raise ``MalformedDocument`` about what keys and indexes lead to."""
        line = self._line(steps)
        where = f"{self.path}:{line}: " if line else f"{self.path}: "
        raise MalformedDocument(f"{where}{written(steps)}{problem}", fix)

    def _line(self, steps: Sequence[str | int]) -> int | None:
        """The line that sets what the steps lead to, where it stands on one of its own."""
        lines = self.text.splitlines()
        at, found = 0, None
        for place, key in enumerate(steps):
            if isinstance(key, int):
                continue
            nth = steps[place + 1] if place + 1 < len(steps) else 0
            pattern = re.compile(rf"""\s*(\[+\s*)?(["']?[\w-]+["']?\s*\.\s*)*["']?{re.escape(key)}["']?\s*[=:\]]""")
            hits = [number for number in range(at, len(lines)) if pattern.match(lines[number])]
            tables = [number for number in hits if lines[number].lstrip().startswith("[[")]
            hits = tables[int(nth) :] if tables and isinstance(nth, int) else hits
            if not hits:
                return found
            at, found = hits[0], hits[0] + 1
        return found


def complaint(error: msgspec.ValidationError, kind: Any) -> tuple[list[str | int], str, str]:
    """Msgspec's words (``Object contains unknown field `x` - at `$.cells[0]```) as place, problem and fix."""
    text, _, where = str(error).partition(" - at `$")
    told = re.findall(r"[^.\[\]`]+", where)
    steps: list[str | int] = [int(step) if step.isdigit() else step for step in told]
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", text, re.DOTALL):
        return [*steps, unknown[1]], "unknown key", hint(unknown[1], list(_fields(_at(kind, steps))))
    fix = ""
    if missing := re.fullmatch(r"Object missing required field `(.*)`", text):
        fix = _to_write(missing[1], _at(kind, [*steps, missing[1]]))
    elif word := re.fullmatch(r"Invalid enum value '(.*)'", text, re.DOTALL):
        fix = hint(word[1], _words(_at(kind, steps)))
    return steps, f"{text[0].lower()}{text[1:]}", fix


def written(steps: Sequence[str | int]) -> str:
    """The place in front of what is wrong there: ``rows[2].actions: ``, items counted from 1; "" at the top."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step + 1}]"
        else:  # a key may hold anything, line ends too
            text += ("." if text else "") + (step if _PLAIN.fullmatch(step) else ascii(step))
    return f"{text}: " if text else ""


def hint(word: str, known: Sequence[str]) -> str:
    """The nearest of the words that would do, else all of them."""
    import difflib  # needed by complaints only

    close = difflib.get_close_matches(word, known, 1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def _to_write(name: str, kind: Any) -> str:
    """What sets a field that is missing: as its type describes it, else its form."""
    if get_origin(kind) is Annotated:
        told = (meta.description for meta in get_args(kind)[1:] if isinstance(meta, msgspec.Meta))
        if description := next(filter(None, told), None):
            return description
    if _fields(kind):
        return f"add [{name}]"
    if _fields(_item(kind)):
        return f"add [[{name}]]"
    forms = {str: '"…"', bool: "true", datetime.date: "YYYY-MM-DD"}
    return f"add {name} = {next((forms[option] for option in _options(kind) if option in forms), '?')}"


def _options(kind: Any) -> list[Any]:
    """What a type may be, without its bounds."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        return [option for each in get_args(kind) for option in _options(each)]
    return [kind]


def _item(kind: Any) -> Any:
    """The type of a list's items."""
    lists = (get_args(option) for option in _options(kind) if get_origin(option) in (list, tuple))
    return next((args[0] for args in lists if args), Any)


def _fields(kind: Any) -> dict[str, Any]:
    """The fields of a Struct with their types."""
    structs = (option for option in _options(kind) if isinstance(option, type) and issubclass(option, msgspec.Struct))
    return {field.name: field.type for option in structs for field in msgspec.structs.fields(option)}


def _words(kind: Any) -> list[str]:
    """The words that a type allows."""
    literals = (get_args(option) for option in _options(kind) if get_origin(option) is Literal)
    return [str(word) for words in literals for word in words if word]


def _at(kind: Any, steps: Sequence[str | int]) -> Any:
    """The type that steps lead to from ``kind``."""
    for step in steps:
        kind = _item(kind) if isinstance(step, int) else _fields(kind).get(step, Any)
    return kind


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
