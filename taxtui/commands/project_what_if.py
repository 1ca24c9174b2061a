"""``taxtui project --what-if``: savings by suspending, forking, recycling and building sandboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from costmodel import ACTIONS
from taxtui.errors import UsageError
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costmodel import Alternatives, Provider, Published, Recording, SubstrateRun
    from taxtui.options.rows import RowChoice
    from taxtui.report.formats import Report

MAX_ROWS: Final = 8


def _actions(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Split and check the names of actions."""
    if text is None:
        return ()
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if unknown := [name for name in names if name not in ACTIONS]:
        raise UsageError(f"--what-if: unknown action {unknown[0]!r}", fix=f"known: {', '.join(ACTIONS)}")
    return names


OPTION: Final = click.option(
    "--what-if",
    "changed_actions",
    metavar="ACTION,…",
    callback=_actions,
    help="Print the savings of each action per training step instead: suspend, fork, recycle, prebuild.",
)


def answer(
    actions: Sequence[str],
    sources: Sequence[Recording | Published],
    places: Sequence[SubstrateRun],
    choice: RowChoice,
    providers: Sequence[Provider],
) -> Report:
    """Return the savings of every chosen row; an estimated provider has the middle of its published figures.

    Raises:
        UsageError: no row is chosen, or too many.
        costmodel.errors.CostModelError: the run has no steps, or lacks an input or a price.
    """
    from costmodel import behind, what_if
    from taxtui.options.training_runs import place_among
    from taxtui.report.projected.what_if import report

    runs: list[tuple[str, Alternatives]] = []
    for place in places:
        matching = [item for item in providers if not place.spec or item.substrate == place.spec.partition(":")[0]]
        for row in behind(sources, place.training_run, place.prices, matching):
            identity, length = row.value.identity, place.training_run.length
            chosen = choice.means(identity) and place_among(places, identity) is place
            if chosen and (length is not None or not choice.lengths or identity.actions in choice.lengths):
                name = clean(f"{identity.label} {identity.tier} {length or identity.actions} {identity.mode}")
                runs.append((name, row))
    fix = "choose with --tier, --mode, --substrate or --actions"
    if not runs:
        raise UsageError("--what-if: no row of the recordings is chosen", fix=fix)
    if len(runs) > MAX_ROWS:
        raise UsageError(f"--what-if takes at most {MAX_ROWS} rows, and {len(runs)} are chosen", fix=fix)
    return report([(name, what_if(run, actions)) for name, run in runs])
