"""Expected cost of a plan by a price sheet, and the options of ``taxtui run`` for its limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

import msgspec

from costmodel import SHIPPED_PRICES, PriceError, Prices, load_prices, priced_cell
from taxtui.plan.spec import Plan
from taxtui.report.numbers import dollars
from taxtui.report.plan_time import Expected

MARGIN: Final = Fraction(3, 2)
"""Proposed limit as a multiple of the estimate."""

MARGIN_UNMEASURED: Final = 2
"""Proposed limit as a multiple of the smallest possible bill, where nothing was measured."""


class CheckedSubstrate(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of ``taxtui doctor -s NAME --format json`` for choosing a substrate."""

    name: str  # with options, as ``-s`` takes it
    ok: bool | None = None  # None: not checked
    detail: str = ""
    fix: str = ""
    version: str = ""
    variant: str | None = None  # None: unknown
    latency_ns: int = 0
    prices: str = ""  # the substrate's shipped price sheet
    capabilities: dict[str, Any] = {}

    @property
    def paid(self) -> bool:
        return self.capabilities.get("paid") is True


class ExpectedBill(NamedTuple):
    """Expected cost of the sandboxes of a paid substrate."""

    name: str  # with options, as ``-s`` takes it
    sandboxes: int  # warm-ups included
    usd: Fraction | None  # None: the price or the life of a sandbox is unknown
    least_usd: Fraction | None  # smallest possible bill; None: the price is unknown

    @property
    def words(self) -> str:
        if self.usd is not None:
            return f"{self.name} ~{dollars(float(self.usd))}"
        if self.least_usd is not None:
            return f"{self.name} from {dollars(float(self.least_usd))}"
        return f"{self.name}: price unknown"


class Expense(NamedTuple):
    """Cost and limits of a plan."""

    words: str  # local $0 · ecs ~$1.84 (max $2.76)
    options: tuple[str, ...] = ()  # for ``taxtui run``; () if nothing is paid
    questions: Mapping[str, str] = {}  # paid substrate → question to confirm by its name
    obstacle: str = ""  # reason for refusing the launch
    paid: bool = False


def expense(
    plan: Plan,
    expected: Sequence[Expected],
    answers: Mapping[str, CheckedSubstrate],
    sheet: str = "",
) -> Expense:
    """Return the cost of a plan and its limits. ``sheet``: a price sheet; "": the sheets of the substrates."""
    names = list(dict.fromkeys(str(cell.substrate) for cell in plan.cells))
    checks = {name: answers.get(name) for name in names}
    paid = [name for name, answer in checks.items() if answer is not None and answer.paid]
    if not paid:
        return Expense(" · ".join(_unpaid(name, answer) for name, answer in checks.items()))
    sheets = {name: sheet or _named_sheet(checks[name]) for name in paid}
    limit_usd = None if plan.max_cost_usd is None else Fraction(plan.max_cost_usd)
    try:
        share = _share(plan, expected)
        loaded = {name: load_prices(name) for name in dict.fromkeys(sheets.values()) if name}
        bills = {name: _bill(name, expected, loaded.get(sheets[name]), plan, share) for name in paid}
    except PriceError as error:
        return Expense(f"unknown: {error}", obstacle=str(error), paid=True)
    words = " · ".join(bills[name].words if name in bills else _unpaid(name, answer) for name, answer in checks.items())
    sandboxes = plan.repeat * sum(cell.trials + plan.warm_ups(cell) for cell in plan.cells)
    options = ["--max-sandboxes", str(min(sandboxes, plan.max_sandboxes or sandboxes))]
    if "" in sheets.values() or len(set(sheets.values())) > 1:  # a run counts by one sheet
        if limit_usd is not None:
            return Expense(
                words, obstacle="a limit in dollars needs one price sheet for all paid substrates", paid=True
            )
        questions = {name: _question(bill, None, alone=len(paid) == 1) for name, bill in bills.items()}
        return Expense(f"{words}; without a price sheet, no limit in dollars", tuple(options), questions, paid=True)
    most_usd = limit_usd if limit_usd is not None else _proposed_usd(bills.values())
    [sheet] = set(sheets.values())
    options += ["--max-cost", f"{float(most_usd):.2f}", "--prices", sheet]
    questions = {name: _question(bill, most_usd, alone=len(paid) == 1) for name, bill in bills.items()}
    together = "" if len(paid) == 1 else " in all"
    return Expense(f"{words} (max {dollars(float(most_usd))}{together})", tuple(options), questions, paid=True)


def _unpaid(name: str, answer: CheckedSubstrate | None) -> str:
    if answer is None or answer.ok is None:
        return f"{name}: not checked yet"
    if not answer.ok and not answer.capabilities:  # the check failed before the price was known
        return f"{name}: unknown, not available"
    return f"{name} $0"


def _named_sheet(answer: CheckedSubstrate | None) -> str:
    shipped = [path.stem for path in SHIPPED_PRICES.glob("*.toml")]
    return answer.prices if answer is not None and answer.prices in shipped else ""


def _share(plan: Plan, expected: Sequence[Expected]) -> Fraction:
    walls_ns = [item.wall_ns for item in expected if item.wall_ns is not None]
    if plan.budget_s is None or len(walls_ns) < len(expected):
        return Fraction(1)
    return min(Fraction(1), Fraction(plan.budget_s) * 10**9 / Fraction(max(1.0, plan.repeat * sum(walls_ns))))


def _bill(name: str, expected: Sequence[Expected], prices: Prices | None, plan: Plan, share: Fraction) -> ExpectedBill:
    """Return the cost of a paid substrate's cells. Raises ``PriceError`` if the sheet lacks the substrate."""
    cells = [item for item in expected if str(item.cell.substrate) == name]
    sandboxes = plan.repeat * sum(item.cell.trials + item.cell.warmup for item in cells)
    if prices is None:
        return ExpectedBill(name, sandboxes, None, None)
    usd: Fraction | None = Fraction(0)
    least_usd = Fraction(0)
    for item in cells:
        identity = priced_cell(item.cell.substrate.name, item.variant, plan.limits.cpus, plan.limits.memory_mib)
        price, number = prices.sandbox(identity), plan.repeat * (item.cell.trials + item.cell.warmup)
        least_usd += number * price.usd(identity, 1)
        if item.trial_ns is None:
            usd = None
        elif usd is not None:
            usd += number * price.usd(identity, round(item.trial_ns))
    return ExpectedBill(name, sandboxes, None if usd is None else usd * share, least_usd * share)


def _proposed_usd(bills: Iterable[ExpectedBill]) -> Fraction:
    total = Fraction(0)
    for bill in bills:
        total += MARGIN * bill.usd if bill.usd is not None else MARGIN_UNMEASURED * (bill.least_usd or 0)
    return Fraction(max(1, math.ceil(total * 100)), 100)


def _question(bill: ExpectedBill, most_usd: Fraction | None, *, alone: bool) -> str:
    """``daytona: up to 404 sandboxes, about $1.84, stops at $2.60.``."""
    sandboxes = f"{bill.name}: up to {bill.sandboxes:,} sandboxes"
    if most_usd is None:
        return f"{sandboxes} for dollars. Their price is unknown: only their number is limited."
    stops = f"{'stops' if alone else 'the whole run stops'} at {dollars(float(most_usd))}"
    if bill.usd is not None:
        return f"{sandboxes}, about {dollars(float(bill.usd))}, {stops}."
    return f"{sandboxes}, at least {dollars(float(bill.least_usd or 0))} (not measured yet), {stops}."
