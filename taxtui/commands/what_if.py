"""``taxtui project --what-if``: savings by suspending, forking, recycling and building sandboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from costmodel import ACTIONS
from taxtui.errors import UsageError
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from costmodel import Provider, Published, Recording, SubstrateRun
    from taxtui.options.rows import RowChoice
    from taxtui.report.formats import Report

MOST_ROWS: Final = 8


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
    "actions_changed",
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
    progress: Callable[[float], None],
) -> Report:
    """Return the savings of every chosen row; of an estimated provider at the middle of its published figures.

    Raises:
        UsageError: no row is chosen, or too many.
        costmodel.errors.CostModelError: the run has no steps, or lacks an input or a price.
    """
    from costmodel import RunInSteps, behind, what_if
    from taxtui.options.asking import place_among
    from taxtui.report.projected.what_if import report

    runs: list[tuple[str, RunInSteps]] = []
    for place in places:
        known = [one for one in providers if not place.spec or one.substrate == place.spec.partition(":")[0]]
        for one in behind(sources, place.training_run, place.prices, known):
            identity = one.value.identity
            lengths = choice.lengths and place.training_run.length is None and identity.actions not in choice.lengths
            if choice.means(identity) and not lengths and place_among(places, identity) is place:
                length = place.training_run.length or identity.actions
                name = clean(f"{identity.label} {identity.tier} {length} {identity.mode}")
                runs.append((name, RunInSteps(one.value, one.training_run, one.prices)))
    fix = "choose with --tier, --mode, --substrate or --actions"
    if not runs:
        raise UsageError("--what-if: no row of the recordings is chosen", fix=fix)
    if len(runs) > MOST_ROWS:
        raise UsageError(f"--what-if takes at most {MOST_ROWS} rows, and {len(runs)} are chosen", fix=fix)
    results = []
    for number, (name, run) in enumerate(runs):

        def part(done: float, number: int = number) -> None:
            progress((number + done) / len(runs))

        results.append((name, what_if(run, actions, progress=part)))
    return report(results)
