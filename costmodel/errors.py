"""Every error that the cost model raises on purpose.

::

    CostModelError            exit 2   anything that makes a projection impossible
    ├── TrainingRunError           exit 2   a question that cannot be answered: N < 0, unknown baseline, contradictions
    ├── PriceError            exit 2   a price sheet that is wrong
    │   └── NoPrice           exit 2   ... or lacks a price that was asked for
    └── SourceError           exit 4   a recording or published latencies that cannot be projected: damaged, too new,
                                       without a success …

A message is one line: what went wrong, where, and how to fix it.
"""

from __future__ import annotations


class CostModelError(Exception):
    """Base class; ``exit_code`` is the exit code of the command line."""

    exit_code = 2


class TrainingRunError(CostModelError, ValueError):
    """A training run has no answer."""


class PriceError(CostModelError, ValueError):
    """A price sheet is wrong."""


class NoPrice(PriceError):
    """A price sheet has no price for a sandbox; ``stanza`` is the TOML to add."""

    def __init__(self, problem: str, stanza: str) -> None:
        super().__init__(problem, stanza)
        self.problem = problem
        self.stanza = stanza

    def __str__(self) -> str:
        return f"{self.problem}; add to it\n\n{self.stanza}"


class SourceError(CostModelError, ValueError):
    """A file cannot be projected; ``offset`` is the first damaged byte, if any."""

    exit_code = 4

    def __init__(self, problem: str, offset: int | None = None, *, fix: str = "") -> None:
        super().__init__(problem)
        self.problem, self.offset, self.fix = problem, offset, fix

    def __str__(self) -> str:
        return f"{self.problem}; {self.fix}" if self.fix else self.problem
