"""The default substrate, estimate and workload of ``taxtui decide``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from costmodel import Assumption
from taxtui.errors import UsageError

if TYPE_CHECKING:
    import click

    from costmodel import CellIdentity, Provider

T = TypeVar("T", int, str)
BASELINE: Final = "local"
"""Plain processes on the measuring machine: the baseline of other substrates, seldom a substrate of a training run."""


class Workload(NamedTuple):
    """Tier, mode and recorded number of actions; None: any number, because the training run has its own length."""

    tier: str
    mode: str
    actions: int | None

    def __str__(self) -> str:
        return " ".join([self.tier, *([] if self.actions is None else ["x", f"{self.actions:,}"]), self.mode])

    def matches(self, identity: CellIdentity) -> bool:
        """Whether a recorded cell has this workload."""
        same = (identity.tier, identity.mode) == (self.tier, self.mode)
        return same and self.actions in (None, identity.actions)


def choose_start(start: str | None, goal: str, cells: Sequence[CellIdentity]) -> tuple[str, list[Assumption]]:
    """Return the substrate to move from; without ``start`` the measured substrate, with the reason of the choice.

    Raises:
        UsageError: ``start`` was not recorded; without ``start``, no substrate was measured, or several.
    """
    from costmodel import matches_spec

    if start is not None:
        if not any(matches_spec(cell, start) for cell in cells):
            fix = "only the substrate of --to is estimated; measure or import the substrate of --from"
            raise UsageError(f"nothing was recorded of {start}", fix=fix)
        return start, []
    labels = list(dict.fromkeys(cell.label for cell in cells if not matches_spec(cell, goal)))
    candidates = [label for label in labels if label.partition(":")[0] != BASELINE] if len(labels) > 1 else labels
    if len(candidates) != 1:
        fix = f"choose one with --from: {', '.join(labels)}" if labels else "measure the substrate to move from"
        raise UsageError(f"{len(labels) or 'no'} measured substrates to move from", fix=fix)
    reason = "the measured substrate" if len(labels) == 1 else f"the measured substrate other than {BASELINE}"
    name = candidates[0].partition(":")[0]
    unique = [label.partition(":")[0] for label in labels].count(name) == 1
    start = name if unique else candidates[0]
    return start, [Assumption("from", start, reason)]


def estimated(
    goal: str,
    cells: Iterable[CellIdentity],
    providers: Sequence[Provider],
) -> list[Provider]:
    """Return the estimate of the substrate to move to, if neither a recording nor ``--compose`` has the substrate.

    Raises:
        UsageError: the substrate is unknown.
    """
    from costmodel import known_providers, load_provider, matches_spec

    composed, name = {provider.substrate for provider in providers}, goal.partition(":")[0]
    if any(matches_spec(cell, goal) for cell in cells):
        return []
    if name != goal and name in {*composed, *known_providers()}:
        raise UsageError(
            f"--to {goal}: options of an estimate belong to --compose", fix=f"--to {name} --compose {goal}"
        )
    if goal in composed:
        return []
    if goal in known_providers():
        return [load_provider(goal)]
    raise _unrecorded(goal, cells)


def _unrecorded(spec: str, cells: Iterable[CellIdentity]) -> UsageError:
    labels = ", ".join(dict.fromkeys(cell.label for cell in cells)) or "none"
    return UsageError(f"nothing was recorded of {spec}", fix=f"recorded: {labels}; --compose adds a provider")


def choose_workload(
    context: click.Context, start: str, goal: str, cells: Sequence[CellIdentity], lengths: Sequence[int]
) -> tuple[Workload, list[Assumption]]:
    """Return the workload of both substrates; if several match, the middle workload, with the reason of the choice.

    The middle workload has the middle tier and the middle number of actions, and mode exec where exec was recorded.

    Raises:
        UsageError: no recorded workload matches.
    """
    from costmodel import matches_spec
    from taxtui.options.training import OPTIONS, value_of
    from taxtui.options.training_runs import place_of

    tiers, modes = (
        value_of(context, next(option for option in OPTIONS if option.name == name)) for name in ("tiers", "modes")
    )
    any_length = place_of(context, start).training_run.length is not None
    if any_length and lengths:
        raise UsageError("the training run has a length, so -n chooses nothing", fix="leave -n or the length out")
    recorded = {(cell.tier, cell.mode, cell.actions) for cell in cells if matches_spec(cell, start)}
    if not recorded:
        raise _unrecorded(start, cells)
    recorded_at_goal = {(cell.tier, cell.mode, cell.actions) for cell in cells if matches_spec(cell, goal)}
    matching = [
        (tier, mode, actions)
        for tier, mode, actions in (recorded & recorded_at_goal or recorded)
        if (not tiers or tier in tiers) and (not modes or mode in modes) and (not lengths or actions in lengths)
    ]
    if not matching:
        selected = " ".join(map(str, (*tiers, *modes, *lengths)))
        names = ", ".join(sorted(f"{tier} x {actions} {mode}" for tier, mode, actions in recorded))
        raise UsageError(f"nothing was recorded of {start} {selected}", fix=f"recorded: {names}")
    count = len({(tier, mode) if any_length else (tier, mode, actions) for tier, mode, actions in matching})
    middle_tier = _middle(tier for tier, _, _ in matching)
    at_tier = [(mode, actions) for tier, mode, actions in matching if tier == middle_tier]
    mode = min((mode for mode, _ in at_tier), key=lambda name: (name != "exec", name))
    middle_actions = _middle(actions for other_mode, actions in at_tier if other_mode == mode)
    workload = Workload(middle_tier, mode, None if any_length else middle_actions)
    if count == 1:
        return workload, []
    fix = "choose with --tier, --mode, -n, or [workload] of the training file"
    reason = f"the middle of {count} recorded workloads that match; {fix}"
    return workload, [Assumption("workload", str(workload), reason)]


def _middle(values: Iterable[T]) -> T:
    """Return the middle of the distinct values, the lower of two."""
    ordered = sorted(set(values))
    return ordered[(len(ordered) - 1) // 2]
