"""The rows of a report: ``--tier``, ``--mode``, ``--substrate`` and ``--actions``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import click

from taxtui.errors import UsageError
from taxtui.options.numbers import COUNT

if TYPE_CHECKING:
    from costmodel import CellIdentity, Length


class Choosable(Protocol):
    """A row of any report."""

    @property
    def identity(self) -> CellIdentity: ...

    @property
    def length(self) -> Length: ...


R = TypeVar("R", bound=Choosable)


_Selector = tuple[str, Sequence[Any], Callable[[Choosable, Any], bool], Callable[[Choosable], str]]
"""An option, its values, the test of a row, and the text of a row's value."""


class RowChoice(NamedTuple):
    """The selected rows; an empty tuple selects all."""

    tiers: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    substrates: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()

    def means(self, identity: CellIdentity) -> bool:
        """Whether a cell has a selected tier, mode and substrate, of any length."""
        return (
            (not self.tiers or identity.tier in self.tiers)
            and (not self.modes or identity.mode in self.modes)
            and (not self.substrates or any(_is_substrate(identity, name) for name in self.substrates))
        )

    def of(self, rows: Sequence[R]) -> list[R]:
        """Return the selected rows.

        Raises:
            UsageError: an option, or all options together, select no row; the error lists the values of all rows.
        """
        selectors: tuple[_Selector, ...] = (
            ("--tier", self.tiers, lambda row, tier: row.identity.tier == tier, lambda row: row.identity.tier),
            ("--mode", self.modes, lambda row, mode: row.identity.mode == mode, lambda row: row.identity.mode),
            (
                "--substrate",
                self.substrates,
                lambda row, name: _is_substrate(row.identity, name),
                lambda row: row.identity.label,
            ),
            (
                "--actions",
                self.lengths,
                lambda row, actions: row.length.low == actions == row.length.high,
                lambda row: str(row.length),
            ),
        )
        selected = list(rows)
        for option, values, matches, value_of in selectors:
            for value in values:
                if not any(matches(row, value) for row in rows):
                    more = "; taxtui project --length extrapolates to others" if option == "--actions" else ""
                    fix = f"there are {_listed(map(value_of, rows))}{more}"
                    raise UsageError(f"no row is of {option} {value}", fix=fix)
            if values:
                selected = [row for row in selected if any(matches(row, value) for value in values)]
        if not selected:
            words = [f"{option} {value}" for option, values, *_ in selectors for value in values]
            raise UsageError(f"no row is of {' and '.join(words)}", fix="leave one out")
        return selected


def _is_substrate(identity: CellIdentity, name: str) -> bool:
    from costmodel import matches_spec

    return identity.label == name or matches_spec(identity, name)


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(sorted(set(texts) - {""}, key=lambda text: (len(text), text))) or "none with a known value"


def _option(*flags: str, **more: Any) -> click.Option:
    return click.Option([*flags], **more)


SUBSTRATE: Final = _option(
    "-s",
    "--substrate",
    "substrates",
    multiple=True,
    metavar="NAME",
    help="Select this substrate, repeatable: docker, docker:runsc.",
)
TIER: Final = _option("-t", "--tier", "tiers", multiple=True, metavar="TIER", help="Select this tier, repeatable.")
MODE: Final = _option(
    "--mode", "modes", multiple=True, metavar="MODE", help="Select this mode, repeatable: exec or session."
)
ACTIONS: Final = _option(
    "-n",
    "--actions",
    "lengths",
    multiple=True,
    type=COUNT,
    metavar="N",
    help="Select this recorded number of actions, repeatable.",
)


def choosing(*options: click.Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add some of the options above to a command, for ``pop_choice``."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        parameters = command.__dict__.setdefault("__click_params__", [])
        parameters.extend(reversed(options))
        return command

    return decorate


def pop_choice(options: dict[str, Any]) -> RowChoice:
    """Remove the choice from a command's options, and return the choice."""
    return RowChoice(**{name: options.pop(name) for name in RowChoice._fields if name in options})
