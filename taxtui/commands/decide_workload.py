"""Chooses what ``taxtui decide`` compares where the command line leaves it open: substrate, estimate, workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from costmodel import Assumption
from taxtui.errors import UsageError

if TYPE_CHECKING:
    import click

    from costmodel import CellIdentity, Provider, Published, Recording

T = TypeVar("T", int, str)
BASELINE: Final = "local"
"""Plain processes of the measuring machine: a baseline of other substrates, hardly the one of a training run."""


class Workload(NamedTuple):
    """Tier, mode and recorded number of actions; None: any number, as the training run has a length of its own."""

    tier: str
    mode: str
    actions: int | None

    def __str__(self) -> str:
        return " ".join([self.tier, *([] if self.actions is None else ["x", f"{self.actions:,}"]), self.mode])

    def matches(self, identity: CellIdentity) -> bool:
        """Whether a recorded cell has this workload."""
        same = (identity.tier, identity.mode) == (self.tier, self.mode)
        return same and self.actions in (None, identity.actions)


def found_start(start: str | None, goal: str, cells: Sequence[CellIdentity]) -> tuple[str, list[Assumption]]:
    """Return the substrate to move from, and the choice where it is not given: the measured one.

    Raises:
        UsageError: none was measured, or several.
    """
    from costmodel import matches_spec

    if start is not None:
        return start, []
    labels = list(dict.fromkeys(cell.label for cell in cells if not matches_spec(cell, goal)))
    others = [label for label in labels if label.partition(":")[0] != BASELINE]
    result = others if len(labels) > 1 else labels
    if len(result) != 1:
        fix = f"choose one with --from: {', '.join(labels)}" if labels else "measure the substrate to move from"
        raise UsageError(f"{len(labels) or 'no'} measured substrates to move from", fix=fix)
    why = "the measured substrate" if len(labels) == 1 else f"the measured substrate other than {BASELINE}"
    name = result[0].partition(":")[0]
    start = name if [label.partition(":")[0] for label in labels].count(name) == 1 else result[0]
    return start, [Assumption("from", start, why)]


def estimated(
    goal: str,
    cells: Iterable[CellIdentity],
    providers: Sequence[Provider],
    read: Callable[[str], Recording | Published],
) -> list[Provider]:
    """Return the estimate of the substrate to move to, where it was neither measured nor asked for as an estimate."""
    from costmodel import known_providers, load_provider, matches_spec

    known = goal in known_providers() and goal not in {provider.substrate for provider in providers}
    return [load_provider(goal, read)] if known and not any(matches_spec(cell, goal) for cell in cells) else []


def found_workload(
    context: click.Context, start: str, goal: str, cells: Sequence[CellIdentity], lengths: Sequence[int]
) -> tuple[Workload, list[Assumption]]:
    """Return the workload that both substrates have, and the choice where several match: the middle one.

    The middle tier and number of actions in their order; of the modes exec, where it was recorded.

    Raises:
        UsageError: nothing that was recorded matches.
    """
    from costmodel import matches_spec
    from taxtui.options.asking import place_of
    from taxtui.options.training import OPTIONS, value_of

    tiers, modes = (
        value_of(context, next(item for item in OPTIONS if item.name == name)) for name in ("tiers", "modes")
    )
    any_length = place_of(context, start).training_run.length is not None
    at_goal = {(cell.tier, cell.mode, cell.actions) for cell in cells if matches_spec(cell, goal)}
    there = [cell for cell in cells if matches_spec(cell, start)]
    if not there:
        known = ", ".join(dict.fromkeys(cell.label for cell in cells)) or "none"
        raise UsageError(f"nothing was recorded of {start}", fix=f"recorded: {known}; --compose adds a provider")
    recorded = {(cell.tier, cell.mode, cell.actions) for cell in there}
    wanted = [
        item
        for item in (recorded & at_goal or recorded)
        if (not tiers or item[0] in tiers) and (not modes or item[1] in modes) and (not lengths or item[2] in lengths)
    ]
    if not wanted:
        asked = " ".join(map(str, (*tiers, *modes, *lengths)))
        known = ", ".join(sorted(f"{tier} x {actions} {mode}" for tier, mode, actions in recorded))
        raise UsageError(f"nothing was recorded of {start} {asked}", fix=f"recorded: {known}")
    count = len({item[:2] if any_length else item for item in wanted})
    tier = _middle(item[0] for item in wanted)
    wanted = [item for item in wanted if item[0] == tier]
    mode = min((item[1] for item in wanted), key=lambda name: (name != "exec", name))
    actions = _middle(item[2] for item in wanted if item[1] == mode)
    workload = Workload(tier, mode, None if any_length else actions)
    if count == 1:
        return workload, []
    fix = "choose with --tier, --mode, -n, or [workload] of the training file"
    why = f"the middle of {count} recorded workloads that match; {fix}"
    return workload, [Assumption("workload", str(workload), why)]


def _middle(values: Iterable[T]) -> T:
    """Return the middle of the distinct values, the lower of two."""
    ordered = sorted(set(values))
    return ordered[(len(ordered) - 1) // 2]
