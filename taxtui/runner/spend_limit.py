"""What a run may use up: a number of sandboxes, and dollars by a price sheet. Asked before each sandbox is made."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from costmodel.pricing.sheet import Prices, priced
from costmodel.pricing.tariff import SandboxPrice
from costmodel.recording.reader import CellIdentity
from taxtui.plan.spec import Limits, Plan
from taxtui.sandboxes.protocol import Substrate


class Used(NamedTuple):
    """Of what is limited."""

    sandboxes: int = 0
    usd: Fraction = Fraction(0)


class _Use(NamedTuple):
    cell: int
    began_ns: int


class SpendLimit:
    """Counts what was made and what it costs by now; a sandbox in flight is billed as at least what others cost."""

    def __init__(
        self, plan: Plan, prices: Prices | None, clock: Callable[[], int] = time.monotonic_ns, used: Used | None = None
    ) -> None:
        """``prices`` is needed where the plan has a ``max_cost_usd``. ``clock`` is monotonic, in nanoseconds.

        ``used`` is what earlier repetitions of the same run have used up.
        """
        self._max_sandboxes = plan.max_sandboxes
        self._max_usd = plan.max_cost_usd
        self._prices = prices
        self._clock = clock
        self._made, self._spent_usd = used or Used()
        self._dearest_usd: dict[int, Fraction] = {}
        self._bills: dict[int, tuple[SandboxPrice, CellIdentity]] = {}
        self._in_use: dict[str, _Use] = {}

    @property
    def used(self) -> Used:
        """What has been used up, once nothing is in use any more."""
        return Used(self._made, self._spent_usd)

    def price(self, cell: int, substrate: Substrate, limits: Limits) -> None:
        """Look a paid cell's price up. Raises ``costmodel.errors.PriceError`` with the stanza to add."""
        if self._prices is None:
            return
        identity = _identity(substrate, limits)
        self._bills[cell] = self._prices.sandbox(identity), identity

    def refuses(self, cell: int) -> str:
        """Why no more sandboxes of a cell may be made; empty where one may."""
        if self._max_sandboxes is not None and self._made >= self._max_sandboxes:
            return f"--max-sandboxes {self._max_sandboxes} is used up"
        if self._max_usd is not None and cell in self._bills:
            committed = self._spent_usd + sum(self._cost_usd(use) for use in self._in_use.values())
            if committed + self._least_usd(cell) > self._max_usd:
                return f"--max-cost {self._max_usd:g} USD would be passed, {float(committed):.2f} USD are committed"
        return ""

    def began(self, sandbox: str, cell: int) -> None:
        """A sandbox is about to be asked for."""
        self._made += 1
        self._in_use[sandbox] = _Use(cell, self._clock())

    def ended(self, sandbox: str) -> None:
        """A sandbox is gone."""
        use = self._in_use.pop(sandbox)
        cost = self._bill_usd(use)
        self._spent_usd += cost
        self._dearest_usd[use.cell] = max(cost, self._dearest_usd.get(use.cell, cost))

    def _bill_usd(self, use: _Use) -> Fraction:
        if use.cell not in self._bills:
            return Fraction(0)
        price, identity = self._bills[use.cell]
        return price.usd(identity, self._clock() - use.began_ns)

    def _cost_usd(self, use: _Use) -> Fraction:
        return max(self._bill_usd(use), self._least_usd(use.cell))

    def _least_usd(self, cell: int) -> Fraction:
        """What one more is sure to cost: as much as the dearest so far, at first the least that is billed."""
        if cell not in self._bills:
            return Fraction(0)
        price, identity = self._bills[cell]
        return self._dearest_usd.get(cell, price.usd(identity, 1))


def least_usd(prices: Prices, substrate: Substrate, limits: Limits) -> float:
    """The least that one sandbox is billed at. Raises ``costmodel.errors.PriceError``."""
    identity = _identity(substrate, limits)
    return float(prices.sandbox(identity).usd(identity, 1))


def _identity(substrate: Substrate, limits: Limits) -> CellIdentity:
    return priced(substrate.name, substrate.variant, limits.cpus, limits.memory_mib)
