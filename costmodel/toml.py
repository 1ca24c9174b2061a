"""TOML and JSON files of users: bounded reading, validation against a schema, and one-line error messages.

A schema is a msgspec ``Struct``. Its ``__post_init__`` checks rules beyond types and raises ``ValueError``. The
description of a type is the fix for a missing field. An error message names the file, the line and the key.
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar, Union, get_args, get_origin

import msgspec

from costmodel.regular_file import read_regular
from costmodel.units import MAX_INT

T = TypeVar("T")

MAX_BYTES: Final = 4 << 20
Text = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=MAX_INT)]
_PLAIN: Final = re.compile(r"[\w-]+")


class MalformedDocument(Exception):
    """Problem and place in one line; ``fix`` is the advice, or ""."""

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(f"{problem}; {fix}" if fix else problem)
        self.problem = problem
        self.fix = fix


class Document:
    """A parsed file with its text, so that an error can name the line."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises ``MalformedDocument``; ``OSError`` for an unreadable file."""
        self.path = path
        raw = read_regular(path, MAX_BYTES)
        try:
            self.text = raw.decode("utf-8-sig")
            is_json = path.suffix == ".json"
            self.data = msgspec.json.decode(raw, type=dict[str, Any]) if is_json else tomllib.loads(self.text)
        except UnicodeDecodeError as error:
            raise MalformedDocument(f"{path}: not text in UTF-8 (byte {error.start})") from error
        except (ValueError, OverflowError, RecursionError, msgspec.DecodeError) as error:
            raise MalformedDocument(f"{path}: {' '.join(str(error).split()) or type(error).__name__}") from error
        self._check_finite(self.data, [])

    def _check_finite(self, value: Any, steps: list[str | int]) -> None:
        if isinstance(value, float) and not math.isfinite(value):
            self.complain(steps, f"must be a finite number, not {value}")
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            self._check_finite(item, [*steps, key])

    def convert(self, kind: type[T]) -> T:
        """Convert to ``kind``, a Struct. Raises ``MalformedDocument``."""
        try:
            return msgspec.convert(self.data, kind)
        except msgspec.ValidationError as error:
            steps, problem, fix = complaint(error, kind)
            self.complain(steps, problem, fix)

    def complain(self, steps: Sequence[str | int], problem: str, fix: str = "") -> NoReturn:
        """Raise ``MalformedDocument`` for the value at a path of keys and indexes."""
        line = self._line(steps)
        where = f"{self.path}:{line}: " if line else f"{self.path}: "
        raise MalformedDocument(f"{where}{written(steps)}{problem}", fix)

    def _line(self, steps: Sequence[str | int]) -> int | None:
        """Return the line that sets the value at ``steps``, or the nearest outer line."""
        lines = self.text.splitlines()
        at, line_number = 0, None
        for place, key in enumerate(steps):
            if isinstance(key, int):
                continue
            nth = steps[place + 1] if place + 1 < len(steps) else 0
            pattern = re.compile(rf"""\s*(\[+\s*)?(["']?[\w-]+["']?\s*\.\s*)*["']?{re.escape(key)}["']?\s*[=:\]]""")
            hits = [number for number in range(at, len(lines)) if pattern.match(lines[number])]
            tables = [number for number in hits if lines[number].lstrip().startswith("[[")]
            hits = tables[int(nth) :] if tables and isinstance(nth, int) else hits
            if not hits:
                return line_number
            at, line_number = hits[0], hits[0] + 1
        return line_number


def load_document(name: str | Path, kind: type[T], refusal: type[Exception], shipped: Path) -> tuple[Path, T]:
    """Read a TOML file, or a file of the folder ``shipped`` by its bare name. Raises ``refusal`` with one line."""
    files = {path.stem: path for path in shipped.glob("*.toml")}
    file = files.get(str(name), Path(name))
    try:
        return file, Document(file).convert(kind)
    except OSError as error:
        raise refusal(f"cannot read {file}: {error.strerror}; shipped are {', '.join(sorted(files))}") from error
    except MalformedDocument as error:
        raise refusal(str(error)) from error


def complaint(error: msgspec.ValidationError, kind: Any) -> tuple[list[str | int], str, str]:
    """Convert a msgspec message (``Object contains unknown field `x` - at `$.cells[0]```) to path, problem and fix."""
    text, _, where = str(error).partition(" - at `$")
    parts = re.findall(r"[^.\[\]`]+", where)
    steps: list[str | int] = [int(step) if step.isdigit() else step for step in parts]
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", text, re.DOTALL):
        return [*steps, unknown[1]], "unknown key", hint(unknown[1], list(_fields(_at(kind, steps))))
    fix = ""
    if missing := re.fullmatch(r"Object missing required field `(.*)`", text):
        fix = _to_write(missing[1], _at(kind, [*steps, missing[1]]))
    elif word := re.fullmatch(r"Invalid enum value '(.*)'", text, re.DOTALL):
        literals = [option for option in _options(_at(kind, steps)) if get_origin(option) is Literal]
        fix = hint(word[1], [str(value) for option in literals for value in get_args(option) if value])
    return steps, f"{text[0].lower()}{text[1:]}", fix


def written(steps: Sequence[str | int]) -> str:
    """Format a path as ``rows[2].actions: ``, with items counted from 1; "" at the top."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step + 1}]"
        else:  # a key may contain any character, line ends too
            text += ("." if text else "") + (step if _PLAIN.fullmatch(step) else ascii(step))
    return f"{text}: " if text else ""


def hint(word: str, allowed: Sequence[str]) -> str:
    """Suggest the closest allowed word, else list all."""
    import difflib  # only for error messages

    close = difflib.get_close_matches(word, allowed, 1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(allowed)}"


def _to_write(name: str, kind: Any) -> str:
    """Return the text that sets a missing field: the description of its type, else its form."""
    if get_origin(kind) is Annotated:
        descriptions = (meta.description for meta in get_args(kind)[1:] if isinstance(meta, msgspec.Meta))
        if description := next(filter(None, descriptions), None):
            return description
    if _fields(kind):
        return f"add [{name}]"
    if _fields(_item(kind)):
        return f"add [[{name}]]"
    forms = {str: '"…"', bool: "true", datetime.date: "YYYY-MM-DD"}
    return f"add {name} = {next((forms[option] for option in _options(kind) if option in forms), '?')}"


def _options(kind: Any) -> list[Any]:
    """Return the alternatives of a type, without bounds."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        return [option for member in get_args(kind) for option in _options(member)]
    return [kind]


def _item(kind: Any) -> Any:
    """Return the item type of a list."""
    lists = (get_args(option) for option in _options(kind) if get_origin(option) in (list, tuple))
    return next((args[0] for args in lists if args), Any)


def _fields(kind: Any) -> dict[str, Any]:
    """Return the fields of a Struct with their types."""
    structs = (option for option in _options(kind) if isinstance(option, type) and issubclass(option, msgspec.Struct))
    return {field.encode_name: field.type for option in structs for field in msgspec.structs.fields(option)}


def _at(kind: Any, steps: Sequence[str | int]) -> Any:
    """Return the type at a path from ``kind``."""
    for step in steps:
        kind = _item(kind) if isinstance(step, int) else _fields(kind).get(step, Any)
    return kind
