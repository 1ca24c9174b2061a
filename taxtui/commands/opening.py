"""Finds what a command line calls a recording: a path, else the name of something that ships with taxtui."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from taxtui.errors import RecordingError, UsageError

if TYPE_CHECKING:
    from costmodel import Published, Recording, Reference

LAST = "last"
"""Name of the newest recording where `taxtui run` writes to."""


def opened(name: str) -> Recording | Published:
    """Read a recording or a file of published latencies.

    Raises:
        RecordingError: there is no such file, here or in the bundle.
        costmodel.errors.SourceError: it cannot be projected.
    """
    [result] = opened_all([name])
    return result


def opened_all(names: Sequence[str]) -> list[Recording | Published]:
    """Several, in their order; many large ones by a process for each core. Raises as ``opened``."""
    from costmodel import load_all

    return load_all([located(name) for name in names])


def located(name: str) -> Path:
    """The path of a recording, or of published latencies. Raises ``RecordingError``: there is none by that name."""
    if (path := Path(name)).exists():
        return path
    if name == LAST:
        from taxtui.live import catalogue

        group, _ = catalogue.by_age()
        if group:
            return group[0]
        raise RecordingError("there is no recording yet", fix="make one: taxtui run")
    if not path.is_absolute():
        from taxtui.plan.scenario import bundled

        within = name.removeprefix("./").removeprefix("scenarios/")
        for relative in (
            within,
            f"published/{within}",
            f"published/{within}.toml",
            f"../{name}",
            f"../recordings/{name}",
        ):
            if ".." not in path.parts and (shipped := bundled(relative)) is not None:
                return shipped
    raise RecordingError(f"there is no {name}, neither here nor among what ships with taxtui")


def reference_of(name: str) -> Reference:
    """Return the dispatch of the recording ``--reference``, which bounds unknown dispatch.

    Raises:
        RecordingError: there is no such file.
        UsageError: it is no recording but published latencies.
        costmodel.errors.CostModelError: it cannot be read, or tells no dispatch.
    """
    from costmodel import Recording, tax_bounds

    if not isinstance(source := opened(name), Recording):
        raise UsageError(f"--reference {name}: published latencies tell no dispatch", fix="give a recording")
    return tax_bounds.reference_of([source])
