"""Dated limits of provider accounts with their sources: concurrent sandboxes, creates per second."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from costmodel.errors import TrainingRunError
from costmodel.toml import Count, Text, load_document

SHIPPED: Final = Path(__file__).parent / "data" / "limits"
_LIMITS: Final = {
    "concurrent": "quota",
    "creates_per_s": "create_rate",
    "burst": "create_burst",
}
"""Limit → the filled field of a training run."""
PerSecond = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a plan of a provider. None: no known limit."""

    substrate: Text
    # Date of the source, or of reading the source.
    date: Annotated[
        datetime.date, msgspec.Meta(description="limits change, so a profile needs its date; add date = YYYY-MM-DD")
    ]
    source: Text
    name: str = ""  # of the file
    title: str = ""
    concurrent: Count | None = None  # sandboxes at a time
    creates_per_s: PerSecond | None = None
    burst: Count | None = None  # creates at once, before the rate counts
    notes: tuple[str, ...] = ()
    disputed: bool = False  # another source's values of a shipped plan

    def __post_init__(self) -> None:
        if all(getattr(self, limit) is None for limit in _LIMITS):
            raise ValueError(f"no limit; give at least one of {', '.join(_LIMITS)}")
        if self.burst is not None and self.creates_per_s is None:
            raise ValueError("a burst is an exception to a rate; add creates_per_s = ?")

    def filled(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fill unset fields of a training run with the limits of this plan.

        A burst belongs to its rate: a rate of the user has no burst from here.
        """
        limits = {field: getattr(self, limit) for limit, field in _LIMITS.items()}
        if fields.get("create_rate") is not None:
            limits["create_burst"] = None
        unset = {field: value for field, value in limits.items() if value is not None and fields.get(field) is None}
        return {**fields, **unset}

    @property
    def lines(self) -> list[str]:
        """Lines for people: each limit with source and date, and notes."""
        values = {limit: getattr(self, limit) for limit in _LIMITS}
        lines = [
            f"{self.title}: {limit} {value:,g} ({self.source}, {self.date})"
            for limit, value in values.items()
            if value is not None
        ]
        return [*lines, *(f"{self.title}: {note}" for note in self.notes)]


def known_profiles() -> list[str]:
    """Return the names of the shipped plans."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def load_profile(name: str | Path) -> Profile:
    """Load a shipped plan by name, or a TOML file.

    Raises:
        TrainingRunError: unknown name, or a missing or impossible value.
    """
    file, plan = load_document(name, Profile, TrainingRunError, SHIPPED)
    return msgspec.structs.replace(plan, name=file.stem, title=plan.title or file.stem)
