"""What is installed under a group of entry points, ours and third parties': read again only after an installation."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from pathlib import Path


def points(group: str) -> Mapping[str, EntryPoint]:
    """Entry points by name.

    Reading those of all packages takes some ten milliseconds. They are the same while every folder on ``sys.path`` is
    the same and has not changed, which is also when Python looks for packages anew.
    """
    return _points(group, tuple((place, _changed_ns(place)) for place in sys.path))


def point(group: str, name: str) -> EntryPoint | None:
    """The one of a name, None where there is none. Ours are looked through first: a run needs no other package's."""
    return _ours(group).get(name) or points(group).get(name)


@lru_cache(maxsize=16)
def _ours(group: str) -> Mapping[str, EntryPoint]:
    try:
        return {point.name: point for point in distribution("taxtui").entry_points.select(group=group)}
    except PackageNotFoundError:
        return {}


@lru_cache(maxsize=16)
def _points(group: str, places: tuple[tuple[str, int], ...]) -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def _changed_ns(place: str) -> int:
    """When a package was last put there or removed; 0: there is no such folder."""
    try:
        return Path(place).stat().st_mtime_ns
    except OSError:
        return 0
