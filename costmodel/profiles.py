"""What providers let one account do: sandboxes at a time, creates per second. Dated, each with its source."""

from __future__ import annotations

import datetime
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from costmodel.errors import DemandError

SHIPPED: Final = Path(__file__).parent / "profiles"
_LIMITS: Final = {"concurrent": "quota", "creates_per_s": "create_rate", "burst": "create_burst"}
"""Limit → the field of a demand that it fills."""
_KEYS: Final = {"title", "substrate", "date", "source", "notes", "disputed", *_LIMITS}


class Disputed(NamedTuple):
    """What another source says of a limit."""

    limit: str
    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The limits of one provider's plan. None: no such limit is known."""

    name: str
    title: str
    substrate: str
    date: datetime.date  # when the source was read, or what date it bears
    source: str
    concurrent: int | None = None  # sandboxes at a time
    creates_per_s: float | None = None
    burst: int | None = None  # creates at once, before the rate counts
    notes: tuple[str, ...] = ()
    disputed: tuple[Disputed, ...] = ()

    def filled(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """A demand's fields with this plan's limits where none was asked for.

        A burst belongs to its rate: who gives a rate gets no burst from here.
        """
        own = {field: getattr(self, limit) for limit, field in _LIMITS.items()}
        if asked.get("create_rate") is not None:
            own["create_burst"] = None
        given = {field for field in own if asked.get(field) is not None}
        return {**asked, **{field: value for field, value in own.items() if value is not None and field not in given}}

    @property
    def said(self) -> list[str]:
        """In lines: each limit with its source and date, and who says otherwise."""
        values = {limit: getattr(self, limit) for limit in _LIMITS}
        lines = [
            f"{self.title}: {limit} {value:,g} ({self.source}, {self.date})"
            for limit, value in values.items()
            if value is not None
        ]
        others = [f"{self.title}: {one.limit} {one.value:,g} says {one.source}" for one in self.disputed]
        return [*lines, *others, *(f"{self.title}: {note}" for note in self.notes)]


def known_profiles() -> list[str]:
    """The names of those that ship."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def load_profile(name: str | Path) -> Profile:
    """A shipped profile by its name, or a TOML file of one's own.

    Raises:
        DemandError: it is unknown, or a value is missing or makes no sense.
    """
    file = Path(name)
    if not file.suffix and (SHIPPED / f"{name}.toml").is_file():
        file = SHIPPED / f"{name}.toml"
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        if not file.suffix:
            raise DemandError(f"no profile {str(name)!r}; shipped are {', '.join(known_profiles())}") from error
        raise DemandError(f"cannot read {file}: {error.strerror}; shipped are {', '.join(known_profiles())}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DemandError(f"{file}: {error}") from error
    return _profile(document, file)


def _profile(document: dict[str, Any], file: Path) -> Profile:
    if unknown := sorted(set(document) - _KEYS):
        raise DemandError(f"{file}: unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}")
    date = document.get("date")
    if not isinstance(date, datetime.date) or isinstance(date, datetime.datetime):
        raise DemandError(f"{file}: limits change, so a profile needs its date; add date = YYYY-MM-DD")
    for key in ("substrate", "source"):
        if not isinstance(document.get(key), str) or not document[key]:
            raise DemandError(f'{file}: {key} is missing; add {key} = "…"')
    values = {limit: _limit(limit, document[limit], file) for limit in _LIMITS if limit in document}
    if not values:
        raise DemandError(f"{file}: no limit; give at least one of {', '.join(_LIMITS)}")
    if "burst" in values and "creates_per_s" not in values:
        raise DemandError(f"{file}: a burst is an exception to a rate; add creates_per_s = ?")
    notes, disputed = document.get("notes", []), document.get("disputed", [])
    if not isinstance(notes, list) or not isinstance(disputed, list):
        raise DemandError(f"{file}: notes is a list of texts, and disputed is written [[disputed]]")
    return Profile(
        name=file.stem,
        title=str(document.get("title", file.stem)),
        substrate=document["substrate"],
        date=date,
        source=document["source"],
        notes=tuple(map(str, notes)),
        disputed=tuple(_disputed(table, file) for table in disputed),
        **values,
    )


def _disputed(table: Any, file: Path) -> Disputed:
    if not isinstance(table, dict) or set(table) != {"limit", "value", "source"} or table["limit"] not in _LIMITS:
        raise DemandError(f"{file}: [[disputed]] has a limit ({', '.join(_LIMITS)}), its value and its source")
    return Disputed(table["limit"], _limit(table["limit"], table["value"], file), str(table["source"]))


def _limit(limit: str, value: Any, file: Path) -> Any:
    whole = limit != "creates_per_s"
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not 0 < value < math.inf:
        what = "a whole number of at least 1" if whole else "a number above 0"
        raise DemandError(f"{file}: {limit} must be {what}, not {value!r}")
    return value if whole else float(value)
