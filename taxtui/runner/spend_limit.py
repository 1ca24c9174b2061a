"""Limits of a run: a number of sandboxes, and dollars by a price sheet. Checked before each sandbox."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from costmodel import CellIdentity, Prices, SandboxPrice, priced_cell
from taxtui.plan.spec import Limits, Plan
from taxtui.sandboxes.protocol import Substrate


class _Use(NamedTuple):
    cell: int
    began_ns: int | None = None  # None: assigned, and not started as far as known


class SpendLimit:
    """Counts sandboxes and cost; a sandbox in flight costs at least as much as the cell's dearest so far."""

    def __init__(
        self, plan: Plan, prices: Prices | None, clock: Callable[[], int] = time.monotonic_ns, created: int = 0
    ) -> None:
        """``prices`` is needed where the plan has a ``max_cost_usd``. ``clock`` is monotonic, in nanoseconds.

        ``created``: number of sandboxes so far, in a resumed run.
        """
        self.limited = plan.max_sandboxes is not None or plan.max_cost_usd is not None
        self._max_sandboxes = plan.max_sandboxes
        self._max_usd = plan.max_cost_usd
        self._prices = prices
        self._clock = clock
        self._created, self._spent_usd = created, Fraction(0)
        self._dearest_usd: dict[int, Fraction] = {}
        self._bills: dict[int, tuple[SandboxPrice, CellIdentity]] = {}
        self._in_use: dict[int, _Use] = {}  # by trial

    def price(self, cell: int, substrate: Substrate, limits: Limits) -> None:
        """Look up the price of a paid cell. Raises ``costmodel.errors.PriceError``."""
        if self._prices is None:
            return
        identity = _identity(substrate, limits)
        self._bills[cell] = self._prices.sandbox(identity), identity

    def refuses(self, cell: int) -> str:
        """Return the limit against one more sandbox of a cell; empty where allowed."""
        if self._max_sandboxes is not None and self._created >= self._max_sandboxes:
            return f"--max-sandboxes {self._max_sandboxes} is used up"
        if self._max_usd is not None and cell in self._bills:
            committed = self._spent_usd + sum(self._cost_usd(use) for use in self._in_use.values())
            if committed + self._least_usd(cell) > self._max_usd:
                return f"--max-cost {self._max_usd:g} USD would be passed, {float(committed):.2f} USD are committed"
        return ""

    def began(self, trial: int, cell: int) -> None:
        """Count an assigned trial, at the least cost until the trial starts."""
        self._created += 1
        self._in_use[trial] = _Use(cell)

    def started(self, trial: int) -> None:
        """Bill an assigned trial from now on."""
        if (use := self._in_use.get(trial)) is not None:
            self._in_use[trial] = use._replace(began_ns=self._clock())

    def withdrawn(self, trial: int) -> None:
        """Forget an assigned trial that did not start."""
        self._created -= self._in_use.pop(trial, None) is not None

    def ended(self, trial: int) -> None:
        if (use := self._in_use.pop(trial, None)) is None:
            return
        cost = self._cost_usd(use) if use.began_ns is None else self._bill_usd(use)  # a lost trial may have run unseen
        self._spent_usd += cost
        self._dearest_usd[use.cell] = max(cost, self._dearest_usd.get(use.cell, cost))

    def _bill_usd(self, use: _Use) -> Fraction:
        if use.began_ns is None or use.cell not in self._bills:
            return Fraction(0)
        price, identity = self._bills[use.cell]
        return price.usd(identity, self._clock() - use.began_ns)

    def _cost_usd(self, use: _Use) -> Fraction:
        return max(self._bill_usd(use), self._least_usd(use.cell))

    def _least_usd(self, cell: int) -> Fraction:
        """Return the least cost of one more sandbox: the dearest so far, at first the lowest possible bill."""
        if cell not in self._bills:
            return Fraction(0)
        price, identity = self._bills[cell]
        return self._dearest_usd.get(cell, price.usd(identity, 1))


def least_usd(prices: Prices, substrate: Substrate, limits: Limits) -> float:
    """Return the lowest possible bill of one sandbox. Raises ``costmodel.errors.PriceError``."""
    identity = _identity(substrate, limits)
    return float(prices.sandbox(identity).usd(identity, 1))


def _identity(substrate: Substrate, limits: Limits) -> CellIdentity:
    return priced_cell(substrate.name, substrate.variant, limits.cpus, limits.memory_mib)
