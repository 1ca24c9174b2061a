"""A start-up error that crosses processes: the run raises the error of its worker again."""

from __future__ import annotations

import msgspec

import costmodel.errors
import taxtui.errors
from taxtui.errors import TaxtuiError, located
from taxtui.runner.redaction import scrub


class StartupError(msgspec.Struct, frozen=True, tag="startup_error"):
    """An error from before anything was created."""

    error: str  # its class
    problem: str
    fix: str

    @classmethod
    def of(cls, error: Exception) -> StartupError:
        """Return the message for an error."""
        problem, fix = f"{located(error)} {scrub(str(error))}".rstrip(), ""
        if isinstance(error, TaxtuiError):
            problem, fix = error.problem, error.fix
        elif type(error).__module__ == costmodel.errors.__name__:
            problem = str(error)
        return cls(type(error).__name__, problem, fix)

    def exception(self) -> Exception:
        """Return the error to raise."""
        for module in (taxtui.errors, costmodel.errors):
            kind = getattr(module, self.error, None)
            if isinstance(kind, type) and issubclass(kind, TaxtuiError):
                return kind(self.problem, fix=self.fix)
            if isinstance(kind, type) and issubclass(kind, Exception):
                return kind(self.problem)
        return TaxtuiError(f"{self.error}: {self.problem}", fix=self.fix)
