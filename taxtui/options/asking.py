"""From a command's options to what each place is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from taxtui.options.training import OPTIONS, asked_at, training_run_of, value_of
from taxtui.options.training_file import field_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from costmodel import CellIdentity, Provider, Published, Recording, SubstrateRun


def place_of(context: click.Context, spec: str = "") -> SubstrateRun:
    """Return the training run of one substrate; "": of all without a table in the training file.

    Raises:
        UsageError: a notation cannot be read.
        costmodel.errors.CostModelError: options contradict each other, or a price sheet is wrong.
    """
    from costmodel import SubstrateRun, load_prices

    asked = asked_at(spec, context)
    asked.pop("compose")
    sheet = asked.pop("prices")
    return SubstrateRun(spec, training_run_of(asked), None if sheet is None else load_prices(sheet))


def stated_at(context: click.Context, spec: str) -> frozenset[str]:
    """The fields of a training run that its file gives for this place alone."""
    file = context.params["file"]
    own = {} if file is None else file.at.get(spec, {})
    return frozenset(field_of(option) for option in OPTIONS if option.name in own)


def places_of(context: click.Context) -> list[SubstrateRun]:
    """Every substrate with tables of its own in the training file, then all others. Raises as ``place_of``."""
    file = context.params["file"]
    return [place_of(context, spec) for spec in (*(file.at if file else ()), "")]


def providers_of(context: click.Context, read: Callable[[str], Recording | Published]) -> list[Provider]:
    """The providers that are composed; ``read`` opens the recordings that they name.

    Raises ``costmodel.errors.CostModelError``: one is unknown, or a file is wrong.
    """
    specs = value_of(context, next(option for option in OPTIONS if option.name == "compose"))
    if not specs:
        return []
    from costmodel import load_provider

    return [load_provider(spec, read) for spec in specs]


def place_among(places: Sequence[SubstrateRun], identity: CellIdentity) -> SubstrateRun:
    """The one that means a cell."""
    from costmodel import matches_spec

    return next(place for place in places if not place.spec or matches_spec(identity, place.spec))


def idle_places(context: click.Context, identities: Iterable[CellIdentity]) -> list[str]:
    """Return a line for each substrate of the training file that matches none of these cells: it may be mistyped."""
    from costmodel import matches_spec

    file, cells = context.params["file"], list(identities)
    specs = [spec for spec in (file.at if file else ()) if not any(matches_spec(cell, spec) for cell in cells)]
    return [f"no row matches [at.{spec}] in {file.path}; the section is ignored" for spec in specs]
