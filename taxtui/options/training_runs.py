"""The training run of each substrate, from options and the training file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from taxtui.options.training import OPTIONS, asked_at, training_run_of, value_of
from taxtui.options.training_file import field_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from costmodel import CellIdentity, Provider, SubstrateRun


def place_of(context: click.Context, spec: str = "") -> SubstrateRun:
    """Return the training run of SUBSTRATE[:key=value]; "": of every substrate without a section in the training file.

    Raises:
        UsageError: a notation cannot be read.
        costmodel.errors.CostModelError: options contradict each other, or a price sheet is wrong.
    """
    from costmodel import SubstrateRun, load_prices

    values = asked_at(spec, context)
    del values["compose"]
    sheet = values.pop("prices")
    return SubstrateRun(spec, training_run_of(values), None if sheet is None else load_prices(sheet))


def places_of(context: click.Context) -> list[SubstrateRun]:
    """Return the training run of every substrate with a section in the file, then of all remaining.

    Raises as ``place_of``.
    """
    file = context.params["file"]
    return [place_of(context, spec) for spec in (*(file.at if file else ()), "")]


def place_among(places: Sequence[SubstrateRun], identity: CellIdentity) -> SubstrateRun:
    """Return the training run of a cell's substrate."""
    from costmodel import matches_spec

    return next(place for place in places if not place.spec or matches_spec(identity, place.spec))


def name_sections(context: click.Context, specs: Iterable[str], identities: Sequence[CellIdentity]) -> None:
    """Give a substrate without a section in the training file the first section that matches all of its cells."""
    from costmodel import matches_spec

    file = context.params["file"]
    for spec in specs if file else ():
        cells = [cell for cell in identities if matches_spec(cell, spec)]
        alike = (name for name in file.at if cells and all(matches_spec(cell, name) for cell in cells))
        if spec not in file.at and (section := next(alike, None)) is not None:
            file.at[spec] = file.at[section]


def stated_at(context: click.Context, spec: str) -> frozenset[str]:
    """Return the fields of a training run in the file's section of this substrate."""
    file = context.params["file"]
    section = {} if file is None else file.at.get(spec, {})
    return frozenset(field_of(option) for option in OPTIONS if option.name in section)


def unmatched_sections(context: click.Context, identities: Iterable[CellIdentity]) -> list[str]:
    """Return a line for each section of the training file without a matching cell."""
    from costmodel import matches_spec

    file, cells = context.params["file"], list(identities)
    specs = [spec for spec in (file.at if file else ()) if not any(matches_spec(cell, spec) for cell in cells)]
    return [f"no row matches [at.{spec}] in {file.path}; the section is ignored" for spec in specs]


def providers_of(context: click.Context) -> list[Provider]:
    """Return the providers of ``--compose``.

    Raises:
        costmodel.errors.CostModelError: a provider is unknown, or a file is wrong.
    """
    specs = value_of(context, next(option for option in OPTIONS if option.name == "compose"))
    if not specs:
        return []
    from costmodel import load_provider

    return [load_provider(spec) for spec in specs]
