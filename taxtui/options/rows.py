"""Which rows a report is about, in which order: ``--tier``, ``--mode``, ``--substrate``, ``--actions``, ``--sort``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import click

from taxtui.errors import UsageError
from taxtui.options.count import COUNT

if TYPE_CHECKING:
    from costmodel import CellIdentity, Length

BY_WORK: Final = "work"
BY_SUBSTRATE: Final = "substrate"
SORTS: Final = ("work", "amount", "ratio", "tax")
"""Keys that lines can be sorted by; by work is the default."""


class Choosable(Protocol):
    """A row of any report."""

    @property
    def identity(self) -> CellIdentity:
        """Of its cell."""

    @property
    def length(self) -> Length:
        """Of its trajectories."""


R = TypeVar("R", bound=Choosable)


class RowChoice(NamedTuple):
    """The rows that were selected; an empty tuple: all of them."""

    tiers: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    substrates: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    sort: str | None = None
    group: str | None = None

    def means(self, identity: CellIdentity) -> bool:
        """Whether a cell of this tier, mode and substrate is meant, whatever its length."""
        from costmodel import matches_spec

        named = [identity.label == substrate or matches_spec(identity, substrate) for substrate in self.substrates]
        return (
            (not self.tiers or identity.tier in self.tiers)
            and (not self.modes or identity.mode in self.modes)
            and (not named or any(named))
        )

    def of(self, rows: Sequence[R]) -> list[R]:
        """The rows that are meant.

        Raises:
            UsageError: an option means none of them, by its name and with those that there are; or all together do.
        """
        from costmodel import matches_spec

        tests: list[tuple[str, tuple[Any, ...], Callable[[R, Any], bool], Callable[[R], str]]] = [
            ("--tier", self.tiers, lambda row, item: row.identity.tier == item, lambda row: row.identity.tier),
            ("--mode", self.modes, lambda row, item: row.identity.mode == item, lambda row: row.identity.mode),
            (
                "--substrate",
                self.substrates,
                lambda row, item: row.identity.label == item or matches_spec(row.identity, item),
                lambda row: row.identity.label,
            ),
            (
                "--actions",
                self.lengths,
                lambda row, item: row.length.low == item == row.length.high,
                lambda row: str(row.length),
            ),
        ]
        results, asked = list(rows), []
        for option, wanted, fits, told in tests:
            for item in wanted:
                asked.append(f"{option} {item}")
                if not any(fits(row, item) for row in rows):
                    more = "; taxtui project --length extrapolates to others" if option == "--actions" else ""
                    raise UsageError(f"no row is of {option} {item}", fix=f"there are {_listed(map(told, rows))}{more}")
            if wanted:
                results = [row for row in results if any(fits(row, item) for item in wanted)]
        if not results:
            raise UsageError(f"no row is of {' and '.join(asked)}", fix="leave one out")
        return results


def _listed(texts: Iterable[str]) -> str:
    return (
        ", ".join(sorted({text for text in texts if text}, key=lambda text: (len(text), text))) or "none that are told"
    )


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
SORT: Final = _option(
    "--sort",
    type=click.Choice(SORTS),
    help="Order of the rows: work (the default), amount (least first), ratio or tax (most first).",
)
GROUP: Final = _option(
    "--group", type=click.Choice((BY_WORK, BY_SUBSTRATE)), help="A row per work (the default) or per substrate."
)


def choosing(*options: click.Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add some of the options above to a command that passes its parameters to ``taken``."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        known = command.__dict__.setdefault("__click_params__", [])
        known.extend(reversed(options))
        return command

    return decorate


def taken(options: dict[str, Any]) -> RowChoice:
    """The choice among a command's options; takes them out."""
    return RowChoice(**{name: options.pop(name) for name in RowChoice._fields if name in options})
