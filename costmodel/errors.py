"""Every error that the cost model raises on purpose, each with an exit code.

A message is one line: what went wrong, where, and how to fix it.
"""

from __future__ import annotations


class CostModelError(Exception):
    """Anything that makes a projection impossible; ``exit_code`` is the exit code of the command line."""

    exit_code = 2


class TrainingRunError(CostModelError, ValueError):
    """A training run has no answer: a count below 0, an unknown baseline, contradictions."""


class PriceError(CostModelError, ValueError):
    """A price sheet is wrong."""


class NoPrice(PriceError):
    """A price sheet has no price for a sandbox."""


class SourceError(CostModelError, ValueError):
    """A file cannot be projected; ``offset`` is the first damaged byte, if any."""

    exit_code = 4

    def __init__(self, problem: str, offset: int | None = None, *, fix: str = "") -> None:
        super().__init__(problem)
        self.problem, self.offset, self.fix = problem, offset, fix

    def __str__(self) -> str:
        return f"{self.problem}; {self.fix}" if self.fix else self.problem
