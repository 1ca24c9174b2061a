"""What providers let one account do: sandboxes at a time, creates per second. Dated, each with its source."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from costmodel.errors import TrainingRunError
from costmodel.toml import Count, Document, MalformedDocument, Text

SHIPPED: Final = Path(__file__).parent / "data" / "limits"
Limit = Literal["concurrent", "creates_per_s", "burst"]
_LIMITS: Final[Mapping[Limit, str]] = {
    "concurrent": "quota",
    "creates_per_s": "create_rate",
    "burst": "create_burst",
}
"""Limit → the field of a training run that it fills."""
PerSecond = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class Disputed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What another source says of a limit."""

    limit: Limit
    value: PerSecond
    source: Text

    def __post_init__(self) -> None:
        """Check that a number of sandboxes is whole."""
        if self.limit != "creates_per_s" and self.value % 1:
            raise ValueError(f"{self.limit} must be a whole number, not {self.value:g}")


class ProfileFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of one provider's plan, as they are written. None: no such limit is known."""

    substrate: Text
    # When the source was read, or what date it bears.
    date: Annotated[
        datetime.date, msgspec.Meta(description="limits change, so a profile needs its date; add date = YYYY-MM-DD")
    ]
    source: Text
    title: str = ""
    concurrent: Count | None = None  # sandboxes at a time
    creates_per_s: PerSecond | None = None
    burst: Count | None = None  # creates at once, before the rate counts
    notes: tuple[str, ...] = ()
    disputed: tuple[Disputed, ...] = ()

    def __post_init__(self) -> None:
        """Check that there is a limit."""
        if all(getattr(self, limit) is None for limit in _LIMITS):
            raise ValueError(f"no limit; give at least one of {', '.join(_LIMITS)}")
        if self.burst is not None and self.creates_per_s is None:
            raise ValueError("a burst is an exception to a rate; add creates_per_s = ?")


class Profile(ProfileFile, frozen=True, kw_only=True):
    """The limits of one provider's plan under the name of its file."""

    name: str

    def filled(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """A training run's fields with this plan's limits where none was asked for.

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
        TrainingRunError: it is unknown, or a value is missing or makes no sense.
    """
    file = Path(name)
    if not file.suffix and (SHIPPED / f"{name}.toml").is_file():
        file = SHIPPED / f"{name}.toml"
    try:
        told = Document(file).convert(ProfileFile)
    except OSError as error:
        if not file.suffix:
            raise TrainingRunError(f"no profile {str(name)!r}; shipped are {', '.join(known_profiles())}") from error
        raise TrainingRunError(
            f"cannot read {file}: {error.strerror}; shipped are {', '.join(known_profiles())}"
        ) from error
    except MalformedDocument as error:
        raise TrainingRunError(str(error)) from error
    return Profile(**msgspec.structs.asdict(told) | {"name": file.stem, "title": told.title or file.stem})
